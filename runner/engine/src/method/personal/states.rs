//! Personal states in a file, only for devices that were selected at least once.
//!
//! A million models do not fit in memory, and most devices of a large federation are never
//! selected. Each device has a row with two slots, written in turn. A slot that the last checkpoint
//! relies on is never touched, so a run that stops at any moment resumes from the checkpoint with
//! the matching states. Reads and writes go through the page cache, at their offset in the file (a
//! mapping would do the same, but is not available in safe Rust).
//!
//! ```text
//! header  "sfPS0001" | values of a state u32 | rows u32 | length u32, run's name | zeros to 128
//! row     device u32 | CRC-32 of it u32 | two slots: round + 1 u32 | CRC-32 u32 | f32 values
//! ```
//!
//! The CRC-32 of a slot covers the device, the round and the values. A round of 0 means an empty
//! slot. A checkpoint has a digest of its states. Older states, from a backup or another directory,
//! would make a resumed run release other updates under the noise of earlier releases, and are
//! refused.
//!
//! **Over several ranks** all of them use one file on a shared folder. Rank 0 writes its header,
//! its size and the head of each row. The others write the slots of devices that they trained, and
//! tell all ranks their contents ([`Kept`]). A rank whose file system returns an old slot, as a
//! network file system may, finds a CRC-32 that differs from the announced one, and stops.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::method::state::StateError;

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
    /// Number of values in a state.
    length: usize,
    rows: HashMap<u32, Row>,
    /// Number of rounds that the last checkpoint relies on.
    committed: u32,
    /// Whether another rank writes everything except the slots.
    is_follower: bool,
    failure: Mutex<Option<StateError>>,
}

/// State of a device after a round, for other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    device: u32,
    /// The CRC-32 of the slot.
    check: u32,
}

/// Position of a device's state.
#[derive(Debug)]
struct Row {
    index: u32,
    slots: [Slot; 2],
}

/// Contents of a slot: the CRC-32, and the round plus one, which is 0 if the slot is empty.
#[derive(Debug, Default)]
struct Slot {
    round: AtomicU32,
    check: AtomicU32,
}

/// Header of the file.
struct Header {
    /// Number of values in a state.
    length: u32,
    rows: u32,
    /// The first bytes of the run's name.
    name: Vec<u8>,
}

impl Slot {
    fn store(&self, round: u32, check: u32) {
        self.check.store(check, Ordering::Relaxed);
        self.round.store(round, Ordering::Relaxed);
    }
}

impl Row {
    fn rounds(&self) -> [u32; 2] {
        [0, 1].map(|slot: usize| self.slots[slot].round.load(Ordering::Relaxed))
    }

