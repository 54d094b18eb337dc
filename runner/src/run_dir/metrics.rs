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
    /// broken run wrote beyond its checkpoint, whole or torn, is written again.
    pub(super) fn open(path: &Path, rounds: u32) -> Result<Self, RunDirError> {
        let records = read(path)?;
        let kept: Vec<&RoundRecord> = records.iter().filter(|r| r.round < rounds).collect();
        if kept.len() != rounds as usize {
            let reason = format!("it holds {} of the first {rounds} rounds", kept.len());
            return Err(damaged(path, reason));
        }
        let mut text = String::new();
        for record in kept {
            text.push_str(&line(path, record)?);
        }
        write_atomically(path, text.as_bytes())?;
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
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("read", path)(error)),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(index, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| damaged(path, format!("line {}: {error}", index + 1)))
    };
    whole.lines().enumerate().map(parse).collect()
}
