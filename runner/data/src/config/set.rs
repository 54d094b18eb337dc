//! The configurable data sets (built-in digits, MNIST and others, tables, arrays, images, texts),
//! and the properties that are known before a file is read.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::names::FoldersName;
use crate::array::ArrayFormat;
use crate::classes::Classes;
use crate::dataset::TaskKind;
use crate::reads::List;
use crate::recordings::Recordings;
use crate::table::{Columns, TableFormat};
use crate::text::TextConfig;

/// A data set that is built in or read from files.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum StoredSet {
    /// The built-in 8 × 8 digits.
    Digits,
    /// The folder with the four files of MNIST.
    Mnist {
        /// The folder.
        path: PathBuf,
    },
    /// The folder with FEMNIST-206: images, labels and writers.
    Femnist {
        /// The folder.
        path: PathBuf,
    },
    /// The folder with the binary files of CIFAR-10.
    Cifar10 {
        /// The folder.
        path: PathBuf,
    },
    /// A LEAF file.
    Leaf(LeafConfig),
    /// A folder of images.
    Images(ImagesConfig),
    /// A table of texts.
    Text(TextConfig),
    /// Samples in the memory of a program.
    Memory(MemoryConfig),
    /// Arrays of features, labels and devices. The format names the source.
    #[serde(untagged)]
    Arrays(ArraysConfig),
    /// A table. The format names the source.
    #[serde(untagged)]
    Table(TableConfig),
}

/// Samples in the memory of a program, for
/// [`Federation::of_samples`](crate::Federation::of_samples).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryConfig {
    /// The kind of targets.
    pub task: TaskKind,
    /// The classes. `None` for those found by the program in its samples.
    #[serde(flatten)]
    pub classes: Option<Classes>,
    /// Whether the user confirms categories of columns that the program read from rows. `None` if
    /// it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories_are_public: Option<bool>,
    /// Lengths of the axes of a row that is a grid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// Largest value of a feature.
    pub maximum: Option<f32>,
}

/// Related arrays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArraysConfig {
    /// The format of their files.
    #[serde(rename = "source")]
    pub format: ArrayFormat,
    /// Features, one sample along the first dimension.
    pub path: PathBuf,
    /// A label for each sample.
    pub label_path: PathBuf,
    /// The natural device of each sample.
    pub device_path: Option<PathBuf>,
    /// Features and labels of a test part.
    #[serde(flatten, serialize_with = "test_paths")]
    pub test: Option<(PathBuf, PathBuf)>,
    /// Largest value of a feature, which is 255 for bytes.
    pub maximum: Option<f32>,
    /// The kind of labels.
    pub task: TaskKind,
    /// The classes. `None` for the number given by the largest label.
    #[serde(flatten)]
    pub classes: Option<Classes>,
}

/// A table and the meaning of its columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableConfig {
    /// The format of its files.
    #[serde(rename = "source")]
    pub format: TableFormat,
    /// The file.
    pub path: PathBuf,
    /// A test part with the same header.
    pub test_path: Option<PathBuf>,
    /// The meaning of the columns.
    #[serde(flatten)]
    pub columns: Columns,
    /// Lengths of the axes of a row that is a grid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// Largest value of a feature.
    pub maximum: Option<f32>,
    /// The cutting of rows in the order of time into windows. `None` if rows are samples.
    #[serde(flatten)]
    pub recordings: Option<Recordings>,
}

/// A LEAF file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeafConfig {
    /// The file.
    pub path: PathBuf,
    /// A test part.
    pub test_path: Option<PathBuf>,
    /// The kind of labels.
    pub task: TaskKind,
    /// The classes. `None` for the number given by the largest label.
    #[serde(flatten)]
    pub classes: Option<Classes>,
    /// Lengths of the axes of a row that is a grid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<usize>,
    /// Largest value of a feature.
    pub maximum: Option<f32>,
}

/// A folder of images.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImagesConfig {
    /// The folder.
    pub path: PathBuf,
    /// The classes. `None` for the existing folders.
    #[serde(flatten)]
    pub classes: Option<Classes>,
    /// Whether it has one folder per device, with folders of classes in it.
    #[serde(rename = "folders", serialize_with = "folders")]
    pub has_devices: bool,
    /// Size and colours.
    pub axes: Vec<usize>,
}

/// Writes the two keys of a test part of arrays.
fn test_paths<S: Serializer>(
    test: &Option<(PathBuf, PathBuf)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let keys = |(features, labels)| -> [(&str, &Path); 2] {
        [("test_path", features), ("test_label_path", labels)]
    };
    let test = test
        .as_ref()
        .map(|(features, labels)| (features.as_path(), labels.as_path()));
    serializer.collect_map(test.into_iter().flat_map(keys))
}

