//! One coordinator, or one helper, at a time: a lock on `<keys>.lock`, next to the keys and not on
//! them, so that the file of keys can be replaced while a coordinator runs.
//!
//! The system releases the lock when the process ends, for whatever reason. The file stays, and is
//! meaningless without the lock. A coordinator that reloads keys on SIGHUP writes its process
//! number into the file once its handler is installed, since the signal ends a process without one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::error::{KeysError, beside, io as io_error};

/// A process that queries the lock holds it for a moment.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// The lock of a coordinator or a helper.
#[derive(Debug)]
pub struct KeysLock(File);

impl KeysLock {
    /// Locks the keys for this process. `other` names the user of the keys in the error.
    ///
    /// # Errors
    /// [`KeysError::InUse`], [`KeysError::Io`].
    pub fn take(keys: &Path, other: &'static str) -> Result<Self, KeysError> {
        let path = beside(keys, ".lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(&path);
        let file = file.map_err(io_error("write", &path))?;
        let is_taken = (0..ATTEMPTS).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            file.try_lock().is_ok()
        });
        if !is_taken {
            return Err(KeysError::InUse {
                path: keys.display().to_string(),
                other,
            });
        }
        let lock = Self(file);
        // It may name an earlier process.
        lock.clear().map_err(io_error("write", &path))?;
        Ok(lock)
    }

    /// Removes the process number.
    fn clear(&self) -> io::Result<()> {
        if self.0.metadata()?.len() > 0 {
            self.0.set_len(0)?;
        }
        Ok(())
    }

    /// Lets commands that change the keys send SIGHUP to this process.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn announce(&mut self) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.seek(SeekFrom::Start(0))?;
        writeln!(self.0, "{}", std::process::id())
    }
}

impl Drop for KeysLock {
    fn drop(&mut self) {
        // Otherwise the next coordinator clears it, and nobody signals an ended process.
        let _ = self.clear();
    }
}

/// User of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No coordinator.
    Absent,
    /// A coordinator that cannot be notified of changes.
    Unreachable,
    /// A coordinator that reloads keys on SIGHUP.
    Process(u32),
}

impl Holder {
    /// Returns the current user of these keys, or [`Self::Absent`] if that is unknown.
    #[must_use]
    pub fn of(keys: &Path) -> Self {
        let Ok(mut file) = File::open(beside(keys, ".lock")) else {
            return Self::Absent;
        };
        if file.try_lock_shared().is_ok() {
            return Self::Absent;
        }
        let mut text = String::new();
        let number = file.read_to_string(&mut text).ok();
        let number = number.and_then(|_| text.trim().parse().ok());
        match number.filter(|number| has_open(*number, &file)) {
            Some(number) => Self::Process(number),
            None => Self::Unreachable,
        }
    }

    /// Makes the coordinator reload the keys. Returns whether it was notified.
    #[must_use]
    pub fn signal(self) -> bool {
        let Self::Process(number) = self else {
            return false;
        };
        let number = i32::try_from(number).ok().and_then(Pid::from_raw);
        number.is_some_and(|number| kill_process(number, Signal::HUP).is_ok())
    }
}

/// Returns whether a process has this file open.
///
/// A number alone may be another process's: in another container's numbering, or reused. Returns
/// `false` if this is unknown.
fn has_open(process: u32, file: &File) -> bool {
    let Ok(lock) = file.metadata() else {
        return false;
    };
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    open.flatten()
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .any(|other| (other.dev(), other.ino()) == (lock.dev(), lock.ino()))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Returns a process that may have the file open, and ends with code 7 on SIGHUP.
    fn process(stdin: impl Into<Stdio>) -> Child {
        let mut child = Command::new("sh")
            .args([
                "-c",
                "trap 'exit 7' HUP; echo; while :; do sleep 0.01; done",
            ])
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Its handler is installed.
        let mut line = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        child
    }

    #[test]
    fn a_process_is_told_if_it_has_the_lock_and_wants_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.toml");
        assert_eq!(Holder::of(&keys), Holder::Absent);
        let mut lock = KeysLock::take(&keys, "another coordinator").unwrap();
        assert!(KeysLock::take(&keys, "another coordinator").is_err());
        assert_eq!(Holder::of(&keys), Holder::Unreachable);
        lock.announce().unwrap();
        assert_eq!(Holder::of(&keys), Holder::Process(std::process::id()));
        let path = beside(&keys, ".lock");
        // An unrelated process.
        let mut other = process(Stdio::null());
        fs::write(&path, format!("{}\n", other.id())).unwrap();
        assert_eq!(Holder::of(&keys), Holder::Unreachable);
        assert!(!Holder::of(&keys).signal());
        let mut holder = process(lock.0.try_clone().unwrap());
        fs::write(&path, format!("{}\n", holder.id())).unwrap();
        assert!(Holder::of(&keys).signal());
        assert_eq!(holder.wait().unwrap().code(), Some(7));
        assert_eq!(other.try_wait().unwrap(), None, "not told");
        other.kill().unwrap();
        other.wait().unwrap();
        drop(lock);
        assert_eq!(Holder::of(&keys), Holder::Absent);
        KeysLock::take(&keys, "another coordinator").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "");
    }
}
