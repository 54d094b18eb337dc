//! What a run directory looks like from outside, while somebody else may be writing to it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::SystemTime;

use super::RunDir;
use crate::run_files::error::{RunDirError, io};

impl RunDir {
    /// Files that a run writes at its start or its end and that no other program is likely to have
    /// all of.
    const MARKS: [&'static str; 5] = [
        Self::CONFIG,
        Self::METRICS,
        Self::LEDGER,
        Self::PRIVACY,
        Self::REPORT,
    ];

    /// Whether a folder looks like a run directory, perhaps a damaged one: at least two of its
    /// files are there. A `config.toml` alone may be anybody's.
    #[must_use]
    pub fn is_likely(path: &Path) -> bool {
        let marks = Self::MARKS.iter();
        marks.filter(|name| path.join(name).is_file()).count() >= 2
    }

    /// Whether a process writes to the directory now.
    ///
    /// The lock that tells is shared and held for an instant; a run that starts within it would
    /// find the directory in use.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn is_in_use(&self) -> Result<bool, RunDirError> {
        let path = Self::config_path(&self.path);
        let file = File::open(&path).map_err(io("read", &path))?;
        // A file system without locks has no run that holds one.
        Ok(matches!(
            file.try_lock_shared(),
            Err(TryLockError::WouldBlock)
        ))
    }

    /// When the last round was written down, or the configuration before the first one.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn written(&self) -> Result<SystemTime, RunDirError> {
        let names = [Self::METRICS, Self::CONFIG];
        let mut paths = names.map(|name| self.path.join(name)).into_iter();
        let path = paths
            .find(|path| path.is_file())
            .unwrap_or_else(|| Self::config_path(&self.path));
        let time = path.metadata().and_then(|metadata| metadata.modified());
        time.map_err(io("read", &path))
    }
}
