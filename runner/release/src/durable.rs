//! Files that stay complete or unchanged after a crash, a power loss or a full disk, and private
//! files.
//!
//! Ledgers write through a [`DurableFile`]. Tests replace it by a file that loses everything not
//! synced before a crash.

#[cfg(any(test, feature = "faults"))]
pub mod forgetful;

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// A file whose content is on the disk when [`sync`](Self::sync) returns.
pub trait DurableFile: Read + Write + Seek + Debug + Send + Sync {
    /// Waits until the content and its length are on the disk.
    ///
    /// # Errors
    /// Any error of the file system.
    fn sync(&self) -> io::Result<()>;

    /// Changes the length.
    ///
    /// # Errors
    /// Any error of the file system.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Waits until no other process has locked the file, and locks it.
    ///
    /// # Errors
    /// Any error of the file system.
    fn lock_file(&self) -> io::Result<()>;

    /// Unlocks the file.
    ///
    /// # Errors
    /// Any error of the file system.
    fn unlock_file(&self) -> io::Result<()>;
}

impl DurableFile for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn lock_file(&self) -> io::Result<()> {
        self.lock()
    }

    fn unlock_file(&self) -> io::Result<()> {
        self.unlock()
    }
}

/// Replaces the content of a file atomically: writes `<name>.partial` next to it, syncs and renames
/// it.
///
/// # Errors
/// Any error of the file system. The file then has its earlier content.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, &|partial| File::create(partial))
}

/// Replaces the content of a file like [`write_atomically`]. Only its owner can read and write it
/// at any time.
///
/// # Errors
/// Any error of the file system. The file then has its earlier content.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, &|partial| {
        // A file left by a crash may have other permissions.
        match fs::remove_file(partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => new_private(partial),
        }
    })
}

fn replace(
    path: &Path,
    bytes: &[u8],
    create: &dyn Fn(&Path) -> io::Result<File>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let write = || {
        let mut file = create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path)
    };
    write().inspect_err(|_| {
        // A leftover partial file is useless and harmless.
        let _ = fs::remove_file(&partial);
    })
}

/// Creates a file that only its owner can read and write, and syncs it. Never overwrites a file.
///
/// # Errors
/// Any error of the file system. [`io::ErrorKind::AlreadyExists`] if the file exists.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = new_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(path)?;
    Ok(file)
}

/// Creates a file that only its owner can read and write. Never overwrites a file. Does not sync
/// it.
///
/// # Errors
/// Any error of the file system. [`io::ErrorKind::AlreadyExists`] if the file exists.
pub fn new_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options.mode(0o600).open(path)
}

/// Syncs all files already written to a folder, and the folder, at once. Syncing ten thousand files
/// one by one takes half a minute.
///
/// # Errors
/// Any error of the file system.
pub fn sync_all_in(folder: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::syncfs(File::open(folder)?)?);
    #[cfg(not(target_os = "linux"))]
    {
        for entry in fs::read_dir(folder)? {
            File::open(entry?.path())?.sync_all()?;
        }
        File::open(folder)?.sync_all()
    }
}

/// Returns whether only its owner can access a file.
///
/// # Errors
/// Any error of the file system.
pub fn is_private(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.permissions().mode() & 0o077 == 0)
}

/// Syncs the folder of a file. Without it, a power loss can undo the creation or renaming of the
/// file.
///
/// # Errors
/// Any error of the file system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_earlier_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, b"before").unwrap();
        // A folder has the name of the partial file.
        fs::create_dir(dir.path().join("file.partial")).unwrap();
        assert!(write_atomically(&path, b"after").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"before");
    }

    #[test]
    fn a_private_file_is_private_before_it_has_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        // Others can read the file that a crash left behind.
        fs::write(dir.path().join("keys.partial"), b"").unwrap();
        replace_private(&path, b"first").unwrap();
        replace_private(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert!(is_private(&File::open(&path).unwrap()).unwrap());
        sync_all_in(dir.path()).unwrap();
    }

    #[test]
    fn a_private_file_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        create_private(&path, b"first").unwrap();
        let error = create_private(&path, b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }
}
