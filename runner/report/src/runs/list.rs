//! The runs and sweeps below a folder, one per row, for `smolfed runs`: columns for method, data,
//! rounds, the figure that judges the run, ε, the last write (date) and the state.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use humantime::format_rfc3339_seconds;
use serde_json::{Value, json};

use super::error::RunsError;
use super::figures::{self, Quality, Round};
use super::find::{self, Kind};
use super::record::Run;
use super::settings::{self, Settings};
use super::spent::{self, Notes};
use crate::sweep::{Metric, Results, RunRecord};
use smolfed_engine::run_files::error::RunDirError;
use smolfed_release::number::{counted, fixed};
use smolfed_release::provenance::Provenance;

/// Figures that judge a method. The first existing one counts. The ones of unsupervised encoders
/// come first, then personal models, then the shared model.
const HEADLINES: [(&str, &str); 14] = [
    ("simulation_only.knn_accuracy", "nearest neighbours"),
    ("simulation_only.probe_accuracy", "linear probe"),
    ("simulation_only.devices.tuned", "fine-tuned models"),
    ("simulation_only.devices.own", "own models"),
    ("test.accuracy", "test accuracy"),
    ("test.rmse", "test RMSE"),
    ("simulation_only.validation.accuracy", "validation accuracy"),
    ("simulation_only.validation.rmse", "validation RMSE"),
    ("simulation_only.devices.shared", "shared model on devices"),
    ("simulation_only.devices.alone", "trained alone"),
    ("test.loss", "test loss"),
    ("simulation_only.validation.loss", "validation loss"),
    (
        "simulation_only.devices_validation.own",
        "own models, validation",
    ),
    ("simulation_only.train_loss", "training loss"),
];

/// The runs and sweeps below a folder, in the order of their last writes.
#[derive(Debug)]
pub struct Listing {
    folder: PathBuf,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    path: PathBuf,
    /// `None` for a folder that cannot be read.
    written: Option<SystemTime>,
    entry: Entry,
}

#[derive(Debug)]
enum Entry {
    Run(Box<Run>),
    Sweep(SweepRow),
    Broken(String),
}

/// A sweep, whose runs are too many for separate rows.
#[derive(Debug)]
struct SweepRow {
    runs: usize,
    /// The figure of its runs, and its range.
    figure: Option<(Metric, [f64; 2], Provenance)>,
}

impl SweepRow {
    fn new(records: &[RunRecord]) -> Self {
        let figure = Metric::ALL.into_iter().find_map(|metric| {
            let figures = || records.iter().filter_map(|record| record.figure(metric));
            let values = || figures().map(|figure| figure.value);
            let range = [values().reduce(f64::min)?, values().reduce(f64::max)?];
            Some((metric, range, figures().map(|figure| figure.origin).max()?))
        });
        Self {
            runs: records.len(),
            figure,
        }
    }

    fn words(&self) -> String {
        let Some((metric, range, origin)) = self.figure else {
            return String::new();
        };
        let [low, high] = range.map(|value| fixed(metric.shown(value), metric.digits()));
        format!("{} {low} to {high}{}", metric.title(), origin.mark())
    }
}

/// The figure that judges a run.
struct Headline {
    name: &'static str,
    words: &'static str,
    quality: Quality,
    rounds: u32,
    value: f64,
    origin: Provenance,
}

impl Headline {
    fn of(rounds: &[Round]) -> Option<Self> {
        HEADLINES.iter().find_map(|(name, words)| {
            let (done, value) = figures::last(name, rounds)?;
            Some(Self {
                name,
                words,
                quality: Quality::of(name, rounds)?,
                rounds: done,
                value,
                origin: figures::origin(name, rounds),
            })
        })
    }
}

impl Listing {
    /// Reads all runs at or below `folder`. A damaged one becomes a row with the reason.
    ///
    /// # Errors
    /// [`RunsError::NoFolder`].
    pub fn read(folder: &Path) -> Result<Self, RunsError> {
        if !folder.is_dir() {
            let path = folder.display().to_string();
            return Err(RunsError::NoFolder { path });
        }
        let mut rows: Vec<Row> = find::below(folder)
            .into_iter()
            .map(|(path, kind)| Row::new(path, kind))
            .collect();
        // Stable: entries written at the same time stay ordered by path.
        rows.sort_by_key(|row| row.written);
        Ok(Self {
            folder: folder.to_path_buf(),
            rows,
        })
    }

