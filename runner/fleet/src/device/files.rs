//! A device's record and ledger, from files or from text: their names, the first start with a new
//! ledger, and the removal of the first key.

use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use smolfed_core::ledger::Ledger;
use smolfed_core::provision::{KEY, MAGIC, Record, text};
use zeroize::Zeroizing;

use super::DeviceError;
use super::flash::FileFlash;
use smolfed_release::durable::{is_private, replace_private};
use smolfed_release::entropy::secret;

/// Longer than any line with a record.
const MAX_INPUT: usize = 1 << 16;

/// The name of standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Suffix of a ledger's name.
const LEDGER: &str = ".ledger";

/// First bytes of a zip archive.
const ARCHIVE: &[u8] = b"PK";

/// Paths of a device's record and ledger.
#[derive(Debug)]
pub struct DeviceFiles {
    /// The record written by `smolfed provision`, or `-` for standard input.
    pub record: PathBuf,
    /// The ledger.
    pub ledger: PathBuf,
}

/// Returns the files of all devices in a folder written by `smolfed provision`, ordered by number.
///
/// # Errors
/// [`DeviceError::Usage`] if the folder cannot be read or has no record.
pub fn files_in_folder(folder: &Path) -> Result<Vec<DeviceFiles>, DeviceError> {
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
    let files = |number| DeviceFiles {
        record: folder.join(format!("device-{number}.bin")),
        ledger: folder.join(format!("device-{number}.ledger")),
    };
    Ok(numbers.into_iter().map(files).collect())
}

/// Returns the file next to a device's ledger that has another suffix.
pub(super) fn beside(ledger: &Path, end: &str) -> PathBuf {
    let name = ledger.file_name().unwrap_or_default();
    let mut name = match name.to_str() {
        Some(name) => OsString::from(name.strip_suffix(LEDGER).unwrap_or(name)),
        None => name.to_os_string(),
    };
    name.push(end);
    ledger.with_file_name(name)
}

/// Returns the device's ledger, or a new one at its first start.
pub(super) fn ledger(
    path: &Path,
    is_new: bool,
    record: &Record<'_>,
) -> Result<Ledger<FileFlash>, DeviceError> {
    if is_new {
        return create(path, record);
    }
    // A missing one is not created: the device may already have used its random streams.
    let flash = FileFlash::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused(
            path,
            "there is no ledger; `smolfed provision` creates it once in the lifetime of a device",
        ),
        _ => refused(path, error),
    })?;
    Ledger::open(flash).map_err(|error| refused(path, error))
}

/// Creates a ledger with a fresh nonce: its streams differ from those of any other ledger.
fn create(path: &Path, record: &Record<'_>) -> Result<Ledger<FileFlash>, DeviceError> {
    let Some(key) = record.key.clone() else {
        return Err(DeviceError::Usage(
            "`--new-ledger`: the first key of the record was overwritten at the device's first \
             start, so it already has a ledger; `smolfed keys rotate` provisions it again"
                .to_owned(),
        ));
    };
    let nonce = secret().map_err(|error| DeviceError::Stopped(error.to_string()))?;
    let nonce = nonce.first_chunk().copied().unwrap_or_default();
    let flash = FileFlash::create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => refused(
            path,
            "already exists: leave out `--new-ledger`, which is for the first start of a device",
        ),
        _ => DeviceError::Stopped(format!("cannot write {}: {error}", path.display())),
    })?;
    Ledger::create(flash, nonce, key).map_err(|error| refused(path, error))
}

/// Overwrites the first chain key in the file of a record, since the ledger has it and replaces it.
/// Earlier recorded traffic then stays secret from later readers of the record.
pub(super) fn forget_key(path: &Path, record: &[u8]) {
    let key = record.get(KEY).unwrap_or_default();
    if path == Path::new(STANDARD_INPUT) || key.iter().all(|byte| *byte == 0) {
        return;
    }
    let overwrite = || {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut start = MAGIC;
        file.read_exact(&mut start)?;
        if start != MAGIC {
            return replace_text(path, record, file);
        }
        file.seek(SeekFrom::Start(KEY.start as u64))?;
        file.write_all(&[0; KEY.end - KEY.start])?;
        file.sync_all()
    };
    if let Err(error) = overwrite() {
        let path = path.display();
        eprintln!(
            "warning: the first key, which is no longer needed, cannot be overwritten in {path}: \
             {error}"
        );
    }
}

/// Replaces the text of a record by the record without its key, and overwrites the text.
fn replace_text(path: &Path, record: &[u8], mut text: File) -> io::Result<()> {
    let mut record = Zeroizing::new(record.to_vec());
    record.get_mut(KEY).unwrap_or_default().fill(0);
    replace_private(path, &record)?;
    let length = text.metadata()?.len();
    text.rewind()?;
    io::copy(&mut io::repeat(0).take(length), &mut text)?;
    text.sync_all()
}

/// Returns the device's record, which only its owner may be able to read. It is overwritten on
/// drop.
pub(crate) fn record(path: &Path) -> Result<Zeroizing<Vec<u8>>, DeviceError> {
    let bytes = match path == Path::new(STANDARD_INPUT) {
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

fn read_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, DeviceError> {
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
        return Err(DeviceError::Usage(format!(
            "{path} contains secrets and can be read by others: run `chmod 600 {path}`"
        )));
    }
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    read(path, file, length as usize)
}

/// Reads up to `room` bytes. A growing vector would leave copies behind.
fn read(path: &Path, from: impl Read, room: usize) -> Result<Zeroizing<Vec<u8>>, DeviceError> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
    let mut from = from.take(room as u64 + 1);
    from.read_to_end(&mut bytes)
        .map_err(|error| refused(path, error))?;
    match bytes.len() > room {
        true => Err(refused(path, format!("is longer than {room} bytes"))),
        false => Ok(bytes),
    }
}

/// Returns an error that names the file.
pub fn refused(path: &Path, error: impl fmt::Display) -> DeviceError {
    DeviceError::Usage(format!("{}: {error}", path.display()))
}
