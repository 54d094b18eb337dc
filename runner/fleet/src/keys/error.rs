//! What is wrong with the keys of a fleet, and the names of the files beside them.

use smolfed_engine::source::SourceError;
use std::path::{Path, PathBuf};

/// What is wrong with the keys of a fleet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file cannot be read, written or locked.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// read, write or lock.
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The content of a file is malformed.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Other users can read a secret.
    #[error("{path} contains {what} and can be read by others: run `chmod 600 {path}`")]
    Readable {
        /// The file.
        path: String,
        /// Which secret.
        what: &'static str,
    },
    /// Another process uses the keys.
    #[error("{path} is in use by {other}")]
    InUse {
        /// The file.
        path: String,
        /// "another coordinator" or "another helper".
        other: &'static str,
    },
    /// All round numbers are used.
    #[error("{path}: the fleet has used up all round numbers")]
    NoMoreRounds {
        /// The file.
        path: String,
    },
}

impl From<KeysError> for SourceError {
    fn from(error: KeysError) -> Self {
        Self::Fleet(error.into())
    }
}

impl KeysError {
    /// Whether what was given is to blame, and not the file system.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Io { action, .. } if *action != "read")
    }
}

/// A file that belongs to a file of keys: its name with something appended.
pub(crate) fn beside(keys: &Path, ending: &str) -> PathBuf {
    let mut name = keys.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    keys.with_file_name(name)
}

/// A file system's error, with what was tried.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.display().to_string();
    move |source| KeysError::Io {
        action,
        path,
        source,
    }
}

/// Something wrong in a file.
pub(crate) fn content(path: &Path) -> impl FnOnce(String) -> KeysError {
    let path = path.display().to_string();
    move |reason| KeysError::Content { path, reason }
}
