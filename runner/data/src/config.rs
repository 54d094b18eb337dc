//! The `[data]` table of an experiment: parsed and checked once, and written back complete.
//!
//! `RawData` has every key of the table; [`DataConfig`] has what they mean. A key that the chosen
//! source or partition does not use is refused, and a table that is written back names every value
//! in force, so that reading it again gives the same configuration.

mod error;
mod scale;
mod sequence_keys;
mod set;
mod source_keys;
mod synthetic_keys;
mod window;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::classes::{ClassList, ClassName, UnknownLabels};
use super::constants::Bounds;
use super::dataset::TaskKind;
use super::digits;
use super::missing::Missing;
use super::partition::Dealing;
use super::recordings::Recordings;
use super::scale::moments::{PrivateScale, ScaleNoise};
use super::scale::{Scale, TargetScale};
use super::split::HoldOut;
use super::synthetic::{SyntheticConfig, SyntheticKind};
use super::table::TimePart;
use super::text::TextColumn;

use self::scale::{NameOr, Named, Samples, ScaleName, TargetScaleName};
use error::{in_range, needed, positive, share, wrong};
use window::WindowKey;

pub use error::DataConfigError;
pub use set::{ArraysConfig, ImagesConfig, LeafConfig, MemoryConfig, StoredSet, TableConfig};
pub use window::WindowTable;

/// Most samples of a device: far beyond use, and small enough that one device fits in memory.
const MAX_SAMPLES: u32 = 10_000_000;

/// Where samples come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A data set that is read, scaled and dealt to devices.
    Stored(Box<StoredConfig>),
    /// Devices that are generated, any number of them.
    Synthetic(SyntheticConfig),
}

/// A data set and what is done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredConfig {
    /// The data set.
    pub set: StoredSet,
    /// What stands in the place of missing values.
    pub missing: Missing,
    /// How features are scaled.
    pub scale: Scale,
    /// How regression targets are scaled.
    pub target_scale: TargetScale,
    /// How rows are dealt to devices.
    pub dealing: Dealing,
    /// Share of its samples that each device holds out to choose settings by; 0 where devices are
    /// natural, whose parts are split device by device anyway.
    pub device_validation: f64,
    /// Share of its samples that each device holds out to test its model on.
    pub device_test: f64,
}

/// A checked `[data]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawData", into = "RawData")]
pub struct DataConfig {
    /// Where samples come from.
    pub source: SourceConfig,
    /// What is held out for choosing settings.
    pub validation: HoldOut,
    /// What is held out for reporting; nothing where the set comes with a test part.
    pub test: HoldOut,
}

/// The names of the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SourceName {
    #[default]
    Digits,
    Mnist,
    Femnist,
    Cifar10,
    Idx,
    Npy,
    Csv,
    Arff,
    Parquet,
    Leaf,
    Images,
    Text,
    Synthetic,
    Memory,
}

/// What the folders of a folder of images are, from the outermost on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum FoldersName {
    #[default]
    #[serde(rename = "class")]
    Class,
    #[serde(rename = "device/class")]
    DeviceAndClass,
}

/// Which rows a share that is held out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum HoldOutOrder {
    Random,
    Last,
}

/// What becomes of a character that is not in the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UnknownCharacters {
    Error,
    Replace,
}

/// The names of the ways to deal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PartitionName {
    Iid,
    Shards,
    Dirichlet,
    Natural,
    Rows,
}

/// The names of the kinds of synthetic devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Tasks,
    Windows,
    Readings,
    Text,
}

