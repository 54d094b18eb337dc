//! Personal states in a file: of every device that was ever selected, and of no other.
//!
//! A million models do not fit in memory, and most devices of a large federation are never selected.
//! Each device has a row with two slots, written in turn: a slot that the last checkpoint counts on is
//! never touched, so that a run that stops at any moment goes on from the checkpoint with the states
//! that belong to it. Reads and writes go through the page cache, at their place in the file (a
//! mapping would do the same, but cannot be had in safe Rust).
//!
//! ```text
//! header  "sfPS0001" | values of a state u32 | rows u32 | length u32, name of the run | zeros to 128
//! row     device u32 | CRC-32 of it u32 | two slots: round + 1 u32 | CRC-32 u32 | f32 values
//! ```
//!
//! The CRC-32 of a slot covers its round and values; a round of 0 means that nothing was written.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What can go wrong with the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Reading or writing failed.
    #[error("the personal models {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is cut short or was changed.
    #[error("the personal models {path} are damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The file belongs to another run.
    #[error("the personal models {path} belong to another run")]
    Foreign {
        /// The file.
        path: String,
    },
}

const MAGIC: &[u8; 8] = b"sfPS0001";
const HEADER: u64 = 128;
const LONGEST_NAME: usize = 96;
const ROW_HEAD: u64 = 8;
const SLOT_HEAD: u64 = 8;

/// The personal states of a federation.
#[derive(Debug)]
pub struct States {
    file: File,
    path: PathBuf,
    /// Values of a state.
    length: usize,
    rows: HashMap<u32, Row>,
    /// Rounds that the last checkpoint counts on.
    committed: u32,
    failure: Mutex<Option<StateError>>,
}

/// Where a device's state is, and the rounds of its two slots, each one more; 0 is empty.
#[derive(Debug)]
struct Row {
    index: u32,
    slots: [AtomicU32; 2],
}

impl Row {
    fn rounds(&self) -> [u32; 2] {
        [0, 1].map(|slot: usize| self.slots[slot].load(Ordering::Relaxed))
    }

    /// The slot to write: not the newest one that the checkpoint counts on.
    fn to_write(&self, committed: u32) -> usize {
        let [a, b] = self
            .rounds()
            .map(|round| if round <= committed { round } else { 0 });
        usize::from(a > b)
    }

    fn newest(&self) -> Option<usize> {
        let [a, b] = self.rounds();
        (a.max(b) > 0).then(|| usize::from(b > a))
    }
}

