//! What `smolfed data inspect` is to look at: a known set, a file, a folder or an experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use crate::config::{ConfigError, Override};
use crate::data::archive::{self, ArchiveError};
use crate::data::catalogue::{KNOWN_SETS, KnownSet};
use crate::data::config::DataConfig;
use crate::data::csv;
use crate::data::folders::DataFolders;

/// Which data to inspect.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Name of a known set (`smolfed data list`), a CSV, IDX or LEAF file, a folder with the files
    /// of MNIST, or an experiment (.toml).
    subject: String,
    /// Set a key of the [data] table: devices=100, or data.devices=100 as for a run; can be
    /// repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<Override>,
    /// Seed of splits and partitions; by default that of the experiment, or 0.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON document to standard output and nothing else.
    #[arg(long)]
    pub(super) json: bool,
}

/// Data to inspect.
pub(super) struct Subject {
    pub(super) config: DataConfig,
    pub(super) folders: DataFolders,
    pub(super) seed: u64,
}

/// Why there is nothing to inspect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// Neither a known set nor a file.
    #[error("`{subject}` is neither a file nor a known data set ({known})")]
    Unknown {
        /// What was asked for.
        subject: String,
        /// The known names.
        known: String,
    },
    /// A file cannot be read.
    #[error("{}: cannot be read ({reason})", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: std::io::Error,
    },
    /// A file cannot be unpacked.
    #[error("{}: {reason}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: ArchiveError,
    },
    /// A folder without the files of a known set.
    #[error(
        "{}: holds neither the files of MNIST nor those of FEMNIST-206; name one file",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A CSV file without the name of its label column.
    #[error(
        "{}: the column to predict is missing: add `--set label=NAME`; the columns are {columns}",
        path.display()
    )]
    NoLabel {
        /// The file.
        path: PathBuf,
        /// The first columns.
        columns: String,
    },
    /// A table that is not an experiment's.
    #[error("{origin}: {message}")]
    Table {
        /// Where the table comes from.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// `--set` of something that is no key.
    #[error(transparent)]
    Override(#[from] ConfigError),
}

/// Devices to deal to where nothing says how many.
const DEVICES: i64 = 10;

impl Args {
    /// The data to inspect.
    ///
    /// # Errors
    /// [`SubjectError`] if the name is unknown, a file cannot be read, or the table that it leads
    /// to is wrong.
    pub(super) fn subject(&self) -> Result<Subject, SubjectError> {
        let path = Path::new(&self.subject);
        let is_experiment = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        let (mut table, seed) = match KnownSet::named(&self.subject) {
            Some(set) => (parsed(set.table, set.name)?, None),
            None if is_experiment => experiment(path)?,
            None if path.is_dir() => (folder(path)?, None),
            None if path.is_file() => (file(path, self.has_label())?, None),
            None => {
                let known: Vec<&str> = KNOWN_SETS.iter().map(|set| set.name).collect();
                let (subject, known) = (self.subject.clone(), known.join(", "));
                return Err(SubjectError::Unknown { subject, known });
            }
        };
        for item in &self.overrides {
            apply(item, &mut table)?;
        }
        if !is_experiment {
            complete_devices(&mut table);
        }
        let config = DataConfig::deserialize(Value::Table(table)).map_err(|error| {
            let message = error.message().to_owned();
            SubjectError::Table {
                origin: self.subject.clone(),
                message,
            }
        })?;
        let folders = DataFolders::of_experiment(is_experiment.then_some(path));
        Ok(Subject {
            config,
            folders,
            seed: self.seed.or(seed).unwrap_or(0),
        })
    }

    fn has_label(&self) -> bool {
        self.overrides
            .iter()
            .any(|item| matches!(item.key(), "label" | "data.label"))
    }
}

/// The `[data]` table and the seed of an experiment file.
fn experiment(path: &Path) -> Result<(Table, Option<u64>), SubjectError> {
    let origin = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|reason| SubjectError::Read {
        path: path.to_path_buf(),
        reason,
    })?;
    let mut table = parsed(&text, &origin)?;
    let seed = table
        .get("seed")
        .and_then(Value::as_integer)
        .and_then(|seed| seed.try_into().ok());
    match table.remove("data") {
        Some(Value::Table(data)) => Ok((data, seed)),
        _ => {
            let message = "has no [data] table, which says where samples come from".to_owned();
            Err(SubjectError::Table { origin, message })
        }
    }
}

