//! Search for folders of runs and sweeps.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sweep::Results;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run_files::error::{RunDirError, io};

/// Kind of a folder.
#[derive(Debug)]
pub(super) enum Kind {
    /// It looks like a run directory.
    Run,
    /// It has the results of a sweep.
    Sweep,
    /// Its contents are unknown.
    Unreadable(RunDirError),
}

/// Returns the runs, sweeps and unreadable folders at or below `folder`, ordered by path.
///
/// Skips hidden folders, and does not follow symbolic links, which could form loops.
pub(super) fn below(folder: &Path) -> Vec<(PathBuf, Kind)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        match folders_in(&path) {
            Ok(folders) => open.extend(folders),
            Err(error) => {
                found.push((path, Kind::Unreadable(error)));
                continue;
            }
        }
        if RunDir::is_likely(&path) {
            found.push((path, Kind::Run));
        } else if Results::are_in(&path) {
            found.push((path, Kind::Sweep));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn folders_in(path: &Path) -> Result<Vec<PathBuf>, RunDirError> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(io("read", path))? {
        let entry = entry.map_err(io("read", path))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // Paths below the current folder need no `./`.
            let path = entry.path();
            folders.push(
                path.strip_prefix(".")
                    .map_or(path.clone(), Path::to_path_buf),
            );
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_sweeps_are_found_at_any_depth_and_other_folders_are_not() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["config.toml", "metrics.jsonl", "checkpoint/state"] {
            write(&format!("a/deep/run/{name}"), "");
        }
        write("without-configuration/metrics.jsonl", "");
        write("without-configuration/privacy.json", "[]");
        write("somebody/config.toml", "title = 'a web site'");
        write(".hidden/config.toml", "");
        write(".hidden/metrics.jsonl", "");
        write("sweep/results.jsonl", "{\"experiment\":\"1\"");
        write("other/results.jsonl", "{}");
        std::os::unix::fs::symlink(place.path(), place.path().join("circle")).unwrap();
        let found = below(place.path());
        let names = found.iter().map(|(path, kind)| {
            let path = path.strip_prefix(place.path()).unwrap();
            (path.to_str().unwrap(), matches!(kind, Kind::Sweep))
        });
        let expected = [
            ("a/deep/run", false),
            ("sweep", true),
            ("without-configuration", false),
        ];
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}
