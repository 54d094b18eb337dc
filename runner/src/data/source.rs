//! From a source's configuration to its samples: finds and reads the files, then hands the bytes
//! to the parsers.

use std::borrow::Cow;
use std::path::Path;

use super::archive;
use super::classes::Classes;
use super::config::{IdxConfig, LeafConfig, StoredSet, TableConfig};
use super::dataset::{Dataset, DatasetError, Features, Groups, Names, Targets};
use super::digits;
use super::error::DataError;
use super::femnist;
use super::folders::DataFolders;
use super::idx::{self, IdxArray, IdxError};
use super::leaf::{self, LeafSamples};
use super::mnist;
use super::table;

/// All samples of a source, before they are split and scaled.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The samples; those of a test part of the source's own come last.
    pub data: Dataset,
    /// How many rows are that test part.
    pub test_rows: usize,
    /// The file, as errors name it.
    pub origin: String,
    /// Rows that were left out, as their labels are none of the known classes.
    pub dropped: usize,
}

impl Loaded {
    /// Leaves out the rows whose labels are none of the known classes, if that is asked for.
    fn of_classes(self, classes: Option<&Classes>) -> Result<Self, DataError> {
        if !classes.is_some_and(Classes::drops_unknown) {
            return Ok(self);
        }
        let first_test = self.data.len() - self.test_rows;
        let known = self.data.without_last_class();
        let (data, dropped) = known.map_err(DataError::of(&self.origin))?;
        let in_test = dropped.iter().filter(|row| **row as usize >= first_test);
        Ok(Self {
            test_rows: self.test_rows - in_test.count(),
            dropped: dropped.len(),
            data,
            origin: self.origin,
        })
    }
}

/// Reads all samples of a data set.
///
/// # Errors
/// [`DataError`] if a file is missing, malformed, or holds what cannot be learned from.
pub fn load(set: &StoredSet, folders: &DataFolders) -> Result<Loaded, DataError> {
    let loaded = match set {
        StoredSet::Digits => Ok(Loaded {
            data: digits::load()?,
            test_rows: 0,
            origin: digits::ORIGIN.to_owned(),
            dropped: 0,
        }),
        StoredSet::Mnist { path } => load_idx(&mnist::files(&folders.find(path)?), folders),
        StoredSet::Femnist { path } => {
            let loaded = load_idx(&femnist::files(&folders.find(path)?), folders)?;
            let names = Names {
                classes: femnist::class_names(),
                ..Names::default()
            };
            Ok(Loaded {
                data: loaded.data.with_names(names),
                ..loaded
            })
        }
        StoredSet::Idx(idx) => load_idx(idx, folders),
        StoredSet::Table(table) => load_table(table, folders),
        StoredSet::Leaf(leaf) => load_leaf(leaf, folders),
    };
    loaded?.of_classes(set.classes())
}

fn load_idx(config: &IdxConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let train = read_pair(&config.path, &config.label_path, folders)?;
    let test = match &config.test {
        Some((path, label_path)) => Some(read_pair(path, label_path, folders)?),
        None => None,
    };
    let origin = train.origin.clone();
    let groups = match &config.device_path {
        Some(path) => Some(read_devices(path, &train, test.as_ref(), folders)?),
        None => None,
    };
    let test_rows = test.as_ref().map_or(0, |test| test.labels.len());
    let build = || -> Result<Dataset, DatasetError> {
        let IdxPart {
            mut features,
            mut labels,
            axes,
            maximum,
            ..
        } = train;
        let feature_count = axes.iter().product();
        if let Some(test) = test {
            let found = test.axes.iter().product();
            if found != feature_count {
                return Err(DatasetError::FeatureCount {
                    expected: feature_count,
                    found,
                });
            }
            features.append(test.features);
            labels.extend(test.labels);
        }
        let largest = labels.iter().max().map_or(0, |&label| label as usize);
        let targets = match &config.classes {
            Some(classes) => classes.targets(labels)?,
            None => Targets::classes(&labels, largest + 1)?,
        };
        let names = Names {
            classes: config
                .classes
                .as_ref()
                .map_or(Vec::new(), |known| known.list.names()),
            ..Names::default()
        };
        let axes = if axes.len() > 1 { axes } else { Vec::new() };
        let data = Dataset::new(features, feature_count, targets)?
            .with_axes(axes)?
            .with_names(names)
            .with_maximum(maximum);
        match groups {
            Some(groups) => data.with_groups(groups),
            None => Ok(data),
        }
    };
    let data = build().map_err(DataError::of(&origin))?;
    Ok(Loaded {
        data,
        test_rows,
        origin,
        dropped: 0,
    })
}

/// Features and labels of one part.
struct IdxPart {
    origin: String,
    features: Features,
    labels: Vec<u32>,
    /// Lengths of the axes of one sample.
    axes: Vec<usize>,
    maximum: Option<f32>,
}

