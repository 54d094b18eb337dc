//! Why runs cannot be listed, compared or exported.

use std::io;

use smolfed_engine::run_files::error::RunDirError;

/// Why runs cannot be listed, compared or exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// A run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// Nothing to look for runs in.
    #[error("{path} is no folder: give one that has run directories in it, or below it")]
    NoFolder {
        /// What was given.
        path: String,
    },
    /// A sweep, which keeps no curves.
    #[error(
        "{path} is a sweep, which keeps no rounds of its runs: its figures are in {path}/table.csv"
    )]
    IsSweep {
        /// The folder.
        path: String,
    },
    /// A run before its first round.
    #[error("{path} has no round yet: its metrics.jsonl is missing or empty")]
    NoRounds {
        /// The run directory.
        path: String,
    },
    /// The same run twice.
    #[error("{path} and {other} are the same run: name each run once")]
    Twice {
        /// One of them.
        path: String,
        /// The other.
        other: String,
    },
    /// More curves than can be told apart.
    #[error("curves of {runs} runs cannot be told apart on one page: choose up to {max}")]
    TooManyCurves {
        /// How many were given.
        runs: usize,
        /// How many there may be.
        max: usize,
    },
    /// The output is there.
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
        /// Why.
        source: io::Error,
    },
}

impl RunsError {
    /// Whether the input is to blame.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::Write { .. } => false,
            _ => true,
        }
    }
}
