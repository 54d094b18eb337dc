//! The keys of generated (synthetic) devices, with their defaults and limits: kind, features,
//! classes, samples.

use super::error::{in_range, strength, wrong};
use super::keys::{Converted, SyntheticKeys};
use super::names::KindName;
use super::sequence_keys::MAX_LENGTH;
use super::window::WindowKey;
use super::{DataConfig, DataConfigError, MAX_SAMPLES, SourceConfig};
use crate::classes::ClassList;
use crate::split::HoldOut;
use crate::synthetic::readings::ReadingsConfig;
use crate::synthetic::tasks::TasksConfig;
use crate::synthetic::windows::{JITTER, WindowsConfig};
use crate::synthetic::words::WordsConfig;
use crate::synthetic::{SyntheticConfig, SyntheticKind};

/// Maximum number of features of a sample, with the same purpose as [`MAX_SAMPLES`].
const MAX_FEATURES: u32 = 1_000_000;

/// Minimum number of symbols of a generated text.
const MIN_SYMBOLS: u16 = 3;

impl SyntheticKeys {
    /// Returns the configuration of generated devices.
    pub(super) fn convert(mut self) -> Result<Converted, DataConfigError> {
        let kind = self.kind()?;
        let devices = self.devices.take().unwrap_or(1000);
        let samples = self.samples_per_device.take().unwrap_or(50);
        let synthetic = SyntheticConfig {
            devices: in_range("devices", devices, 1..=u32::MAX)?,
            samples_per_device: in_range("samples_per_device", samples, 1..=MAX_SAMPLES)?,
            noise: strength("noise", self.noise.take(), 0.1)?,
            kind,
        };
        let config = DataConfig {
            source: SourceConfig::Synthetic(synthetic),
            validation: samples_of("validation", self.validation.take(), HoldOut::NONE)?,
            test: samples_of("test", self.test.take(), HoldOut::Rows(2000))?,
        };
        Ok(Converted {
            config,
            partition: None,
            left_over: self.left_over(),
        })
    }

    fn kind(&mut self) -> Result<SyntheticKind, DataConfigError> {
        Ok(match self.kind.take().unwrap_or(KindName::Tasks) {
            KindName::Tasks => SyntheticKind::Tasks(TasksConfig {
                features: self.features(60)?,
                classes: self.class_count()?,
                heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.5)?,
                shift: strength("shift", self.shift.take(), 0.5)?,
            }),
            KindName::Windows => {
                let window = self.window.take().unwrap_or(WindowKey::Length(64));
                let (window, features) = window.generated()?;
                SyntheticKind::Windows(WindowsConfig {
                    channels: in_range("channels", self.channels.take().unwrap_or(3), 1..=1000)?,
                    window: in_range("window", window, 2..=MAX_FEATURES / 1000)?,
                    classes: self.class_count()?,
                    drift: strength("drift", self.drift.take(), 0.2)?,
                    jitter: strength("jitter", self.jitter.take(), JITTER)?,
                    features,
                })
            }
            KindName::Readings => SyntheticKind::Readings(ReadingsConfig {
                features: self.features(20)?,
                heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.2)?,
                drift: strength("drift", self.drift.take(), 1.0)?,
            }),
            KindName::Text => SyntheticKind::Text(self.words()?),
        })
    }

    /// Returns the settings of generated texts, whose noise is a share.
    fn words(&mut self) -> Result<WordsConfig, DataConfigError> {
        if let Some(noise) = self.noise.filter(|noise| *noise > 1.0) {
            let expected = "a share from 0 to 1 of the characters of generated texts";
            return Err(wrong("noise", noise, expected));
        }
        let classes = self.class_count()?;
        if classes < MIN_SYMBOLS {
            let expected = "at least 3 for generated texts: a space and two letters";
            return Err(wrong("classes", classes, expected));
        }
        Ok(WordsConfig {
            length: in_range("length", self.length.take().unwrap_or(20), 1..=MAX_LENGTH)?,
            classes,
            heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.5)?,
        })
    }

    fn features(&mut self, usual: u32) -> Result<u32, DataConfigError> {
        let features = self.features.take().unwrap_or(usual);
        in_range("features", features, 1..=MAX_FEATURES)
    }

    /// Returns the number of classes if they have no names.
    fn class_count(&mut self) -> Result<u16, DataConfigError> {
        const EXPECTED: &str = "a whole number from 2 to 65535";
        match self.classes.take() {
            None => Ok(10),
            Some(ClassList::Count(count @ 2..)) => Ok(count),
            Some(ClassList::Count(count)) => Err(wrong("classes", count, EXPECTED)),
            Some(ClassList::Names(_)) => Err(wrong("classes", "a list of names", EXPECTED)),
        }
    }
}

/// Returns a number of generated samples.
fn samples_of(
    key: &'static str,
    given: Option<HoldOut>,
    usual: HoldOut,
) -> Result<HoldOut, DataConfigError> {
    match given.unwrap_or(usual) {
        HoldOut::Rows(rows) => Ok(HoldOut::Rows(rows)),
        HoldOut::Fraction(share) | HoldOut::LastFraction(share) => {
            let expected = "a whole number of samples for synthetic data";
            Err(wrong(key, share, expected))
        }
    }
}
