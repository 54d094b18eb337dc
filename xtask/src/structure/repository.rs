//! Files of the repository, without hidden folders, build output and Python environments.

use std::error::Error;
use std::path::{Path, PathBuf};

/// A folder and the files below it, with sorted relative paths.
#[derive(Debug)]
pub struct Repository {
    pub root: PathBuf,
    pub files: Vec<PathBuf>,
}

impl Repository {
    /// Lists the files below `root`.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn open(root: &Path) -> Result<Self, Box<dyn Error>> {
        let root = root.canonicalize()?;
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let (path, name) = (entry.path(), entry.file_name());
                let hidden = name.as_encoded_bytes().starts_with(b".");
                // A link to a file counts as a file. Links to folders are not followed.
                if path.is_file() {
                    files.push(path.strip_prefix(&root)?.to_path_buf());
                    continue;
                }
                let is_made = name == "target" || path.join("pyvenv.cfg").exists();
                if entry.file_type()?.is_dir() && !is_made && !hidden {
                    folders.push(path);
                }
            }
        }
        files.sort();
        Ok(Self { root, files })
    }

    pub fn with_extension(&self, extension: &str) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().map(PathBuf::as_path);
        files.filter(move |file| file.extension().is_some_and(|found| found == extension))
    }

    /// # Errors
    /// The file cannot be read or is not UTF-8.
    pub fn read(&self, file: &Path) -> Result<String, Box<dyn Error>> {
        let text = std::fs::read_to_string(self.root.join(file));
        text.map_err(|error| format!("{}: {error}", file.display()).into())
    }
}
