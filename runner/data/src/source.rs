//! Loads the samples of a configured source: finds and reads the files, then passes the bytes to
//! the parsers.

use std::borrow::Cow;
use std::path::Path;

use super::archive;
use super::array::{Array, ArrayError, ArrayFormat};
use super::cifar;
use super::classes::Classes;
use super::config::{ArraysConfig, ImagesConfig, LeafConfig, StoredSet, TableConfig};
use super::dataset::{Dataset, DatasetError, Features, Groups, Names, Targets, TaskKind};
use super::digits;
use super::error::{ContentError, DataError};
use super::femnist;
use super::files;
use super::folders::DataFolders;
use super::idx;
use super::images::{self, ImageShape, Images, ImagesError};
use super::leaf::{self, LeafSamples};
use super::mnist;
use super::npy;
use super::remark::Remark;
use super::table;
use super::text::{self, TextConfig};
use super::vocabulary::Vocabulary;

/// All samples of a source, before they are split and scaled.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The samples. Those of the source's own test part come last.
    pub data: Dataset,
    /// Number of rows of this test part.
    pub test_rows: usize,
    /// The file, as named in errors.
    pub origin: String,
    /// Number of rows left out because their labels are outside the known classes.
    pub dropped: usize,
    /// Number of columns left out because they have no name.
    pub unnamed: usize,
    /// Number of devices left out because they have too few samples.
    pub small_devices: usize,
    /// Labels that occur only in rows of the test part. These rows have one additional class, the
    /// last.
    pub(crate) other_labels: Vec<String>,
    /// Unexpected properties of the files for their owner, as sentences. They quote private rows.
    pub remarks: Vec<String>,
}

impl Loaded {
    /// Creates samples without omissions.
    pub(crate) fn new(data: Dataset, origin: String) -> Self {
        Self {
            data,
            test_rows: 0,
            origin,
            dropped: 0,
            unnamed: 0,
            small_devices: 0,
            other_labels: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Leaves out the rows whose labels are outside the known classes, if configured, and the rows
    /// of the test part whose labels no training row has.
    fn of_classes(mut self, classes: Option<&Classes>) -> Result<Self, DataError> {
        let has_others = !self.other_labels.is_empty();
        if !(has_others || classes.is_some_and(Classes::drops_unknown)) {
            return Ok(self);
        }
        let first_test = self.data.len() - self.test_rows;
        let known = self.data.without_last_class();
        let (data, dropped) = known.map_err(DataError::at(&self.origin))?;
        let in_test = dropped.iter().filter(|row| **row as usize >= first_test);
        self.test_rows -= in_test.count();
        if has_others {
            let remark = Remark::OtherLabels {
                rows: dropped.len(),
                labels: std::mem::take(&mut self.other_labels),
            };
            self.remarks.push(remark.to_string());
        } else {
            self.dropped = dropped.len();
        }
        Ok(Self { data, ..self })
    }
}

/// Reads all samples of a data set.
///
/// # Errors
/// [`DataError`] if a file is missing, malformed, or has unusable content.
pub fn load(set: &StoredSet, folders: &DataFolders) -> Result<Loaded, DataError> {
    let loaded = match set {
        StoredSet::Digits => Ok(Loaded::new(digits::load()?, digits::ORIGIN.to_owned())),
        StoredSet::Mnist { path } => load_arrays(&mnist::files(&folders.find(path)?), folders),
        StoredSet::Femnist { path } => {
            let loaded = load_arrays(&femnist::files(&folders.find(path)?), folders)?;
            let names = Names {
                classes: femnist::class_names(),
                ..Names::default()
            };
            Ok(Loaded {
                data: loaded.data.with_names(names),
                ..loaded
            })
        }
        StoredSet::Arrays(arrays) => load_arrays(arrays, folders),
        StoredSet::Table(table) => load_table(table, folders),
        StoredSet::Leaf(leaf) => load_leaf(leaf, folders),
        StoredSet::Images(images) => load_images(images, folders),
        StoredSet::Cifar10 { path } => load_cifar(path, folders),
        StoredSet::Text(text) => load_text(text, folders),
        StoredSet::Memory(_) => Err(DataError::InMemory),
    };
    loaded?.of_classes(set.classes())
}

fn load_arrays(config: &ArraysConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let train = read_pair(config, &config.path, &config.label_path, folders)?;
    let test = match &config.test {
        Some((path, label_path)) => Some(read_pair(config, path, label_path, folders)?),
        None => None,
    };
    let origin = train.origin.clone();
    let groups = match &config.device_path {
        Some(path) => Some(read_devices(
            config.format,
            path,
            &train,
            test.as_ref(),
            folders,
        )?),
        None => None,
    };
    let test_rows = test.as_ref().map_or(0, |test| test.targets.len());
    let known = train.targets.class_count();
    let other_labels = match (&test, &config.classes) {
        (Some(test), None) => test.targets.labels_from(known),
        _ => Vec::new(),
    };
    let build = || -> Result<Dataset, DatasetError> {
        let mut samples = train;
        if let Some(test) = test {
            samples.append(test)?;
        }
        let Part {
            features,
            rests,
            targets,
            axes,
            maximum,
            ..
        } = samples;
        let feature_count = axes.iter().product();
        let names = Names {
            classes: config
                .classes
                .as_ref()
                .map_or(Vec::new(), |known| known.list.names()),
            ..Names::default()
        };
        let axes = if axes.len() > 1 { axes } else { Vec::new() };
        let targets = targets.of_classes(config.classes.as_ref(), known)?;
        let data = Dataset::new(features, feature_count, targets)?
            .with_axes(axes)?
            .with_names(names)
            .with_rests(rests)
            .with_maximum(config.maximum.or(maximum));
        match groups {
            Some(groups) => data.with_groups(groups),
            None => Ok(data),
        }
    };
    let data = build().map_err(DataError::at(&origin))?;
    Ok(Loaded {
        test_rows,
        other_labels,
        ..Loaded::new(data, origin)
    })
}

/// The features and labels of one part.
struct Part {
    origin: String,
    features: Features,
    /// The digits that `features` cannot hold.
    rests: Vec<(usize, f64)>,
    targets: Entries,
    /// Lengths of the axes of one sample.
    axes: Vec<usize>,
    maximum: Option<f32>,
}

impl Part {
    /// Appends the samples of the test part, which must have the same number of features.
    fn append(&mut self, test: Self) -> Result<(), DatasetError> {
        let [expected, found] = [&*self, &test].map(|part| part.axes.iter().product());
        if found != expected {
            return Err(DatasetError::FeatureCount { expected, found });
        }
        let offset = self.features.len();
        self.features.append(test.features);
        let rests = test.rests.into_iter();
        self.rests
            .extend(rests.map(|(place, rest)| (place + offset, rest)));
        self.targets.append(test.targets);
        Ok(())
    }
}

/// Labels as in a file: numbers of classes, or numbers to predict.
enum Entries {
    Labels(Vec<u32>),
    Values(Vec<f32>),
}

impl Entries {
    fn len(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Appends the labels of the test part, which has the same task.
    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Labels(ours), Self::Labels(theirs)) => ours.extend(theirs),
            (Self::Values(ours), Self::Values(theirs)) => ours.extend(theirs),
            _ => {}
        }
    }

