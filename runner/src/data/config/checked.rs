//! From the table as it is written to the checked configuration: each key is taken by what it is
//! for, and a key that nothing took is refused.

use serde::Serialize;

use super::raw::{
    RawData, RawKind, RawPartition, RawScale, RawSource, RawTargetScale, ScaleName, TargetScaleName,
};
use super::{
    CsvConfig, DataConfig, DataConfigError, IdxConfig, LeafConfig, SourceConfig, StoredConfig,
    StoredSet,
};
use crate::data::csv::Columns;
use crate::data::dataset::Task;
use crate::data::partition::Dealing;
use crate::data::scale::{Scale, TargetScale};
use crate::data::split::HoldOut;
use crate::data::synthetic::tasks::TasksConfig;
use crate::data::synthetic::windows::WindowsConfig;
use crate::data::synthetic::{SyntheticConfig, SyntheticKind};

/// Most features of a synthetic sample, most samples of a device: far beyond use, and small enough
/// that one device fits in memory.
const MAX_FEATURES: u32 = 1_000_000;
const MAX_SAMPLES: u32 = 10_000_000;
/// Largest strength of a synthetic effect: beyond it samples say nothing else.
const MAX_STRENGTH: f64 = 1000.0;

impl TryFrom<RawData> for DataConfig {
    type Error = DataConfigError;

    fn try_from(mut raw: RawData) -> Result<Self, DataConfigError> {
        let partition = raw.partition;
        let config = match raw.source {
            RawSource::Synthetic => raw.take_synthetic_config()?,
            _ => raw.take_stored_config()?,
        };
        match raw.left_over() {
            Some(key) => {
                let source = name_of(raw.source);
                let partition = partition.map_or(String::new(), |partition| {
                    format!(" and partition = {}", name_of(partition))
                });
                Err(DataConfigError::Unused {
                    key,
                    context: format!("source = {source}{partition}"),
                })
            }
            None => Ok(config),
        }
    }
}

/// A share of each device's rows; none if it is not given.
fn share(key: &'static str, value: Option<f64>) -> Result<f64, DataConfigError> {
    let share = value.unwrap_or(0.0);
    if (0.0..0.5).contains(&share) {
        return Ok(share);
    }
    Err(DataConfigError::Value {
        key,
        value: share.to_string(),
        expected: "a share from 0.0 to below 0.5 of each device's samples".to_owned(),
    })
}

impl RawData {
    fn take_stored_config(&mut self) -> Result<DataConfig, DataConfigError> {
        let set = self.take_set()?;
        // Beside a test part of the set's own, a `test` stays behind and is refused.
        let test = if set.gives_test() {
            HoldOut::NONE
        } else {
            self.test.take().unwrap_or(HoldOut::Fraction(0.2))
        };
        let dealing = self.take_dealing(set.has_devices())?;
        // Beside a natural partition these stay behind and are refused: there all parts are by device.
        let (device_validation, device_test) = if dealing == Dealing::Natural {
            (0.0, 0.0)
        } else {
            let validation = share("device_validation", self.device_validation.take())?;
            (validation, share("device_test", self.device_test.take())?)
        };
        let (scale, target_scale) = (self.take_scale(&set), self.take_target_scale(&set));
        let stored = StoredConfig {
            set,
            scale,
            target_scale,
            dealing,
            device_validation,
            device_test,
        };
        let validation = self.validation.take().unwrap_or(HoldOut::NONE);
        Ok(DataConfig {
            source: SourceConfig::Stored(stored),
            validation,
            test,
        })
    }

    fn take_synthetic_config(&mut self) -> Result<DataConfig, DataConfigError> {
        let source = SourceConfig::Synthetic(self.take_synthetic()?);
        let validation = self.validation.take().unwrap_or(HoldOut::NONE);
        let test = self.test.take().unwrap_or(HoldOut::Rows(2000));
        refuse_share("validation", validation)?;
        refuse_share("test", test)?;
        Ok(DataConfig {
            source,
            validation,
            test,
        })
    }