fn folders<S: Serializer>(has_devices: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    let name = match has_devices {
        true => FoldersName::DeviceAndClass,
        false => FoldersName::Class,
    };
    name.serialize(serializer)
}

impl StoredSet {
    /// Returns whether the set has its own test part.
    pub fn gives_test(&self) -> bool {
        match self {
            Self::Mnist { .. } | Self::Cifar10 { .. } => true,
            Self::Digits | Self::Femnist { .. } | Self::Text(_) => false,
            Self::Arrays(idx) => idx.test.is_some(),
            Self::Table(table) => table.test_path.is_some(),
            Self::Leaf(leaf) => leaf.test_path.is_some(),
            Self::Images(_) | Self::Memory(_) => false,
        }
    }

    /// Returns whether rows belong to natural devices.
    pub fn has_devices(&self) -> bool {
        match self {
            Self::Digits | Self::Mnist { .. } | Self::Cifar10 { .. } => false,
            // For samples in memory this is known once they are available.
            Self::Femnist { .. } | Self::Leaf(_) | Self::Memory(_) => true,
            Self::Text(text) => !text.device_columns.is_empty(),
            Self::Arrays(idx) => idx.device_path.is_some(),
            Self::Table(table) => table.columns.device.is_some(),
            Self::Images(images) => images.has_devices,
        }
    }

    /// Returns whether the targets are numbers instead of classes.
    pub fn is_regression(&self) -> bool {
        match self {
            Self::Table(table) => table.columns.is_regression(),
            Self::Leaf(leaf) => leaf.task == TaskKind::Regression,
            Self::Arrays(arrays) => arrays.task == TaskKind::Regression,
            Self::Memory(memory) => memory.task == TaskKind::Regression,
            _ => false,
        }
    }

    /// Returns the classes in the configuration.
    pub fn classes(&self) -> Option<&Classes> {
        match self {
            Self::Digits
            | Self::Mnist { .. }
            | Self::Femnist { .. }
            | Self::Cifar10 { .. }
            | Self::Text(_) => None,
            Self::Arrays(idx) => idx.classes.as_ref(),
            Self::Table(table) => table.columns.classes.as_ref(),
            Self::Leaf(leaf) => leaf.classes.as_ref(),
            Self::Images(images) => images.classes.as_ref(),
            Self::Memory(memory) => memory.classes.as_ref(),
        }
    }

    /// Returns whether the classes are read from the rows.
    pub fn reads_classes(&self) -> bool {
        let is_fixed = matches!(
            self,
            Self::Digits
                | Self::Mnist { .. }
                | Self::Femnist { .. }
                | Self::Cifar10 { .. }
                | Self::Text(_)
        );
        !is_fixed && !self.is_regression() && self.classes().is_none()
    }

    /// Iterates over the lists of the configuration that were read from rows, and whether the user
    /// has confirmed each.
    pub(crate) fn lists_of_rows(&self) -> impl Iterator<Item = (List, bool)> {
        let classes = self.classes().and_then(|classes| classes.are_public);
        let categories = match self {
            Self::Table(table) => table.columns.categories_are_public,
            Self::Memory(memory) => memory.categories_are_public,
            _ => None,
        };
        let lists = [(List::Classes, classes), (List::Categories, categories)];
        let lists = lists.into_iter();
        lists.filter_map(|(list, is_confirmed)| Some((list, is_confirmed?)))
    }

    /// Returns whether devices are left out depending on their data.
    pub(crate) fn leaves_out_devices(&self) -> bool {
        matches!(self, Self::Text(text) if text.min_samples > 1 && self.has_devices())
    }

    /// Returns every path of the set, to be found before it is read.
    pub(crate) fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Digits | Self::Memory(_) => Vec::new(),
            Self::Images(images) => vec![&mut images.path],
            Self::Mnist { path } | Self::Femnist { path } | Self::Cifar10 { path } => vec![path],
            Self::Text(text) => vec![&mut text.path],
            Self::Arrays(idx) => {
                let mut paths = vec![&mut idx.path, &mut idx.label_path];
                paths.extend(&mut idx.device_path);
                if let Some((features, labels)) = &mut idx.test {
                    paths.extend([features, labels]);
                }
                paths
            }
            Self::Table(table) => [&mut table.path]
                .into_iter()
                .chain(&mut table.test_path)
                .collect(),
            Self::Leaf(leaf) => [&mut leaf.path]
                .into_iter()
                .chain(&mut leaf.test_path)
                .collect(),
        }
    }
}
