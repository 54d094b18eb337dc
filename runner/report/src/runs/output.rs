//! Output without overwriting: a file, or a folder of files.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::error::RunsError;

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Its path below the output. Empty if it is the output itself.
    pub path: PathBuf,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl OutputFile {
    /// Returns a file at a path below the output.
    pub fn new(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            bytes: bytes.into(),
        }
    }

    /// Returns a file that is the whole output.
    pub fn whole(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(PathBuf::new(), bytes)
    }
}

/// Writes `files` to `out`, a new file or folder, and creates its parent folders.
///
/// # Errors
/// [`RunsError::Exists`], and [`RunsError::Write`], after which nothing is left at `out`.
pub fn write_new(out: &Path, files: &[OutputFile]) -> Result<(), RunsError> {
    let path = out.display().to_string();
    let parent = out.parent().unwrap_or(Path::new(""));
    let is_file = matches!(files, [file] if file.path.as_os_str().is_empty());
    // Only files created here may be removed again.
    let begun = fs::create_dir_all(parent).and_then(|()| match is_file {
        true => create(out).map(drop),
        false => fs::create_dir(out),
    });
    let written = begun.and_then(|()| {
        let written = files.iter().try_for_each(|file| write(out, file));
        if written.is_err() {
            // Partial output is useless. The first error counts.
            let _ = match is_file {
                true => fs::remove_file(out),
                false => fs::remove_dir_all(out),
            };
        }
        written
    });
    written.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => RunsError::Exists { path },
        _ => RunsError::Write { path, source },
    })
}

fn create(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn write(out: &Path, file: &OutputFile) -> io::Result<()> {
    if file.path.as_os_str().is_empty() {
        return fs::write(out, &file.bytes);
    }
    let path = out.join(&file.path);
    fs::create_dir_all(path.parent().unwrap_or(out))?;
    create(&path)?.write_all(&file.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_made_and_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("below/a.csv");
        write_new(&file, &[OutputFile::whole("a")]).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"a");
        let folder = place.path().join("tree");
        let tree = [OutputFile::new("x/y", "1"), OutputFile::new("z", "2")];
        write_new(&folder, &tree).unwrap();
        assert_eq!(fs::read(folder.join("x/y")).unwrap(), b"1");
        for (out, files) in [(&file, &tree[..]), (&folder, &tree[..])] {
            let error = write_new(out, files).unwrap_err();
            assert!(matches!(error, RunsError::Exists { .. }), "{error}");
        }
        let error = write_new(&file, &[OutputFile::whole("b")]).unwrap_err();
        assert!(error.to_string().contains("already exists"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"a");
    }

    #[test]
    fn a_tree_that_cannot_be_written_whole_is_not_left_half() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("tree");
        // A file exists where a folder is needed.
        let tree = [OutputFile::new("x", "1"), OutputFile::new("x/y", "2")];
        assert!(write_new(&folder, &tree).is_err());
        assert!(!folder.exists());
    }
}
