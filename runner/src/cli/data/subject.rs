//! The arguments of `smolfed data inspect`, and the data to inspect: a known set, a file, a folder
//! or an experiment.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::starter::DataSection;
use crate::subject::{Found, SubjectError, complete_devices, find, is_experiment, parsed, text_of};
use smolfed_data::config::{DataConfig, FeaturesTable};
use smolfed_data::folders::DataFolders;
use smolfed_data::suggestion::{Choices, Suggestion};
use smolfed_data::table::TableFormat;
use smolfed_data::table::profile::Profile;
use smolfed_engine::config::sentence;
use smolfed_engine::config::{ConfigError, Override};

/// Data to inspect.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Data to inspect: the name of a known set, a file, a folder or an experiment.
    ///
    /// `smolfed data list` lists the known sets. Files can be CSV, TSV, JSON lines, ARFF, Parquet,
    /// NPY, NPZ, IDX or LEAF. A folder contains images or the files of MNIST. An experiment is a
    /// .toml file.
    subject: String,
    /// Set a key of the `[data]` table, for example devices=100 (repeatable).
    ///
    /// data.devices=100 works as well, as for a run. features.cell=7 sets a key of `[features]`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<Override>,
    /// Set the seed of splits and partitions [default: the experiment's, or 0].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    pub(super) json: bool,
    /// Draw an image and its fixed features (`--set features.kind=gradients`) into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// Data to inspect.
pub(super) struct Subject {
    pub(super) config: DataConfig,
    /// The columns of a table, and what they are suggested for.
    pub(super) columns: Option<(Profile, Suggestion)>,
    pub(super) folders: DataFolders,
    pub(super) seed: u64,
}

impl Args {
    /// The data to inspect.
    ///
    /// # Errors
    /// [`SubjectError`] if the name is unknown, a file cannot be read, or the table that it leads
    /// to is wrong.
    pub(super) fn subject(&self) -> Result<Subject, SubjectError> {
        let path = Path::new(&self.subject);
        let is_experiment = is_experiment(path);
        let mut features = Table::new();
        let (mut table, seed, columns) = match find(&self.subject)? {
            Found::Ready(table) => (table, None, None),
            Found::Experiment {
                data,
                features: table,
                seed,
            } => {
                features = table;
                (data, seed, None)
            }
            Found::Columns {
                format,
                path,
                profile,
            } => {
                let suggestion = Suggestion::new(&profile, &self.choices());
                let suggestion = suggestion.map_err(|reason| SubjectError::Suggestion {
                    path: path.clone(),
                    reason: Box::new(reason),
                })?;
                let table = suggested(format, &path, &profile, &suggestion)?;
                (table, None, Some((profile, suggestion)))
            }
        };
        let (of_features, of_data): (Vec<_>, Vec<_>) = self
            .overrides
            .iter()
            .partition(|item| item.key().split('.').next() == Some("features"));
        let mut whole = Table::from_iter([("features".to_owned(), Value::Table(features))]);
        for item in of_features {
            item.apply(&mut whole)?;
        }
        for item in of_data {
            // Columns to leave out are in the suggestion, beside its own.
            if columns.is_none() || key_of(item) != "ignore" {
                apply(item, &mut table)?;
            }
        }
        if !is_experiment {
            complete_devices(&mut table);
        }
        let refuse = |message| SubjectError::Table {
            origin: self.subject.clone(),
            message,
        };
        let parsed = DataConfig::deserialize(Value::Table(table));
        let mut config = parsed.map_err(|error| refuse(sentence(&error, "")))?;
        let features = whole.remove("features").filter(|table| !is_empty(table));
        if let Some(table) = features {
            let table = FeaturesTable::deserialize(table);
            let table =
                table.map_err(|error| refuse(format!("`features`: {}", sentence(&error, ""))))?;
            let with_features = config.with_features(&table);
            config = with_features.map_err(|error| refuse(error.to_string()))?;
        }
        let folders = DataFolders::of_experiment(is_experiment.then_some(path));
        Ok(Subject {
            config,
            columns,
            folders,
            seed: self.seed.or(seed).unwrap_or(0),
        })
    }

    /// The value that `--set` gives a key of the table.
    fn value_of<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let last = self.overrides.iter().rev().find(|item| key_of(item) == key);
        T::deserialize(last?.value()?.clone()).ok()
    }

    fn choices(&self) -> Choices {
        Choices {
            label: self.value_of("label"),
            device_column: self.value_of("device_column"),
            has_no_devices: false,
            task: self.value_of("task"),
            ignore: self.value_of("ignore").unwrap_or_default(),
        }
    }
}

/// A key of the table by its own name.
fn key_of(item: &Override) -> &str {
    let key = item.key();
    key.strip_prefix("data.").unwrap_or(key)
}

/// The table that is suggested for a file.
fn suggested(
    format: TableFormat,
    path: &Path,
    profile: &Profile,
    suggestion: &Suggestion,
) -> Result<Table, SubjectError> {
    let name = text_of(path)?;
    let name = name.as_str().unwrap_or_default();
    let section = DataSection::of_columns(format, name, profile, suggestion);
    parsed(&section.text, &path.display().to_string())
}

fn is_empty(table: &Value) -> bool {
    table.as_table().is_some_and(Table::is_empty)
}

/// A key of the table by its own name, or by its full one (`data.devices`) as in an experiment.
fn apply(item: &Override, table: &mut Table) -> Result<(), ConfigError> {
    if !item.key().starts_with("data.") {
        return item.apply(table);
    }
    let mut experiment = Table::new();
    experiment.insert("data".into(), Value::Table(std::mem::take(table)));
    item.apply(&mut experiment)?;
    if let Some(Value::Table(data)) = experiment.remove("data") {
        *table = data;
    }
    Ok(())
}
