//! A federation of any number of devices, each generated on demand.
//!
//! The shared data are drawn once. The data of one device come from streams named by its number, so
//! memory does not grow with the number of devices, and device 7 has the same samples in a
//! federation of ten and of ten million.

pub mod readings;
pub mod tasks;
pub mod windows;
pub mod words;

use serde::Serialize;
use smolfed_core::stream::Stream;

use super::dataset::{Dataset, DatasetError, DatasetView, DeviceBuffer, Targets};
use super::draw;
use readings::{Readings, ReadingsConfig};
use tasks::{Tasks, TasksConfig};
use windows::{Windows, WindowsConfig};
use words::{Words, WordsConfig};

/// A checked synthetic federation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticConfig {
    /// Number of devices N, at least 1.
    pub devices: u32,
    /// Number of samples per device, at least 1.
    pub samples_per_device: u32,
    /// Standard deviation of the noise: on logits for tasks, on every feature for windows, on the
    /// target for readings. For texts, the share of mistyped characters.
    pub noise: f64,
    /// The learning problem of the devices.
    pub kind: SyntheticKind,
}

/// The learning problem of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SyntheticKind {
    /// Linear classification tasks that differ between devices.
    Tasks(TasksConfig),
    /// Activities in smooth sensor windows.
    Windows(WindowsConfig),
    /// Values measured by sensors, each with its own drift.
    Readings(ReadingsConfig),
    /// The next character of texts.
    Text(WordsConfig),
}

impl SyntheticKind {
    /// Returns the number of classes C, at least 2. `None` for regression.
    pub fn class_count(&self) -> Option<u16> {
        match self {
            Self::Tasks(tasks) => Some(tasks.classes),
            Self::Windows(windows) => Some(windows.classes),
            Self::Text(words) => Some(words.classes),
            Self::Readings(_) => None,
        }
    }
}

/// A part of a device's samples. Each has a separate stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// For training.
    Train = 2,
    /// For choosing settings.
    Validation = 3,
    /// For reporting.
    Test = 4,
}

/// Streams of the shared data and of the parameters of a device. [`Part`] continues from here.
const PART_SHARED: u32 = 0;
const PART_DEVICE: u32 = 1;

/// A synthetic federation: the shared part in memory, devices on demand.
#[derive(Clone, Debug)]
pub struct Synthetic {
    config: SyntheticConfig,
    seed: u64,
    model: Model,
}

#[derive(Clone, Debug)]
enum Model {
    Tasks(Tasks),
    Windows(Windows),
    Readings(Readings),
    Text(Words),
}

/// Targets of generated samples. The kind determines which of the two vectors is filled.
#[derive(Default)]
struct Made {
    labels: Vec<u16>,
    values: Vec<f32>,
}

impl Made {
    /// Creates empty targets, reusing the memory of others.
    fn in_place_of(targets: Option<Targets>) -> Self {
        let mut made = Self::default();
        match targets {
            Some(Targets::Classes { labels, .. }) => made.labels = labels,
            Some(Targets::Values(values)) => made.values = values,
            None => {}
        }
        made.labels.clear();
        made.values.clear();
        made
    }

    fn targets(self, class_count: Option<u16>) -> Targets {
        match class_count {
            Some(classes) => Targets::Classes {
                labels: self.labels,
                class_count: usize::from(classes),
            },
            None => Targets::Values(self.values),
        }
    }
}