    /// Returns whether there is nothing to list.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows of a table, the first as its head, and the lines below it.
    #[must_use]
    pub fn table(&self) -> (Vec<Vec<String>>, Vec<String>) {
        let head = [
            "run",
            "name",
            "method",
            "data",
            "rounds",
            "figure",
            "epsilon",
            "written (UTC)",
            "state",
        ];
        let mut notes = Notes::default();
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().map(|row| row.cells(&mut notes)));
        let origins = self.rows.iter().filter_map(Row::origin);
        let meaning = origins.max().and_then(Provenance::meaning);
        let meaning = meaning.map(str::to_owned).into_iter();
        (rows, meaning.chain(notes.lines()).collect())
    }

    /// Returns one JSON document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let mut document = match &row.entry {
                Entry::Run(run) => run_json(run),
                Entry::Sweep(sweep) => json!({
                    "state": "sweep",
                    "runs": sweep.runs,
                    "figure": sweep.figure.map(|(metric, [low, high], origin)| {
                        json!({"name": metric, "min": low, "max": high, "origin": origin})
                    }),
                }),
                Entry::Broken(reason) => json!({"state": "broken", "reason": reason}),
            };
            document["run"] = json!(row.path);
            let written = row
                .written
                .map(|time| format_rfc3339_seconds(time).to_string());
            document["written"] = json!(written);
            document
        });
        json!({"folder": self.folder, "runs": rows.collect::<Vec<_>>()})
    }
}

impl Row {
    fn new(path: PathBuf, kind: Kind) -> Self {
        let entry = match kind {
            Kind::Run => Run::open(&path).map(|run| Entry::Run(Box::new(run))),
            Kind::Sweep => Results::read(&path).map(|r| Entry::Sweep(SweepRow::new(&r))),
            Kind::Unreadable(error) => Err(error),
        };
        let changed = || {
            path.metadata()
                .and_then(|metadata| metadata.modified())
                .ok()
        };
        let (entry, written) = match entry {
            Ok(Entry::Run(run)) => {
                let written = run.written;
                (Entry::Run(run), Some(written))
            }
            Ok(entry) => (entry, changed()),
            Err(error) => (Entry::Broken(one_line(&error)), changed()),
        };
        Self {
            path,
            written,
            entry,
        }
    }

    /// Returns the origin of its figure, if it has one.
    fn origin(&self) -> Option<Provenance> {
        match &self.entry {
            Entry::Run(run) => Headline::of(&run.rounds).map(|found| found.origin),
            Entry::Sweep(sweep) => sweep.figure.map(|(.., origin)| origin),
            Entry::Broken(_) => None,
        }
    }

    /// Returns its cells, in the order of the head.
    fn cells(&self, notes: &mut Notes) -> Vec<String> {
        let written = self.written.map_or(String::new(), |time| {
            let text = format_rfc3339_seconds(time).to_string();
            text.get(..16).unwrap_or(&text).replace('T', " ")
        });
        let [name, method, data, rounds, figure, epsilon, state] = match &self.entry {
            Entry::Run(run) => run_cells(run, notes),
            Entry::Sweep(sweep) => [
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                sweep.words(),
                "in table.md".to_owned(),
                format!("sweep of {}", counted(sweep.runs as u64, "run")),
            ],
            Entry::Broken(reason) => {
                let mut cells = [const { String::new() }; 7];
                cells[6] = format!("broken: {reason}");
                cells
            }
        };
        let run = self.path.display().to_string();
        [
            run, name, method, data, rounds, figure, epsilon, written, state,
        ]
        .to_vec()
    }
}

fn one_line(error: &RunDirError) -> String {
    error.to_string().replace('\n', " ")
}

/// Returns name, method, data, rounds, figure, ε and state.
fn run_cells(run: &Run, notes: &mut Notes) -> [String; 7] {
    let figure = Headline::of(&run.rounds).map_or("–".to_owned(), |found| {
        let (value, mark) = (found.quality.words(found.value), found.origin.mark());
        format!("{} {value}{mark}", found.words)
    });
    [
        run.config.name.clone(),
        run.config.method.name().to_owned(),
        data(&run.settings),
        format!("{}/{}", run.rounds.len(), run.config.rounds),
        figure,
        spent::words(run, notes),
        run.state.name().to_owned(),
    ]
}

fn run_json(run: &Run) -> Value {
    let statement = run.statements.first();
    let epsilon = match statement {
        Some(statement) => Some(statement.epsilon),
        None => figures::last(figures::EPSILON, &run.rounds).map(|(_, epsilon)| epsilon),
    };
    let figure = Headline::of(&run.rounds).map(|found| {
        json!({
            "name": found.name,
            "words": found.words,
            "value": found.value,
            "rounds": found.rounds,
            "simulation_only": !found.origin.is_public(),
            "origin": found.origin,
        })
    });
    json!({
        "name": run.config.name,
        "method": run.config.method.name(),
        "data": data(&run.settings),
        "rounds": run.rounds.len(),
        "rounds_planned": run.config.rounds,
        "figure": figure,
        // Null if no finite ε holds.
        "epsilon": epsilon,
        "delta": statement.map(|statement| statement.delta),
        "privacy": run.statements,
        "seconds": run.seconds(),
        "state": run.state.name(),
    })
}

/// Returns the source of the data, and the name of its file or folder.
fn data(settings: &Settings) -> String {
    let text = |key: &str| settings.get(key).map(settings::words);
    let path = text("data.path");
    let file = path.as_deref().map(Path::new).and_then(Path::file_name);
    let source = text("data.source").unwrap_or_default();
    match file.map(|file| file.to_string_lossy()) {
        Some(file) if file != source => format!("{source} {file}"),
        _ => source,
    }
}
