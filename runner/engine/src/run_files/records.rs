//! `metrics.jsonl` and `participation.jsonl`: one record per round and line, appended as rounds
//! end.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{RunDirError, damaged, io, write_atomically};
use smolfed_data::wording::of_json_record;

/// The record of a round.
pub trait Record: Serialize + DeserializeOwned {
    /// Returns the round, from 0.
    fn round(&self) -> u32;
}

/// A record as in its file, with all of its keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordValues {
    /// The round, from 0.
    pub round: u32,
    /// The other keys.
    #[serde(flatten)]
    pub values: Map<String, Value>,
}

impl Record for RecordValues {
    fn round(&self) -> u32 {
        self.round
    }
}

/// A file of records, open to append.
#[derive(Debug)]
pub struct RecordFile<T> {
    file: File,
    path: PathBuf,
    records: PhantomData<T>,
}

impl<T: Record> RecordFile<T> {
    /// Opens the file with only the records of the first `rounds` rounds. Later records of a broken
    /// run, whether complete, torn or damaged, are discarded and written again.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read or written, or has fewer records.
    pub fn open(path: &Path, rounds: u32) -> Result<Self, RunDirError> {
        let bytes = bytes(path)?;
        let (mut kept, mut found) = (Vec::new(), 0);
        for (index, line) in lines(&bytes).take(rounds as usize).enumerate() {
            let record: T = parse(path, index, line)?;
            if record.round() != found {
                let reason = format!("line {} belongs to round {}", index + 1, record.round());
                return Err(damaged(path, reason));
            }
            kept.extend_from_slice(line);
            found += 1;
        }
        if found != rounds {
            let reason = format!("it holds {found} of the first {rounds} rounds");
            return Err(damaged(path, reason));
        }
        Self::of(path, &kept)
    }

    /// Opens the file with only the records of the first `rounds` rounds, with any number of
    /// records per round.
    ///
    /// # Errors
    /// [`RunDirError`] if it cannot be read or written.
    pub fn open_any(path: &Path, rounds: u32) -> Result<Self, RunDirError> {
        let bytes = bytes(path)?;
        let mut kept = Vec::new();
        for (index, line) in lines(&bytes).enumerate() {
            match parse::<T>(path, index, line) {
                Ok(record) if record.round() < rounds => kept.extend_from_slice(line),
                // The file is in the order of rounds, so the rest belongs to later ones.
                Ok(_) => break,
                Err(error) => return Err(error),
            }
        }
        Self::of(path, &kept)
    }

    fn of(path: &Path, kept: &[u8]) -> Result<Self, RunDirError> {
        write_atomically(path, kept)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(io("write", path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            records: PhantomData,
        })
    }

    /// Appends one record.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn append(&mut self, record: &T) -> Result<(), RunDirError> {
        let line = line(&self.path, record)?;
        self.file
            .write_all(line.as_bytes())
            .map_err(io("write", &self.path))
    }

    /// Syncs the appended records to disk, before a checkpoint relies on them.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn sync(&self) -> Result<(), RunDirError> {
        self.file.sync_data().map_err(io("write", &self.path))
    }
}

fn line(path: &Path, record: &impl Serialize) -> Result<String, RunDirError> {
    let text = serde_json::to_string(record).map_err(|error| damaged(path, error.to_string()))?;
    Ok(text + "\n")
}

/// Reads all complete records, in order. A torn last line or a missing file is ignored.
///
/// # Errors
/// [`RunDirError`] if it cannot be read, or a line is damaged.
pub fn read<T: Record>(path: &Path) -> Result<Vec<T>, RunDirError> {
    lines(&bytes(path)?)
        .enumerate()
        .map(|(index, line)| parse(path, index, line))
        .collect()
}

/// Reads the file, or returns no bytes if it does not exist yet.
fn bytes(path: &Path) -> Result<Vec<u8>, RunDirError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(io("read", path)),
    }
}

/// Returns the complete lines, with their ends. A crash can tear the last one inside a character.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
}

fn parse<T: Record>(path: &Path, index: usize, line: &[u8]) -> Result<T, RunDirError> {
    serde_json::from_slice(line).map_err(|error| {
        damaged(
            path,
            format!("line {}: {}", index + 1, of_json_record(&error)),
        )
    })
}
