//! LEAF JSON: the samples of each device under its name.
//!
//! `{"users": [..], "num_samples": [..], "user_data": {name: {"x": [[..], ..], "y": [..]}, ..}}`;
//! other members are ignored. Source: Caldas et al. 2018, "LEAF: A Benchmark for Federated
//! Settings", arXiv:1812.01097. Features must be numbers: the text sets of LEAF are not read.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use super::csv::Task;
use super::dataset::{Dataset, DatasetError, Groups, Targets};

/// What can be wrong with a LEAF file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LeafError {
    /// The JSON is malformed or of another shape.
    #[error("is not LEAF JSON ({0})")]
    Json(String),
    /// A device is listed twice.
    #[error("names the device `{device}` twice")]
    DuplicateDevice {
        /// Name of the device.
        device: String,
    },
    /// `num_samples` has not one entry a device.
    #[error("`num_samples` has {found} entries for the {expected} devices of `users`")]
    CountsLength {
        /// Devices in `users`.
        expected: usize,
        /// Entries of `num_samples`.
        found: usize,
    },
    /// A device of `users` has no data.
    #[error("`users` names the device `{device}`, but `user_data` does not")]
    NoData {
        /// Name of the device.
        device: String,
    },
    /// A device with data is not in `users`.
    #[error("`user_data` names the device `{device}`, but `users` does not")]
    NotListed {
        /// Name of the device.
        device: String,
    },
    /// A device has no sample.
    #[error("the device `{device}` has no sample")]
    EmptyDevice {
        /// Name of the device.
        device: String,
    },
    /// Features, labels and `num_samples` disagree.
    #[error(
        "the device `{device}` has {x} entries in `x`, {y} in `y` and {declared} by `num_samples`"
    )]
    SampleCounts {
        /// Name of the device.
        device: String,
        /// Entries of `x`.
        x: usize,
        /// Entries of `y`.
        y: usize,
        /// Entry of `num_samples`.
        declared: u64,
    },
    /// A sample has another number of features than the first.
    #[error(
        "sample {sample} of the device `{device}` has {found} features, but the first sample has {expected}"
    )]
    Ragged {
        /// Name of the device.
        device: String,
        /// Position within the device, from 0.
        sample: usize,
        /// Features of the very first sample.
        expected: usize,
        /// Features of this one.
        found: usize,
    },
    /// A label of a classification task is no whole number from 0.
    #[error(
        "sample {sample} of the device `{device}` has label {value}, but labels are whole numbers from 0 to 65535"
    )]
    Label {
        /// Name of the device.
        device: String,
        /// Position within the device, from 0.
        sample: usize,
        /// The label.
        value: f64,
    },
    /// The content is well-formed but cannot be learned from.
    #[error(transparent)]
    Content(#[from] DatasetError),
}

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

