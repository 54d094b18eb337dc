//! A federation of samples in the memory of a program, with `source = "memory"`.

use super::Federation;
use crate::column::name::position;
use crate::config::{DataConfig, MemoryConfig, SourceConfig, StoredSet};
use crate::dataset::{Dataset, DatasetError, Targets, TaskKind};
use crate::error::DataError;
use crate::source::Loaded;

/// The origin in errors, instead of a file.
const ORIGIN: &str = "the samples in memory";

impl Federation {
    /// Splits, scales and deals samples in memory, as [`new`](Self::new) does with a file. The last
    /// `test_rows` rows are the test part, if there are any. Otherwise `data.test` holds rows out.
    /// With natural devices, `data` has [groups](Dataset::with_groups).
    ///
    /// The samples are moved, and scaled and sorted in place, without a copy.
    ///
    /// # Errors
    /// [`DataError::NotInMemory`] if the configuration reads a file. [`DataError::Content`] for
    /// samples that do not suffice for it.
    pub fn of_samples(
        data: Dataset,
        test_rows: usize,
        config: &DataConfig,
        seed: u64,
    ) -> Result<Self, DataError> {
        let SourceConfig::Stored(stored) = &config.source else {
            return Err(DataError::NotInMemory);
        };
        let StoredSet::Memory(memory) = &stored.set else {
            return Err(DataError::NotInMemory);
        };
        let data = described(data, memory).map_err(DataError::at(ORIGIN))?;
        let loaded = Loaded {
            test_rows,
            ..Loaded::new(data, ORIGIN.to_owned())
        };
        Self::of_loaded(loaded, stored, config, seed)
    }
}

/// Checks the samples against their description in the configuration, and adds it.
fn described(mut data: Dataset, memory: &MemoryConfig) -> Result<Dataset, DatasetError> {
    let listed = memory.classes.as_ref().map(|classes| classes.list.count());
    let found = data.class_count();
    let (task, targets) = match memory.task {
        TaskKind::Classification => ("classification", "numbers"),
        TaskKind::Regression => ("regression", "classes"),
    };
    if found.is_some() != (memory.task == TaskKind::Classification) {
        return Err(DatasetError::Task { task, targets });
    }
    if let (Some(expected), Some(found)) = (listed, found)
        && expected != found
    {
        return Err(DatasetError::ClassCount { expected, found });
    }
    let mut names = data.names().clone();
    if let Some(classes) = &memory.classes {
        let listed = classes.list.names();
        if let Targets::Classes { labels, .. } = &mut data.targets {
            number_as_listed(labels, &names.classes, &listed)?;
        }
        names.classes = listed;
    }
    let maximum = memory.maximum.or(data.maximum());
    data.with_names(names)
        .with_maximum(maximum)
        .with_axes(memory.axes.clone())
}