impl States {
    /// A file that goes with the process: for runs that leave nothing behind.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn temporary(length: usize) -> Result<Self, StateError> {
        let path = PathBuf::from("in the folder for temporary files");
        let file = tempfile::tempfile().map_err(|source| io(&path, source))?;
        Self::begin(file, path, length, "")
    }

    /// A new file for the run `name`; one that is there is replaced.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn create(path: &Path, length: usize, name: &str) -> Result<Self, StateError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|source| io(path, source))?;
        Self::begin(file, path.to_path_buf(), length, name)
    }

    fn begin(file: File, path: PathBuf, length: usize, name: &str) -> Result<Self, StateError> {
        let states = Self {
            file,
            path,
            length,
            rows: HashMap::new(),
            committed: 0,
            failure: Mutex::new(None),
        };
        states.write_header(name)?;
        Ok(states)
    }

    /// The states of the run `name` as its checkpoint after `rounds` rounds knows them; what was
    /// written later is forgotten.
    ///
    /// # Errors
    /// [`StateError`]: the file is another run's, or cut short, or cannot be read.
    pub fn open(path: &Path, length: usize, name: &str, rounds: u32) -> Result<Self, StateError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| io(path, source))?;
        let mut states = Self {
            file,
            path: path.to_path_buf(),
            length,
            rows: HashMap::new(),
            committed: rounds,
            failure: Mutex::new(None),
        };
        let count = states.read_header(name)?;
        for index in 0..count {
            states.read_row(index)?;
        }
        Ok(states)
    }

    fn write_header(&self, name: &str) -> Result<(), StateError> {
        let mut header = Vec::with_capacity(HEADER as usize);
        header.extend_from_slice(MAGIC);
        header.extend((self.length as u32).to_le_bytes());
        header.extend((self.rows.len() as u32).to_le_bytes());
        let name = name
            .as_bytes()
            .get(..LONGEST_NAME)
            .unwrap_or(name.as_bytes());
        header.extend((name.len() as u32).to_le_bytes());
        header.extend_from_slice(name);
        header.resize(HEADER as usize, 0);
        self.write_at(&header, 0)
    }

    /// Checks the header; gives the number of rows.
    fn read_header(&self, name: &str) -> Result<u32, StateError> {
        let mut header = [0; HEADER as usize];
        self.read_at(&mut header, 0)?;
        let number = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok());
        let number = |at: usize| number(at).map_or(0, u32::from_le_bytes);
        if header.get(..8) != Some(MAGIC) {
            return Err(self.damaged("it does not begin as such a file does"));
        }
        let name = name
            .as_bytes()
            .get(..LONGEST_NAME)
            .unwrap_or(name.as_bytes());
        let found = header.get(20..20 + (number(16) as usize).min(LONGEST_NAME));
        if number(8) != self.length as u32 || found != Some(name) {
            let path = self.path.display().to_string();
            return Err(StateError::Foreign { path });
        }
        let rows = number(12);
        let size = self
            .file
            .metadata()
            .map_err(|source| io(&self.path, source))?
            .len();
        if size < HEADER + u64::from(rows) * self.stride() {
            return Err(self.damaged("it is shorter than its header says"));
        }
        Ok(rows)
    }

    fn read_row(&mut self, index: u32) -> Result<(), StateError> {
        let start = self.start(index);
        let mut head = [0; ROW_HEAD as usize];
        self.read_at(&mut head, start)?;
        let (device, check) = split(head);
        if crc32fast::hash(&device.to_le_bytes()) != check {
            return Err(self.damaged(&format!("row {index} names no device")));
        }
        let mut rounds = [0; 2];
        for (slot, round) in rounds.iter_mut().enumerate() {
            let mut head = [0; SLOT_HEAD as usize];
            self.read_at(&mut head, self.slot(index, slot))?;
            let (written, _) = split(head);
            // What was written after the checkpoint is forgotten.
            *round = if written <= self.committed {
                written
            } else {
                0
            };
        }
        let row = Row {
            index,
            slots: rounds.map(AtomicU32::new),
        };
        self.rows.insert(device, row);
        Ok(())
    }

    /// Makes room for devices that have none yet.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn reserve(&mut self, devices: &[u32]) -> Result<(), StateError> {
        for &device in devices {
            if self.rows.contains_key(&device) {
                continue;
            }
            let index = self.rows.len() as u32;
            let bytes = device.to_le_bytes();
            let head = [bytes, crc32fast::hash(&bytes).to_le_bytes()].concat();
            self.write_at(&head, self.start(index))?;
            let row = Row {
                index,
                slots: [AtomicU32::new(0), AtomicU32::new(0)],
            };
            self.rows.insert(device, row);
        }
        let size = HEADER + self.rows.len() as u64 * self.stride();
        self.file
            .set_len(size)
            .map_err(|source| io(&self.path, source))
    }

    /// A device's state; `None` if it was never selected.
    pub fn read(&self, device: u32) -> Option<Vec<f32>> {
        let row = self.rows.get(&device)?;
        let slot = row.newest()?;
        self.noted(self.read_slot(row, slot, device)).flatten()
    }

    fn read_slot(
        &self,
        row: &Row,
        slot: usize,
        device: u32,
    ) -> Result<Option<Vec<f32>>, StateError> {
        let mut bytes = vec![0; SLOT_HEAD as usize + 4 * self.length];
        self.read_at(&mut bytes, self.slot(row.index, slot))?;
        let (round, rest) = bytes.split_at(4);
        let (check, values) = rest.split_at(4);
        if crc(round, values).to_le_bytes() != check {
            return Err(self.damaged(&format!("the state of device {device}")));
        }
        let (values, _) = values.as_chunks();
        Ok(Some(
            values
                .iter()
                .map(|value| f32::from_le_bytes(*value))
                .collect(),
        ))
    }

    /// Keeps a device's state after `round`; the device has room.
    pub fn write(&self, device: u32, round: u32, values: &[f32]) {
        let Some(row) = self.rows.get(&device) else {
            return;
        };
        let slot = row.to_write(self.committed);
        let round = (round + 1).to_le_bytes();
        let values: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let check = crc(&round, &values).to_le_bytes();
        let bytes = [&round[..], &check, &values].concat();
        if self
            .noted(self.write_at(&bytes, self.slot(row.index, slot)))
            .is_some()
        {
            row.slots[slot].store(u32::from_le_bytes(round), Ordering::Relaxed);
        }
    }

    /// Syncs everything to the disk; a checkpoint after `rounds` rounds may count on it.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn sync(&self, name: &str) -> Result<(), StateError> {
        let sync = || {
            self.file
                .sync_all()
                .map_err(|source| io(&self.path, source))
        };
        // The rows are there before the header counts them.
        sync()?;
        self.write_header(name)?;
        sync()
    }

    /// The checkpoint after `rounds` rounds is on the disk: its slots are not touched from now on.
    pub fn committed(&mut self, rounds: u32) {
        self.committed = rounds;
    }

    /// Devices that were ever selected.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.rows.len()
    }

    /// The first failure of a read or write since the last call.
    pub fn failure(&self) -> Option<StateError> {
        self.failure.lock().ok()?.take()
    }

    /// The value, or a note of what failed.
    fn noted<T>(&self, result: Result<T, StateError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if let Ok(mut failure) = self.failure.lock() {
                    failure.get_or_insert(error);
                }
                None
            }
        }
    }

    fn stride(&self) -> u64 {
        ROW_HEAD + 2 * (SLOT_HEAD + 4 * self.length as u64)
    }

    fn start(&self, index: u32) -> u64 {
        HEADER + u64::from(index) * self.stride()
    }

    fn slot(&self, index: u32, slot: usize) -> u64 {
        self.start(index) + ROW_HEAD + slot as u64 * (SLOT_HEAD + 4 * self.length as u64)
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<(), StateError> {
        self.file
            .read_exact_at(bytes, at)
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::UnexpectedEof => self.damaged("it is cut short"),
                _ => io(&self.path, source),
            })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), StateError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(|source| io(&self.path, source))
    }

    fn damaged(&self, reason: &str) -> StateError {
        StateError::Damaged {
            path: self.path.display().to_string(),
            reason: reason.to_owned(),
        }
    }
}