    /// Returns the number of classes required by the largest label.
    fn class_count(&self) -> usize {
        match self {
            Self::Labels(labels) => labels.iter().max().map_or(0, |&label| label as usize + 1),
            Self::Values(_) => 0,
        }
    }

    /// Returns the labels from class `known` on, each once, in order.
    fn labels_from(&self, known: usize) -> Vec<String> {
        let Self::Labels(labels) = self else {
            return Vec::new();
        };
        let mut others: Vec<u32> = labels.to_vec();
        others.retain(|label| *label as usize >= known);
        others.sort_unstable();
        others.dedup();
        others.iter().map(u32::to_string).collect()
    }

    /// Returns targets of the listed classes, or of `known` classes. Other labels then get one
    /// additional class.
    fn of_classes(self, classes: Option<&Classes>, known: usize) -> Result<Targets, DatasetError> {
        match (self, classes) {
            (Self::Values(values), _) => Ok(Targets::Values(values)),
            (Self::Labels(labels), Some(classes)) => classes.targets(labels),
            (Self::Labels(labels), None) => Targets::with_others(labels, known),
        }
    }
}

fn read_pair(
    config: &ArraysConfig,
    path: &Path,
    label_path: &Path,
    folders: &DataFolders,
) -> Result<Part, DataError> {
    let origin = folders.find(path)?.display().to_string();
    let ((features, rests), axes, maximum) = with_array(config.format, path, folders, |array| {
        let (_, axes) = array.dimensions().split_first().unwrap_or((&0, &[]));
        if axes.is_empty() {
            return Err(ArrayError::Dimensions {
                expected: "features need two or more",
                found: 1,
            });
        }
        let maximum = array.bytes().map(|_| f32::from(u8::MAX));
        let numbers = (array.features(), array.rests());
        Ok((numbers, axes.to_vec(), maximum))
    })?;
    let largest = u32::from(u16::MAX);
    let targets = with_array(config.format, label_path, folders, |array| {
        match config.task {
            TaskKind::Classification => Ok(Entries::Labels(array.indices(largest)?)),
            TaskKind::Regression => {
                let values = array.entries()?.into_iter();
                Ok(Entries::Values(values.map(|value| value as f32).collect()))
            }
        }
    })?;
    let samples = features.len() / axes.iter().product::<usize>();
    if targets.len() != samples {
        return Err(DataError::Count {
            origin: folders.find(label_path)?.display().to_string(),
            found: targets.len(),
            partner: origin,
            expected: samples,
        });
    }
    Ok(Part {
        origin,
        features,
        rests,
        targets,
        axes,
        maximum,
    })
}

