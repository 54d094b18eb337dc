//! The keys of `[data]`, source by source: an enum tagged by `source`, with a struct of keys for
//! each source. Every key has the same type in all of them.

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
        partition: PartitionName,
        devices: u32,
        samples_per_device: u32,
        shards_per_device: u32,
        alpha: f64,
        min_samples: u32,
        hold_out: HoldOutOrder,
        #[schemars(with = "Option<f64>")]
        validation: HoldOut,
        #[schemars(with = "Option<f64>")]
        test: HoldOut,
        device_validation: f64,
        device_test: f64,
        missing: Missing,
        scale_share: f64,
        scale_noise_multiplier: f64,
        scale: NameOr<ScaleName>,
        bounds: Bounds,
        norm_bound: f64,
        target_scale: NameOr<TargetScaleName>,
    }
    DigitsKeys {}
    FolderKeys {
        path: PathBuf,
    }
    ArraysKeys {
        path: PathBuf,
        label_path: PathBuf,
        device_path: PathBuf,
        test_path: PathBuf,
        test_label_path: PathBuf,
        maximum: f32,
        task: TaskKind,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
    }
    TableKeys {
        path: PathBuf,
        test_path: PathBuf,
        label: String,
        device_column: String,
        series_column: String,
        ignore: Vec<String>,
        task: TaskKind,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
        axes: Vec<usize>,
        maximum: f32,
        window: WindowKey,
        every: u32,
        categories: BTreeMap<String, Vec<ClassName>>,
        categories_are_public: bool,
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
        folders: FoldersName,
        axes: Vec<usize>,
        classes: ClassList,
        unknown_labels: UnknownLabels,
        classes_are_public: bool,
    }
    TextKeys {
        path: PathBuf,
        text_column: String,
        device_column: String,
        device_columns: Vec<String>,
        length: u32,
        stride: u32,
        alphabet: String,
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
    kind: KindName,
    features: u32,
    classes: ClassList,
    heterogeneity: f64,
    shift: f64,
    channels: u32,
    window: WindowKey,
    length: u32,
    drift: f64,
    jitter: f64,
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

            /// Returns the schemas of the keys of every source.
            pub(super) fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
                vec![$($keys::json_schema(generator)),*]
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