fn parsed(text: &str, origin: &str) -> Result<Table, SubjectError> {
    text.parse()
        .map_err(|error: toml::de::Error| SubjectError::Table {
            origin: origin.to_owned(),
            message: error.to_string(),
        })
}

fn folder(path: &Path) -> Result<Table, SubjectError> {
    let has = |name: &str| path.join(name).exists() || path.join(format!("{name}.gz")).exists();
    let source = if has("train-images-idx3-ubyte") {
        "mnist"
    } else if has("femnist206-images-idx3-ubyte") {
        "femnist"
    } else {
        return Err(SubjectError::Folder {
            path: path.to_path_buf(),
        });
    };
    table_of(source, path)
}

/// The source by the first bytes of the content: `{` for LEAF, two zeros for IDX, else CSV.
fn file(path: &Path, has_label: bool) -> Result<Table, SubjectError> {
    let read = |reason| SubjectError::Read {
        path: path.to_path_buf(),
        reason,
    };
    let bytes = fs::read(path).map_err(read)?;
    let contents = archive::unpack(&bytes, "json")
        .or_else(|_| archive::unpack(&bytes, "csv"))
        .map_err(|reason| SubjectError::Archive {
            path: path.to_path_buf(),
            reason,
        })?;
    let first = contents.first().map(AsRef::as_ref).unwrap_or_default();
    let source = match first.trim_ascii_start() {
        [b'{', ..] => "leaf",
        [0, 0, ..] => "idx",
        _ => "csv",
    };
    if source == "csv" && !has_label {
        let names = csv::column_names(first).unwrap_or_default();
        let columns = csv::listed(names.iter().map(String::as_str));
        return Err(SubjectError::NoLabel {
            path: path.to_path_buf(),
            columns,
        });
    }
    let mut table = table_of(source, path)?;
    if source == "idx"
        && let Some(labels) = usual_labels(path)
    {
        table.insert("label_path".into(), text_of(&labels)?);
    }
    Ok(table)
}

/// The labels of `train-images-idx3-ubyte` are in `train-labels-idx1-ubyte`.
fn usual_labels(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let labels = path.with_file_name(name.replace("images-idx3", "labels-idx1"));
    (labels != path && labels.exists()).then_some(labels)
}

fn table_of(source: &str, path: &Path) -> Result<Table, SubjectError> {
    let mut table = Table::new();
    table.insert("source".into(), source.into());
    table.insert("path".into(), text_of(path)?);
    Ok(table)
}

/// The absolute path as text, since a table has no folder to be relative to.
fn text_of(path: &Path) -> Result<Value, SubjectError> {
    let absolute = std::path::absolute(path).map_err(|reason| SubjectError::Read {
        path: path.to_path_buf(),
        reason,
    })?;
    Ok(absolute.to_string_lossy().into_owned().into())
}

/// A number of devices for rows that belong to none and are dealt to no given number.
fn complete_devices(table: &mut Table) {
    let natural = ["device_column", "device_path"]
        .iter()
        .any(|key| table.contains_key(*key));
    let source = table
        .get("source")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let dealt = match table.get("partition").and_then(Value::as_str) {
        Some(partition) => partition != "natural",
        None => !natural && !matches!(source, "femnist" | "leaf"),
    };
    if dealt && source != "synthetic" && !table.contains_key("devices") {
        table.insert("devices".into(), DEVICES.into());
    }
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
