//! The `[data]` table as it is written: every key, each optional.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::dataset::Task;
use crate::data::scale::Affine;
use crate::data::split::HoldOut;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawSource {
    Digits,
    Mnist,
    Femnist,
    Idx,
    Csv,
    Leaf,
    Synthetic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawPartition {
    Iid,
    Shards,
    Dirichlet,
    Natural,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ScaleName {
    None,
    Unit,
    /// Per set for images, per feature for tables.
    Standardise,
    StandardiseSet,
    StandardiseFeatures,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"unit\", \"standardise\", \
    \"standardise-set\", \"standardise-features\" or { mean = .., std = .. } with std above 0"
)]
pub(super) enum RawScale {
    Name(ScaleName),
    Constants(Affine),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TargetScaleName {
    None,
    Standardise,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"none\", \"standardise\" or { mean = .., std = .. } \
    with std above 0"
)]
pub(super) enum RawTargetScale {
    Name(TargetScaleName),
    Constants(Affine),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawKind {
    Tasks,
    Windows,
}

/// Every key of the table, in the order in which it is written back (tables last).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawData {
    pub(super) source: RawSource,
    pub(super) path: Option<PathBuf>,
    pub(super) label_path: Option<PathBuf>,
    pub(super) device_path: Option<PathBuf>,
    pub(super) test_path: Option<PathBuf>,
    pub(super) test_label_path: Option<PathBuf>,
    pub(super) label: Option<String>,
    pub(super) device_column: Option<String>,
    pub(super) ignore: Option<Vec<String>>,
    pub(super) task: Option<Task>,
    pub(super) classes: Option<u16>,
    pub(super) axes: Option<Vec<usize>>,
    pub(super) maximum: Option<f32>,
    pub(super) kind: Option<RawKind>,
    pub(super) features: Option<u32>,
    pub(super) heterogeneity: Option<f64>,
    pub(super) shift: Option<f64>,
    pub(super) channels: Option<u32>,
    pub(super) window: Option<u32>,
    pub(super) drift: Option<f64>,
    pub(super) noise: Option<f64>,
    pub(super) partition: Option<RawPartition>,
    pub(super) devices: Option<u32>,
    pub(super) samples_per_device: Option<u32>,
    pub(super) shards_per_device: Option<u32>,
    pub(super) alpha: Option<f64>,
    pub(super) min_samples: Option<u32>,
    pub(super) validation: Option<HoldOut>,
    pub(super) test: Option<HoldOut>,
    pub(super) device_validation: Option<f64>,
    pub(super) device_test: Option<f64>,
    pub(super) scale: Option<RawScale>,
    pub(super) target_scale: Option<RawTargetScale>,
}

impl RawData {
    /// A table with no key but the source.
    pub(super) fn new(source: RawSource) -> Self {
        Self {
            source,
            path: None,
            label_path: None,
            device_path: None,
            test_path: None,
            test_label_path: None,
            label: None,
            device_column: None,
            ignore: None,
            task: None,
            classes: None,
            axes: None,
            maximum: None,
            kind: None,
            features: None,
            heterogeneity: None,
            shift: None,
            channels: None,
            window: None,
            drift: None,
            noise: None,
            partition: None,
            devices: None,
            samples_per_device: None,
            shards_per_device: None,
            alpha: None,
            min_samples: None,
            validation: None,
            test: None,
            device_validation: None,
            device_test: None,
            scale: None,
            target_scale: None,
        }
    }

    /// A key that nothing has taken.
    pub(super) fn left_over(&self) -> Option<String> {
        let serde_json::Value::Object(keys) = serde_json::to_value(self).ok()? else {
            return None;
        };
        keys.into_iter()
            .find(|(key, value)| key != "source" && !value.is_null())
            .map(|(key, _)| key)
    }
}
