//! Runs for the tests of formats.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::runs::record::{Run, State};
use crate::runs::selection::Selected;
use crate::runs::settings;
use smolfed_engine::config::{Config, DEFAULT};
use smolfed_engine::run_files::records::RecordValues;

/// Unix time of the last round of every run here.
pub(crate) const WRITTEN: u64 = 1_700_000_000;

/// Returns a run of the built-in experiment with these lines in its `metrics.jsonl`.
pub(crate) fn run(label: &str, lines: &[&str]) -> Selected {
    let config = Config::parse(DEFAULT, "default", &[]).unwrap();
    let rounds = lines.iter().map(|line| {
        let record: RecordValues = serde_json::from_str(line).unwrap();
        record.into()
    });
    Selected {
        label: label.to_owned(),
        run: Run {
            path: PathBuf::from("runs").join(label),
            settings: settings::from_config(&config).unwrap(),
            config,
            rounds: rounds.collect(),
            statements: Vec::new(),
            state: State::Complete,
            written: SystemTime::UNIX_EPOCH + Duration::from_secs(WRITTEN),
        },
    }
}