impl Synthetic {
    /// Creates the federation of this seed.
    pub fn new(config: SyntheticConfig, seed: u64) -> Self {
        let mut rng = draw::synthesis_stream(seed, PART_SHARED, 0);
        let noise = config.noise;
        let model = match config.kind {
            SyntheticKind::Tasks(tasks) => Model::Tasks(Tasks::new(tasks, noise, &mut rng)),
            SyntheticKind::Windows(windows) => {
                Model::Windows(Windows::new(windows, noise, &mut rng))
            }
            SyntheticKind::Readings(readings) => {
                Model::Readings(Readings::new(readings, noise, &mut rng))
            }
            SyntheticKind::Text(words) => Model::Text(Words::new(words, noise, &mut rng)),
        };
        Self {
            config,
            seed,
            model,
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &SyntheticConfig {
        &self.config
    }

    /// Returns the number of features per sample.
    pub fn feature_count(&self) -> usize {
        match &self.model {
            Model::Tasks(tasks) => tasks.feature_count(),
            Model::Windows(windows) => windows.feature_count(),
            Model::Readings(readings) => readings.feature_count(),
            Model::Text(words) => words.feature_count(),
        }
    }

    /// Returns `[channels, time]` for windows, otherwise an empty vector.
    pub fn axes(&self) -> Vec<usize> {
        match &self.model {
            Model::Windows(windows) => windows.axes(),
            Model::Tasks(_) | Model::Readings(_) | Model::Text(_) => Vec::new(),
        }
    }

    /// Returns the first `count` samples of a part of `device`, generated into `buffer`.
    ///
    /// * Cost: O(count · features · classes) for tasks, O(count · features) for the others.
    pub fn device<'a>(
        &self,
        device: u32,
        part: Part,
        count: u32,
        buffer: &'a mut DeviceBuffer,
    ) -> DatasetView<'a> {
        let mut made = Made::in_place_of(buffer.targets.take());
        self.append(
            device,
            part,
            count,
            &mut buffer.own,
            buffer.features.refill(),
            &mut made,
        );
        buffer.fill(made.targets(self.config.kind.class_count()));
        buffer.view(self.feature_count())
    }

    /// Returns `rows` samples of a part, from devices spread evenly over the federation.
    ///
    /// # Errors
    /// [`DatasetError`] if `rows` is 0, or if extreme settings make a feature non-finite.
    pub fn sample(&self, part: Part, rows: u32) -> Result<Dataset, DatasetError> {
        let (mut features, mut own, mut made) = (Vec::new(), Vec::new(), Made::default());
        let devices = rows.min(self.config.devices);
        for index in 0..devices {
            let spread = u64::from(index) * u64::from(self.config.devices) / u64::from(devices);
            let count = rows / devices + u32::from(index < rows % devices);
            self.append(
                spread as u32,
                part,
                count,
                &mut own,
                &mut features,
                &mut made,
            );
        }
        let targets = made.targets(self.config.kind.class_count());
        Dataset::new(features, self.feature_count(), targets)?.with_axes(self.axes())
    }