/// Returns the natural device of each training row. A test part needs devices, too.
fn read_devices(
    format: ArrayFormat,
    path: &Path,
    train: &Part,
    test: Option<&Part>,
    folders: &DataFolders,
) -> Result<Groups, DataError> {
    let devices = with_array(format, path, folders, |array| array.indices(u32::MAX))?;
    let expected = train.targets.len() + test.map_or(0, |test| test.targets.len());
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
    // Numbers may have gaps: devices are the existing numbers, in order.
    let mut numbers = devices.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let place = |device: &u32| numbers.partition_point(|number| number < device) as u32;
    let names = numbers.iter().map(u32::to_string).collect();
    Groups::new(devices.iter().map(place).collect(), names).map_err(DataError::at(&origin))
}

fn load_table(config: &TableConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let read = |path: &Path, training: Option<&table::Table>| {
        with_one(path, config.format.name(), folders, |bytes, origin| {
            let table = match training {
                None => table::parse(config.format, bytes, &config.columns),
                Some(training) => training.parse_more(config.format, bytes, &config.columns),
            };
            table.map_err(DataError::at(origin))
        })
    };
    let (mut table, origin) = read(&config.path, None)?;
    let mut remarks = table.remarks(&origin);
    let mut test_rows = 0;
    let mut other_labels = Vec::new();
    if let Some(path) = &config.test_path {
        let (test, origin) = read(path, Some(&table))?;
        remarks.extend(test.remarks(&origin));
        test_rows = test.row_count();
        other_labels = table.append(test);
    }
    let unnamed = table.unnamed().len();
    let series = table.series();
    let data = table
        .into_dataset()
        .and_then(|data| data.with_axes(config.axes.clone()))
        .map_err(DataError::at(&origin))?;
    let (data, test_rows) = match &config.recordings {
        None => (data, test_rows),
        Some(recordings) => {
            let rows = data.len();
            let windows = recordings.windows(&data, &series, test_rows);
            let windows = windows.map_err(DataError::at(&origin))?;
            let remark = Remark::of_windows(windows.left_out, rows, recordings.window);
            remarks.extend(remark.map(|remark| format!("{origin}: {remark}")));
            (windows.data, windows.test)
        }
    };
    let data = data.with_maximum(config.maximum);
    Ok(Loaded {
        test_rows,
        unnamed,
        other_labels,
        remarks,
        ..Loaded::new(data, origin)
    })
}

fn load_text(config: &TextConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let ((data, small_devices), origin) =
        with_one(&config.path, "csv", folders, |bytes, origin| {
            text::parse(bytes, config).map_err(DataError::at(origin))
        })?;
    Ok(Loaded {
        small_devices,
        ..Loaded::new(data, origin)
    })
}

fn load_cifar(path: &Path, folders: &DataFolders) -> Result<Loaded, DataError> {
    let folder = folders.find(path)?;
    let origin = folder.display().to_string();
    let files = cifar::files(&folder).map_err(|reason| DataError::Read {
        path: folder,
        reason,
    })?;
    let files = files.checked().map_err(DataError::at(&origin))?;
    let mut images = cifar::Images::default();
    let mut test_rows = 0;
    for (part, is_test) in [(files.train, false), (files.test, true)] {
        for file in part {
            let place = file.display().to_string();
            let records = files::read_unpacked(&file)?;
            let count = images.append(&records).map_err(DataError::at(&place))?;
            test_rows += if is_test { count } else { 0 };
        }
    }
    let data = images.into_dataset().map_err(DataError::at(&origin))?;
    Ok(Loaded {
        test_rows,
        ..Loaded::new(data, origin)
    })
}

