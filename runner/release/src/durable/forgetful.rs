//! A file for tests that loses everything not synced before a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::DurableFile;

/// A file whose synced content is known.
#[derive(Debug)]
pub struct ForgetfulFile {
    file: File,
    path: PathBuf,
    synced: Arc<Mutex<Vec<u8>>>,
}

/// The disk of a [`ForgetfulFile`].
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    synced: Arc<Mutex<Vec<u8>>>,
}

impl ForgetfulFile {
    /// Opens a file, whose present content is on the disk. Appends all writes if `appends`.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn open(path: &Path, appends: bool) -> io::Result<(Self, Disk)> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).append(appends).open(path)?;
        let synced = Arc::new(Mutex::new(fs::read(path)?));
        let disk = Disk {
            path: path.to_path_buf(),
            synced: Arc::clone(&synced),
        };
        let path = path.to_path_buf();
        Ok((Self { file, path, synced }, disk))
    }
}

impl Disk {
    /// Cuts the power: the file then has its synced content.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn crash(&self) -> io::Result<()> {
        let synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        fs::write(&self.path, &*synced)
    }
}

impl Read for ForgetfulFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file.read(bytes)
    }
}

impl Write for ForgetfulFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for ForgetfulFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl DurableFile for ForgetfulFile {
    fn sync(&self) -> io::Result<()> {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        *synced = fs::read(&self.path)?;
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn lock_file(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn unlock_file(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_loses_what_was_not_synced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, b"before").unwrap();
        let (mut file, disk) = ForgetfulFile::open(&path, true).unwrap();
        file.write_all(b", synced").unwrap();
        file.sync().unwrap();
        file.write_all(b", lost").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before, synced, lost");
        disk.crash().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before, synced");
    }
}
