//! The files of a device: its record and its ledger.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use smolfed_core::ledger::Ledger;
use smolfed_core::provision::KEY;
use zeroize::Zeroizing;

use super::super::CliError;
use crate::device::flash::FileFlash;
use crate::durable::is_private;

/// Where the record and the ledger of a device are.
pub(super) struct Files {
    pub(super) record: PathBuf,
    pub(super) ledger: PathBuf,
}

/// The files of all devices in a folder that `smolfed provision` wrote, by number.
pub(super) fn of_folder(folder: &Path) -> Result<Vec<Files>, CliError> {
    let entries = std::fs::read_dir(folder).map_err(|error| refused(folder, error))?;
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| refused(folder, error))?.file_name();
        let number = name.to_str().and_then(|name| {
            let number = name.strip_prefix("device-")?.strip_suffix(".bin")?;
            number.parse::<u32>().ok()
        });
        numbers.extend(number);
    }
    if numbers.is_empty() {
        let advice = "has no device-K.bin, which `smolfed provision` writes";
        return Err(refused(folder, advice));
    }
    numbers.sort_unstable();
    let files = |number| Files {
        record: folder.join(format!("device-{number}.bin")),
        ledger: folder.join(format!("device-{number}.ledger")),
    };
    Ok(numbers.into_iter().map(files).collect())
}

pub(super) fn ledger(path: &Path) -> Result<Ledger<FileFlash>, CliError> {
    // A missing one is not created: the device may have used its random streams before.
    let flash = FileFlash::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused(
            path,
            "there is no ledger; `smolfed provision` creates it, once in the lifetime of a device",
        ),
        _ => refused(path, error),
    })?;
    Ledger::open(flash).map_err(|error| refused(path, error))
}

/// Overwrites the first chain key in a record: the ledger has it, and replaces it. What was
/// recorded of the line before stays secret from who reads the record later.
pub(super) fn forget_key(path: &Path) {
    let overwrite = || {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(KEY.start as u64))?;
        file.write_all(&[0; KEY.end - KEY.start])?;
        file.sync_all()
    };
    if let Err(error) = overwrite() {
        let path = path.display();
        eprintln!(
            "warning: the first key cannot be overwritten in {path}, where it is of no use: {error}"
        );
    }
}

/// The device's record, which only its owner may be able to read; overwritten when it is dropped.
pub(super) fn read_record(path: &Path) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            refused(path, "there is no record; `smolfed provision` writes it")
        }
        _ => refused(path, error),
    })?;
    if !is_private(&file).map_err(|error| refused(path, error))? {
        let path = path.display();
        return Err(CliError::Usage(format!(
            "{path} contains secrets and can be read by others: run `chmod 600 {path}`"
        )));
    }
    // Room for all of it: a vector that grows leaves copies behind.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut page = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.read_to_end(&mut page)
        .map_err(|error| refused(path, error))?;
    Ok(page)
}

pub(super) fn refused(path: &Path, error: impl fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}
