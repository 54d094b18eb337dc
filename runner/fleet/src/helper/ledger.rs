//! The answers of a helper, on disk before they leave: a file next to its keys, to which lines are
//! appended.
//!
//! ```text
//! 0123456789abcdef {"answer":{"round":3,"devices":[[0,"fingerprint of its ledger"],..]}}
//! 0123456789abcdef {"keys":[[0,"digest of its mask key"],..]}
//! ```
//!
//! The first sixteen digits are the check of the line and of everything before it: the first half
//! of BLAKE2s-256 of the previous check (zeros for the first line) and of the text.
//!
//! An answer leaves once its line is on disk. An incomplete line at the end of the file therefore
//! belongs to an answer that was never sent, and is cut off. Any other error ends the process.
//!
//! Devices are known by their mask keys. A device that was provisioned again is a new device, whose
//! ledger and participations restart.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use blake2::{Blake2s256, Digest};
use serde::{Deserialize, Serialize};
use smolfed_core::wire::keys::Fingerprint;

use crate::keys::file::KeyDigest;
use smolfed_release::durable::DurableFile;
use smolfed_release::masked::AnswerRecord;

/// Error when reading or writing a ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperLedgerError {
    /// The file system failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// read or write.
        action: &'static str,
        /// The file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A line was not written by this program.
    #[error(
        "{path}, line {line}: it was changed or damaged; without the whole record the helper could \
         answer twice, so restore the file from a backup no older than the last answer, or \
         provision the fleet again"
    )]
    Content {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// There is no ledger.
    #[error(
        "{path} is missing (`smolfed provision` writes it next to the helper's keys): without it \
         the helper could answer twice, so restore it from a backup no older than the last answer, \
         or provision the fleet again"
    )]
    Missing {
        /// The file.
        path: String,
    },
    /// The last line may be incomplete on disk.
    #[error("{path}: an earlier record could not be written: start the helper again")]
    Broken {
        /// The file.
        path: String,
    },
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Answer {
        round: u32,
        devices: Vec<(u32, String)>,
    },
    Keys(Vec<(u32, String)>),
}

impl Line {
    /// Returns the line that follows the check `before`, and its own check.
    fn to_bytes(&self, before: &Check) -> (Vec<u8>, Check) {
        // Serializes without errors: only numbers and digests.
        let text = serde_json::to_string(self).unwrap_or_default();
        let check = check(before, text.as_bytes());
        let line = format!("{} {text}\n", hex::encode(check));
        (line.into_bytes(), check)
    }
}

/// Half a hash.
type Check = [u8; 8];

/// The ledger of a helper, used only by this process.
#[derive(Debug)]
pub struct HelperLedger {
    file: Box<dyn DurableFile>,
    path: PathBuf,
    /// Bytes of complete lines.
    length: u64,
    check: Check,
    /// The recorded digest of each device's key.
    keys: BTreeMap<u32, String>,
    is_broken: bool,
}

/// An opened ledger.
#[derive(Debug)]
pub struct Opened {
    /// The ledger.
    pub ledger: HelperLedger,
    /// Records of devices that still have the same keys.
    pub records: Vec<AnswerRecord>,
    /// Whether an unfinished line was cut off.
    pub was_torn: bool,
}

impl HelperLedger {
    /// Returns a new ledger of a helper with these keys, as bytes.
    #[must_use]
    pub fn begin(keys: impl Iterator<Item = (u32, KeyDigest)>) -> Vec<u8> {
        let keys = keys.map(|(device, digest)| (device, digest.to_string()));
        let (line, _) = Line::Keys(keys.collect()).to_bytes(&Check::default());
        line
    }

    /// Reads the ledger. The caller has locked the helper's keys.
    ///
    /// # Errors
    /// [`HelperLedgerError`].
    pub fn open(path: &Path) -> Result<Opened, HelperLedgerError> {
        let read = || {
            let mut file = OpenOptions::new().read(true).append(true).open(path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((file, bytes))
        };
        let (file, bytes) = read().map_err(|error: io::Error| match error.kind() {
            ErrorKind::NotFound => HelperLedgerError::Missing {
                path: path.display().to_string(),
            },
            _ => io_error("read", path)(error),
        })?;
        let mut ledger = Self {
            file: Box::new(file),
            path: path.to_path_buf(),
            length: 0,
            check: Check::default(),
            keys: BTreeMap::new(),
            is_broken: false,
        };
        let (whole, torn) = split(&bytes);
        let mut records = Vec::new();
        for (index, text) in whole.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = ledger
                .parse(text)
                .ok_or_else(|| HelperLedgerError::Content {
                    path: path.display().to_string(),
                    line: index + 1,
                })?;
            ledger.take(line, &mut records, index)?;
            ledger.length += text.len() as u64;
        }
        let was_torn = !torn.is_empty();
        if was_torn {
            let cut = ledger.file.set_length(ledger.length);
            let cut = cut.and_then(|()| ledger.file.sync());
            cut.map_err(io_error("write", path))?;
        }
        Ok(Opened {
            ledger,
            records,
            was_torn,
        })
    }