/// Every key of the table, in the order in which it is written back (tables last).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawData {
    source: SourceName,
    path: Option<PathBuf>,
    label_path: Option<PathBuf>,
    device_path: Option<PathBuf>,
    test_path: Option<PathBuf>,
    test_label_path: Option<PathBuf>,
    label: Option<String>,
    device_column: Option<String>,
    text_column: Option<String>,
    device_columns: Option<Vec<String>>,
    series_column: Option<String>,
    ignore: Option<Vec<String>>,
    task: Option<TaskKind>,
    classes: Option<ClassList>,
    unknown_labels: Option<UnknownLabels>,
    folders: Option<FoldersName>,
    axes: Option<Vec<usize>>,
    maximum: Option<f32>,
    kind: Option<KindName>,
    features: Option<u32>,
    heterogeneity: Option<f64>,
    shift: Option<f64>,
    channels: Option<u32>,
    window: Option<WindowKey>,
    every: Option<u32>,
    length: Option<u32>,
    stride: Option<u32>,
    alphabet: Option<String>,
    unknown_characters: Option<UnknownCharacters>,
    drift: Option<f64>,
    jitter: Option<f64>,
    noise: Option<f64>,
    partition: Option<PartitionName>,
    devices: Option<u32>,
    samples_per_device: Option<u32>,
    shards_per_device: Option<u32>,
    alpha: Option<f64>,
    min_samples: Option<u32>,
    hold_out: Option<HoldOutOrder>,
    #[schemars(with = "Option<f64>")]
    validation: Option<HoldOut>,
    #[schemars(with = "Option<f64>")]
    test: Option<HoldOut>,
    device_validation: Option<f64>,
    device_test: Option<f64>,
    missing: Option<Missing>,
    scale_share: Option<f64>,
    scale_noise_multiplier: Option<f64>,
    scale: Option<NameOr<ScaleName>>,
    bounds: Option<Bounds>,
    target_scale: Option<NameOr<TargetScaleName>>,
    categories: Option<BTreeMap<String, Vec<ClassName>>>,
    times: Option<BTreeMap<String, Vec<TimePart>>>,
}

/// Each key is taken by what it is for; one that nothing took is refused.
impl TryFrom<RawData> for DataConfig {
    type Error = DataConfigError;

    fn try_from(mut raw: RawData) -> Result<Self, DataConfigError> {
        let partition = raw.partition;
        let source = match raw.source {
            SourceName::Synthetic => SourceConfig::Synthetic(raw.take_synthetic()?),
            _ => SourceConfig::Stored(Box::new(raw.take_stored()?)),
        };
        let validation = raw.validation.take().unwrap_or(HoldOut::NONE);
        let test = match &source {
            // A set with its own test part leaves `test` behind.
            SourceConfig::Stored(stored) if stored.set.gives_test() => HoldOut::NONE,
            SourceConfig::Stored(_) => raw.test.take().unwrap_or(HoldOut::Fraction(0.2)),
            SourceConfig::Synthetic(_) => raw.test.take().unwrap_or(HoldOut::Rows(2000)),
        };
        if matches!(source, SourceConfig::Synthetic(_)) {
            refuse_share("validation", validation)?;
            refuse_share("test", test)?;
        }
        let (validation, test) = match &source {
            SourceConfig::Stored(stored) if raw.takes_last(&stored.set) => {
                (validation.of_last(), test.of_last())
            }
            _ => (validation, test),
        };
        if let Some(key) = raw.left_over() {
            let mut context = format!("source = {}", name_of(raw.source));
            if let Some(partition) = partition {
                context += &format!(" and partition = {}", name_of(partition));
            }
            return Err(DataConfigError::Unused { key, context });
        }
        Ok(Self {
            source,
            validation,
            test,
        })
    }
}

impl DataConfig {
    /// The column to predict, where it has a name.
    pub fn target_column(&self) -> Option<&str> {
        match &self.source {
            SourceConfig::Stored(stored) => match &stored.set {
                StoredSet::Table(table) => Some(&table.columns.label),
                StoredSet::Digits => Some(digits::LABEL),
                _ => None,
            },
            SourceConfig::Synthetic(_) => None,
        }
    }

    /// How features of windows are computed from the rows of a table, and the columns at whose
    /// changes a window ends.
    #[must_use]
    pub fn window_features(&self) -> Option<(&Recordings, Vec<String>)> {
        let SourceConfig::Stored(stored) = &self.source else {
            return None;
        };
        let StoredSet::Table(table) = &stored.set else {
            return None;
        };
        let recordings = table.recordings.as_ref()?;
        recordings.features.as_ref()?;
        let columns = [&table.columns.series, &table.columns.device];
        let breaks = columns.into_iter().flatten().cloned().collect();
        Some((recordings, breaks))
    }

