//! The output of `smolfed provision`: the files of devices in a folder, in one archive, or as lines
//! of text.
//!
//! Nothing is overwritten. What was begun is removed if the rest cannot be written: half of a fleet
//! is of no use, and its secrets should not lie about. Files are synced together, at the end and
//! before the keys are written: until then nobody uses them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::issue::Issued;
use crate::cli::CliError;
use smolfed_release::durable::{new_private, sync_all_in, sync_folder};

/// Where the files go.
pub(in crate::cli) struct Files<'a> {
    /// The folder of the keys.
    pub(in crate::cli) dir: &'a Path,
    /// One archive for what devices get.
    pub(in crate::cli) archive: Option<&'a Path>,
    /// A line of text for each device.
    pub(in crate::cli) records: Option<&'a Path>,
}

impl Files<'_> {
    /// Whether each device has files of its own.
    fn are_loose(&self) -> bool {
        self.archive.is_none() && self.records.is_none()
    }

    /// The files of a device in the folder.
    fn of_device(&self, device: u32) -> impl Iterator<Item = PathBuf> {
        let names = names(device).into_iter().filter(|_| self.are_loose());
        let names = names.chain([element(device)]);
        names.map(|name| self.dir.join(name))
    }

    /// Refuses to write where something is, of devices or of `others`.
    pub(in crate::cli) fn check_free(
        &self,
        devices: &Range<u32>,
        others: &[PathBuf],
    ) -> Result<(), CliError> {
        if self.dir.is_file() {
            return Err(CliError::Usage(format!(
                "`--out {}` is a file: choose a folder",
                self.dir.display()
            )));
        }
        for (name, path) in [("archive", self.archive), ("records", self.records)] {
            if let Some(path) = path.filter(|path| path.exists()) {
                return Err(CliError::Usage(format!(
                    "{} already exists and is not overwritten: choose another --{name}",
                    path.display()
                )));
            }
        }
        let own = devices.clone().flat_map(|device| self.of_device(device));
        let others = others.iter().cloned();
        match own.chain(others).find(|path| path.exists()) {
            None => Ok(()),
            Some(path) => Err(CliError::Usage(format!(
                "{} already exists and is not overwritten: choose another --out",
                path.display()
            ))),
        }
    }
}

/// The files of a device: its record and its ledger.
fn names(device: u32) -> [String; 2] {
    [
        format!("device-{device}.bin"),
        format!("device-{device}.ledger"),
    ]
}

/// The file of a device whose secrets are in a secure element.
fn element(device: u32) -> String {
    format!("device-{device}.element")
}

/// Files that are being written.
pub(in crate::cli) struct Output<'a> {
    files: &'a Files<'a>,
    archive: Option<ZipWriter<BufWriter<File>>>,
    records: Option<BufWriter<File>>,
    created: Vec<PathBuf>,
    is_finished: bool,
}

impl<'a> Output<'a> {
    /// Creates the folder, and the archive and the file of records.
    pub(in crate::cli) fn create(files: &'a Files<'a>) -> Result<Self, CliError> {
        fs::create_dir_all(files.dir).map_err(write_error(files.dir))?;
        let mut output = Self {
            files,
            archive: None,
            records: None,
            created: Vec::new(),
            is_finished: false,
        };
        if let Some(path) = files.archive {
            output.archive = Some(ZipWriter::new(output.begin(path)?));
        }
        if let Some(path) = files.records {
            output.records = Some(output.begin(path)?);
        }
        Ok(output)
    }

    fn begin(&mut self, path: &Path) -> Result<BufWriter<File>, CliError> {
        let file = new_private(path).map_err(write_error(path))?;
        self.created.push(path.to_path_buf());
        Ok(BufWriter::new(file))
    }