fn read_pair(path: &Path, label_path: &Path, folders: &DataFolders) -> Result<IdxPart, DataError> {
    let origin = folders.find(path)?.display().to_string();
    let (features, axes, maximum) = with_idx(path, folders, |array| {
        let Some((_, axes)) = array
            .dimensions()
            .split_first()
            .filter(|(_, axes)| !axes.is_empty())
        else {
            return Err(IdxError::Dimensions {
                expected: "features need two or more",
                found: 1,
            });
        };
        let maximum = array.bytes().map(|_| f32::from(u8::MAX));
        Ok((array.features(), axes.to_vec(), maximum))
    })?;
    let largest = u32::from(u16::MAX);
    let labels = with_idx(label_path, folders, |array| array.indices(largest))?;
    let samples = features.len() / axes.iter().product::<usize>();
    if labels.len() != samples {
        return Err(DataError::Count {
            origin: folders.find(label_path)?.display().to_string(),
            found: labels.len(),
            partner: origin,
            expected: samples,
        });
    }
    Ok(IdxPart {
        origin,
        features,
        labels,
        axes,
        maximum,
    })
}

/// The natural device of each training row; a test part would need devices, too.
fn read_devices(
    path: &Path,
    train: &IdxPart,
    test: Option<&IdxPart>,
    folders: &DataFolders,
) -> Result<Groups, DataError> {
    let devices = with_idx(path, folders, |array| array.indices(u32::MAX))?;
    let expected = train.labels.len() + test.map_or(0, |test| test.labels.len());
    let origin = folders.find(path)?.display().to_string();
    if devices.len() != expected {
        let (found, partner) = (devices.len(), train.origin.clone());
        return Err(DataError::Count {
            origin,
            found,
            partner,
            expected,
        });
    }
    // Numbers may have gaps: devices are the numbers that occur, in order.
    let mut numbers = devices.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let place = |device: &u32| numbers.partition_point(|number| number < device) as u32;
    let names = numbers.iter().map(u32::to_string).collect();
    Groups::new(devices.iter().map(place).collect(), names).map_err(DataError::of(&origin))
}

fn load_table(config: &TableConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let read = |path: &Path| -> Result<(table::Table, String), DataError> {
        with_one(path, config.format.name(), folders, |bytes, origin| {
            table::parse(config.format, bytes, &config.columns).map_err(DataError::of(origin))
        })
    };
    let (mut table, origin) = read(&config.path)?;
    let mut test_rows = 0;
    if let Some(path) = &config.test_path {
        let (test, origin) = read(path)?;
        test_rows = test.row_count();
        table.append(test).map_err(DataError::of(&origin))?;
    }
    let data = table
        .into_dataset()
        .and_then(|data| data.with_axes(config.axes.clone()))
        .map_err(DataError::of(&origin))?
        .with_maximum(config.maximum);
    Ok(Loaded {
        data,
        test_rows,
        origin,
        dropped: 0,
    })
}

fn load_leaf(config: &LeafConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let (mut samples, origin) = read_leaf(&config.path, folders)?;
    let mut test_rows = 0;
    if let Some(path) = &config.test_path {
        let (test, _) = read_leaf(path, folders)?;
        test_rows = test.row_count();
        samples.append(test).map_err(DataError::of(&origin))?;
    }
    let data = samples
        .into_dataset(config.task, config.classes.as_ref())
        .and_then(|data| Ok(data.with_axes(config.axes.clone())?))
        .map_err(DataError::of(&origin))?
        .with_maximum(config.maximum);
    Ok(Loaded {
        data,
        test_rows,
        origin,
        dropped: 0,
    })
}

/// The samples of a LEAF file, or of all JSON files of a zip archive together.
fn read_leaf(path: &Path, folders: &DataFolders) -> Result<(LeafSamples, String), DataError> {
    let (bytes, origin) = read(path, folders)?;
    let mut samples = LeafSamples::default();
    for member in unpack(&bytes, "json", &origin)? {
        let parsed = leaf::parse(&member).and_then(|part| samples.append(part));
        parsed.map_err(DataError::of(&origin))?;
    }
    Ok((samples, origin))
}

fn with_idx<T>(
    path: &Path,
    folders: &DataFolders,
    use_array: impl Fn(&IdxArray<'_>) -> Result<T, IdxError>,
) -> Result<T, DataError> {
    let (value, _) = with_one(path, "idx", folders, |bytes, origin| {
        idx::parse(bytes)
            .and_then(|array| use_array(&array))
            .map_err(DataError::of(origin))
    })?;
    Ok(value)
}

/// Hands the one content of a file to `parse`; returns its result and the file's name.
fn with_one<T>(
    path: &Path,
    extension: &'static str,
    folders: &DataFolders,
    parse: impl Fn(&[u8], &str) -> Result<T, DataError>,
) -> Result<(T, String), DataError> {
    let (bytes, origin) = read(path, folders)?;
    let contents = unpack(&bytes, extension, &origin)?;
    match contents.as_slice() {
        [content] => Ok((parse(content, &origin)?, origin)),
        _ => {
            let found = contents.len();
            Err(DataError::SeveralMembers {
                origin,
                extension,
                found,
            })
        }
    }
}

fn unpack<'a>(
    bytes: &'a [u8],
    extension: &'static str,
    origin: &str,
) -> Result<Vec<Cow<'a, [u8]>>, DataError> {
    archive::unpack(bytes, extension).map_err(DataError::of(origin))
}

fn read(path: &Path, folders: &DataFolders) -> Result<(Vec<u8>, String), DataError> {
    let path = folders.find(path)?;
    match std::fs::read(&path) {
        Ok(bytes) => Ok((bytes, path.display().to_string())),
        Err(reason) => Err(DataError::Read { path, reason }),
    }
}

#[cfg(test)]
mod tests;
