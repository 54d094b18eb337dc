//! A device's record and ledger, from files or from text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use smolfed_core::ledger::Ledger;
use smolfed_core::provision::text;
use zeroize::Zeroizing;

use crate::cli::CliError;
use crate::device::flash::FileFlash;
use crate::durable::is_private;
use crate::entropy::secret;

/// Longer than any line with a record.
const MAX_INPUT: usize = 1 << 16;

/// How a zip archive begins.
const ARCHIVE: &[u8] = b"PK";

/// The device's ledger; a new one, if it is its first start.
pub(super) fn ledger(path: &Path, is_new: bool) -> Result<Ledger<FileFlash>, CliError> {
    if is_new {
        return create(path);
    }
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

/// A ledger with a nonce of its own: its streams are not those of any other ledger.
fn create(path: &Path) -> Result<Ledger<FileFlash>, CliError> {
    let nonce = secret().map_err(|error| CliError::Stopped(error.to_string()))?;
    let nonce = nonce.first_chunk().copied().unwrap_or_default();
    let flash = FileFlash::create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => refused(
            path,
            "is there already: leave out `--new-ledger`, which is for the first start of a device",
        ),
        _ => CliError::Stopped(format!("cannot write {}: {error}", path.display())),
    })?;
    Ledger::create(flash, nonce).map_err(|error| refused(path, error))
}

/// The device's record, which only its owner may be able to read; overwritten when it is dropped.
pub(super) fn record(path: &Path) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let bytes = match path == Path::new("-") {
        true => read(path, io::stdin().lock(), MAX_INPUT)?,
        false => read_file(path)?,
    };
    if bytes.starts_with(ARCHIVE) {
        let reason = "is an archive: take a device out of it, as with `unzip FILE device-17.bin \
                      device-17.ledger`";
        return Err(refused(path, reason));
    }
    let prefix = text::PREFIX;
    let is_record = |line: &&[u8]| {
        let start = line.trim_ascii_start().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    match bytes.split(|byte| *byte == b'\n').filter(is_record).count() {
        0 => Ok(bytes),
        1 => {
            let mut page = Zeroizing::new(vec![0; bytes.len()]);
            let length = text::read(&bytes, &mut page).map_err(|error| refused(path, error))?;
            page.truncate(length);
            Ok(page)
        }
        count => Err(refused(
            path,
            format!("has {count} records: give one, as with `grep SMOLFED:17: FILE | smolfed ..`"),
        )),
    }
}

fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, CliError> {
    if path.is_dir() {
        return Err(refused(path, "is a folder: give the device-K.bin in it"));
    }
    let file = File::open(path).map_err(|error| match error.kind() {
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
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    read(path, file, length as usize)
}

/// Reads up to `room` bytes: a vector that grows leaves copies behind.
fn read(path: &Path, from: impl Read, room: usize) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
    let mut from = from.take(room as u64 + 1);
    from.read_to_end(&mut bytes)
        .map_err(|error| refused(path, error))?;
    match bytes.len() > room {
        true => Err(refused(path, format!("is longer than {room} bytes"))),
        false => Ok(bytes),
    }
}

/// A refusal that names the file.
pub(super) fn refused(path: &Path, error: impl fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}