    fn append(
        &self,
        device: u32,
        part: Part,
        count: u32,
        own: &mut Vec<f64>,
        features: &mut Vec<f32>,
        made: &mut Made,
    ) {
        let mut maker = draw::synthesis_stream(self.seed, PART_DEVICE, device);
        let mut samples: Stream = draw::synthesis_stream(self.seed, part as u32, device);
        own.clear();
        match &self.model {
            Model::Tasks(tasks) => {
                tasks.make_device(&mut maker, own);
                tasks.append(own, &mut samples, count, features, &mut made.labels);
            }
            Model::Windows(windows) => {
                windows.make_device(&mut maker, own);
                windows.append(own, &mut samples, count, features, &mut made.labels);
            }
            Model::Readings(readings) => {
                readings.make_device(&mut maker, own);
                readings.append(own, &mut samples, count, features, &mut made.values);
            }
            Model::Text(words) => {
                words.make_device(&mut maker, own);
                words.append(own, &mut samples, count, features, &mut made.labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(kind: SyntheticKind, devices: u32) -> SyntheticConfig {
        SyntheticConfig {
            devices,
            samples_per_device: 20,
            noise: 0.1,
            kind,
        }
    }

    fn kinds() -> [SyntheticKind; 4] {
        [
            SyntheticKind::Tasks(TasksConfig {
                features: 10,
                classes: 4,
                heterogeneity: 0.5,
                shift: 0.5,
            }),
            SyntheticKind::Windows(WindowsConfig {
                channels: 3,
                window: 16,
                classes: 4,
                drift: 0.2,
                jitter: 0.5,
                features: None,
            }),
            SyntheticKind::Readings(ReadingsConfig {
                features: 10,
                heterogeneity: 0.5,
                drift: 0.2,
            }),
            SyntheticKind::Text(WordsConfig {
                length: 12,
                classes: 5,
                heterogeneity: 0.5,
            }),
        ]
    }

    /// Returns the features and targets of a device's part.
    fn samples(synthetic: &Synthetic, device: u32, part: Part, count: u32) -> (Vec<f32>, Vec<f32>) {
        let mut buffer = DeviceBuffer::default();
        let view = synthetic.device(device, part, count, &mut buffer);
        let features = (0..view.len())
            .flat_map(|i| view.features(i).to_vec())
            .collect();
        let target = |i| match synthetic.config.kind.class_count() {
            Some(_) => f32::from(view.label(i)),
            None => view.value(i),
        };
        (features, (0..view.len()).map(target).collect())
    }

    #[test]
    fn devices_do_not_depend_on_the_number_of_devices() {
        for kind in kinds() {
            let few = Synthetic::new(config(kind, 10), 1);
            let many = Synthetic::new(config(kind, u32::MAX), 1);
            assert_eq!(
                samples(&few, 7, Part::Train, 20),
                samples(&many, 7, Part::Train, 20)
            );
            assert_eq!(samples(&many, u32::MAX - 1, Part::Train, 20).1.len(), 20);
        }
    }

    #[test]
    fn seeds_devices_and_parts_differ() {
        for kind in kinds() {
            let synthetic = Synthetic::new(config(kind, 10), 1);
            let other = Synthetic::new(config(kind, 10), 2);
            let base = samples(&synthetic, 0, Part::Train, 20);
            assert_eq!(base, samples(&synthetic, 0, Part::Train, 20));
            assert_ne!(base, samples(&other, 0, Part::Train, 20));
            assert_ne!(base, samples(&synthetic, 1, Part::Train, 20));
            assert_ne!(base, samples(&synthetic, 0, Part::Test, 20));
        }
    }

    #[test]
    fn fewer_samples_are_a_prefix() {
        for kind in kinds() {
            let synthetic = Synthetic::new(config(kind, 10), 1);
            let (features, labels) = samples(&synthetic, 3, Part::Test, 20);
            let (fewer, fewer_labels) = samples(&synthetic, 3, Part::Test, 5);
            assert_eq!(fewer, features[..fewer.len()]);
            assert_eq!(fewer_labels, labels[..5]);
        }
    }

    #[test]
    fn used_buffer_gives_the_same_samples() {
        let mut buffer = DeviceBuffer::default();
        for kind in kinds() {
            let synthetic = Synthetic::new(config(kind, 10), 1);
            for (device, count) in [(0, 20), (1, 3), (2, 0), (3, 10)] {
                let view = synthetic.device(device, Part::Train, count, &mut buffer);
                let features: Vec<f32> = (0..view.len())
                    .flat_map(|i| view.features(i).to_vec())
                    .collect();
                assert_eq!(features, samples(&synthetic, device, Part::Train, count).0);
                assert_eq!(view.len(), count as usize);
            }
        }
    }

    #[test]
    fn sample_has_the_asked_rows_from_many_devices() {
        for kind in kinds() {
            for (devices, rows) in [(3, 10), (10, 3), (u32::MAX, 50), (1, 1)] {
                let synthetic = Synthetic::new(config(kind, devices), 1);
                let data = synthetic.sample(Part::Test, rows).unwrap();
                assert_eq!(data.len(), rows as usize);
                assert_eq!(data.feature_count(), synthetic.feature_count());
                assert!(data.row(0).eq(samples(&synthetic, 0, Part::Test, 1).0));
            }
            let none = Synthetic::new(config(kind, 3), 1).sample(Part::Test, 0);
            assert_eq!(none.unwrap_err(), DatasetError::NoSamples);
        }
    }

    #[test]
    fn every_class_occurs() {
        for kind in kinds() {
            let data = Synthetic::new(config(kind, 100), 1)
                .sample(Part::Test, 1000)
                .unwrap();
            let Targets::Classes {
                labels,
                class_count,
            } = data.targets()
            else {
                assert_eq!(kind.class_count(), None);
                continue;
            };
            for class in 0..*class_count {
                let count = labels
                    .iter()
                    .filter(|&&label| usize::from(label) == class)
                    .count();
                assert!(count > 50, "{kind:?}: class {class} has {count} of 1000");
            }
        }
    }
}