/// `user_data` with every entry kept, so that a name that occurs twice is seen.
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
        serde_json::from_slice(bytes).map_err(|error| LeafError::Json(error.to_string()))?;
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
    /// Appends another file; devices of the same name are one device.
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

    /// Number of samples.
    pub fn row_count(&self) -> usize {
        self.targets.len()
    }

    /// The data set, with a natural device a name, in the order of the files. Without
    /// `class_count`, the largest label decides.
    ///
    /// # Errors
    /// [`LeafError::Label`] for a label that is no class; [`LeafError::Content`] if there is no
    /// sample, only one class, or a value is not finite.
    pub fn into_dataset(
        self,
        task: Task,
        class_count: Option<usize>,
    ) -> Result<Dataset, LeafError> {
        let targets = match task {
            Task::Regression => {
                Targets::Values(self.targets.iter().map(|&value| value as f32).collect())
            }
            Task::Classification => {
                let labels = self.labels()?;
                let largest = labels.iter().max().map_or(0, |&label| label as usize);
                Targets::classes(&labels, class_count.unwrap_or(largest + 1))?
            }
        };
        let groups = Groups::new(self.device_of_row, self.devices)?;
        let data = Dataset::new(self.features, self.feature_count.unwrap_or(1), targets)?;
        Ok(data.with_groups(groups)?)
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"{"users": ["b", "a"], "num_samples": [2, 1], "hierarchies": [],
        "user_data": {"a": {"x": [[5, 6]], "y": [2]},
                      "b": {"y": [0, 1.0], "x": [[1, 2], [3, 4.5]]}}}"#;

    fn error(text: &str) -> LeafError {
        parse(text.as_bytes()).unwrap_err()
    }

    fn one_device(samples: &str) -> String {
        format!(r#"{{"users": ["a"], "num_samples": [2], "user_data": {{"a": {samples}}}}}"#)
    }

    #[test]
    fn devices_come_in_the_order_of_users() {
        let leaf = parse(GOOD.as_bytes()).unwrap();
        let data = leaf.into_dataset(Task::Classification, None).unwrap();
        assert_eq!(data.features(), [1.0, 2.0, 3.0, 4.5, 5.0, 6.0]);
        assert!(
            data.targets()
                == &Targets::Classes {
                    labels: vec![0, 1, 2],
                    class_count: 3
                }
        );
        assert_eq!(data.groups().unwrap().names(), ["b", "a"]);
        assert_eq!(data.groups().unwrap().device_of_row(), [0, 0, 1]);
    }

    #[test]
    fn regression_keeps_the_numbers() {
        let leaf = parse(GOOD.as_bytes()).unwrap();
        let data = leaf.into_dataset(Task::Regression, None).unwrap();
        assert!(data.targets() == &Targets::Values(vec![0.0, 1.0, 2.0]));
    }

    #[test]
    fn second_file_joins_devices_of_one_name() {
        let mut leaf = parse(GOOD.as_bytes()).unwrap();
        let more = one_device(r#"{"x": [[0, 0], [0, 0]], "y": [1, 1]}"#);
        leaf.append(parse(more.as_bytes()).unwrap()).unwrap();
        let data = leaf.into_dataset(Task::Classification, None).unwrap();
        assert_eq!(data.groups().unwrap().device_of_row(), [0, 0, 1, 1, 1]);
        let mut leaf = parse(GOOD.as_bytes()).unwrap();
        let wide = parse(one_device(r#"{"x": [[0], [0]], "y": [1, 1]}"#).as_bytes()).unwrap();
        let refused = leaf.append(wide).unwrap_err();
        assert!(matches!(
            refused,
            LeafError::Ragged {
                expected: 2,
                found: 1,
                ..
            }
        ));
    }

    #[test]
    fn broken_json_is_refused() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            &GOOD[..GOOD.len() - 1],
            &GOOD.replace("4.5", "NaN"),
        ] {
            assert!(matches!(error(text), LeafError::Json(_)), "{text}");
        }
        assert!(matches!(
            error(&one_device(r#"{"x": ["text"], "y": [1]}"#)),
            LeafError::Json(_)
        ));
    }

    #[test]
    fn counts_must_agree() {
        let text = GOOD.replace("[2, 1]", "[2]");
        assert_eq!(
            error(&text),
            LeafError::CountsLength {
                expected: 2,
                found: 1
            }
        );
        let text = GOOD.replace("[2, 1]", "[3, 1]");
        assert!(matches!(
            error(&text),
            LeafError::SampleCounts {
                x: 2,
                y: 2,
                declared: 3,
                ..
            }
        ));
        let text = one_device(r#"{"x": [[1], [2]], "y": [1]}"#);
        assert!(matches!(
            error(&text),
            LeafError::SampleCounts {
                x: 2,
                y: 1,
                declared: 2,
                ..
            }
        ));
    }

    #[test]
    fn users_and_data_must_agree() {
        let text = GOOD.replace(r#"["b", "a"]"#, r#"["b", "c"]"#);
        assert_eq!(error(&text), LeafError::NoData { device: "c".into() });
        let text = GOOD
            .replace(r#"["b", "a"]"#, r#"["b"]"#)
            .replace("[2, 1]", "[2]");
        assert_eq!(error(&text), LeafError::NotListed { device: "a".into() });
        let text = GOOD.replace(r#"["b", "a"]"#, r#"["b", "b"]"#);
        assert_eq!(
            error(&text),
            LeafError::DuplicateDevice { device: "b".into() }
        );
        let text = GOOD.replace(r#""a": {"#, r#""b": {"#);
        assert_eq!(
            error(&text),
            LeafError::DuplicateDevice { device: "b".into() }
        );
    }

    #[test]
    fn empty_device_is_named() {
        let text = one_device(r#"{"x": [], "y": []}"#).replace("[2]", "[0]");
        assert_eq!(error(&text), LeafError::EmptyDevice { device: "a".into() });
    }

    #[test]
    fn ragged_sample_is_named() {
        let text = one_device(r#"{"x": [[1, 2], [3]], "y": [0, 1]}"#);
        let expected = LeafError::Ragged {
            device: "a".into(),
            sample: 1,
            expected: 2,
            found: 1,
        };
        assert_eq!(error(&text), expected);
    }

    #[test]
    fn labels_must_be_whole_numbers() {
        for label in ["0.5", "-1", "65536", "1e300"] {
            let text = one_device(&format!(r#"{{"x": [[1], [2]], "y": [0, {label}]}}"#));
            let refused = parse(text.as_bytes())
                .unwrap()
                .into_dataset(Task::Classification, None);
            assert!(
                matches!(refused, Err(LeafError::Label { sample: 1, .. })),
                "{label}"
            );
        }
    }

    #[test]
    fn content_that_cannot_be_learned_is_refused() {
        let one = one_device(r#"{"x": [[1], [2]], "y": [3, 3]}"#);
        let refused = parse(one.as_bytes())
            .unwrap()
            .into_dataset(Task::Classification, None);
        assert!(matches!(
            refused,
            Err(LeafError::Content(DatasetError::OneClass { .. }))
        ));
        let none = r#"{"users": [], "num_samples": [], "user_data": {}}"#;
        let refused = parse(none.as_bytes())
            .unwrap()
            .into_dataset(Task::Classification, None);
        assert!(matches!(
            refused,
            Err(LeafError::Content(DatasetError::NoSamples))
        ));
        let wide = one_device(r#"{"x": [[], []], "y": [0, 1]}"#);
        let refused = parse(wide.as_bytes())
            .unwrap()
            .into_dataset(Task::Classification, None);
        assert!(matches!(
            refused,
            Err(LeafError::Content(DatasetError::NoFeatures))
        ));
    }

    proptest! {
        /// A good file with one byte changed is read or refused, never a panic.
        #[test]
        fn damaged_files_do_not_panic(position in 0usize..200, byte: u8) {
            let mut damaged = GOOD.as_bytes().to_vec();
            let position = position % damaged.len();
            damaged[position] = byte;
            if let Ok(leaf) = parse(&damaged) {
                let _ = leaf.into_dataset(Task::Classification, None);
            }
        }
    }
}
