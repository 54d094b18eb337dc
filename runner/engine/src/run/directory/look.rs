//! Views of a run directory from outside, while another process may be writing to it: likely run
//! directories, their use by a process, and the time of the last write.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::SystemTime;

use super::RunDir;
use crate::run_files::error::{RunDirError, io};

impl RunDir {
    /// Files that a run writes at its start or its end. Other programs are unlikely to have all of
    /// them.
    const MARKS: [&'static str; 5] = [
        Self::CONFIG,
        Self::METRICS,
        Self::LEDGER,
        Self::PRIVACY,
        Self::REPORT,
    ];

    /// Returns whether a folder looks like a run directory, possibly a damaged one: at least two of
    /// its files exist. A `config.toml` alone may belong to any program.
    #[must_use]
    pub fn is_likely(path: &Path) -> bool {
        let marks = Self::MARKS.iter();
        marks.filter(|name| path.join(name).is_file()).count() >= 2
    }

    /// Returns whether a process is writing to the directory.
    ///
    /// The test takes a shared lock for an instant. A run that starts at that moment would find the
    /// directory in use.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn is_in_use(&self) -> Result<bool, RunDirError> {
        let path = Self::config_path(&self.path);
        let file = File::open(&path).map_err(io("read", &path))?;
        // On a file system without locks, no run holds one.
        Ok(matches!(
            file.try_lock_shared(),
            Err(TryLockError::WouldBlock)
        ))
    }

    /// Returns the time at which the last round was written, or the configuration before the first
    /// one.
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
