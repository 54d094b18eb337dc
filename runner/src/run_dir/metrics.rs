//! `metrics.jsonl`: one record a line, appended as rounds end.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{RunDirError, damaged, io, write_atomically};
use crate::rounds::RoundRecord;

/// The file, open to append.
#[derive(Debug)]
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Opens the file with the records of the first `rounds` rounds and nothing after them: what a
    /// broken run wrote beyond its checkpoint, whole, torn or damaged, is written again.
    pub(super) fn open(path: &Path, rounds: u32) -> Result<Self, RunDirError> {
        let bytes = bytes(path)?;
        let (mut kept, mut found) = (Vec::new(), 0);
        for (index, line) in lines(&bytes).take(rounds as usize).enumerate() {
            let record = parse(path, index, line)?;
            if record.round != found {
                let reason = format!("line {} is of round {}", index + 1, record.round);
                return Err(damaged(path, reason));
            }
            kept.extend_from_slice(line);
            found += 1;
        }
        if found != rounds {
            let reason = format!("it holds {found} of the first {rounds} rounds");
            return Err(damaged(path, reason));
        }
        write_atomically(path, &kept)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(io("write", path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
        })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn append(&mut self, record: &RoundRecord) -> Result<(), RunDirError> {
        let line = line(&self.path, record)?;
        self.file
            .write_all(line.as_bytes())
            .map_err(io("write", &self.path))
    }

    /// Makes sure that what was appended is on the disk, before a checkpoint counts on it.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn sync(&self) -> Result<(), RunDirError> {
        self.file.sync_data().map_err(io("write", &self.path))
    }
}

fn line(path: &Path, record: &RoundRecord) -> Result<String, RunDirError> {
    let text = serde_json::to_string(record).map_err(|error| damaged(path, error.to_string()))?;
    Ok(text + "\n")
}

/// All whole records, in order; a torn last line is left out, and so is a missing file.
pub(super) fn read(path: &Path) -> Result<Vec<RoundRecord>, RunDirError> {
    lines(&bytes(path)?)
        .enumerate()
        .map(|(index, line)| parse(path, index, line))
        .collect()
}

/// Nothing where there is no file yet.
fn bytes(path: &Path) -> Result<Vec<u8>, RunDirError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(io("read", path)),
    }
}

/// The whole lines, each with its end: a crash can tear the last one inside of a character.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
}

fn parse(path: &Path, index: usize, line: &[u8]) -> Result<RoundRecord, RunDirError> {
    serde_json::from_slice(line)
        .map_err(|error| damaged(path, format!("line {}: {error}", index + 1)))
}
