//! The privacy ledger: what was released, a line a round, on the disk before the result is used.
//!
//! A file of JSON lines that only grows. Each line names the run, the round and the
//! [`PrivacyEvent`], and ends in a CRC-32 of what stands before it:
//!
//! ```text
//! {"run":"5f0c..","seed":1,"round":0,"event":{"mechanism":..,"count":1},"crc32":"8d2f1a07"}
//! ```
//!
//! * A round is charged, and synced to the disk, before its noisy sum leaves the round. A crash
//!   can lose a result that was charged for, never a charge.
//! * A run that is resumed repeats rounds with the same bits; the same round of the same run is
//!   charged once. The same round with another event is refused: those would be two releases.
//! * A last line that a crash tore is cut off: its round was never used, as the sync had not
//!   returned. Any other damage is an error, as it may hide a charge.
//! * Updates and correlation matrices are charged in separate lines, and matrices twice: for a
//!   whole device and for one example of it. The two units have separate limits.
//! * Two runs with one seed would draw the same noise, and the difference of their releases would
//!   have none: the second is refused.
//! * Several runs on one population may share a file; it is locked while a round is charged, and
//!   the budget of each counts the rounds of all.

mod charge;
mod error;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use smolfed_accounting::event::PrivacyEvent;

use crate::durable::sync_folder;

pub use charge::{Charge, before, events};
pub use error::{LedgerError, Limit};

/// A ledger, open to be charged.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
    charges: Vec<Charge>,
    /// Bytes that `charges` stand for.
    read: u64,
}

