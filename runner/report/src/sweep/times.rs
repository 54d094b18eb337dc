//! File times of a private sweep. The time of a chosen run would reveal the duration of its
//! selection, and so its number of trials. At the end all files get the same time.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::SystemTime;

use smolfed_engine::run_files::error::{RunDirError, io};

/// Sets the access and modification times of `dir` and everything below it to now. The times of a
/// file's creation and of changes to its entry cannot be set, and file systems may keep them.
///
/// # Errors
/// [`RunDirError::Io`].
pub fn make_equal(dir: &Path) -> Result<(), RunDirError> {
    let now = SystemTime::now();
    set(dir, FileTimes::new().set_accessed(now).set_modified(now))
}

fn set(path: &Path, times: FileTimes) -> Result<(), RunDirError> {
    let kind = fs::symlink_metadata(path).map_err(io("read", path))?;
    if kind.is_dir() {
        for entry in fs::read_dir(path).map_err(io("read", path))? {
            set(&entry.map_err(io("read", path))?.path(), times)?;
        }
    } else if !kind.is_file() {
        return Ok(());
    }
    let set = File::open(path).and_then(|file| file.set_times(times));
    set.map_err(io("set the times of", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_files_and_folders_get_one_time() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("chosen/deep");
        fs::create_dir_all(&inner).unwrap();
        let paths = [dir.path().join("a"), inner.join("b"), inner];
        fs::write(&paths[0], "a").unwrap();
        fs::write(&paths[1], "b").unwrap();
        let earlier = SystemTime::now() - Duration::from_secs(3600);
        let file = File::open(&paths[1]).unwrap();
        file.set_times(FileTimes::new().set_modified(earlier))
            .unwrap();
        make_equal(dir.path()).unwrap();
        let times = paths.map(|path| fs::metadata(path).unwrap().modified().unwrap());
        assert_eq!(times[0], times[1]);
        assert_eq!(times[0], times[2]);
        assert_eq!(
            times[0],
            fs::metadata(dir.path()).unwrap().modified().unwrap()
        );
    }
}
