//! A file of keys on disk, in clear or encrypted.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::error::{KeysError, content, io};
use super::file::KeyFile;
use super::passphrase::PassphraseSource;
use super::vault::{Vault, VaultError};
use smolfed_release::durable::is_private;

/// A file of keys, and its encryption, if any.
#[derive(Debug)]
pub struct Stored {
    /// The keys.
    pub file: KeyFile,
    /// Encryption of the keys, if any.
    pub vault: Option<Vault>,
}

impl Stored {
    /// Reads a file. `known` is the vault that decrypted it before, if any.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn read(
        path: &Path,
        known: Option<&Vault>,
        passphrase: &PassphraseSource,
    ) -> Result<Self, KeysError> {
        let bytes = read_private(path)?;
        let (vault, bytes) = match Vault::is_sealed(&bytes) {
            false => (None, bytes),
            true => {
                let passphrase = || passphrase.read(path).map_err(OpenError::Passphrase);
                let (vault, text) =
                    Vault::open(&bytes, known, passphrase).map_err(|error| match error {
                        OpenError::Vault(error) => content(path)(error.to_string()),
                        OpenError::Passphrase(error) => error,
                    })?;
                (Some(vault), text)
            }
        };
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| content(path)("is not text: give the keys.toml of a fleet".to_owned()))?;
        if is_of_helper(text) {
            let reason = "is the file of a helper: give the keys.toml of the coordinator";
            return Err(content(path)(reason.to_owned()));
        }
        let file = KeyFile::parse(text).map_err(content(path))?;
        Ok(Self { file, vault })
    }

    /// Returns the bytes for the disk.
    ///
    /// # Errors
    /// A description, if there is no randomness.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, String> {
        let text = self.file.to_toml();
        let bytes = match &self.vault {
            None => Ok(text.as_bytes().to_vec()),
            Some(vault) => vault.seal(text.as_bytes()),
        };
        bytes.map(Zeroizing::new).map_err(|error| error.to_string())
    }
}

/// Returns whether a text is a helper's file, and not a coordinator's.
#[must_use]
pub fn is_of_helper(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.trim_start().starts_with("helper ="))
}

enum OpenError {
    Vault(VaultError),
    Passphrase(KeysError),
}

impl From<VaultError> for OpenError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

/// Returns the path of a file of keys without symbolic links, so that its companion files lie next
/// to the file and not next to the link.
///
/// # Errors
/// [`KeysError::Content`] if the file does not exist, and [`KeysError::Io`].
pub fn real_path(path: &Path) -> Result<PathBuf, KeysError> {
    let path = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(path),
        _ => io("read", path)(error),
    })?;
    // The operator may have given a relative path.
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| path.strip_prefix(here).map(Path::to_path_buf).ok());
    Ok(relative.unwrap_or(path))
}

fn missing(path: &Path) -> KeysError {
    content(path)("there are no keys; `smolfed provision` writes them".to_owned())
}

fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(path),
        _ => io("read", path)(error),
    })?;
    let data = file.metadata().map_err(io("read", path))?;
    if data.is_dir() {
        let reason = "is a folder: give the keys.toml in it";
        return Err(content(path)(reason.to_owned()));
    }
    if !is_private(&file).map_err(io("read", path))? {
        return Err(KeysError::Readable {
            path: path.display().to_string(),
            what: "keys",
        });
    }
    // Companion files next to one name are not next to the other.
    if data.nlink() > 1 {
        let reason = "has several names (hard links): copy it, and remove the others";
        return Err(content(path)(reason.to_owned()));
    }
    // Room for the whole file: a growing vector leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(data.len() as usize + 1));
    file.read_to_end(&mut bytes).map_err(io("read", path))?;
    Ok(bytes)
}

/// Returns the lowest unused round number in the file at `path`.
///
/// # Errors
/// [`KeysError`].
pub(super) fn read_round(path: &Path) -> Result<u32, KeysError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        read => read.map_err(io("read", path))?,
    };
    let number = text.trim().parse();
    number.map_err(|_| content(path)(format!("`{}` is not a round number", text.trim())))
}