    fn take_set(&mut self) -> Result<StoredSet, DataConfigError> {
        let mut folder = |usual: &str| self.path.take().unwrap_or_else(|| usual.into());
        Ok(match self.source {
            RawSource::Digits | RawSource::Synthetic => StoredSet::Digits,
            RawSource::Mnist => StoredSet::Mnist {
                path: folder("mnist"),
            },
            RawSource::Femnist => StoredSet::Femnist {
                path: folder("femnist"),
            },
            RawSource::Idx => StoredSet::Idx(self.take_idx()?),
            RawSource::Csv => StoredSet::Csv(self.take_csv()?),
            RawSource::Leaf => StoredSet::Leaf(LeafConfig {
                path: needed(
                    self.path.take(),
                    "path",
                    "the LEAF file, plain, .gz or .zip",
                )?,
                test_path: self.test_path.take(),
                task: self.task.take().unwrap_or(Task::Classification),
                classes: self.take_classes()?,
                axes: self.axes.take().unwrap_or_default(),
                maximum: self.take_maximum()?,
            }),
        })
    }

    fn take_idx(&mut self) -> Result<IdxConfig, DataConfigError> {
        let test = match (self.test_path.take(), self.test_label_path.take()) {
            (Some(features), Some(labels)) => Some((features, labels)),
            (None, None) => None,
            (Some(_), None) => {
                let (present, absent) = ("test_path", "test_label_path");
                return Err(DataConfigError::Pair { present, absent });
            }
            (None, Some(_)) => {
                let (present, absent) = ("test_label_path", "test_path");
                return Err(DataConfigError::Pair { present, absent });
            }
        };
        Ok(IdxConfig {
            path: needed(
                self.path.take(),
                "path",
                "the IDX file with one image a sample",
            )?,
            label_path: needed(
                self.label_path.take(),
                "label_path",
                "the IDX file with the labels",
            )?,
            device_path: self.device_path.take(),
            test,
            classes: self.take_classes()?,
        })
    }

    fn take_csv(&mut self) -> Result<CsvConfig, DataConfigError> {
        Ok(CsvConfig {
            path: needed(self.path.take(), "path", "the CSV file, plain or .gz")?,
            test_path: self.test_path.take(),
            columns: Columns {
                label: needed(self.label.take(), "label", "the column to predict")?,
                device: self.device_column.take(),
                ignore: self.ignore.take().unwrap_or_default(),
                task: self.task.take().unwrap_or(Task::Classification),
            },
            axes: self.axes.take().unwrap_or_default(),
            maximum: self.take_maximum()?,
        })
    }