    /// Writes what a device gets.
    pub(in crate::cli) fn write(&mut self, issued: &Issued) -> Result<(), CliError> {
        let contents: [&[u8]; 2] = [&issued.record, &issued.ledger];
        if self.files.are_loose() {
            for (name, bytes) in names(issued.device).iter().zip(contents) {
                self.write_beside(&self.files.dir.join(name), bytes)?;
            }
        }
        if let (Some(archive), Some(path)) = (&mut self.archive, self.files.archive) {
            // What is random does not shrink.
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .unix_permissions(0o600);
            for (name, bytes) in names(issued.device).iter().zip(contents) {
                let started = archive.start_file(name, options).map_err(cause);
                let written = started.and_then(|()| archive.write_all(bytes));
                written.map_err(write_error(path))?;
            }
        }
        if let (Some(records), Some(path)) = (&mut self.records, self.files.records) {
            let line = text(issued.device, &issued.record);
            writeln!(records, "{}", line.as_str()).map_err(write_error(path))?;
        }
        // It goes into the element, and not where the other files go.
        if let Some(secrets) = &issued.element {
            let path = self.files.dir.join(element(issued.device));
            self.write_beside(&path, &**secrets)?;
        }
        Ok(())
    }

    /// Writes another file, which is synced with all others.
    pub(in crate::cli) fn write_beside(
        &mut self,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), CliError> {
        let file = new_private(path);
        if file.is_ok() {
            self.created.push(path.to_path_buf());
        }
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(write_error(path))
    }

    /// Ends archive and records. All files are then on disk.
    pub(in crate::cli) fn sync(&mut self) -> Result<(), CliError> {
        let synced = |path: &Path, file: BufWriter<File>| {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error);
            file.and_then(|file| file.sync_all())
                .and_then(|()| sync_folder(path))
                .map_err(write_error(path))
        };
        if let (Some(archive), Some(path)) = (self.archive.take(), self.files.archive) {
            let file = archive.finish().map_err(cause);
            synced(path, file.map_err(write_error(path))?)?;
        }
        if let (Some(records), Some(path)) = (self.records.take(), self.files.records) {
            synced(path, records)?;
        }
        sync_all_in(self.files.dir).map_err(write_error(self.files.dir))
    }

    /// Creates the keys, after which everything is in use.
    pub(in crate::cli) fn finish(mut self, keys: &Path, bytes: &[u8]) -> Result<(), CliError> {
        self.write_beside(keys, bytes)?;
        File::open(keys)
            .and_then(|file| file.sync_all())
            .and_then(|()| sync_folder(keys))
            .map_err(write_error(keys))?;
        self.keep();
        Ok(())
    }

    /// Keeps the files: they are in use.
    pub(in crate::cli) fn keep(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // Dropped, it would write the end of the archive, and print why it cannot.
        std::mem::forget(self.archive.take());
        for path in &self.created {
            // A failed removal has no remedy. The error that ended the command is reported.
            let _ = fs::remove_file(path);
        }
    }
}

/// What the file system said.
fn cause(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        error => io::Error::other(error),
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> CliError {
    let path = path.display().to_string();
    move |error| CliError::Stopped(format!("cannot write {path}: {error}"))
}

/// A record as text: [`smolfed_core::provision::text`].
fn text(device: u32, record: &[u8]) -> zeroize::Zeroizing<String> {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut line = zeroize::Zeroizing::new(String::with_capacity(32 + record.len() * 8 / 5));
    line.push_str(&format!("SMOLFED:{device}:"));
    for group in record.chunks(5) {
        let bytes = group
            .iter()
            .fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        // To the left of 40 bits.
        let word = bytes << (8 * (5 - group.len()));
        for digit in 0..(group.len() * 8).div_ceil(5) {
            let value = (word >> (35 - 5 * digit)) as usize % DIGITS.len();
            line.push(DIGITS.get(value).copied().unwrap_or_default().into());
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_base32_of_the_rfc() {
        // RFC 4648, section 10, without padding.
        for (bytes, expected) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            let line = text(17, bytes.as_bytes());
            assert_eq!(line.as_str(), format!("SMOLFED:17:{expected}"));
        }
    }
}
