//! The search path of files: the folder of the experiment, the folder in `SMOLFED_DATA`, the
//! working directory and `data` in it. The error about a missing file lists them.

use std::path::{Path, PathBuf};

use super::config::{DataConfig, SourceConfig};
use super::error::DataError;

/// Environment variable that names the folder of data sets.
pub const FOLDER_VARIABLE: &str = "SMOLFED_DATA";

/// The folders in which a relative path is searched, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFolders(Vec<PathBuf>);

impl DataFolders {
    /// Returns the folder of the experiment file (`None` for no file), the folder in
    /// [`FOLDER_VARIABLE`], the working directory, and `data` in it.
    pub fn of_experiment(file: Option<&Path>) -> Self {
        let of_file = file.map(|file| file.parent().unwrap_or(Path::new("")).to_path_buf());
        let named = std::env::var_os(FOLDER_VARIABLE).filter(|name| !name.is_empty());
        let mut folders: Vec<PathBuf> = of_file.into_iter().collect();
        folders.extend(named.map(PathBuf::from));
        // The parent of a bare file name is the working directory.
        let working = PathBuf::new();
        if !folders.contains(&working) {
            folders.push(working);
        }
        folders.push("data".into());
        Self(folders)
    }

    /// Uses only these folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// Returns the first place where `path` exists.
    ///
    /// # Errors
    /// [`DataError::NotFound`] with the tried places.
    pub fn find(&self, path: &Path) -> Result<PathBuf, DataError> {
        let tried: Vec<PathBuf> = if path.is_absolute() {
            vec![path.to_path_buf()]
        } else {
            self.0.iter().map(|folder| folder.join(path)).collect()
        };
        // The parent of an array in an archive is the archive: `data.npz/x`.
        let is_there = |place: &&PathBuf| place.exists() || archive_of(place).is_some();
        match tried.iter().find(is_there) {
            Some(place) => Ok(place.clone()),
            None => Err(DataError::NotFound {
                path: path.to_path_buf(),
                tried,
            }),
        }
    }

    /// Makes every path of `config` absolute, so that it is independent of the working directory.
    ///
    /// # Errors
    /// [`DataError::NotFound`] for the first missing path, [`DataError::Read`] if the working
    /// directory no longer exists.
    pub fn anchor(&self, mut config: DataConfig) -> Result<DataConfig, DataError> {
        if let SourceConfig::Stored(stored) = &mut config.source {
            for path in stored.set.paths_mut() {
                let found = self.find(path)?;
                *path = std::path::absolute(&found).map_err(|reason| DataError::Read {
                    path: found,
                    reason,
                })?;
            }
        }
        Ok(config)
    }
}

/// Returns the archive that a path leads into, if there is one.
pub(super) fn archive_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| parent.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_folder_that_has_the_file_wins() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let paths = [first.path().to_path_buf(), second.path().to_path_buf()];
        let folders = DataFolders::new(paths.to_vec());
        std::fs::write(second.path().join("a.csv"), "").unwrap();
        assert_eq!(
            folders.find(Path::new("a.csv")).unwrap(),
            second.path().join("a.csv")
        );
        std::fs::write(first.path().join("a.csv"), "").unwrap();
        assert_eq!(
            folders.find(Path::new("a.csv")).unwrap(),
            first.path().join("a.csv")
        );
        let absolute = second.path().join("a.csv");
        assert_eq!(folders.find(&absolute).unwrap(), absolute);
    }

    #[test]
    fn error_names_every_place_and_the_variable() {
        let folders = DataFolders::new(vec!["here".into(), "there".into()]);
        let text = folders
            .find(Path::new("no/such.csv"))
            .unwrap_err()
            .to_string();
        for part in ["here/no/such.csv", "there/no/such.csv", FOLDER_VARIABLE] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn folder_of_the_experiment_comes_first() {
        let folders = DataFolders::of_experiment(Some(Path::new("some/where/run.toml")));
        assert_eq!(folders.0[0], Path::new("some/where"));
        assert!(folders.0[1..].contains(&PathBuf::new()));
        let bare = DataFolders::of_experiment(Some(Path::new("run.toml")));
        assert_eq!(bare.0[0], Path::new(""));
        assert!(!bare.0[1..].contains(&PathBuf::new()), "tried twice");
    }
}