/// Numbers classes in the order of a list, if both they and the list have names: sorted numbers and
/// sorted texts have different orders.
fn number_as_listed(
    labels: &mut [u16],
    names: &[String],
    listed: &[String],
) -> Result<(), DatasetError> {
    if listed.is_empty() {
        return Ok(());
    }
    let number = |name: &String| {
        let found = || name.clone();
        let place =
            position(listed, name).ok_or_else(|| DatasetError::ClassName { found: found() });
        // Labels have 16 bits, and each has its own name.
        place.map(|place| place as u16)
    };
    let numbers: Vec<u16> = names.iter().map(number).collect::<Result<_, _>>()?;
    for label in labels {
        *label = numbers.get(usize::from(*label)).copied().unwrap_or(*label);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Groups, Names};
    use crate::reads::{List, Read};
    use crate::{DataFolders, DeviceBuffer};

    fn samples() -> Dataset {
        let targets = Targets::classes(&[0, 1, 0, 1, 0, 1], 2).unwrap();
        let features: Vec<f32> = (0..12u8).map(f32::from).collect();
        Dataset::new(features, 2, targets).unwrap()
    }

    fn grouped() -> Dataset {
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let groups = Groups::new(vec![1, 0, 1, 0, 1, 0], names).unwrap();
        samples().with_groups(groups).unwrap()
    }

    fn config(text: &str) -> DataConfig {
        toml::from_str(&format!("source = \"memory\"\nscale = \"none\"\n{text}")).unwrap()
    }

    #[test]
    fn natural_devices_have_their_rows() {
        let config = config("test = 0\nclasses = 2");
        let federation = Federation::of_samples(grouped(), 0, &config, 1).unwrap();
        assert_eq!(federation.device_count(), 2);
        assert_eq!(federation.device_name(1), "b");
        let mut buffer = DeviceBuffer::default();
        let of_b = federation.device(1, &mut buffer);
        assert_eq!((of_b.len(), of_b.features(0)), (3, [0.0, 1.0].as_slice()));
        assert!(federation.reads().is_empty());
    }

    #[test]
    fn each_training_row_is_a_device() {
        let config = config("test = 2\npartition = \"rows\"");
        let federation = Federation::of_samples(samples(), 0, &config, 1).unwrap();
        assert_eq!(federation.device_count(), 4);
        assert_eq!(federation.test().len(), 2);
        // The classes are read from the labels.
        assert_eq!(federation.reads(), [Read::Classes]);
        let again: DataConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn categories_of_rows_are_read_until_they_are_confirmed() {
        let reads = |confirmation: &str| {
            let config = config(&format!("test = 0\nclasses = 2\n{confirmation}"));
            let again: DataConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
            assert_eq!(again, config);
            let federation = Federation::of_samples(grouped(), 0, &config, 1).unwrap();
            federation.reads().to_vec()
        };
        assert_eq!(reads(""), []);
        assert_eq!(reads("categories_are_public = true"), []);
        let found = reads("categories_are_public = false");
        assert_eq!(found, [Read::List(List::Categories)]);
    }

    /// With names sorted as numbers or as texts, the same rows keep the same names.
    #[test]
    fn listed_classes_keep_their_rows() {
        let config = config("test = 0\npartition = \"rows\"\nclasses = [\"9\", \"10\"]");
        let named = |names: [&str; 2]| {
            let data = samples().with_names(Names {
                classes: names.map(str::to_owned).to_vec(),
                ..Names::default()
            });
            let SourceConfig::Stored(stored) = &config.source else {
                panic!("stored")
            };
            let StoredSet::Memory(memory) = &stored.set else {
                panic!("in memory")
            };
            described(data, memory)
        };
        for names in [["9", "10"], ["10", "9"], ["10.0", "9.0"]] {
            let data = named(names).unwrap();
            assert_eq!(data.names().classes, ["9", "10"]);
            let Targets::Classes { labels, .. } = data.targets() else {
                panic!("classes")
            };
            let name = |row: usize| &data.names().classes[usize::from(labels[row])];
            // Rows 0 and 1 have the first and the second of the names.
            let own = names.map(|name| name.trim_end_matches(".0"));
            assert_eq!([name(0), name(1)], own);
        }
        let refused = named(["9", "11"]).unwrap_err().to_string();
        assert!(refused.contains("has the class `11`"), "{refused}");
    }

    #[test]
    fn a_given_test_part_is_held_out() {
        let config = config("test = 0\npartition = \"rows\"");
        let federation = Federation::of_samples(samples(), 3, &config, 1).unwrap();
        assert_eq!((federation.device_count(), federation.test().len()), (3, 3));
    }

    #[test]
    fn samples_and_configuration_must_agree() {
        let refused = |text: &str| {
            let error = Federation::of_samples(samples(), 0, &config(text), 1).unwrap_err();
            error.to_string()
        };
        let rows = "partition = \"rows\"\n";
        assert!(refused(&format!("{rows}task = \"regression\"")).contains("regression"));
        assert!(refused(&format!("{rows}classes = 3")).contains("2 classes"));
        assert!(refused(&format!("{rows}axes = [3]")).contains("axes"));
        assert!(refused("").contains("natural devices"));
        let digits: DataConfig = toml::from_str("source = \"digits\"\ndevices = 2").unwrap();
        let error = Federation::of_samples(samples(), 0, &digits, 1).unwrap_err();
        assert!(matches!(error, DataError::NotInMemory), "{error}");
    }

    #[test]
    fn without_a_program_there_are_no_samples() {
        let folders = DataFolders::of_experiment(None);
        let error = Federation::new(&config(""), &folders, 1).unwrap_err();
        assert!(error.to_string().contains("smolfed.Federation"), "{error}");
        let text = "source = \"memory\"\nclasses = 2\nunknown_labels = \"drop\"";
        let error = toml::from_str::<DataConfig>(text).unwrap_err().to_string();
        assert!(error.contains("unknown_labels"), "{error}");
    }
}
