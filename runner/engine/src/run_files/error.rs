//! Errors of a run directory and its files: taken, in use, left by a failed run, not a run,
//! damaged, of another run or version.

use std::path::Path;

use crate::config::ConfigError;
use smolfed_release::durable;

/// Errors of a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The directory of a new run is taken.
    #[error("{path} already exists: choose another --out, or --resume {path}")]
    Exists {
        /// The directory.
        path: String,
    },
    /// The directory of a new run contains something else.
    #[error("{path} already exists and is not a run: choose another --out")]
    Taken {
        /// The file or folder.
        path: String,
    },
    /// The directory of a new run belongs to a failed one.
    #[error(
        "{path} is left over from a run that ended before its first checkpoint, so it cannot be \
         resumed: delete it, or choose another --out"
    )]
    Failed {
        /// The directory.
        path: String,
    },
    /// Another process writes to the directory.
    #[error("{path} is in use: another process still writes to it; stop that one, or wait")]
    InUse {
        /// The directory.
        path: String,
    },
    /// A directory without a run.
    #[error("{path} is not a run directory: it has no {file}; `smolfed runs` lists all runs")]
    NotARun {
        /// The directory.
        path: String,
        /// The missing file.
        file: &'static str,
    },
    /// Reading or writing failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// read, write or create.
        action: &'static str,
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A file of the run is damaged.
    #[error("{path} is damaged: {reason}; restore it from a copy, or write it again")]
    Damaged {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A checkpoint or results that belong to other data or another experiment.
    #[error("{path} was made with other data or another experiment: {reason}")]
    Foreign {
        /// The file.
        path: String,
        /// The difference.
        reason: String,
    },
    /// A checkpoint whose format has another version.
    #[error(
        "{path} was written by another version of smolfed: {reason}; run the experiment again in \
         another directory"
    )]
    Version {
        /// The file.
        path: String,
        /// The version.
        reason: String,
    },
    /// The configuration of the run.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Calls [`durable::write_atomically`], with the error of a run directory.
///
/// # Errors
/// [`RunDirError::Io`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunDirError> {
    durable::write_atomically(path, bytes).map_err(io("write", path))
}

/// Returns an error about the content of a file.
pub fn damaged(path: &Path, reason: String) -> RunDirError {
    RunDirError::Damaged {
        path: path.display().to_string(),
        reason,
    }
}

/// Returns an error about a file operation.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RunDirError {
    let path = path.display().to_string();
    move |source| RunDirError::Io {
        action,
        path,
        source,
    }
}

/// Returns `None` for a missing file.
///
/// # Errors
/// The error of `read`, unless the file is missing.
pub fn if_there<T>(read: Result<T, RunDirError>) -> Result<Option<T>, RunDirError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(RunDirError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
