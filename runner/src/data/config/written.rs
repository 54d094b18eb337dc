//! From the checked configuration back to the complete `[data]` table.

use super::raw::{
    RawData, RawKind, RawPartition, RawScale, RawSource, RawTargetScale, ScaleName, TargetScaleName,
};
use super::{CsvConfig, DataConfig, IdxConfig, LeafConfig, SourceConfig, StoredConfig, StoredSet};
use crate::data::csv::Columns;
use crate::data::partition::Dealing;
use crate::data::scale::{Scale, TargetScale};
use crate::data::synthetic::{SyntheticConfig, SyntheticKind};

impl From<DataConfig> for RawData {
    fn from(config: DataConfig) -> Self {
        let gives_test =
            matches!(&config.source, SourceConfig::Stored(stored) if stored.set.gives_test());
        let mut raw = match config.source {
            SourceConfig::Stored(stored) => written_stored(stored),
            SourceConfig::Synthetic(synthetic) => written_synthetic(synthetic),
        };
        raw.validation = Some(config.validation);
        raw.test = (!gives_test).then_some(config.test);
        raw
    }
}

fn written_stored(stored: StoredConfig) -> RawData {
    let StoredConfig {
        set,
        scale,
        target_scale,
        dealing,
        device_validation,
        device_test,
    } = stored;
    let is_regression = set.is_regression();
    let mut raw = written_set(set);
    if dealing != Dealing::Natural {
        raw.device_validation = Some(device_validation);
        raw.device_test = Some(device_test);
    }
    write_dealing(&mut raw, dealing);
    raw.scale = Some(written_scale(scale));
    raw.target_scale = is_regression.then(|| written_target_scale(target_scale));
    raw
}

fn written_set(set: StoredSet) -> RawData {
    match set {
        StoredSet::Digits => RawData::new(RawSource::Digits),
        StoredSet::Mnist { path } => RawData {
            path: Some(path),
            ..RawData::new(RawSource::Mnist)
        },
        StoredSet::Femnist { path } => RawData {
            path: Some(path),
            ..RawData::new(RawSource::Femnist)
        },
        StoredSet::Idx(IdxConfig {
            path,
            label_path,
            device_path,
            test,
            classes,
        }) => {
            let (test_path, test_label_path) = test.unzip();
            RawData {
                path: Some(path),
                label_path: Some(label_path),
                device_path,
                test_path,
                test_label_path,
                classes,
                ..RawData::new(RawSource::Idx)
            }
        }
        StoredSet::Csv(CsvConfig {
            path,
            test_path,
            columns,
            axes,
            maximum,
        }) => {
            let Columns {
                label,
                device,
                ignore,
                task,
            } = columns;
            RawData {
                path: Some(path),
                test_path,
                label: Some(label),
                device_column: device,
                ignore: unless_empty(ignore),
                task: Some(task),
                axes: unless_empty(axes),
                maximum,
                ..RawData::new(RawSource::Csv)
            }
        }
        StoredSet::Leaf(LeafConfig {
            path,
            test_path,
            task,
            classes,
            axes,
            maximum,
        }) => RawData {
            path: Some(path),
            test_path,
            task: Some(task),
            classes,
            axes: unless_empty(axes),
            maximum,
            ..RawData::new(RawSource::Leaf)
        },
    }
}

fn written_synthetic(synthetic: SyntheticConfig) -> RawData {
    let SyntheticConfig {
        devices,
        samples_per_device,
        classes,
        noise,
        kind,
    } = synthetic;
    let mut raw = RawData {
        devices: Some(devices),
        samples_per_device: Some(samples_per_device),
        classes: Some(classes),
        noise: Some(noise),
        ..RawData::new(RawSource::Synthetic)
    };
    match kind {
        SyntheticKind::Tasks(tasks) => {
            raw.kind = Some(RawKind::Tasks);
            raw.features = Some(tasks.features);
            raw.heterogeneity = Some(tasks.heterogeneity);
            raw.shift = Some(tasks.shift);
        }
        SyntheticKind::Windows(windows) => {
            raw.kind = Some(RawKind::Windows);
            raw.channels = Some(windows.channels);
            raw.window = Some(windows.window);
            raw.drift = Some(windows.drift);
        }
    }
    raw
}

fn write_dealing(raw: &mut RawData, dealing: Dealing) {
    match dealing {
        Dealing::Natural => raw.partition = Some(RawPartition::Natural),
        Dealing::Iid {
            devices,
            samples_per_device,
        } => {
            raw.partition = Some(RawPartition::Iid);
            raw.devices = Some(devices);
            raw.samples_per_device = samples_per_device;
        }
        Dealing::Shards {
            devices,
            shards_per_device,
        } => {
            raw.partition = Some(RawPartition::Shards);
            raw.devices = Some(devices);
            raw.shards_per_device = Some(shards_per_device);
        }
        Dealing::Dirichlet {
            devices,
            alpha,
            samples_per_device,
            min_samples,
        } => {
            raw.partition = Some(RawPartition::Dirichlet);
            raw.devices = Some(devices);
            raw.alpha = Some(alpha);
            raw.samples_per_device = samples_per_device;
            raw.min_samples = samples_per_device.is_none().then_some(min_samples);
        }
    }
}

fn written_scale(scale: Scale) -> RawScale {
    RawScale::Name(match scale {
        Scale::Constants(map) => return RawScale::Constants(map),
        Scale::None => ScaleName::None,
        Scale::Unit => ScaleName::Unit,
        Scale::StandardiseSet => ScaleName::StandardiseSet,
        Scale::StandardiseFeatures => ScaleName::StandardiseFeatures,
    })
}

fn written_target_scale(scale: TargetScale) -> RawTargetScale {
    RawTargetScale::Name(match scale {
        TargetScale::Constants(map) => return RawTargetScale::Constants(map),
        TargetScale::None => TargetScaleName::None,
        TargetScale::Standardise => TargetScaleName::Standardise,
    })
}

/// No list at all reads the same as an empty one.
fn unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
