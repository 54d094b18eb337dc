//! The runs given on a command line, each with a short name.

use std::path::{Path, PathBuf};

use super::error::RunsError;
use super::record::Run;
use crate::sweep::Results;

/// A run among others.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The shortest unique end of its path, for example `digits-17`.
    pub label: String,
    /// The run.
    pub run: Run,
}

/// Reads runs that have begun.
///
/// # Errors
/// [`RunsError`] names the folder and the missing part, or the repeated run.
pub fn open(paths: &[PathBuf]) -> Result<Vec<Selected>, RunsError> {
    let runs = paths.iter().map(|path| begun(path));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    // With links and dots resolved, or as given if the folder is meanwhile gone.
    let full = runs.iter().map(|run| match run.path.canonicalize() {
        Ok(path) => path,
        Err(_) => run.path.clone(),
    });
    let full: Vec<PathBuf> = full.collect();
    for (index, path) in full.iter().enumerate() {
        if let Some(other) = full[..index].iter().position(|other| other == path) {
            return Err(RunsError::Twice {
                path: runs[other].path.display().to_string(),
                other: runs[index].path.display().to_string(),
            });
        }
    }
    let labels = labels(&full).into_iter().zip(runs);
    Ok(labels.map(|(label, run)| Selected { label, run }).collect())
}

fn begun(path: &Path) -> Result<Run, RunsError> {
    if Results::are_in(path) {
        let path = path.display().to_string();
        return Err(RunsError::IsSweep { path });
    }
    let run = Run::open(path)?;
    if run.rounds.is_empty() {
        let path = path.display().to_string();
        return Err(RunsError::NoRounds { path });
    }
    Ok(run)
}

/// Returns the end of each of these different paths, with as many parts as make all unique.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let longest = paths.iter().map(|path| path.iter().count()).max();
    let with = |parts: usize| -> Vec<String> {
        let label = |path: &PathBuf| {
            let skipped = path.iter().count().saturating_sub(parts);
            let last: PathBuf = path.iter().skip(skipped).collect();
            last.display().to_string()
        };
        paths.iter().map(label).collect()
    };
    let is_told_apart = |labels: &Vec<String>| {
        let mut sorted = labels.clone();
        sorted.sort();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    let longest = longest.unwrap_or(1);
    let mut candidates = (1..=longest).map(with);
    candidates
        .find(is_told_apart)
        .unwrap_or_else(|| with(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_as_short_as_they_can_be() {
        let of = |paths: &[&str]| labels(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["/runs/a", "/runs/b"]), ["a", "b"]);
        assert_eq!(of(&["/x/a", "/y/a", "/y/b"]), ["x/a", "y/a", "y/b"]);
        assert_eq!(of(&["/a", "/b/a"]), ["/a", "b/a"]);
        assert!(of(&[]).is_empty());
    }
}