    fn take_synthetic(&mut self) -> Result<SyntheticConfig, DataConfigError> {
        let classes = self.take_classes()?.unwrap_or(10);
        let kind = match self.kind.take().unwrap_or(RawKind::Tasks) {
            RawKind::Tasks => SyntheticKind::Tasks(TasksConfig {
                features: in_range(
                    "features",
                    self.features.take().unwrap_or(60),
                    1,
                    MAX_FEATURES,
                )?,
                heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.5)?,
                shift: strength("shift", self.shift.take(), 0.5)?,
            }),
            RawKind::Windows => SyntheticKind::Windows(WindowsConfig {
                channels: in_range("channels", self.channels.take().unwrap_or(3), 1, 1000)?,
                window: in_range(
                    "window",
                    self.window.take().unwrap_or(64),
                    2,
                    MAX_FEATURES / 1000,
                )?,
                drift: strength("drift", self.drift.take(), 0.2)?,
            }),
        };
        let devices = self.devices.take().unwrap_or(1000);
        let samples = self.samples_per_device.take().unwrap_or(50);
        Ok(SyntheticConfig {
            devices: in_range("devices", devices, 1, u32::MAX)?,
            samples_per_device: in_range("samples_per_device", samples, 1, MAX_SAMPLES)?,
            classes,
            noise: strength("noise", self.noise.take(), 0.1)?,
            kind,
        })
    }

    fn take_classes(&mut self) -> Result<Option<u16>, DataConfigError> {
        match self.classes.take() {
            Some(classes @ 0..2) => {
                Err(wrong("classes", classes, "a whole number from 2 to 65535"))
            }
            classes => Ok(classes),
        }
    }

    fn take_maximum(&mut self) -> Result<Option<f32>, DataConfigError> {
        match self.maximum.take() {
            Some(maximum) if !(maximum.is_finite() && maximum > 0.0) => {
                Err(wrong("maximum", maximum, "finite and above 0"))
            }
            maximum => Ok(maximum),
        }
    }

    fn take_dealing(&mut self, natural: bool) -> Result<Dealing, DataConfigError> {
        let default = if natural {
            RawPartition::Natural
        } else {
            RawPartition::Iid
        };
        let partition = self.partition.take().unwrap_or(default);
        if partition == RawPartition::Natural {
            return if natural {
                Ok(Dealing::Natural)
            } else {
                let expected = "\"iid\", \"shards\" or \"dirichlet\" for data without natural \
                    devices (CSV has them by `device_column`, IDX by `device_path`)";
                Err(wrong("partition", "\"natural\"", expected))
            };
        }
        let devices = needed(
            self.devices.take(),
            "devices",
            "how many devices to deal rows to",
        )?;
        let devices = in_range("devices", devices, 1, u32::MAX)?;
        let mut samples_per_device = || match self.samples_per_device.take() {
            Some(samples) => in_range("samples_per_device", samples, 1, MAX_SAMPLES).map(Some),
            None => Ok(None),
        };
        Ok(match partition {
            RawPartition::Natural => Dealing::Natural,
            RawPartition::Iid => Dealing::Iid {
                devices,
                samples_per_device: samples_per_device()?,
            },
            RawPartition::Shards => {
                let shards = self.shards_per_device.take().unwrap_or(2);
                let shards_per_device = in_range("shards_per_device", shards, 1, u32::MAX)?;
                Dealing::Shards {
                    devices,
                    shards_per_device,
                }
            }
            RawPartition::Dirichlet => {
                let samples_per_device = samples_per_device()?;
                let alpha = self.alpha.take().unwrap_or(0.5);
                if !(alpha.is_finite() && alpha > 0.0) {
                    return Err(wrong("alpha", alpha, "finite and above 0"));
                }
                // All devices have the same number where it is given.
                let min_samples = match samples_per_device {
                    Some(samples) => samples,
                    None => self.min_samples.take().unwrap_or(1),
                };
                let min_samples = in_range("min_samples", min_samples, 1, MAX_SAMPLES)?;
                Dealing::Dirichlet {
                    devices,
                    alpha,
                    samples_per_device,
                    min_samples,
                }
            }
        })
    }

    fn take_scale(&mut self, set: &StoredSet) -> Scale {
        let is_table = matches!(set, StoredSet::Csv(csv) if csv.axes.is_empty());
        let by_set = if is_table {
            Scale::StandardiseFeatures
        } else {
            Scale::StandardiseSet
        };
        match self.scale.take() {
            Some(RawScale::Constants(map)) => Scale::Constants(map),
            None | Some(RawScale::Name(ScaleName::Standardise)) => by_set,
            Some(RawScale::Name(ScaleName::None)) => Scale::None,
            Some(RawScale::Name(ScaleName::Unit)) => Scale::Unit,
            Some(RawScale::Name(ScaleName::StandardiseSet)) => Scale::StandardiseSet,
            Some(RawScale::Name(ScaleName::StandardiseFeatures)) => Scale::StandardiseFeatures,
        }
    }

    fn take_target_scale(&mut self, set: &StoredSet) -> TargetScale {
        if !set.is_regression() {
            // A `target_scale` stays behind and is refused.
            return TargetScale::None;
        }
        match self.target_scale.take() {
            None | Some(RawTargetScale::Name(TargetScaleName::None)) => TargetScale::None,
            Some(RawTargetScale::Name(TargetScaleName::Standardise)) => TargetScale::Standardise,
            Some(RawTargetScale::Constants(map)) => TargetScale::Constants(map),
        }
    }
}

fn needed<T>(
    value: Option<T>,
    key: &'static str,
    purpose: &'static str,
) -> Result<T, DataConfigError> {
    value.ok_or(DataConfigError::Missing { key, purpose })
}

fn in_range(key: &'static str, value: u32, least: u32, most: u32) -> Result<u32, DataConfigError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        let expected = if value < least {
            format!("at least {least}")
        } else {
            format!("at most {most}")
        };
        Err(wrong(key, value, expected))
    }
}

fn strength(key: &'static str, value: Option<f64>, default: f64) -> Result<f64, DataConfigError> {
    let value = value.unwrap_or(default);
    if (0.0..=MAX_STRENGTH).contains(&value) {
        Ok(value)
    } else {
        Err(wrong(key, value, "from 0 to 1000"))
    }
}

fn refuse_share(key: &'static str, hold_out: HoldOut) -> Result<(), DataConfigError> {
    match hold_out {
        HoldOut::Rows(_) => Ok(()),
        HoldOut::Fraction(share) => Err(wrong(
            key,
            share,
            "a whole number of samples for synthetic data",
        )),
    }
}

fn wrong(key: &'static str, value: impl ToString, expected: impl Into<String>) -> DataConfigError {
    DataConfigError::Value {
        key,
        value: value.to_string(),
        expected: expected.into(),
    }
}

/// A value as it stands in TOML.
fn name_of(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}
