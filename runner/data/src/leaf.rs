//! LEAF JSON: the samples of each device under its name.
//!
//! `{"users": [..], "num_samples": [..], "user_data": {name: {"x": [[..], ..], "y": [..]}, ..}}`.
//! Other members are ignored. Source: Caldas et al. 2018, "LEAF: A Benchmark for Federated
//! Settings", arXiv:1812.01097. Features must be numbers: the text sets of LEAF are not supported.

mod error;

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use super::classes::Classes;
use super::dataset::{Dataset, Groups, Names, Targets, TaskKind};
use crate::wording::of_json;

pub use error::LeafError;

/// The samples of one or more LEAF files, device after device.
#[derive(Clone, Default)]
pub struct LeafSamples {
    features: Vec<f32>,
    feature_count: Option<usize>,
    targets: Vec<f64>,
    device_of_row: Vec<u32>,
    devices: Vec<String>,
    numbers: HashMap<String, u32>,
}

#[derive(Deserialize)]
struct LeafFile {
    users: Vec<String>,
    num_samples: Vec<u64>,
    user_data: Devices,
}

/// `user_data` with all entries, to detect duplicate names.
struct Devices(Vec<(String, Samples)>);

#[derive(Deserialize)]
struct Samples {
    x: Vec<Vec<f32>>,
    y: Vec<f64>,
}

/// Parses an unpacked LEAF file.
///
/// # Errors
/// [`LeafError`] with the device and sample.
pub fn parse(bytes: &[u8]) -> Result<LeafSamples, LeafError> {
    let file: LeafFile =
        serde_json::from_slice(bytes).map_err(|error| LeafError::Json(of_json(&error)))?;
    if file.num_samples.len() != file.users.len() {
        let (expected, found) = (file.users.len(), file.num_samples.len());
        return Err(LeafError::CountsLength { expected, found });
    }
    let mut data = HashMap::new();
    for (device, samples) in file.user_data.0 {
        if data.insert(device.clone(), samples).is_some() {
            return Err(LeafError::DuplicateDevice { device });
        }
    }
    let mut leaf = LeafSamples::default();
    for (device, declared) in file.users.into_iter().zip(file.num_samples) {
        if leaf.numbers.contains_key(&device) {
            return Err(LeafError::DuplicateDevice { device });
        }
        let Some(samples) = data.remove(&device) else {
            return Err(LeafError::NoData { device });
        };
        leaf.push(device, &samples, declared)?;
    }
    match data.into_keys().min() {
        Some(device) => Err(LeafError::NotListed { device }),
        None => Ok(leaf),
    }
}

impl LeafSamples {
    /// Appends another file. Devices with the same name are one device.
    ///
    /// # Errors
    /// [`LeafError::Ragged`] if its samples have another number of features.
    pub fn append(&mut self, other: Self) -> Result<(), LeafError> {
        if let (Some(expected), Some(found)) = (self.feature_count, other.feature_count)
            && expected != found
        {
            let device = other.devices.into_iter().next().unwrap_or_default();
            return Err(LeafError::Ragged {
                device,
                sample: 0,
                expected,
                found,
            });
        }
        self.feature_count = self.feature_count.or(other.feature_count);
        self.features.extend(other.features);
        self.targets.extend(other.targets);
        let numbers: Vec<u32> = other
            .devices
            .into_iter()
            .map(|device| self.number(device))
            .collect();
        self.device_of_row
            .extend(other.device_of_row.iter().map(|&at| numbers[at as usize]));
        Ok(())
    }

    /// Returns the number of samples.
    pub fn row_count(&self) -> usize {
        self.targets.len()
    }

    /// Returns the labels of test rows (from row `training` on) that exceed all other labels.
    pub(super) fn other_labels(&self, training: usize) -> Vec<u32> {
        let labels = self.labels().unwrap_or_default();
        let (known, test) = labels.split_at(training.min(labels.len()));
        let largest = known.iter().max();
        let mut others: Vec<u32> = test
            .iter()
            .filter(|x| Some(*x) > largest)
            .copied()
            .collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Creates the data set, with a natural device per name, in the order of the files. Without
    /// `classes`, the largest label of the first `training` rows determines their number. Larger
    /// labels get one additional class, the last.
    ///
    /// # Errors
    /// [`LeafError::Label`] for a label outside the classes. [`LeafError::Content`] if there is no
    /// sample or only one class, or a value is not finite.
    pub fn into_dataset(
        self,
        task: TaskKind,
        classes: Option<&Classes>,
        training: usize,
    ) -> Result<Dataset, LeafError> {
        let targets = match task {
            TaskKind::Regression => {
                Targets::Values(self.targets.iter().map(|&value| value as f32).collect())
            }
            TaskKind::Classification => {
                let labels = self.labels()?;
                let known = labels.iter().take(training);
                let largest = known.max().map_or(0, |&label| label as usize);
                match classes {
                    Some(classes) => classes.targets(labels)?,
                    None => Targets::with_others(labels, largest + 1)?,
                }
            }
        };
        let groups = Groups::new(self.device_of_row, self.devices)?;
        let data = Dataset::new(self.features, self.feature_count.unwrap_or(1), targets)?;
        let names = Names {
            classes: classes.map(|known| known.list.names()).unwrap_or_default(),
            ..Names::default()
        };
        Ok(data.with_names(names).with_groups(groups)?)
    }

    fn labels(&self) -> Result<Vec<u32>, LeafError> {
        let mut start = 0;
        let mut labels = Vec::with_capacity(self.targets.len());
        for (row, &value) in self.targets.iter().enumerate() {
            if row > 0 && self.device_of_row[row] != self.device_of_row[row - 1] {
                start = row;
            }
            let whole = value as u16;
            if f64::from(whole).to_bits() != value.to_bits() {
                let device = self.devices[self.device_of_row[row] as usize].clone();
                return Err(LeafError::Label {
                    device,
                    sample: row - start,
                    value,
                });
            }
            labels.push(u32::from(whole));
        }
        Ok(labels)
    }

    fn push(&mut self, device: String, samples: &Samples, declared: u64) -> Result<(), LeafError> {
        let (x, y) = (samples.x.len(), samples.y.len());
        if x != y || x as u64 != declared {
            return Err(LeafError::SampleCounts {
                device,
                x,
                y,
                declared,
            });
        }
        if x == 0 {
            return Err(LeafError::EmptyDevice { device });
        }
        for (sample, features) in samples.x.iter().enumerate() {
            let expected = *self.feature_count.get_or_insert(features.len());
            if features.len() != expected {
                let found = features.len();
                return Err(LeafError::Ragged {
                    device,
                    sample,
                    expected,
                    found,
                });
            }
            self.features.extend(features);
        }
        let number = self.number(device);
        self.targets.extend(&samples.y);
        self.device_of_row.extend(std::iter::repeat_n(number, x));
        Ok(())
    }

    fn number(&mut self, device: String) -> u32 {
        if let Some(&number) = self.numbers.get(&device) {
            return number;
        }
        let number = self.devices.len() as u32;
        self.numbers.insert(device.clone(), number);
        self.devices.push(device);
        number
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for LeafSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "LeafSamples({} rows, {} devices)",
            self.row_count(),
            self.devices.len()
        )
    }
}

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Devices;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the samples of each device")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Devices, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Devices(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests;