    /// Returns the slot to write: not the newest one that the checkpoint relies on.
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
    /// Creates a file that disappears with the process, for runs that leave nothing behind.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn temporary(length: usize) -> Result<Self, StateError> {
        let path = PathBuf::from("in the folder for temporary files");
        let file = tempfile::tempfile().map_err(|source| io(&path, source))?;
        Self::begin(file, path, length, "")
    }

    /// Creates a file for the run `name`, and replaces an existing one.
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
        let states = Self::from_file(file, path, length);
        states.write_header(name)?;
        Ok(states)
    }

    /// Opens, on another rank, the file that rank 0 has created or opened for the run `name`. Uses
    /// the checkpoint if there is one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn follow(
        path: &Path,
        length: usize,
        name: &str,
        checkpoint: Option<(u32, Option<u32>)>,
    ) -> Result<Self, StateError> {
        let mut states = Self::read_write(path, length)?;
        states.is_follower = true;
        // Before the first checkpoint there are no rows.
        let (rounds, digest) = checkpoint.unwrap_or((0, Some(states.digest())));
        states.read_all(name, rounds, digest)?;
        Ok(states)
    }

    /// Opens the states of the run `name` as of its checkpoint after `rounds` rounds. Later states
    /// are discarded.
    ///
    /// # Errors
    /// [`StateError`]: the file belongs to another run, is truncated or unreadable, or its states
    /// do not match the `digest` of the checkpoint.
    pub fn open(
        path: &Path,
        length: usize,
        name: &str,
        rounds: u32,
        digest: Option<u32>,
    ) -> Result<Self, StateError> {
        let mut states = Self::read_write(path, length)?;
        let count = states.read_all(name, rounds, digest)?;
        // New rows are empty. The checkpoint does not know their devices.
        let size = HEADER + u64::from(count) * states.stride();
        states.resize(size)?;
        Ok(states)
    }

    /// Opens the states of any run for reading, as of its checkpoint after `rounds` rounds.
    ///
    /// # Errors
    /// [`StateError`]: there is no such file, or it is damaged.
    pub fn inspect(path: &Path, rounds: u32) -> Result<Self, StateError> {
        let file = File::open(path).map_err(|source| io(path, source))?;
        let mut states = Self::from_file(file, path.to_path_buf(), 0);
        let header = states.header()?;
        states.length = header.length as usize;
        states.committed = rounds;
        states.check_size(header.rows)?;
        for index in 0..header.rows {
            states.read_row(index)?;
        }
        Ok(states)
    }

    /// Returns the devices with a state, in no order.
    #[must_use]
    pub fn devices(&self) -> Vec<u32> {
        let rows = self.rows.iter();
        let kept = rows.filter(|(_, row)| row.newest().is_some());
        kept.map(|(device, _)| *device).collect()
    }

    /// Opens an existing file without reading it.
    fn read_write(path: &Path, length: usize) -> Result<Self, StateError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|source| io(path, source))?;
        Ok(Self::from_file(file, path.to_path_buf(), length))
    }

    fn from_file(file: File, path: PathBuf, length: usize) -> Self {
        Self {
            file,
            path,
            length,
            rows: HashMap::new(),
            committed: 0,
            is_follower: false,
            failure: Mutex::new(None),
        }
    }

    /// Reads the states as of the checkpoint after `rounds` rounds. Returns the number of rows.
    fn read_all(
        &mut self,
        name: &str,
        rounds: u32,
        digest: Option<u32>,
    ) -> Result<u32, StateError> {
        self.committed = rounds;
        let count = self.read_header(name)?;
        for index in 0..count {
            self.read_row(index)?;
        }
        if digest != Some(self.digest()) {
            return Err(self.damaged("they do not belong to the checkpoint"));
        }
        Ok(count)
    }

    /// Returns a digest of the newest states of all devices.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let mut devices: Vec<&u32> = self.rows.keys().collect();
        devices.sort_unstable();
        let mut hasher = crc32fast::Hasher::new();
        for device in devices {
            let Some((row, slot)) = self
                .rows
                .get(device)
                .and_then(|row| Some((row, row.newest()?)))
            else {
                continue;
            };
            let check = row.slots[slot].check.load(Ordering::Relaxed);
            hasher.update(&device.to_le_bytes());
            hasher.update(&row.rounds()[slot].to_le_bytes());
            hasher.update(&check.to_le_bytes());
        }
        hasher.finalize()
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

    /// Checks the header. Returns the number of rows.
    fn read_header(&self, name: &str) -> Result<u32, StateError> {
        let header = self.header()?;
        let name = name
            .as_bytes()
            .get(..LONGEST_NAME)
            .unwrap_or(name.as_bytes());
        if header.length != self.length as u32 || header.name != name {
            let path = self.path.display().to_string();
            return Err(StateError::Foreign { path });
        }
        self.check_size(header.rows)?;
        Ok(header.rows)
    }

    fn header(&self) -> Result<Header, StateError> {
        let mut header = [0; HEADER as usize];
        self.read_at(&mut header, 0)?;
        let number = |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok());
        let number = |at: usize| number(at).map_or(0, u32::from_le_bytes);
        if header.get(..8) != Some(MAGIC) {
            return Err(self.damaged("it does not begin like such a file"));
        }
        let name = header.get(20..20 + (number(16) as usize).min(LONGEST_NAME));
        Ok(Header {
            length: number(8),
            rows: number(12),
            name: name.unwrap_or_default().to_vec(),
        })
    }

    /// Checks whether there is room for this many rows.
    fn check_size(&self, rows: u32) -> Result<(), StateError> {
        let size = self
            .file
            .metadata()
            .map_err(|source| io(&self.path, source))?
            .len();
        if size < HEADER + u64::from(rows) * self.stride() {
            return Err(self.damaged("it is shorter than its header says"));
        }
        Ok(())
    }

    fn read_row(&mut self, index: u32) -> Result<(), StateError> {
        let start = self.start(index);
        let mut head = [0; ROW_HEAD as usize];
        self.read_at(&mut head, start)?;
        let (device, check) = split(head);
        if crc32fast::hash(&device.to_le_bytes()) != check {
            return Err(self.damaged(&format!("row {index} does not name a device")));
        }
        let row = Row {
            index,
            slots: Default::default(),
        };
        for (number, slot) in row.slots.iter().enumerate() {
            let (round, check, values) = self.read_slot(&row, number)?;
            // Discards slots written after the checkpoint, including torn ones.
            if round <= self.committed && check == crc(device, round, &values) {
                slot.store(round, check);
            }
        }
        self.rows.insert(device, row);
        Ok(())
    }

    /// Allocates rows for new devices.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn reserve(&mut self, devices: &[u32]) -> Result<(), StateError> {
        for &device in devices {
            if self.rows.contains_key(&device) {
                continue;
            }
            let index = self.rows.len() as u32;
            if !self.is_follower {
                let bytes = device.to_le_bytes();
                let head = [bytes, crc32fast::hash(&bytes).to_le_bytes()].concat();
                self.write_at(&head, self.start(index))?;
            }
            let row = Row {
                index,
                slots: Default::default(),
            };
            self.rows.insert(device, row);
        }
        match self.is_follower {
            true => Ok(()),
            false => self.resize(HEADER + self.rows.len() as u64 * self.stride()),
        }
    }

    /// Returns a device's state, or `None` if it was never selected.
    ///
    /// # Errors
    /// [`StateError`] if it cannot be read or was changed.
    pub fn read(&self, device: u32) -> Result<Option<Vec<f32>>, StateError> {
        let Some((row, slot)) = self
            .rows
            .get(&device)
            .and_then(|row| Some((row, row.newest()?)))
        else {
            return Ok(None);
        };
        let (round, check, values) = self.read_slot(row, slot)?;
        let known = row.slots[slot].check.load(Ordering::Relaxed);
        let is_known = round == row.rounds()[slot] && check == known;
        if !is_known || check != crc(device, round, &values) {
            return Err(self.damaged(&format!("the state of device {device}")));
        }
        let (values, _) = values.as_chunks();
        let values = values.iter().map(|value| f32::from_le_bytes(*value));
        Ok(Some(values.collect()))
    }

    /// Reads the round, the CRC-32 and the bytes of the values of a slot.
    fn read_slot(&self, row: &Row, slot: usize) -> Result<(u32, u32, Vec<u8>), StateError> {
        let mut bytes = vec![0; SLOT_HEAD as usize + 4 * self.length];
        self.read_at(&mut bytes, self.slot(row.index, slot))?;
        let values = bytes.split_off(SLOT_HEAD as usize);
        let (round, check) = split(bytes.try_into().unwrap_or_default());
        Ok((round, check, values))
    }

    /// Stores a device's state after `round`. The device must have a row. [`Self::failure`] reports
    /// failures.
    pub fn write(&self, device: u32, round: u32, values: &[f32]) {
        let Some(row) = self.rows.get(&device) else {
            return;
        };
        let number = row.to_write(self.committed);
        let round = round + 1;
        let values: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let check = crc(device, round, &values);
        let bytes = [&round.to_le_bytes()[..], &check.to_le_bytes(), &values].concat();
        match self.write_at(&bytes, self.slot(row.index, number)) {
            Ok(()) => row.slots[number].store(round, check),
            Err(error) => self.note(error),
        }
    }

    /// Returns the slots of these devices after `round`, as far as this rank knows.
    #[must_use]
    pub fn kept(&self, round: u32, devices: &[u32]) -> Vec<Kept> {
        let kept = |device: &u32| {
            let row = self.rows.get(device)?;
            let slot = &row.slots[row.newest()?];
            (slot.round.load(Ordering::Relaxed) == round + 1).then(|| Kept {
                device: *device,
                check: slot.check.load(Ordering::Relaxed),
            })
        };
        devices.iter().filter_map(kept).collect()
    }

    /// Records the slots that other ranks have written after `round`.
    pub fn learn(&self, round: u32, kept: &[Kept]) {
        for Kept { device, check } in kept {
            let Some(row) = self.rows.get(device) else {
                continue;
            };
            let is_known = row.rounds().contains(&(round + 1));
            if !is_known {
                // All ranks have the same information about a row before a round, so they choose
                // the same slot.
                row.slots[row.to_write(self.committed)].store(round + 1, *check);
            }
        }
    }

    /// Syncs everything to disk. Afterwards, a checkpoint after `rounds` rounds may rely on it.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn sync(&self, name: &str) -> Result<(), StateError> {
        let sync = || {
            self.file
                .sync_all()
                .map_err(|source| io(&self.path, source))
        };
        // The rows must be on disk before the header counts them.
        sync()?;
        if self.is_follower {
            return Ok(());
        }
        self.write_header(name)?;
        sync()
    }

    /// Protects the slots of the checkpoint after `rounds` rounds, which is now on disk.
    pub fn committed(&mut self, rounds: u32) {
        self.committed = rounds;
    }

    /// Returns the number of devices selected so far.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the first failure of a read or write since the last call.
    pub fn failure(&self) -> Option<StateError> {
        self.failure.lock().ok()?.take()
    }

    /// Stores a failure for [`Self::failure`], unless there is one already.
    pub fn note(&self, error: StateError) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
    }

    fn resize(&self, size: u64) -> Result<(), StateError> {
        self.file
            .set_len(size)
            .map_err(|source| io(&self.path, source))
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
                std::io::ErrorKind::UnexpectedEof => self.damaged("it is truncated"),
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

fn crc(device: u32, round: u32, values: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&device.to_le_bytes());
    hasher.update(&round.to_le_bytes());
    hasher.update(values);
    hasher.finalize()
}

#[cfg(test)]
mod tests;
