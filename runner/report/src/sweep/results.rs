//! `results.jsonl`: one finished run per line, appended as runs end.
//!
//! Each line names the experiment, the settings and the seed. A sweep that restarts, or grows by
//! more values and seeds, only does the missing runs.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grid::Cell;
use super::metric::Metric;
use smolfed_data::wording::of_json_record;
use smolfed_engine::run_files::error::{RunDirError, damaged, io, write_atomically};
use smolfed_release::provenance::{Figure, Provenance};
use smolfed_release::statement::PrivacyStatement;

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`Sweep::fingerprint`](super::Sweep::fingerprint).
    pub experiment: String,
    /// The settings of the cell.
    pub settings: Map<String, Value>,
    /// The seed.
    pub seed: u64,
    /// N.
    pub devices: u32,
    /// The evaluations, ending with the one after the last round.
    pub evaluations: Vec<Figures>,
    /// The privacy statements, the run's own accountant first.
    pub privacy: Vec<PrivacyStatement>,
    /// Wall time of the run, the only field that differs between repetitions. Zero for a private
    /// selection.
    pub seconds: f64,
}

/// The evaluation after a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenFigures", into = "WrittenFigures")]
pub struct Figures {
    /// Number of completed rounds.
    pub rounds: u32,
    /// The finite figures.
    pub figures: BTreeMap<Metric, Figure>,
}

/// The figures as written in a line: the origins are next to the values.
#[derive(Serialize, Deserialize)]
struct WrittenFigures {
    rounds: u32,
    figures: BTreeMap<Metric, f64>,
    /// Earlier versions of smolfed wrote no origins.
    #[serde(default)]
    origin: BTreeMap<Metric, Provenance>,
}

impl From<WrittenFigures> for Figures {
    fn from(written: WrittenFigures) -> Self {
        let origin = |metric| written.origin.get(&metric).copied().unwrap_or_default();
        let figures = written.figures.iter();
        let figures = figures.map(|(metric, value)| {
            let (value, origin) = (*value, origin(*metric));
            (*metric, Figure { value, origin })
        });
        Self {
            rounds: written.rounds,
            figures: figures.collect(),
        }
    }
}

impl From<Figures> for WrittenFigures {
    fn from(Figures { rounds, figures }: Figures) -> Self {
        let pairs = || figures.iter();
        Self {
            rounds,
            figures: pairs()
                .map(|(metric, figure)| (*metric, figure.value))
                .collect(),
            origin: pairs()
                .map(|(metric, figure)| (*metric, figure.origin))
                .collect(),
        }
    }
}

impl RunRecord {
    /// Returns a figure after the last round.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> Option<Figure> {
        self.evaluations.last()?.figures.get(&metric).copied()
    }

    fn key(&self) -> RunKey {
        RunKey::new(&self.settings, self.seed)
    }
}

/// Identifies a run of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RunKey(String, u64);

impl RunKey {
    fn new(settings: &Map<String, Value>, seed: u64) -> Self {
        // The keys of a map are sorted, so equal settings give equal text.
        let pairs = settings.iter().map(|(key, value)| format!("{key}={value}"));
        Self(pairs.collect::<Vec<_>>().join(","), seed)
    }
}

/// All results of a sweep so far, and the file for the next ones.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    records: HashMap<RunKey, RunRecord>,
    /// Bytes of the complete lines. The rest is torn.
    whole: u64,
    /// Opened for the first result: a sweep that cannot run writes nothing.
    file: Option<File>,
}

impl Results {
    const NAME: &'static str = "results.jsonl";

    /// Returns empty results. The first result replaces any existing file in `dir`.
    #[must_use]
    pub fn fresh(dir: &Path) -> Self {
        Self {
            path: dir.join(Self::NAME),
            records: HashMap::new(),
            whole: 0,
            file: None,
        }
    }

    /// Reads the results in `dir`, or none if it does not exist. A torn last line is ignored.
    ///
    /// # Errors
    /// [`RunDirError::Io`], [`RunDirError::Damaged`] if a complete line is not a result, and
    /// [`RunDirError::Foreign`] if a line is of another experiment than `experiment`.
    pub fn open(dir: &Path, experiment: &str) -> Result<Self, RunDirError> {
        let mut results = Self::fresh(dir);
        let path = &results.path;
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(results),
            Err(error) => return Err(io("read", path)(error)),
        };
        let whole = whole_lines(&text);
        for (number, record) in parse(path, whole) {
            let record = record?;
            if record.experiment != experiment {
                return Err(RunDirError::Foreign {
                    path: path.display().to_string(),
                    reason: format!(
                        "line {number} belongs to experiment {}, but this one is {experiment}; \
                         choose another --out, or start over with --fresh",
                        record.experiment
                    ),
                });
            }
            results.records.insert(record.key(), record);
        }
        results.whole = whole.len() as u64;
        Ok(results)
    }

    /// Returns whether `dir` has the results of a sweep.
    #[must_use]
    pub fn are_in(dir: &Path) -> bool {
        let start = b"{\"experiment\":";
        let mut found = [0; 14];
        let read = File::open(dir.join(Self::NAME)).and_then(|mut f| f.read_exact(&mut found));
        read.is_ok() && found == *start
    }

    /// Reads the finished runs in `dir`, of any experiment, in the order of the file.
    ///
    /// # Errors
    /// [`RunDirError::Io`], and [`RunDirError::Damaged`] if a complete line is not a result.
    pub fn read(dir: &Path) -> Result<Vec<RunRecord>, RunDirError> {
        let path = dir.join(Self::NAME);
        let text = fs::read(&path).map_err(io("read", &path))?;
        let records = parse(&path, whole_lines(&text));
        records.map(|(_, record)| record).collect()
    }

    /// Returns the folder of the file.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Returns the result of a cell under one seed, if it exists.
    #[must_use]
    pub fn get(&self, cell: &Cell, seed: u64) -> Option<&RunRecord> {
        self.records.get(&RunKey::new(&cell.to_json(), seed))
    }

    /// Adds a result and writes it to the file.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn add(&mut self, record: RunRecord) -> Result<(), RunDirError> {
        let path = &self.path;
        let text =
            serde_json::to_string(&record).map_err(|error| damaged(path, error.to_string()))?;
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(open_after(path, self.whole)?),
        };
        // In one write: a kill leaves at most one torn line, at the end.
        file.write_all(format!("{text}\n").as_bytes())
            .map_err(io("write", path))?;
        self.records.insert(record.key(), record);
        Ok(())
    }

    /// Sorts the lines of the file by settings and seed. The order in which parallel private
    /// selections ended would reveal which of them had more trials.
    ///
    /// # Errors
    /// [`RunDirError::Io`].
    pub fn sort(&mut self) -> Result<(), RunDirError> {
        let mut records: Vec<_> = self.records.iter().collect();
        if records.is_empty() {
            return Ok(());
        }
        records.sort_by_key(|(key, _)| *key);
        let mut text = String::new();
        for (_, record) in records {
            let line = serde_json::to_string(record)
                .map_err(|error| damaged(&self.path, error.to_string()))?;
            text += &line;
            text.push('\n');
        }
        write_atomically(&self.path, text.as_bytes())?;
        (self.whole, self.file) = (text.len() as u64, None);
        Ok(())
    }
}