    /// The column of texts, if the features are characters of one.
    #[must_use]
    pub fn text_column(&self) -> Option<TextColumn> {
        let SourceConfig::Stored(stored) = &self.source else {
            return None;
        };
        match &stored.set {
            StoredSet::Text(text) => Some(TextColumn {
                column: text.text_column.clone(),
                alphabet: text.alphabet.clone(),
            }),
            _ => None,
        }
    }

    /// Symbols that the features are, if these are texts.
    #[must_use]
    pub fn symbol_count(&self) -> Option<u16> {
        match &self.source {
            SourceConfig::Stored(stored) => match &stored.set {
                StoredSet::Text(text) => Some(text.alphabet.symbol_count()),
                _ => None,
            },
            SourceConfig::Synthetic(synthetic) => match synthetic.kind {
                SyntheticKind::Text(_) => synthetic.kind.class_count(),
                _ => None,
            },
        }
    }
}

impl From<DataConfig> for RawData {
    fn from(config: DataConfig) -> Self {
        let mut raw = Self {
            validation: Some(config.validation),
            test: Some(config.test),
            ..Self::default()
        };
        let is_last = [config.validation, config.test]
            .iter()
            .any(|part| matches!(part, HoldOut::LastFraction(_)));
        match config.source {
            SourceConfig::Stored(stored) => {
                raw.put_order(is_last, &stored.set);
                raw.put_stored(*stored);
            }
            SourceConfig::Synthetic(synthetic) => raw.put_synthetic(synthetic),
        }
        raw
    }
}

impl RawData {
    fn take_stored(&mut self) -> Result<StoredConfig, DataConfigError> {
        let set = self.take_set()?;
        let dealing = self.take_dealing(set.has_devices())?;
        // A natural partition leaves both behind: its parts are split device by device.
        let (device_validation, device_test) = if dealing == Dealing::Natural {
            (0.0, 0.0)
        } else {
            (
                share("device_validation", self.device_validation.take())?,
                share("device_test", self.device_test.take())?,
            )
        };
        let target_scale = match set.is_regression() {
            true => self.target_scale.take(),
            false => None,
        };
        let missing = match set {
            StoredSet::Table(_) => self.missing.take(),
            _ => None,
        };
        Ok(StoredConfig {
            missing: missing.unwrap_or_default(),
            scale: self.take_scale(&set)?,
            target_scale: target_scale.into(),
            set,
            dealing,
            device_validation,
            device_test,
        })
    }

    fn put_stored(&mut self, stored: StoredConfig) {
        if stored.set.gives_test() {
            self.test = None;
        }
        self.put_scale(stored.scale);
        let is_regression = stored.set.is_regression();
        self.target_scale = is_regression.then(|| stored.target_scale.into());
        self.missing = matches!(stored.set, StoredSet::Table(_)).then_some(stored.missing);
        if stored.dealing != Dealing::Natural {
            self.device_validation = Some(stored.device_validation);
            self.device_test = Some(stored.device_test);
        }
        self.put_dealing(stored.dealing);
        self.put_set(stored.set);
    }

    fn take_dealing(&mut self, has_devices: bool) -> Result<Dealing, DataConfigError> {
        let usual = match has_devices {
            true => PartitionName::Natural,
            false => PartitionName::Iid,
        };
        let partition = match self.partition.take().unwrap_or(usual) {
            PartitionName::Natural if has_devices => return Ok(Dealing::Natural),
            PartitionName::Natural => {
                let expected = "\"iid\", \"shards\" or \"dirichlet\" for data without natural \
                    devices (CSV has them by `device_column`, IDX by `device_path`)";
                return Err(wrong("partition", "\"natural\"", expected));
            }
            partition => partition,
        };
        if partition == PartitionName::Rows {
            return Ok(Dealing::Rows);
        }
        let purpose = "how many devices to deal rows to";
        let devices = needed("devices", self.devices.take(), purpose)?;
        let devices = in_range("devices", devices, 1..=u32::MAX)?;
        if partition == PartitionName::Shards {
            let shards = self.shards_per_device.take().unwrap_or(2);
            return Ok(Dealing::Shards {
                devices,
                shards_per_device: in_range("shards_per_device", shards, 1..=u32::MAX)?,
            });
        }
        let check = |samples| in_range("samples_per_device", samples, 1..=MAX_SAMPLES);
        let samples_per_device = self.samples_per_device.take().map(check).transpose()?;
        if partition == PartitionName::Iid {
            return Ok(Dealing::Iid {
                devices,
                samples_per_device,
            });
        }
        // All devices have the same number where it is given, and `min_samples` stays behind.
        let min_samples = samples_per_device.or_else(|| self.min_samples.take());
        let min_samples = min_samples.unwrap_or(1);
        Ok(Dealing::Dirichlet {
            devices,
            alpha: positive("alpha", self.alpha.take().unwrap_or(0.5))?,
            samples_per_device,
            min_samples: in_range("min_samples", min_samples, 1..=MAX_SAMPLES)?,
        })
    }

