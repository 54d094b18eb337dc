//! A federation of any number of devices, each generated when it is asked for.
//!
//! What all devices share is drawn once; what belongs to one device comes from streams named by
//! its number, so that memory does not grow with the number of devices, and device 7 holds the
//! same samples in a federation of ten and of ten million.

pub mod tasks;
pub mod windows;

use smolfed_core::stream::Stream;

use super::dataset::{Dataset, DatasetError, DatasetView, DeviceBuffer, Targets};
use super::draw;
use tasks::{Tasks, TasksConfig};
use windows::{Windows, WindowsConfig};

/// A checked synthetic federation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticConfig {
    /// Number of devices N, at least 1.
    pub devices: u32,
    /// Samples a device, at least 1.
    pub samples_per_device: u32,
    /// Number of classes C, at least 2.
    pub classes: u16,
    /// Standard deviation of the noise: on logits for tasks, on every value for windows.
    pub noise: f64,
    /// What the devices have to learn.
    pub kind: SyntheticKind,
}

/// What the devices have to learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SyntheticKind {
    /// Linear classification tasks that differ from device to device.
    Tasks(TasksConfig),
    /// Activities in smooth sensor windows.
    Windows(WindowsConfig),
}

/// Which samples of a device; each kind comes from a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// To train on.
    Train = 2,
    /// To choose settings by.
    Validation = 3,
    /// To report on.
    Test = 4,
}

/// Streams of what all devices share and of what makes a device; [`Part`] goes on from here.
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
}

impl Synthetic {
    /// The federation of this seed.
    pub fn new(config: SyntheticConfig, seed: u64) -> Self {
        let mut rng = draw::synthesis_stream(seed, PART_SHARED, 0);
        let SyntheticConfig { classes, noise, .. } = config;
        let model = match config.kind {
            SyntheticKind::Tasks(tasks) => {
                Model::Tasks(Tasks::new(tasks, classes, noise, &mut rng))
            }
            SyntheticKind::Windows(windows) => {
                Model::Windows(Windows::new(windows, classes, noise, &mut rng))
            }
        };
        Self {
            config,
            seed,
            model,
        }
    }

    /// The settings.
    pub fn config(&self) -> &SyntheticConfig {
        &self.config
    }

    /// Features a sample.
    pub fn feature_count(&self) -> usize {
        match &self.model {
            Model::Tasks(tasks) => tasks.feature_count(),
            Model::Windows(windows) => windows.feature_count(),
        }
    }

    /// `[channels, time]` for windows, empty for tasks.
    pub fn axes(&self) -> Vec<usize> {
        match &self.model {
            Model::Tasks(_) => Vec::new(),
            Model::Windows(windows) => windows.axes(),
        }
    }

    /// The first `count` samples of a part of `device`, generated into `buffer`.
    ///
    /// * Cost: O(count · features · classes) for tasks, O(count · features) for windows.
    pub fn device<'a>(
        &self,
        device: u32,
        part: Part,
        count: u32,
        buffer: &'a mut DeviceBuffer,
    ) -> DatasetView<'a> {
        let mut labels = match buffer.targets.take() {
            Some(Targets::Classes { labels, .. }) => labels,
            _ => Vec::new(),
        };
        labels.clear();
        self.append(
            device,
            part,
            count,
            &mut buffer.own,
            buffer.features.refill(),
            &mut labels,
        );
        buffer.fill(Targets::Classes {
            labels,
            class_count: usize::from(self.config.classes),
        });
        buffer.view(self.feature_count())
    }

    /// `rows` samples of a part, from devices spread evenly over the federation.
    ///
    /// # Errors
    /// [`DatasetError`] if `rows` is 0, or the settings are so extreme that a feature is not
    /// finite.
    pub fn sample(&self, part: Part, rows: u32) -> Result<Dataset, DatasetError> {
        let (mut features, mut labels, mut own) = (Vec::new(), Vec::new(), Vec::new());
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
                &mut labels,
            );
        }
        let targets = Targets::Classes {
            labels,
            class_count: usize::from(self.config.classes),
        };
        Dataset::new(features, self.feature_count(), targets)?.with_axes(self.axes())
    }

    fn append(
        &self,
        device: u32,
        part: Part,
        count: u32,
        own: &mut Vec<f64>,
        features: &mut Vec<f32>,
        labels: &mut Vec<u16>,
    ) {
        let mut maker = draw::synthesis_stream(self.seed, PART_DEVICE, device);
        let mut samples: Stream = draw::synthesis_stream(self.seed, part as u32, device);
        own.clear();
        match &self.model {
            Model::Tasks(tasks) => {
                tasks.make_device(&mut maker, own);
                tasks.append(own, &mut samples, count, features, labels);
            }
            Model::Windows(windows) => {
                windows.make_device(&mut maker, own);
                windows.append(own, &mut samples, count, features, labels);
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
            classes: 4,
            noise: 0.1,
            kind,
        }
    }

    fn kinds() -> [SyntheticKind; 2] {
        [
            SyntheticKind::Tasks(TasksConfig {
                features: 10,
                heterogeneity: 0.5,
                shift: 0.5,
            }),
            SyntheticKind::Windows(WindowsConfig {
                channels: 3,
                window: 16,
                drift: 0.2,
            }),
        ]
    }

    /// Features and labels of a device's part.
    fn samples(synthetic: &Synthetic, device: u32, part: Part, count: u32) -> (Vec<f32>, Vec<u16>) {
        let mut buffer = DeviceBuffer::default();
        let view = synthetic.device(device, part, count, &mut buffer);
        let features = (0..view.len())
            .flat_map(|i| view.features(i).to_vec())
            .collect();
        (features, (0..view.len()).map(|i| view.label(i)).collect())
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
                unreachable!()
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