/// Returns the text up to its last line end: a crash can tear the rest.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    text.get(..end.map_or(0, |end| end + 1)).unwrap_or(text)
}

/// Returns the number and the record of each line.
fn parse<'a>(
    path: &'a Path,
    text: &'a [u8],
) -> impl Iterator<Item = (usize, Result<RunRecord, RunDirError>)> + 'a {
    let lines = text.split(|byte| *byte == b'\n').zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty());
    lines.map(move |(line, number)| {
        let record = serde_json::from_slice(line);
        let record = record
            .map_err(|error| damaged(path, format!("line {number}: {}", of_json_record(&error))));
        (number, record)
    })
}

/// Opens a file to append after its first `whole` bytes, and drops the rest.
fn open_after(path: &Path, whole: u64) -> Result<File, RunDirError> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(io("create", dir))?;
    }
    let open = || -> std::io::Result<File> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole)?;
        Ok(file)
    };
    open().map_err(io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::fixture::figure;
    use crate::sweep::grid::{Dimension, cells};

    fn cell(value: i64) -> Cell {
        cells(&[Dimension::of_key("rounds", &[value.into()])])[0].clone()
    }

    fn record(value: i64, seed: u64) -> RunRecord {
        RunRecord {
            experiment: "abc".to_owned(),
            settings: cell(value).to_json(),
            seed,
            devices: 3,
            evaluations: vec![Figures {
                rounds: 2,
                figures: [(Metric::TestAccuracy, figure(0.1 * seed as f64))].into(),
            }],
            privacy: Vec::new(),
            seconds: 0.25,
        }
    }

    #[test]
    fn results_are_found_again_by_settings_and_seed() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/folder");
        let mut results = Results::open(&out, "abc").unwrap();
        assert!(!out.exists(), "nothing is written before the first result");
        results.add(record(1, 7)).unwrap();
        results.add(record(1, 8)).unwrap();
        let again = Results::open(&out, "abc").unwrap();
        assert_eq!(again.get(&cell(1), 7), Some(&record(1, 7)));
        assert_eq!(again.get(&cell(1), 9), None);
        assert_eq!(again.get(&cell(2), 7), None);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(Results::NAME);
        Results::fresh(dir.path()).add(record(1, 7)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"experiment\":\"ab")).unwrap();
        let mut results = Results::open(dir.path(), "abc").unwrap();
        assert!(results.get(&cell(1), 7).is_some());
        results.add(record(1, 8)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&whole));
        assert_eq!(text.lines().count(), 2);
        assert!(Results::open(dir.path(), "abc").is_ok());
    }

    #[test]
    fn sorted_lines_do_not_tell_which_run_ended_first() {
        let texts = [[7, 8, 9], [9, 7, 8]].map(|seeds| {
            let dir = tempfile::tempdir().unwrap();
            let mut results = Results::fresh(dir.path());
            results.sort().unwrap();
            for seed in seeds {
                results.add(record(1, seed)).unwrap();
                results.sort().unwrap();
            }
            fs::read_to_string(dir.path().join(Results::NAME)).unwrap()
        });
        assert_eq!(texts[0], texts[1]);
        assert_eq!(texts[0].lines().count(), 3);
    }

    #[test]
    fn results_of_another_experiment_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        Results::fresh(dir.path()).add(record(1, 7)).unwrap();
        let error = Results::open(dir.path(), "xyz").unwrap_err().to_string();
        let expected = "line 1 belongs to experiment abc, but this one is xyz; choose another \
                        --out, or start over with --fresh";
        assert!(error.ends_with(expected), "{error}");
    }

    #[test]
    fn a_damaged_line_is_named_and_a_fresh_start_replaces_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(Results::NAME);
        fs::write(&path, "{\"seed\": 1}\n").unwrap();
        let error = Results::open(dir.path(), "abc").unwrap_err().to_string();
        assert!(
            error.contains("results.jsonl is damaged: line 1: "),
            "{error}"
        );
        Results::fresh(dir.path()).add(record(1, 7)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