    /// Applies a line.
    fn take(
        &mut self,
        line: Line,
        records: &mut Vec<AnswerRecord>,
        index: usize,
    ) -> Result<(), HelperLedgerError> {
        match line {
            Line::Keys(keys) => {
                let changed = self.changed(&keys);
                for record in records {
                    record
                        .devices
                        .retain(|(device, _)| !changed.contains(device));
                }
                self.keys.extend(keys);
            }
            Line::Answer { round, devices } => {
                let parsed = devices.iter();
                let parsed = parsed.map(|(device, ledger)| {
                    let mut fingerprint = Fingerprint::default();
                    hex::decode_to_slice(ledger, &mut fingerprint).ok()?;
                    Some((*device, fingerprint))
                });
                let devices = parsed.collect::<Option<_>>();
                let devices = devices.ok_or_else(|| HelperLedgerError::Content {
                    path: self.path.display().to_string(),
                    line: index + 1,
                })?;
                records.push(AnswerRecord { round, devices });
            }
        }
        Ok(())
    }

    /// Returns the devices that had another key before.
    fn changed(&self, keys: &[(u32, String)]) -> Vec<u32> {
        let is_changed = |(device, digest): &&(u32, String)| {
            let before = self.keys.get(device);
            before.is_some_and(|before| before != digest)
        };
        let changed = keys.iter().filter(is_changed);
        changed.map(|(device, _)| *device).collect()
    }

    /// Records the keys of new devices, and replaced keys. Returns the devices with replaced keys,
    /// whose earlier records no longer apply to them.
    ///
    /// # Errors
    /// As [`Self::answered`].
    pub fn has_keys(
        &mut self,
        keys: impl Iterator<Item = (u32, KeyDigest)>,
    ) -> Result<Vec<u32>, HelperLedgerError> {
        let keys = keys.map(|(device, digest)| (device, digest.to_string()));
        let is_new = |(device, digest): &(u32, String)| self.keys.get(device) != Some(digest);
        let keys: Vec<(u32, String)> = keys.filter(is_new).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let changed = self.changed(&keys);
        self.append(&Line::Keys(keys.clone()))?;
        self.keys.extend(keys);
        Ok(changed)
    }

    /// Records an answer. It may leave when this returns.
    ///
    /// # Errors
    /// [`HelperLedgerError`]: the answer must not leave.
    pub fn answered(&mut self, record: &AnswerRecord) -> Result<(), HelperLedgerError> {
        let devices = record.devices.iter();
        self.append(&Line::Answer {
            round: record.round,
            devices: devices
                .map(|(device, ledger)| (*device, hex::encode(ledger)))
                .collect(),
        })
    }

    fn append(&mut self, line: &Line) -> Result<(), HelperLedgerError> {
        if self.is_broken {
            let path = self.path.display().to_string();
            return Err(HelperLedgerError::Broken { path });
        }
        let (line, check) = line.to_bytes(&self.check);
        if let Err(error) = self.file.write_all(&line) {
            // On a full disk part of the line may be written. No other line may follow it.
            self.is_broken = self.file.set_length(self.length).is_err();
            return Err(io_error("write", &self.path)(error));
        }
        if let Err(error) = self.file.sync() {
            // The system may have dropped unwritten data.
            self.is_broken = true;
            return Err(io_error("write", &self.path)(error));
        }
        self.length += line.len() as u64;
        self.check = check;
        Ok(())
    }

    fn parse(&mut self, line: &[u8]) -> Option<Line> {
        let (digits, text) = line.strip_suffix(b"\n")?.split_at_checked(17)?;
        let mut found = Check::default();
        hex::decode_to_slice(digits.strip_suffix(b" ")?, &mut found).ok()?;
        let check = check(&self.check, text);
        self.check = check;
        (found == check).then(|| serde_json::from_slice(text).ok())?
    }
}

/// Splits into complete lines and the beginning of one. A crash may leave zeros at the end.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
    let newline = text.iter().rposition(|byte| *byte == b'\n');
    bytes.split_at(newline.map_or(0, |newline| newline + 1))
}

fn check(before: &Check, text: &[u8]) -> Check {
    let hash = Blake2s256::new().chain_update(before).chain_update(text);
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HelperLedgerError {
    let path = path.display().to_string();
    move |source| HelperLedgerError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
use smolfed_release::durable::forgetful::{Disk, ForgetfulFile};

#[cfg(test)]
impl HelperLedger {
    /// Simulates a full disk with a device that is always full.
    pub(super) fn fill_up(&mut self) {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        self.file = Box::new(full);
    }

    /// Simulates a disk that loses unsynced data in a crash, from now on.
    pub(super) fn over_forgetful(&mut self) -> Disk {
        let (file, disk) = ForgetfulFile::open(&self.path, true).unwrap();
        self.file = Box::new(file);
        disk
    }
}

#[cfg(test)]
mod tests;