fn io(path: &Path, source: std::io::Error) -> StateError {
    let path = path.display().to_string();
    StateError::Io { path, source }
}

fn split(head: [u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = head;
    (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    )
}

fn crc(round: &[u8], values: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(round);
    hasher.update(values);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(round: u32, device: u32) -> Vec<f32> {
        vec![round as f32, device as f32, 0.5]
    }

    fn path() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("personal.states");
        (folder, path)
    }

    #[test]
    fn only_devices_that_were_selected_have_a_state() {
        let mut states = States::temporary(3).unwrap();
        states.reserve(&[7, 3]).unwrap();
        assert_eq!(states.read(7), None);
        states.write(7, 0, &state(0, 7));
        assert_eq!(states.read(7), Some(state(0, 7)));
        assert_eq!((states.read(3), states.read(99)), (None, None));
        assert_eq!(states.device_count(), 2);
        // Without room nothing is written: never into another device's row.
        states.write(99, 0, &state(0, 99));
        assert_eq!(states.read(99), None);
        assert!(states.failure().is_none());
    }

    /// Whatever happens after a checkpoint, it finds the states that belong to it.
    #[test]
    fn a_checkpoint_finds_its_own_states() {
        let (_folder, path) = path();
        let mut states = States::create(&path, 3, "run").unwrap();
        states.reserve(&[1, 2, 3]).unwrap();
        for round in 0..4 {
            states.write(1, round, &state(round, 1));
        }
        states.write(2, 1, &state(1, 2));
        states.sync("run").unwrap();
        states.committed(4);
        // Rounds that are lost: more often than there are slots, a first selection, a new device.
        states.reserve(&[4]).unwrap();
        for round in 4..9 {
            for device in 1..5 {
                states.write(device, round, &state(round, device));
            }
        }
        assert_eq!(states.read(1), Some(state(8, 1)));
        drop(states);

        let mut states = States::open(&path, 3, "run", 4).unwrap();
        assert_eq!(states.read(1), Some(state(3, 1)));
        assert_eq!(states.read(2), Some(state(1, 2)));
        assert_eq!((states.read(3), states.read(4)), (None, None));
        states.reserve(&[4, 5]).unwrap();
        states.write(4, 4, &state(4, 4));
        states.write(1, 4, &state(4, 1));
        assert_eq!(states.read(4), Some(state(4, 4)));
        states.sync("run").unwrap();
        drop(states);
        let states = States::open(&path, 3, "run", 5).unwrap();
        assert_eq!(
            (states.read(1), states.read(2)),
            (Some(state(4, 1)), Some(state(1, 2)))
        );
    }

    #[test]
    fn files_that_are_cut_changed_or_foreign_are_refused() {
        let (_folder, path) = path();
        let mut states = States::create(&path, 3, "run").unwrap();
        states.reserve(&[1, 2]).unwrap();
        states.write(1, 0, &state(0, 1));
        states.write(2, 0, &state(0, 2));
        states.sync("run").unwrap();
        drop(states);
        let refusal = |length, name: &str| {
            States::open(&path, length, name, 1)
                .unwrap_err()
                .to_string()
        };
        assert!(refusal(3, "other").contains("another run"));
        assert!(refusal(4, "run").contains("another run"));

        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(refusal(3, "run").contains("damaged"), "{length}");
        }
        // Wherever a byte is changed, no wrong state comes out.
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).unwrap();
            let Ok(states) = States::open(&path, 3, "run", 1) else {
                continue;
            };
            for device in [1, 2] {
                match states.read(device) {
                    Some(found) => assert_eq!(found, state(0, device), "{at}"),
                    // The flag that it was written is gone, or its check does not fit.
                    None => drop(states.failure()),
                }
            }
        }
    }
}
