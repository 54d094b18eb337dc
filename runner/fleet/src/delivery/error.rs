//! Errors of a folder of models: no catalogue, a damaged file, an unusable or missing key, an
//! unknown version, unsuitable shares or models.

use std::io;
use std::path::Path;

/// Error of a folder of models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// A file cannot be read or written.
    #[error("cannot access {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// There is no catalogue.
    #[error("{0} has no models: `smolfed models publish RUN --models {0}` adds the first one")]
    Absent(String),
    /// The catalogue is damaged.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The secret key can be read by others.
    #[error("{0} contains a secret and can be read by others: run `chmod 600 {0}`")]
    Open(String),
    /// The secret key is malformed.
    #[error("{0}: expected 64 hexadecimal digits")]
    Key(String),
    /// The folder has no secret key.
    #[error(
        "{0} has no publisher.key: publish on the machine of the publisher, and copy the folder \
         without the key"
    )]
    NoKey(String),
    /// The secret key is not that of the folder.
    #[error("{0} is the key of another publisher than publisher.pub: restore the right key")]
    OtherKey(String),
    /// The system has no randomness.
    #[error("{0}")]
    Entropy(String),
    /// A version that does not exist.
    #[error("there is no version {version}: {known}")]
    NoVersion {
        /// The number.
        version: u32,
        /// The versions that exist.
        known: String,
    },
    /// A model for other devices.
    #[error(
        "the model is {found}, and the folder has models for {expected}: devices accept one shape \
         with one kind of features; choose another folder with `--models`"
    )]
    OtherModel {
        /// The new model.
        found: String,
        /// The models of the folder.
        expected: String,
    },
    /// A model that devices cannot use.
    #[error("the model cannot be published: {0}")]
    Unusable(&'static str),
    /// Shares that do not add up.
    #[error("the shares add up to {0} %, not 100 %")]
    Sum(f64),
    /// A share that is not a percentage.
    #[error("a share of {0} %: expected a number above 0 and at most 100")]
    Share(f64),
    /// A version with two shares.
    #[error("version {0} has two shares")]
    Twice(u32),
    /// There is no version to go back to.
    #[error("there is no earlier version to go back to: `smolfed models list` shows the versions")]
    NoEarlier,
    /// A share of the first version.
    #[error("the first version is for all devices: leave `--share` out")]
    First,
    /// A new share next to several current versions.
    #[error("devices already get different versions: set all shares with `smolfed models split`")]
    AlreadySplit,
    /// All numbers are used.
    #[error("no version number is left")]
    NoNumber,
}

impl CatalogueError {
    /// Returns whether the request is at fault, and not the machine.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::Entropy(_))
    }

    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.display().to_string();
        Self::Io { path, source }
    }
}
