//! Files that survive a crash, a power loss or a full disk, complete or unchanged; and private
//! files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Replaces the content of a file atomically: writes `<name>.partial` beside it, syncs, renames.
///
/// # Errors
/// Those of the file system; the file then has its earlier content.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path)
    };
    write().inspect_err(|_| {
        // The partial file is useless, and harmless should it stay behind.
        let _ = fs::remove_file(&partial);
    })
}

/// Creates a file that only its owner can read and write, and syncs it. Never overwrites one.
///
/// # Errors
/// Those of the file system; [`io::ErrorKind::AlreadyExists`] if the file exists.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(path)?;
    Ok(file)
}

/// Whether only its owner can access a file.
///
/// # Errors
/// Those of the file system.
pub fn is_private(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.permissions().mode() & 0o077 == 0)
}

/// Syncs the folder of a file: without it a power loss can undo the file's creation or renaming.
///
/// # Errors
/// Those of the file system.
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
        // A folder takes the place of the partial file.
        fs::create_dir(dir.path().join("file.partial")).unwrap();
        assert!(write_atomically(&path, b"after").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"before");
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
