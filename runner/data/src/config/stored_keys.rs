//! The keys of every data set: the dealing of its rows to devices (partition), the validation and
//! test parts, and the scale.

use super::error::{in_range, needed, positive, share, wrong};
use super::keys::SharedKeys;
use super::names::{HoldOutOrder, PartitionName};
use super::scale::{self, NameOr, Named, Samples, ScaleName};
use super::set::StoredSet;
use super::{DataConfig, DataConfigError, MAX_SAMPLES, SourceConfig, StoredConfig, name_of};
use crate::partition::Dealing;
use crate::scale::Scale;
use crate::scale::moments::PrivateScale;
use crate::split::HoldOut;

/// Checks the bound on the length of a sample.
fn norm_bound(bound: f64) -> Result<f32, DataConfigError> {
    let bound = positive("norm_bound", bound)? as f32;
    match bound.is_normal() {
        true => Ok(bound),
        false => Err(wrong("norm_bound", bound, "a 32-bit number above 0")),
    }
}

impl SharedKeys {
    /// Returns the configuration of a data set.
    pub(super) fn config_of(&mut self, set: StoredSet) -> Result<DataConfig, DataConfigError> {
        let dealing = self.dealing(set.has_devices())?;
        // A natural partition is split device by device and takes neither key.
        let (device_validation, device_test) = match dealing {
            Dealing::Natural => (0.0, 0.0),
            _ => (
                share("device_validation", self.device_validation.take())?,
                share("device_test", self.device_test.take())?,
            ),
        };
        let target_scale = match set.is_regression() {
            true => self.target_scale.take(),
            false => None,
        };
        let missing = match set {
            StoredSet::Table(_) | StoredSet::Memory(_) => self.missing.take(),
            _ => None,
        };
        let scale = self.scale(&set)?;
        let norm_bound = match set {
            StoredSet::Text(_) => None,
            _ => self.norm_bound.take().map(norm_bound).transpose()?,
        };
        let (validation, test) = self.hold_outs(&set);
        let stored = StoredConfig {
            missing: missing.unwrap_or_default(),
            scale,
            features: None,
            integers: None,
            norm_bound,
            target_scale: target_scale.into(),
            set,
            dealing,
            device_validation,
            device_test,
        };
        Ok(DataConfig {
            source: SourceConfig::Stored(Box::new(stored)),
            validation,
            test,
        })
    }

    /// Returns the validation and test parts. Texts hold out their last rows by default, because
    /// neighbouring rows are similar.
    fn hold_outs(&mut self, set: &StoredSet) -> (HoldOut, HoldOut) {
        let validation = self.validation.take().unwrap_or(HoldOut::NONE);
        let test = match set.gives_test() {
            true => HoldOut::NONE,
            false => self.test.take().unwrap_or(HoldOut::Fraction(0.2)),
        };
        let is_last = match self.hold_out.take() {
            Some(order) => order == HoldOutOrder::Last,
            None => matches!(set, StoredSet::Text(_)),
        };
        match is_last {
            true => (validation.of_last(), test.of_last()),
            false => (validation, test),
        }
    }

    fn dealing(&mut self, has_devices: bool) -> Result<Dealing, DataConfigError> {
        let usual = match has_devices {
            true => PartitionName::Natural,
            false => PartitionName::Iid,
        };
        let partition = match self.partition.take().unwrap_or(usual) {
            PartitionName::Natural if has_devices => return Ok(Dealing::Natural),
            PartitionName::Natural => {
                let expected = "\"iid\", \"shards\" or \"dirichlet\" for data without natural \
                    devices (`device_column` names them for CSV, `device_path` for IDX)";
                return Err(wrong("partition", "\"natural\"", expected));
            }
            PartitionName::Rows => return Ok(Dealing::Rows),
            partition => partition,
        };
        let purpose = "the number of devices that get rows";
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
        // If all devices have the same number of samples, `min_samples` has no effect.
        let min_samples = samples_per_device.or_else(|| self.min_samples.take());
        let min_samples = min_samples.unwrap_or(1);
        Ok(Dealing::Dirichlet {
            devices,
            alpha: positive("alpha", self.alpha.take().unwrap_or(0.5))?,
            samples_per_device,
            min_samples: in_range("min_samples", min_samples, 1..=MAX_SAMPLES)?,
        })
    }

    fn scale(&mut self, set: &StoredSet) -> Result<Scale, DataConfigError> {
        let scale = self.scale.take();
        if matches!(set, StoredSet::Text(_)) {
            return match scale {
                None | Some(NameOr::Name(ScaleName::None)) => Ok(Scale::None),
                Some(scale) => {
                    let expected = "\"none\" for texts, whose characters are symbols";
                    Err(wrong("scale", name_of(scale), expected))
                }
            };
        }
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
}