    fn put_dealing(&mut self, dealing: Dealing) {
        let partition = match dealing {
            Dealing::Natural => PartitionName::Natural,
            Dealing::Rows => PartitionName::Rows,
            Dealing::Iid {
                devices,
                samples_per_device,
            } => {
                self.devices = Some(devices);
                self.samples_per_device = samples_per_device;
                PartitionName::Iid
            }
            Dealing::Shards {
                devices,
                shards_per_device,
            } => {
                self.devices = Some(devices);
                self.shards_per_device = Some(shards_per_device);
                PartitionName::Shards
            }
            Dealing::Dirichlet {
                devices,
                alpha,
                samples_per_device,
                min_samples,
            } => {
                self.devices = Some(devices);
                self.alpha = Some(alpha);
                self.samples_per_device = samples_per_device;
                self.min_samples = samples_per_device.is_none().then_some(min_samples);
                PartitionName::Dirichlet
            }
        };
        self.partition = Some(partition);
    }

    fn take_scale(&mut self, set: &StoredSet) -> Result<Scale, DataConfigError> {
        if matches!(set, StoredSet::Text(_)) {
            return match self.scale.take() {
                None | Some(NameOr::Name(ScaleName::None)) => Ok(Scale::None),
                Some(scale) => {
                    let expected = "\"none\" for texts, whose characters are symbols";
                    Err(wrong("scale", name_of(scale), expected))
                }
            };
        }
        let scale = self.scale.take();
        let scale = scale.unwrap_or(NameOr::Name(ScaleName::Standardise));
        match scale.resolve(Samples::of(set)) {
            Named::Scale(scale) => Ok(scale),
            Named::Private { is_per_feature } => Ok(Scale::Private(PrivateScale {
                is_per_feature,
                bounds: self.bounds.take(),
                noise: scale::noise(self.scale_share.take(), self.scale_noise_multiplier.take())?,
            })),
        }
    }

    fn put_scale(&mut self, scale: Scale) {
        self.scale = Some(NameOr::of(&scale));
        if let Scale::Private(private) = scale {
            self.bounds = private.bounds;
            match private.noise {
                ScaleNoise::Share(share) => self.scale_share = Some(share),
                ScaleNoise::Multiplier(value) => self.scale_noise_multiplier = Some(value),
            }
        }
    }

    /// A key that nothing has taken.
    fn left_over(&self) -> Option<String> {
        let serde_json::Value::Object(keys) = serde_json::to_value(self).ok()? else {
            return None;
        };
        keys.into_iter()
            .find(|(key, value)| key != "source" && !value.is_null())
            .map(|(key, _)| key)
    }
}

fn refuse_share(key: &'static str, hold_out: HoldOut) -> Result<(), DataConfigError> {
    match hold_out {
        HoldOut::Rows(_) => Ok(()),
        HoldOut::Fraction(share) | HoldOut::LastFraction(share) => {
            let expected = "a whole number of samples for synthetic data";
            Err(wrong(key, share, expected))
        }
    }
}

/// A name as it is written in TOML.
fn name_of(name: impl Serialize) -> String {
    serde_json::to_string(&name).unwrap_or_default()
}

/// No list at all reads the same as an empty one.
fn unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests;
