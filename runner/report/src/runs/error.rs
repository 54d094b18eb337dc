//! Errors when listing, comparing or exporting runs: no folder, a sweep instead of a run, no round
//! yet, a run given twice, too many curves.

use std::io;

use smolfed_engine::run_files::error::RunDirError;

/// Error when listing, comparing or exporting runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// A run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// There is no folder to search for runs.
    #[error("{path} is not a folder: give one that has run directories in it, or below it")]
    NoFolder {
        /// The given path.
        path: String,
    },
    /// A sweep was given, which keeps no curves.
    #[error(
        "{path} is a sweep, which keeps no rounds of its runs: its figures are in {path}/table.csv"
    )]
    IsSweep {
        /// The folder.
        path: String,
    },
    /// The run has no round yet.
    #[error("{path} has no round yet: its metrics.jsonl is missing or empty")]
    NoRounds {
        /// The run directory.
        path: String,
    },
    /// The same run was given twice.
    #[error("{path} and {other} are the same run: name each run once")]
    Twice {
        /// One of them.
        path: String,
        /// The other.
        other: String,
    },
    /// There are too many curves to distinguish.
    #[error("curves of {runs} runs cannot be told apart on one page: choose up to {max}")]
    TooManyCurves {
        /// The number of runs given.
        runs: usize,
        /// The maximum number.
        max: usize,
    },
    /// The output already exists.
    #[error("{path} already exists and is not overwritten: choose another place, or remove it")]
    Exists {
        /// The file or folder.
        path: String,
    },
    /// Writing failed.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: String,
        /// Cause.
        source: io::Error,
    },
}

impl RunsError {
    /// Returns whether the input is at fault.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Write { .. } => false,
            _ => true,
        }
    }
}
