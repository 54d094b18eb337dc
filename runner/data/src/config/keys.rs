//! The keys of `[data]`, source by source: an enum tagged by `source`, with a struct of keys for
//! each source. Every key has the same type in all of them, and its comment where it first appears.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use super::names::{FoldersName, HoldOutOrder, KindName, PartitionName, UnknownCharacters};
use super::scale::{NameOr, ScaleName, TargetScaleName};
use super::set::StoredSet;
use super::window::WindowKey;
use super::{DataConfig, DataConfigError};
use crate::classes::{ClassList, ClassName, UnknownLabels};
use crate::constants::Bounds;
use crate::dataset::TaskKind;
use crate::missing::Missing;
use crate::split::HoldOut;
use crate::table::TimePart;

/// A converted table.
pub(super) struct Converted {
    pub(super) config: DataConfig,
    /// The partition, if the table has one.
    pub(super) partition: Option<PartitionName>,
    /// A key that has no effect.
    pub(super) left_over: Option<&'static str>,
}

/// A struct of optional keys. A conversion takes the keys that it uses.
macro_rules! keys {
    ($name:ident { $($(#[$attribute:meta])* $key:ident: $type:ty,)* }) => {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$attribute])* pub(super) $key: Option<$type>,)*
        }

        impl $name {
            const NAMES: &[&str] = &[$(stringify!($key)),*];

            /// Returns the first key by name that no conversion has taken.
            pub(super) fn left_over(&self) -> Option<&'static str> {
                let is_left = [$(self.$key.is_some()),*];
                let names = Self::NAMES.iter().zip(is_left);
                names.filter(|(_, is_left)| *is_left).map(|(name, _)| *name).min()
            }
        }
    };
}

/// A struct for each kind of stored data: the keys of that kind and those of every data set.
macro_rules! stored_keys {
    ($shared:tt $($name:ident $own:tt)*) => {
        keys!(SharedKeys $shared);
        $(stored_keys!(@both $name $own $shared);)*
    };
    (@both $name:ident { $($own:tt)* } {
        $($(#[$attribute:meta])* $key:ident: $type:ty,)*
    }) => {
        keys!($name { $($own)* $($(#[$attribute])* $key: $type,)* });

        impl $name {
            /// Returns the configuration of the data set that `set` reads from its own keys.
            pub(super) fn convert(
                mut self,
                set: impl FnOnce(&mut Self) -> Result<StoredSet, DataConfigError>,
            ) -> Result<Converted, DataConfigError> {
                let set = set(&mut self)?;
                let mut shared = SharedKeys { $($key: self.$key.take(),)* };
                let partition = shared.partition;
                let config = shared.config_of(set)?;
                let left_over = self.left_over().into_iter().chain(shared.left_over()).min();
                Ok(Converted { config, partition, left_over })
            }
        }
    };
}

stored_keys! {
    {
        /// The distribution of rows among devices: `"natural"`, `"iid"`, `"shards"`, `"dirichlet"`
        /// or `"rows"` (docs/data-preparation.md#distribution-among-devices-partition).
        ///
        /// Default: `"natural"` with natural devices, otherwise `"iid"`.
        partition: PartitionName,
        /// N, the number of devices that get rows. Refused with `"natural"` and `"rows"`.
        ///
        /// Default: required. 1000 for synthetic data.
        devices: u32,
        /// Samples of each device, for `"iid"` and `"dirichlet"`.
        ///
        /// Default: as many as the data allow. 50 for synthetic data.
        samples_per_device: u32,
        /// Shards of each device, for `"shards"`.
        ///
        /// Default: 2.
        shards_per_device: u32,
        /// α of the Dirichlet distribution. A small α gives a device few classes.
        ///
        /// Default: 0.5.
        alpha: f64,
        /// Minimum number of samples of a device, for `"dirichlet"` and texts.
        ///
        /// Default: 1.
        min_samples: u32,
        /// Which rows a share holds out: `"random"`, or the `"last"` of each device.
        ///
        /// Default: `"random"`, and `"last"` for texts.
        hold_out: HoldOutOrder,
        /// Validation samples: a whole number of rows, or a share with a decimal point
        /// (docs/data-preparation.md#held-out-samples-validation-test).
        ///
        /// Default: 0.
        #[schemars(with = "Option<f64>")]
        validation: HoldOut,
        /// Test samples, given like `validation`. It has no effect if the source has a test part.
        ///
        /// Default: 0.2. 2000 for synthetic data.
        #[schemars(with = "Option<f64>")]
        test: HoldOut,
        /// Share of each device's rows for validation, if the partition is not `"natural"`.
        ///
        /// Default: 0.
        device_validation: f64,
        /// Share of each device's rows for tests, if the partition is not `"natural"`.
        ///
        /// Default: 0.
        device_test: f64,
        /// Replacement of missing values: `"mean"`, a constant, or a list with one for each
        /// feature.
        ///
        /// Default: `"mean"`.
        missing: Missing,
        /// Share of the target ε that a private scale costs.
        ///
        /// Default: 0.1, unless `scale_noise_multiplier` is given.
        scale_share: f64,
        /// Noise multiplier of a private scale without a target ε.
        ///
        /// Default: 10.
        scale_noise_multiplier: f64,
        /// Scaling of features, by name or with constants
        /// (docs/data-preparation.md#scaling-scale-target_scale).
        ///
        /// Default: `"standardise"`, and `"none"` for texts.
        scale: NameOr<ScaleName>,
        /// Bounds `{ min = .., max = .. }` of a private scale: a number, or a list with one for
        /// each feature.
        ///
        /// Default: 0 and the maximum of the format, if it has one.
        bounds: Bounds,
        /// Largest Euclidean norm of a sample. A sample with a larger norm is scaled down to it
        /// (docs/features.md#samples-of-bounded-length).
        norm_bound: f64,
        /// Scaling of the targets of a regression: `"none"`, `"standardise"` or constants.
        ///
        /// Default: `"none"`.
        target_scale: NameOr<TargetScaleName>,
    }
    DigitsKeys {}
    FolderKeys {
        /// The file, or the folder of several files (docs/data.md#where-files-are-searched).
        ///
        /// Default: the name of the source for `"mnist"`, `"femnist"` and `"cifar10"`, otherwise
        /// required.
        path: PathBuf,
    }
    ArraysKeys {
        path: PathBuf,
        /// The array of labels.
        ///
        /// Default: required.
        label_path: PathBuf,
        /// The array with the natural device of each sample.
        device_path: PathBuf,
        /// The file with the features of the test part.
        test_path: PathBuf,
        /// The labels of the test part. Required with `test_path`.
        test_label_path: PathBuf,
        /// Largest value of a feature, for `scale = "unit"` and features of images.
        ///
        /// Default: 255 for bytes.
        maximum: f32,
        /// `"classification"` or `"regression"`.
        ///
        /// Default: `"classification"`. In tables, the labels decide.
        task: TaskKind,
        /// The classes: a list of names, or their number.
        ///
        /// Default: the labels that occur. 10 for synthetic data.
        classes: ClassList,
        /// The treatment of rows with other labels: `"error"`, or `"drop"` to ignore them (except
        /// for `"memory"`).
        ///
        /// Default: `"error"`.
        unknown_labels: UnknownLabels,
        /// Whether `classes` were public, although a program read them from rows
        /// (docs/data-preparation.md#what-is-read-from-private-rows).
        classes_are_public: bool,
    }
    TableKeys {
        path: PathBuf,
        test_path: PathBuf,
        /// The column to predict.
        ///
        /// Default: required.
        label: String,
        /// The column with the names of devices.
        device_column: String,
        /// The column with the names of recordings (docs/windows.md).
        series_column: String,
        /// Columns to leave out.
        ignore: Vec<String>,
        task: TaskKind,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
        /// Lengths of the axes of a sample, such as `[28, 28]`. Images require it.
        axes: Vec<usize>,
        maximum: f32,
        /// Number of rows in a window, or the table `[data.window]`
        /// (docs/windows.md#features-of-windows).
        ///
        /// Default: none. 64 for synthetic windows.
        window: WindowKey,
        /// Keeps every n-th row of a window.
        ///
        /// Default: 1.
        every: u32,
        /// The categories of each categorical column. Each category becomes a feature of 0 or 1
        /// (docs/tables.md#tables-csv-json-lines-parquet-arff).
        categories: BTreeMap<String, Vec<ClassName>>,
        /// Whether `categories`, `times` and `ignore` were public, although a program chose them by
        /// reading rows (docs/data-preparation.md#what-is-read-from-private-rows).
        categories_are_public: bool,
        /// The parts of dates and times that become features: `"hour"`, `"weekday"`, `"day"`.
        times: BTreeMap<String, Vec<TimePart>>,
    }
    LeafKeys {
        path: PathBuf,
        test_path: PathBuf,
        task: TaskKind,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
        axes: Vec<usize>,
        maximum: f32,
    }
    ImagesKeys {
        path: PathBuf,
        /// The meaning of folders of images: `"class"` or `"device/class"`.
        ///
        /// Default: `"class"`.
        folders: FoldersName,
        axes: Vec<usize>,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
    }
    TextKeys {
        path: PathBuf,
        /// The column with texts.
        ///
        /// Default: required.
        text_column: String,
        device_column: String,
        /// For texts, the columns that together identify a device.
        device_columns: Vec<String>,
        /// Number of characters in a sample.
        ///
        /// Default: 80. 20 for synthetic texts.
        length: u32,
        /// Number of characters from the start of one sample to the start of the next.
        ///
        /// Default: `length`.
        stride: u32,
        /// The characters that become symbols (docs/data.md#texts).
        ///
        /// Default: 80 characters.
        alphabet: String,
        /// The treatment of characters outside the alphabet: `"error"`, or `"replace"` to use an
        /// additional symbol.
        ///
        /// Default: `"error"`.
        unknown_characters: UnknownCharacters,
    }
    MemoryKeys {
        task: TaskKind,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
        categories_are_public: bool,
        axes: Vec<usize>,
        maximum: f32,
    }
}

keys!(SyntheticKeys {
    /// The kind of synthetic data (docs/data.md#synthetic-federations): `"tasks"`, `"windows"`,
    /// `"readings"` or `"text"`.
    ///
    /// Default: `"tasks"`.
    kind: KindName,
    /// Features of a synthetic sample.
    ///
    /// Default: 60 for `"tasks"`, 20 for `"readings"`.
    features: u32,
    classes: ClassList,
    /// Difference between the tasks, slopes or words of synthetic devices.
    ///
    /// Default: 0.5, and 0.2 for `"readings"`.
    heterogeneity: f64,
    /// Distance of the features of synthetic `"tasks"` from 0.
    ///
    /// Default: 0.5.
    shift: f64,
    /// Channels of synthetic `"windows"`.
    ///
    /// Default: 3.
    channels: u32,
    window: WindowKey,
    length: u32,
    /// Spread of the sensors of synthetic devices, or of their intercepts for `"readings"`.
    ///
    /// Default: 0.2, and 1 for `"readings"`.
    drift: f64,
    /// Standard deviation of the initial phase of synthetic `"windows"`, in radians.
    ///
    /// Default: 0.5.
    jitter: f64,
    /// Standard deviation of the noise of synthetic data. For `"text"`, the share of characters
    /// that are replaced at random.
    ///
    /// Default: 0.1.
    noise: f64,
    devices: u32,
    samples_per_device: u32,
    #[schemars(with = "Option<f64>")]
    validation: HoldOut,
    #[schemars(with = "Option<f64>")]
    test: HoldOut,
});

/// The enum that `source` tags, and what follows from the list of sources.
macro_rules! sources {
    ($($source:ident($keys:ident),)*) => {
        /// The names of the sources.
        #[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        pub(super) enum SourceName {
            $($source,)*
        }

        /// The keys of a source.
        #[derive(Debug)]
        pub(super) enum RawData {
            $($source($keys),)*
        }

        impl RawData {
            /// Reads the keys of `source`.
            pub(super) fn read<'de, D: Deserializer<'de>>(
                source: SourceName,
                keys: D,
            ) -> Result<Self, D::Error> {
                match source {
                    $(SourceName::$source => $keys::deserialize(keys).map(Self::$source),)*
                }
            }

            /// Returns the sources and the schemas of their keys.
            pub(super) fn schemas(generator: &mut SchemaGenerator) -> Vec<(SourceName, Schema)> {
                vec![$((SourceName::$source, $keys::json_schema(generator))),*]
            }
        }

        /// All keys of all sources, each once.
        pub(super) static ALL_KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
            let mut names = [&["source"][..], $($keys::NAMES),*].concat();
            names.sort_unstable();
            names.dedup();
            names
        });
    };
}

sources! {
    Digits(DigitsKeys),
    Mnist(FolderKeys),
    Femnist(FolderKeys),
    Cifar10(FolderKeys),
    Idx(ArraysKeys),
    Npy(ArraysKeys),
    Csv(TableKeys),
    Jsonl(TableKeys),
    Arff(TableKeys),
    Parquet(TableKeys),
    Leaf(LeafKeys),
    Images(ImagesKeys),
    Text(TextKeys),
    Synthetic(SyntheticKeys),
    Memory(MemoryKeys),
}
