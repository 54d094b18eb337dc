//! Errors of a fleet's keys (malformed, readable by other users, in use, no round numbers left),
//! and the names of the files next to them.

use smolfed_engine::source::SourceError;
use std::path::{Path, PathBuf};

/// Error of a fleet's keys.
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
        /// Cause.
        source: std::io::Error,
    },
    /// The content of a file is malformed.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: String,
        /// The problem.
        reason: String,
    },
    /// Other users can read a secret.
    #[error("{path} contains {what} and can be read by others: run `chmod 600 {path}`")]
    Readable {
        /// The file.
        path: String,
        /// The kind of secret.
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
    /// Returns whether the input is at fault, and not the file system.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Io { action, .. } if *action != "read")
    }
}

/// Returns the path next to a file of keys with `ending` appended.
pub(crate) fn beside(keys: &Path, ending: &str) -> PathBuf {
    let mut name = keys.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    keys.with_file_name(name)
}

/// Returns a file system error with the attempted action.
pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> KeysError {
    let path = path.display().to_string();
    move |source| KeysError::Io {
        action,
        path,
        source,
    }
}

/// Returns an error about a file's contents.
pub(crate) fn content(path: &Path) -> impl FnOnce(String) -> KeysError {
    let path = path.display().to_string();
    move |reason| KeysError::Content { path, reason }
}
