//! The keys of generated devices.

use super::error::{in_range, strength, wrong};
use super::sequence_keys::MAX_LENGTH;
use super::window::WindowKey;
use super::{DataConfigError, KindName, MAX_SAMPLES, RawData, SourceName};
use crate::classes::ClassList;
use crate::synthetic::readings::ReadingsConfig;
use crate::synthetic::tasks::TasksConfig;
use crate::synthetic::windows::{JITTER, WindowsConfig};
use crate::synthetic::words::WordsConfig;
use crate::synthetic::{SyntheticConfig, SyntheticKind};

/// Most features of a sample, as [`MAX_SAMPLES`] of a device.
const MAX_FEATURES: u32 = 1_000_000;

/// Fewest symbols of a generated text.
const MIN_SYMBOLS: u16 = 3;

impl RawData {
    pub(super) fn take_synthetic(&mut self) -> Result<SyntheticConfig, DataConfigError> {
        let kind = match self.kind.take().unwrap_or(KindName::Tasks) {
            KindName::Tasks => SyntheticKind::Tasks(TasksConfig {
                features: self.take_features(60)?,
                classes: self.take_class_count()?,
                heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.5)?,
                shift: strength("shift", self.shift.take(), 0.5)?,
            }),
            KindName::Windows => {
                let window = self.window.take().unwrap_or(WindowKey::Length(64));
                let (window, features) = window.generated()?;
                SyntheticKind::Windows(WindowsConfig {
                    channels: in_range("channels", self.channels.take().unwrap_or(3), 1..=1000)?,
                    window: in_range("window", window, 2..=MAX_FEATURES / 1000)?,
                    classes: self.take_class_count()?,
                    drift: strength("drift", self.drift.take(), 0.2)?,
                    jitter: strength("jitter", self.jitter.take(), JITTER)?,
                    features,
                })
            }
            KindName::Readings => SyntheticKind::Readings(ReadingsConfig {
                features: self.take_features(20)?,
                heterogeneity: strength("heterogeneity", self.heterogeneity.take(), 0.2)?,
                drift: strength("drift", self.drift.take(), 1.0)?,
            }),
            KindName::Text => SyntheticKind::Text(self.take_words()?),
        };
        let devices = self.devices.take().unwrap_or(1000);
        let samples = self.samples_per_device.take().unwrap_or(50);
        Ok(SyntheticConfig {
            devices: in_range("devices", devices, 1..=u32::MAX)?,
            samples_per_device: in_range("samples_per_device", samples, 1..=MAX_SAMPLES)?,
            noise: strength("noise", self.noise.take(), 0.1)?,
            kind,
        })
    }

    /// Those of generated texts, whose noise is a share.
    fn take_words(&mut self) -> Result<WordsConfig, DataConfigError> {
        if let Some(noise) = self.noise.filter(|noise| *noise > 1.0) {
            let expected = "a share from 0 to 1 of the characters of generated texts";
            return Err(wrong("noise", noise, expected));
        }
        let classes = self.take_class_count()?;
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

    pub(super) fn put_synthetic(&mut self, synthetic: SyntheticConfig) {
        self.source = SourceName::Synthetic;
        self.devices = Some(synthetic.devices);
        self.samples_per_device = Some(synthetic.samples_per_device);
        self.classes = synthetic.kind.class_count().map(ClassList::Count);
        self.noise = Some(synthetic.noise);
        match synthetic.kind {
            SyntheticKind::Tasks(tasks) => {
                self.kind = Some(KindName::Tasks);
                self.features = Some(tasks.features);
                self.heterogeneity = Some(tasks.heterogeneity);
                self.shift = Some(tasks.shift);
            }
            SyntheticKind::Windows(windows) => {
                self.kind = Some(KindName::Windows);
                self.channels = Some(windows.channels);
                self.window = Some(WindowKey::of_generated(windows.window, windows.features));
                self.drift = Some(windows.drift);
                self.jitter = windows.unusual_jitter();
            }
            SyntheticKind::Readings(readings) => {
                self.kind = Some(KindName::Readings);
                self.features = Some(readings.features);
                self.heterogeneity = Some(readings.heterogeneity);
                self.drift = Some(readings.drift);
            }
            SyntheticKind::Text(words) => {
                self.kind = Some(KindName::Text);
                self.length = Some(words.length);
                self.heterogeneity = Some(words.heterogeneity);
            }
        }
    }

    fn take_features(&mut self, usual: u32) -> Result<u32, DataConfigError> {
        in_range(
            "features",
            self.features.take().unwrap_or(usual),
            1..=MAX_FEATURES,
        )
    }

    /// The number of classes where they have no names.
    fn take_class_count(&mut self) -> Result<u16, DataConfigError> {
        const EXPECTED: &str = "a whole number from 2 to 65535";
        match self.classes.take() {
            None => Ok(10),
            Some(ClassList::Count(count @ 2..)) => Ok(count),
            Some(ClassList::Count(count)) => Err(wrong("classes", count, EXPECTED)),
            Some(ClassList::Names(_)) => Err(wrong("classes", "a list of names", EXPECTED)),
        }
    }
}
