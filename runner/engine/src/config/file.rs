//! Reading the text of an experiment file, and the refusal of other inputs, such as data files and
//! run directories.

use std::io::ErrorKind;
use std::path::Path;

use super::error::ConfigError;
use smolfed_data::catalogue::KnownSet;

/// Endings of data files, which are not experiments.
const DATA_ENDINGS: [&str; 11] = [
    "csv", "tsv", "jsonl", "ndjson", "arff", "parquet", "npz", "npy", "gz", "zip", "json",
];

/// Reads an experiment or a sweep.
///
/// # Errors
/// [`ConfigError`] if it is data, the directory of a run or not text, or cannot be read.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let name = || path.display().to_string();
    if path.join("config.toml").is_file() {
        return Err(ConfigError::IsRun { path: name() });
    }
    if is_data(path) {
        return Err(ConfigError::IsData { path: name() });
    }
    std::fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => ConfigError::Missing { path: name() },
        ErrorKind::InvalidData => ConfigError::NotText { path: name() },
        _ => ConfigError::Read {
            path: name(),
            source,
        },
    })
}

fn is_data(path: &Path) -> bool {
    let is_set = path
        .to_str()
        .is_some_and(|name| KnownSet::named(name).is_some());
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let has_ending = DATA_ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    has_ending || path.is_dir() || is_set && !path.is_file()
}