fn load_leaf(config: &LeafConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let (mut samples, origin) = read_leaf(&config.path, folders)?;
    let mut test_rows = 0;
    if let Some(path) = &config.test_path {
        let (test, _) = read_leaf(path, folders)?;
        test_rows = test.row_count();
        samples.append(test).map_err(DataError::at(&origin))?;
    }
    let training = samples.row_count() - test_rows;
    let reads_classes = config.task == TaskKind::Classification && config.classes.is_none();
    let other_labels = match reads_classes {
        true => samples.other_labels(training),
        false => Vec::new(),
    };
    let data = samples
        .into_dataset(config.task, config.classes.as_ref(), training)
        .and_then(|data| Ok(data.with_axes(config.axes.clone())?))
        .map_err(DataError::at(&origin))?
        .with_maximum(config.maximum);
    Ok(Loaded {
        test_rows,
        other_labels: other_labels.iter().map(u32::to_string).collect(),
        ..Loaded::new(data, origin)
    })
}

fn load_images(config: &ImagesConfig, folders: &DataFolders) -> Result<Loaded, DataError> {
    let place = folders.find(&config.path)?;
    let origin = place.display().to_string();
    let refuse = |axes| DatasetError::Axes {
        axes,
        feature_count: 0,
    };
    let shape = ImageShape::new(&config.axes).ok_or_else(|| refuse(config.axes.clone()));
    let shape = shape.map_err(DataError::at(&origin))?;
    let images = images::load(&place, config.has_devices, shape).map_err(DataError::at(&origin))?;
    let data = dataset_of(images, config).map_err(DataError::at(&origin))?;
    Ok(Loaded::new(data, origin))
}

fn dataset_of(images: Images, config: &ImagesConfig) -> Result<Dataset, ContentError> {
    let mut names = Names::default();
    let targets = match &config.classes {
        Some(classes) => {
            names.classes = classes.list.labels();
            let number = |class: &String| match classes.number(class) {
                Some(number) => Ok(number),
                None if classes.drops_unknown() => Ok(u32::MAX),
                None => Err(ImagesError::UnknownClass {
                    class: class.clone(),
                    classes: table::listed(names.classes.iter().map(String::as_str)),
                }),
            };
            let labels: Result<Vec<u32>, _> = images.classes.iter().map(number).collect();
            classes.targets(labels?)?
        }
        None => {
            let mut vocabulary = Vocabulary::default();
            images
                .classes
                .iter()
                .for_each(|class| vocabulary.push(class));
            let (labels, classes) = vocabulary.into_sorted();
            names.classes = classes;
            Targets::classes(&labels, names.classes.len())?
        }
    };
    let data = Dataset::new(images.features, config.axes.iter().product(), targets)?
        .with_axes(config.axes.clone())?
        .with_names(names)
        .with_maximum(Some(f32::from(u8::MAX)));
    let Some(devices) = images.devices else {
        return Ok(data);
    };
    let mut vocabulary = Vocabulary::default();
    devices.iter().for_each(|device| vocabulary.push(device));
    let (device_of_row, names) = vocabulary.into_sorted();
    Ok(data.with_groups(Groups::new(device_of_row, names)?)?)
}

/// Returns the samples of a LEAF file, or of all JSON files of a zip archive together.
fn read_leaf(path: &Path, folders: &DataFolders) -> Result<(LeafSamples, String), DataError> {
    let (bytes, origin) = read(path, folders)?;
    let mut samples = LeafSamples::default();
    for member in unpack(&bytes, "json", &origin)? {
        let parsed = leaf::parse(&member).and_then(|part| samples.append(part));
        parsed.map_err(DataError::at(&origin))?;
    }
    Ok((samples, origin))
}

/// Passes the array of a file, or of a member of an archive, to `use_array`.
fn with_array<T>(
    format: ArrayFormat,
    path: &Path,
    folders: &DataFolders,
    use_array: impl Fn(&dyn Array) -> Result<T, ArrayError>,
) -> Result<T, DataError> {
    let parse = |bytes: &[u8], origin: &str| {
        let array: Box<dyn Array + '_> = match format {
            ArrayFormat::Idx => Box::new(idx::parse(bytes).map_err(DataError::at(origin))?),
            ArrayFormat::Npy => Box::new(npy::parse(bytes).map_err(DataError::at(origin))?),
        };
        use_array(&*array).map_err(DataError::at(origin))
    };
    let place = folders.find(path)?;
    match files::array_in_archive(&place, format) {
        Some(array) => parse(&array?, &place.display().to_string()),
        None => Ok(with_one(path, format.name(), folders, parse)?.0),
    }
}

/// Passes the only content of a file to `parse`. Returns its result and the file's name.
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
    archive::unpack(bytes, extension).map_err(DataError::at(origin))
}

fn read(path: &Path, folders: &DataFolders) -> Result<(Vec<u8>, String), DataError> {
    let path = folders.find(path)?;
    Ok((files::read(&path)?, path.display().to_string()))
}

#[cfg(test)]
mod tests;
