//! The privacy ledger: a record of all releases, one line per round, on the disk before the result
//! is used.
//!
//! A file of JSON lines that only grows. A charge names the run, the round and the
//! [`PrivacyEvent`]. A second line has the digest of the release. Each line ends in a CRC-32 of the
//! preceding text:
//!
//! ```text
//! {"run":"5f0c..","seed":1,"round":0,"event":{..,"count":1},"has_digest":true,"crc32":"8d2f1a07"}
//! {"run":"5f0c..","round":0,"digest":"91c3..","crc32":"0e55d2b8"}
//! ```
//!
//! * A round is charged, and synced to the disk, before it trains, and its digest is on the disk
//!   before its result is used. A crash can lose a result that was charged for, but never a charge.
//! * A resumed or restarted run repeats rounds with the same bits. The name of a run covers its
//!   configuration, its data and the version of smolfed, but not the machine code that makes the
//!   release. The digest does. A repetition with the recorded digest costs nothing. A repetition
//!   with another digest is a second release of the same data, and is charged once more. So is a
//!   repetition of a round without a known digest, since earlier versions wrote none. A crash
//!   between a charge and its digest lost a result that nobody used: the repetition records its
//!   digest.
//! * The same round with another event is refused.
//! * A last line torn by a crash is cut off: its round was never used, as the sync had not
//!   returned. Any other damage is an error, as it may hide a charge.
//! * Updates and correlation matrices are charged in separate lines, and matrices twice: for a
//!   whole device and for one of its examples. The two units have separate limits.
//! * Two runs with one seed would draw the same noise, and the difference of their releases would
//!   have none: the second is refused.
//! * Several runs on one population may share a file. It is locked while a round is charged, and
//!   the budget of each run counts the rounds of all.

mod charge;
mod error;

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use smolfed_accounting::event::{PrivacyEvent, PrivacyUnit};

use crate::durable::{DurableFile, sync_folder};

pub use charge::{Charge, DigestRecord, Line, Spent, conditions, events};
pub use error::{LedgerError, Limit};

/// An open ledger.
#[derive(Debug)]
pub struct Ledger {
    file: Box<dyn DurableFile>,
    path: PathBuf,
    charges: Vec<Charge>,
    digests: Vec<DigestRecord>,
    /// Bytes of the file that `charges` and `digests` cover.
    read: u64,
}

