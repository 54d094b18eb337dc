//! The data or experiment that a name or a path leads to: a known set, a file, a folder or an
//! experiment, and the error if there is none.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use smolfed_data::archive::{self, ArchiveError};
use smolfed_data::array::Array;
use smolfed_data::catalogue::{KNOWN_SETS, KnownSet};
use smolfed_data::images::ImageShape;
use smolfed_data::npy;
use smolfed_data::spelling::similar;
use smolfed_data::suggestion::SuggestionError;
use smolfed_data::table::TableFormat;
use smolfed_data::table::profile::Profile;
use smolfed_engine::config::ConfigError;

/// Why there is nothing to inspect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// Neither a known set nor a file.
    #[error("`{subject}` is neither a file nor a known data set ({known}){meant}")]
    Unknown {
        /// What was asked for.
        subject: String,
        /// A known name like it.
        meant: String,
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
        "{}: has neither the files of MNIST, FEMNIST-206 or CIFAR-10, nor one folder of PNG or \
         JPEG images per class, perhaps below one per device; name one file",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A table of columns of which no use can be suggested.
    #[error("{}: {reason}", path.display())]
    Suggestion {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Box<SuggestionError>,
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

/// What a name or path leads to.
pub enum Found {
    /// A `[data]` table that needs no guesses.
    Ready(Table),
    /// The `[data]` and `[features]` tables and the seed of an experiment.
    Experiment {
        /// `[data]`.
        data: Table,
        /// `[features]`.
        features: Table,
        /// The seed.
        seed: Option<u64>,
    },
    /// A file with a table of columns.
    Columns {
        /// Its format.
        format: TableFormat,
        /// Where it is.
        path: PathBuf,
        /// What is in it.
        profile: Profile,
    },
}

/// Whether a path is called as experiments are.
#[must_use]
pub fn is_experiment(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// The known set, experiment, folder or file of this name.
///
/// # Errors
/// [`SubjectError`].
pub fn find(subject: &str) -> Result<Found, SubjectError> {
    let path = Path::new(subject);
    if let Some(set) = KnownSet::named(subject) {
        return Ok(Found::Ready(parsed(set.table, set.name)?));
    }
    if is_experiment(path) {
        return experiment(path);
    }
    if path.is_dir() {
        return Ok(Found::Ready(folder(path)?));
    }
    if path.is_file() {
        return Ok(match Content::read(path)? {
            Content::Arrays(bytes) => Found::Ready(arrays(path, &bytes)?),
            Content::Samples(source) => Found::Ready(samples(source, path)?),
            Content::Columns(format, profile) => Found::Columns {
                format,
                path: path.to_path_buf(),
                profile,
            },
        });
    }
    let known: Vec<&str> = KNOWN_SETS.iter().map(|set| set.name).collect();
    let meant = similar(subject, known.iter().copied());
    Err(SubjectError::Unknown {
        subject: subject.to_owned(),
        meant: meant.map_or(String::new(), |name| format!("; did you mean {name}?")),
        known: known.join(", "),
    })
}

/// Usual names of the arrays of an archive, in small letters, by the key of the table.
const ARRAYS: [(&str, &[&str]); 5] = [
    (
        "path",
        &[
            "x",
            "features",
            "data",
            "images",
            "inputs",
            "x_train",
            "train_images",
        ],
    ),
    (
        "label_path",
        &[
            "y",
            "labels",
            "label",
            "targets",
            "target",
            "y_train",
            "train_labels",
        ],
    ),
    (
        "device_path",
        &[
            "groups", "devices", "device", "users", "user", "clients", "subjects",
        ],
    ),
    ("test_path", &["x_test", "test_images"]),
    ("test_label_path", &["y_test", "test_labels"]),
];

/// The table of an archive of arrays, each of which has a usual name.
fn arrays(path: &Path, bytes: &[u8]) -> Result<Table, SubjectError> {
    let refuse = |reason| SubjectError::Archive {
        path: path.to_path_buf(),
        reason,
    };
    let names = archive::member_names(bytes, "npy").map_err(refuse)?;
    let mut table = Table::new();
    table.insert("source".into(), "npy".into());
    for (key, usual) in ARRAYS {
        let is_usual = |name: &&String| usual.contains(&name.to_ascii_lowercase().as_str());
        if let Some(name) = names.iter().find(is_usual) {
            table.insert(key.into(), text_of(&path.join(name))?);
        } else if matches!(key, "path" | "label_path") {
            return Err(SubjectError::Table {
                origin: path.display().to_string(),
                message: format!(
                    "none of its arrays ({}) is called {}; name it with --set {key}={}/NAME, or \
                     save it under such a name",
                    names.join(", "),
                    usual.join(", "),
                    path.display()
                ),
            });
        }
    }
    let labels = table["label_path"]
        .as_str()
        .map(|path| Path::new(path).to_path_buf());
    let labels = labels.unwrap_or_default();
    let name = labels.file_name().unwrap_or_default().to_string_lossy();
    let labels = archive::member(bytes, &format!("{name}.npy")).map_err(refuse)?;
    if npy::parse(&labels).is_ok_and(|labels| labels.indices(u32::from(u16::MAX)).is_err()) {
        table.insert("task".into(), "regression".into());
    }
    Ok(table)
}

/// A file of samples and labels.
fn samples(source: &str, path: &Path) -> Result<Table, SubjectError> {
    let mut table = table_of(source, path)?;
    if source == "idx"
        && let Some(labels) = usual_labels(path)
    {
        table.insert("label_path".into(), text_of(&labels)?);
    }
    Ok(table)
}

/// What an experiment file says of its samples.
fn experiment(path: &Path) -> Result<Found, SubjectError> {
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
    let features = match table.remove("features") {
        Some(Value::Table(features)) => features,
        _ => Table::new(),
    };
    match table.remove("data") {
        Some(Value::Table(data)) => Ok(Found::Experiment {
            data,
            features,
            seed,
        }),
        _ => {
            let message = "has no [data] table, which gives the source of samples".to_owned();
            Err(SubjectError::Table { origin, message })
        }
    }
}

/// The table in a text of TOML, which errors call `origin`.
///
/// # Errors
/// [`SubjectError::Table`].
pub fn parsed(text: &str, origin: &str) -> Result<Table, SubjectError> {
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
    } else if has("data_batch_1.bin") {
        "cifar10"
    } else if has("femnist206-images-idx3-ubyte") {
        "femnist"
    } else {
        return images(path);
    };
    table_of(source, path)
}

/// A folder of images, in one of the two layouts.
fn images(path: &Path) -> Result<Table, SubjectError> {
    for (has_devices, layout) in [(false, "class"), (true, "device/class")] {
        if let Ok(axes) = ImageShape::of_first(path, has_devices) {
            let mut table = table_of("images", path)?;
            table.insert("folders".into(), layout.into());
            let axes = axes.into_iter().map(|length| Value::from(length as i64));
            table.insert("axes".into(), axes.collect::<Vec<_>>().into());
            return Ok(table);
        }
    }
    Err(SubjectError::Folder {
        path: path.to_path_buf(),
    })
}

/// What a file is, by the first bytes of its content.
enum Content {
    /// A table, whose columns have to be given a meaning.
    Columns(TableFormat, Profile),
    /// An archive of arrays.
    Arrays(Vec<u8>),
    /// Samples and labels by themselves, of this source.
    Samples(&'static str),
}

impl Content {
    fn read(path: &Path) -> Result<Self, SubjectError> {
        let read = |reason| SubjectError::Read {
            path: path.to_path_buf(),
            reason,
        };
        let bytes = fs::read(path).map_err(read)?;
        if archive::member_names(&bytes, "npy").is_ok_and(|names| !names.is_empty()) {
            return Ok(Self::Arrays(bytes));
        }
        let contents = archive::unpack(&bytes, "json")
            .or_else(|_| archive::unpack(&bytes, "csv"))
            .map_err(|reason| SubjectError::Archive {
                path: path.to_path_buf(),
                reason,
            })?;
        let first = contents.first().map(AsRef::as_ref).unwrap_or_default();
        let format = match first.trim_ascii_start() {
            _ if TableFormat::detect(first) == TableFormat::Jsonl => TableFormat::Jsonl,
            [b'{', ..] => return Ok(Self::Samples("leaf")),
            [0, 0, ..] => return Ok(Self::Samples("idx")),
            first if first.starts_with(npy::MAGIC) => return Ok(Self::Samples("npy")),
            _ => TableFormat::detect(first),
        };
        match Profile::new(format, first) {
            Ok(profile) => Ok(Self::Columns(format, profile)),
            Err(reason) => Err(SubjectError::Table {
                origin: path.display().to_string(),
                message: reason.to_string(),
            }),
        }
    }
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
///
/// # Errors
/// [`SubjectError::Read`].
pub fn text_of(path: &Path) -> Result<Value, SubjectError> {
    let absolute = std::path::absolute(path).map_err(|reason| SubjectError::Read {
        path: path.to_path_buf(),
        reason,
    })?;
    Ok(absolute.to_string_lossy().into_owned().into())
}

/// A number of devices for rows that belong to none and are dealt to no given number.
pub fn complete_devices(table: &mut Table) {
    let natural = ["device_column", "device_columns", "device_path"]
        .iter()
        .any(|key| table.contains_key(*key))
        || table.get("folders").and_then(Value::as_str) == Some("device/class");
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