impl Ledger {
    /// Opens a ledger, or begins one. A torn last line is cut off.
    ///
    /// # Errors
    /// [`LedgerError::Io`]; [`LedgerError::Damaged`] for any other damage.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(io("open", path))?;
        let mut ledger = Self {
            file,
            path: path.to_path_buf(),
            charges: Vec::new(),
            read: 0,
        };
        ledger.locked(|ledger| {
            let size = ledger.catch_up()?;
            if size > ledger.read {
                let cut = ledger.file.set_len(ledger.read);
                cut.map_err(io("write", &ledger.path))?;
            }
            // The entry in the folder is on the disk as well, before anything counts on the file.
            sync_folder(&ledger.path).map_err(io("write", &ledger.path))
        })?;
        Ok(ledger)
    }

    /// Reads a ledger without changing it. A torn last line is left out.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(path: &Path) -> Result<Vec<Charge>, LedgerError> {
        let bytes = std::fs::read(path).map_err(io("read", path))?;
        Ok(parse(path, &bytes, 0)?.0)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All charges that are known so far, in their order in the file.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Checks that these rounds of `run` were charged, each as `event`.
    ///
    /// # Errors
    /// [`LedgerError::Missing`] or [`LedgerError::Conflict`].
    pub fn expect(
        &self,
        run: &str,
        rounds: impl IntoIterator<Item = u32>,
        event: PrivacyEvent,
    ) -> Result<(), LedgerError> {
        for round in rounds {
            let path = self.path.display().to_string();
            match self.find(run, round, &event) {
                None => return Err(LedgerError::Missing { path, round }),
                Some(found) if found.event != event.with_count(1) => {
                    return Err(LedgerError::Conflict { path, round });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Charges a round, unless it was charged already, and returns once it is on the disk.
    ///
    /// The limit is for ledgers that hold other runs as well; over its own rounds a run watches
    /// itself, before it trains.
    ///
    /// # Errors
    /// [`LedgerError::OverLimit`] if the events of all runs in the ledger and this one would exceed
    /// the limit: nothing is written then. [`LedgerError::Conflict`] if the round was charged with
    /// another event; [`LedgerError::SameSeed`] if another run has its random streams.
    pub fn charge(&mut self, charge: Charge, limit: Option<&Limit>) -> Result<(), LedgerError> {
        self.locked(|ledger| {
            let size = ledger.catch_up()?;
            if let Some(found) = ledger.find(&charge.run, charge.round, &charge.event) {
                if found.event == charge.event {
                    return Ok(());
                }
                return Err(LedgerError::Conflict {
                    path: ledger.path.display().to_string(),
                    round: charge.round,
                });
            }
            has_its_own_seed(&ledger.path, &ledger.charges, &charge.run, charge.seed)?;
            let is_shared = ledger.charges.iter().any(|other| other.run != charge.run);
            if let Some(limit) = limit.filter(|_| is_shared) {
                ledger.check(&charge, limit)?;
            }
            if size > ledger.read {
                // Another run was torn off while it wrote.
                let cut = ledger.file.set_len(ledger.read);
                cut.map_err(io("write", &ledger.path))?;
            }
            let line = charge.to_line();
            let written = ledger.file.write_all(line.as_bytes());
            written
                .and_then(|()| ledger.file.sync_data())
                .map_err(io("write", &ledger.path))?;
            ledger.read += line.len() as u64;
            ledger.charges.push(charge);
            Ok(())
        })
    }

    fn check(&self, charge: &Charge, limit: &Limit) -> Result<(), LedgerError> {
        let of_unit = |other: &&Charge| other.event.unit == charge.event.unit;
        let all = events(self.charges.iter().filter(of_unit).chain([charge]));
        let epsilon = limit.accountant.epsilon(&all, limit.delta)?.epsilon;
        if epsilon > limit.epsilon.get() {
            return Err(LedgerError::OverLimit {
                path: self.path.display().to_string(),
                round: charge.round,
                epsilon,
                limit: *limit,
            });
        }
        Ok(())
    }

    /// The charge of a round: one for each unit and kind of mechanism, which tell an update from
    /// what is sent beside it.
    fn find(&self, run: &str, round: u32, event: &PrivacyEvent) -> Option<&Charge> {
        let kind = |event: &PrivacyEvent| (event.unit, discriminant(&event.mechanism));
        let is_it = |charge: &&Charge| {
            charge.round == round && kind(&charge.event) == kind(event) && charge.run == run
        };
        self.charges.iter().rev().find(is_it)
    }

    /// Does something while no other process may change the file.
    fn locked<T>(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.file.lock().map_err(io("lock", &self.path))?;
        let result = action(self);
        let unlocked = self.file.unlock().map_err(io("lock", &self.path));
        let value = result?;
        unlocked.map(|()| value)
    }

    /// Reads what other runs have appended; returns the size of the file.
    fn catch_up(&mut self) -> Result<u64, LedgerError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.read))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(io("read", &self.path))?;
        let (charges, used) = parse(&self.path, &bytes, self.charges.len())?;
        self.charges.extend(charges);
        let size = self.read + bytes.len() as u64;
        self.read += used as u64;
        Ok(size)
    }
}

/// Checks that no other run has the same random streams.
///
/// # Errors
/// [`LedgerError::SameSeed`].
pub fn has_its_own_seed(
    path: &Path,
    charges: &[Charge],
    run: &str,
    seed: Option<u64>,
) -> Result<(), LedgerError> {
    let Some(seed) = seed else {
        return Ok(());
    };
    let is_same = |charge: &Charge| charge.seed == Some(seed) && charge.run != run;
    if charges.iter().any(is_same) {
        let path = path.display().to_string();
        return Err(LedgerError::SameSeed { path, seed });
    }
    Ok(())
}

/// The charges of whole lines, and the bytes that they take. `before` lines came earlier.
fn parse(path: &Path, bytes: &[u8], before: usize) -> Result<(Vec<Charge>, usize), LedgerError> {
    let mut charges = Vec::new();
    let mut used = 0;
    for text in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = text.strip_suffix(b"\n") else {
            break;
        };
        let charge = Charge::from_line(text).map_err(|reason| LedgerError::Damaged {
            path: path.display().to_string(),
            line: before + charges.len() + 1,
            reason,
        })?;
        charges.push(charge);
        used += text.len() + 1;
    }
    Ok((charges, used))
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LedgerError {
    let path = path.display().to_string();
    move |source| LedgerError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
mod tests;