impl Ledger {
    /// Opens or creates a ledger. A torn last line is cut off.
    ///
    /// # Errors
    /// [`LedgerError::Io`]. [`LedgerError::Damaged`] for any other damage.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(io("open", path))?;
        Self::over(Box::new(file), path)
    }

    /// Opens a ledger over a file that is open for reading and appending.
    fn over(file: Box<dyn DurableFile>, path: &Path) -> Result<Self, LedgerError> {
        let mut ledger = Self {
            file,
            path: path.to_path_buf(),
            charges: Vec::new(),
            digests: Vec::new(),
            read: 0,
        };
        ledger.locked(|ledger| {
            let size = ledger.catch_up()?;
            if size > ledger.read {
                let cut = ledger.file.set_length(ledger.read);
                cut.map_err(io("write", &ledger.path))?;
            }
            // The entry in the folder is on the disk as well, before anything relies on the file.
            sync_folder(&ledger.path).map_err(io("write", &ledger.path))
        })?;
        Ok(ledger)
    }

    /// Reads a ledger without changing it. A torn last line is left out.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn read(path: &Path) -> Result<Vec<Charge>, LedgerError> {
        let bytes = std::fs::read(path).map_err(io("read", path))?;
        let lines = parse(path, &bytes, 0)?.0.into_iter();
        Ok(lines
            .filter_map(|line| match line {
                Line::Charge(charge) => Some(charge),
                Line::Digest(_) => None,
            })
            .collect())
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all known charges, in the order of the file.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Returns the events charged to the run for repeated rounds with another release.
    #[must_use]
    pub fn repeated(&self, run: &str) -> Vec<PrivacyEvent> {
        repeated(&self.charges, run)
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
                Some(found) if !found.event.is_nearly(&event.with_count(1)) => {
                    return Err(LedgerError::Conflict { path, round });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Charges a round, unless it was already charged, and returns once the charge is on the disk.
    ///
    /// The limit is for ledgers that also hold other runs. A run checks its own rounds itself,
    /// before it trains.
    ///
    /// # Errors
    /// [`LedgerError::OverLimit`] if the events of all runs in the ledger and this one would exceed
    /// the limit. Nothing is written in this case. [`LedgerError::Conflict`] if the round was
    /// charged with another event. [`LedgerError::SameSeed`] if another run has the same random
    /// streams.
    pub fn charge(&mut self, charge: Charge, limit: Option<&Limit>) -> Result<(), LedgerError> {
        self.locked(|ledger| {
            let size = ledger.catch_up()?;
            if let Some(found) = ledger.find(&charge.run, charge.round, &charge.event) {
                if found.event.is_nearly(&charge.event) {
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
            ledger.append(size, vec![Line::Charge(charge)])
        })
    }

    /// Records the digest of a charged round, and returns once it is on the disk. If the ledger
    /// does not show that an earlier release of the round was the same, the round is charged once
    /// more. Returns the events of this charge.
    ///
    /// # Errors
    /// [`LedgerError::RepetitionOverLimit`] if the charge would exceed a limit, and
    /// [`LedgerError::Missing`] if the round was not charged: the release must not be used.
    pub fn record(
        &mut self,
        run: &str,
        round: u32,
        digest: &str,
        limits: &[(PrivacyUnit, Limit)],
    ) -> Result<Vec<PrivacyEvent>, LedgerError> {
        self.locked(|ledger| {
            let size = ledger.catch_up()?;
            let is_it = |charge: &&Charge| charge.round == round && charge.run == run;
            let own: Vec<&Charge> = ledger.charges.iter().filter(is_it).collect();
            let Some(last) = own.iter().map(|charge| charge.repetition).max() else {
                let path = ledger.path.display().to_string();
                return Err(LedgerError::Missing { path, round });
            };
            let is_it = |known: &&DigestRecord| known.round == round && known.run == run;
            let known = || ledger.digests.iter().filter(is_it);
            if known().any(|known| known.digest == digest) {
                return Ok(Vec::new());
            }
            let record = |repetition| {
                Line::Digest(DigestRecord {
                    run: run.to_owned(),
                    round,
                    repetition,
                    digest: digest.to_owned(),
                })
            };
            let has_none = !known().any(|known| known.repetition == last);
            let may_have = own.iter().any(|x| x.repetition == last && x.has_digest);
            if has_none && may_have {
                ledger.append(size, vec![record(last)])?;
                return Ok(Vec::new());
            }
            let first = own.iter().filter(|charge| charge.repetition == 0);
            let again = first.map(|charge| Charge {
                repetition: last + 1,
                has_digest: true,
                ..(*charge).clone()
            });
            let again: Vec<Charge> = again.collect();
            for (unit, limit) in limits {
                ledger.check_again(*unit, &again, limit)?;
            }
            let events = again.iter().map(|charge| charge.event).collect();
            let charges = again.into_iter().map(Line::Charge);
            ledger.append(size, charges.chain([record(last + 1)]).collect())?;
            Ok(events)
        })
    }

    /// Appends lines to the file, which has `size` bytes.
    fn append(&mut self, size: u64, lines: Vec<Line>) -> Result<(), LedgerError> {
        if size > self.read {
            // Another run was interrupted while it wrote.
            let cut = self.file.set_length(self.read);
            cut.map_err(io("write", &self.path))?;
        }
        let text: String = lines.iter().map(Line::text).collect();
        let written = self.file.write_all(text.as_bytes());
        written
            .and_then(|()| self.file.sync())
            .map_err(io("write", &self.path))?;
        self.read += text.len() as u64;
        self.extend(lines);
        Ok(())
    }

    fn extend(&mut self, lines: Vec<Line>) {
        for line in lines {
            match line {
                Line::Charge(charge) => self.charges.push(charge),
                Line::Digest(digest) => self.digests.push(digest),
            }
        }
    }

    fn check(&self, charge: &Charge, limit: &Limit) -> Result<(), LedgerError> {
        let epsilon = self.epsilon_with(charge.event.unit, &[charge], limit)?;
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

    /// Checks the limit for rounds that are charged once more.
    fn check_again(
        &self,
        unit: PrivacyUnit,
        again: &[Charge],
        limit: &Limit,
    ) -> Result<(), LedgerError> {
        let more: Vec<&Charge> = again.iter().filter(|x| x.event.unit == unit).collect();
        let Some(first) = more.first() else {
            return Ok(());
        };
        let epsilon = self.epsilon_with(unit, &more, limit)?;
        if epsilon > limit.epsilon.get() {
            return Err(LedgerError::RepetitionOverLimit {
                path: self.path.display().to_string(),
                round: first.round,
                epsilon,
                limit: *limit,
            });
        }
        Ok(())
    }

    /// Returns ε of all charges of this unit in the ledger, and of these charges.
    fn epsilon_with(
        &self,
        unit: PrivacyUnit,
        more: &[&Charge],
        limit: &Limit,
    ) -> Result<f64, LedgerError> {
        let of_unit = |charge: &&Charge| charge.event.unit == unit;
        let known = self.charges.iter().filter(of_unit);
        let all = events(known.chain(more.iter().copied()));
        let accountant = limit.accountant.composing(&all);
        Ok(accountant.epsilon(&all, limit.delta)?.epsilon)
    }

    /// Returns the charge of a round. Each unit and kind of mechanism has one, so that updates are
    /// distinguished from other messages.
    fn find(&self, run: &str, round: u32, event: &PrivacyEvent) -> Option<&Charge> {
        let kind = event.kind();
        let is_it = |charge: &&Charge| {
            charge.round == round && charge.event.kind() == kind && charge.run == run
        };
        self.charges.iter().rev().find(is_it)
    }

    /// Runs an action while no other process may change the file.
    fn locked<T>(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.file.lock_file().map_err(io("lock", &self.path))?;
        let result = action(self);
        let unlocked = self.file.unlock_file().map_err(io("lock", &self.path));
        let value = result?;
        unlocked.map(|()| value)
    }

    /// Reads the lines that other runs have appended. Returns the size of the file.
    fn catch_up(&mut self) -> Result<u64, LedgerError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.read))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(io("read", &self.path))?;
        let before = self.charges.len() + self.digests.len();
        let (lines, used) = parse(&self.path, &bytes, before)?;
        self.extend(lines);
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

/// Returns the events charged to a run for repeated rounds with another release.
#[must_use]
pub fn repeated(charges: &[Charge], run: &str) -> Vec<PrivacyEvent> {
    let is_it = |charge: &&Charge| charge.repetition > 0 && charge.run == run;
    events(charges.iter().filter(is_it))
}

/// Parses the complete lines, and returns the number of their bytes. `before` lines came earlier.
fn parse(path: &Path, bytes: &[u8], before: usize) -> Result<(Vec<Line>, usize), LedgerError> {
    let mut lines = Vec::new();
    let mut used = 0;
    for text in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = text.strip_suffix(b"\n") else {
            break;
        };
        let line = Line::parse(text).map_err(|reason| LedgerError::Damaged {
            path: path.display().to_string(),
            line: before + lines.len() + 1,
            reason,
        })?;
        lines.push(line);
        used += text.len() + 1;
    }
    Ok((lines, used))
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
