//! The file of a helper on disk, the path of its ledger, and changes to the file, one command at a
//! time.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::file::HelperFile;
use crate::keys::KeysError;
use crate::keys::edit::lock_named;
use crate::keys::error::{beside, content, io};
use crate::keys::lock::Holder;
use crate::keys::stored::{is_of_helper, real_path};
use smolfed_release::durable::{is_private, replace_private};

/// Returns the path of the ledger for a helper's file.
#[must_use]
pub fn ledger_path(path: &Path) -> PathBuf {
    beside(path, ".ledger")
}

/// Reads a helper's file. Returns its path without symbolic links, and its contents.
///
/// # Errors
/// [`KeysError`].
pub fn read(path: &Path) -> Result<(PathBuf, HelperFile), KeysError> {
    let path = real_path(path)?;
    let text = read_text(&path)?;
    let file = HelperFile::parse(&text).map_err(content(&path))?;
    Ok((path, file))
}

/// Returns whether this is a helper's file that only its owner can read.
#[must_use]
pub fn is_one(path: &Path) -> bool {
    read_text(path).is_ok_and(|text| is_of_helper(&text))
}

/// Changes a file, while no other command does the same. Returns the process to notify, and the
/// result of `change`.
///
/// # Errors
/// [`KeysError`], with the file unchanged.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut HelperFile) -> Result<T, String>,
) -> Result<(Holder, T), KeysError> {
    let path = real_path(path)?;
    let _lock = lock_named(&path)?;
    let (path, mut file) = read(&path)?;
    let changed = change(&mut file).map_err(content(&path))?;
    replace_private(&path, file.to_toml().as_bytes()).map_err(io("write", &path))?;
    Ok((Holder::of(&path), changed))
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, KeysError> {
    let mut file = File::open(path).map_err(io("read", path))?;
    let data = file.metadata().map_err(io("read", path))?;
    if data.is_dir() {
        return Err(content(path)(
            "is a folder: give the helper-0.toml in it".to_owned(),
        ));
    }
    if !is_private(&file).map_err(io("read", path))? {
        return Err(KeysError::Readable {
            path: path.display().to_string(),
            what: "keys",
        });
    }
    // Room for the whole text: a growing string leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(data.len() as usize + 1));
    file.read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => content(path)("is not text".to_owned()),
            _ => io("read", path)(error),
        })?;
    Ok(text)
}
