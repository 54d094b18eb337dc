//! The `[data]` table of an experiment: parsed, checked once, and written back complete.
//!
//! Every key is either used by the chosen source and partition or refused, and a checked
//! configuration names every value in force: reading back what was written gives the same.

mod checked;
mod raw;
mod written;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::csv::Columns;
use super::dataset::Task;
use super::partition::Dealing;
use super::scale::{Scale, TargetScale};
use super::split::HoldOut;
use super::synthetic::SyntheticConfig;
use raw::RawData;

/// Where samples come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceConfig {
    /// A data set that is read, scaled and dealt to devices.
    Stored(StoredConfig),
    /// Devices that are generated, any number of them.
    Synthetic(SyntheticConfig),
}

/// A data set and what is done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredConfig {
    /// The data set.
    pub set: StoredSet,
    /// How features are scaled.
    pub scale: Scale,
    /// How regression targets are scaled.
    pub target_scale: TargetScale,
    /// How rows are dealt to devices.
    pub dealing: Dealing,
    /// Share of each device's dealt samples that it keeps to choose settings by; 0 where devices are
    /// natural, whose parts are their own anyway.
    pub device_validation: f64,
    /// Share that it keeps to test its model on.
    pub device_test: f64,
}

/// A data set that is built in or read from files.
#[derive(Clone, Debug, PartialEq)]
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
    /// Any IDX files.
    Idx(IdxConfig),
    /// A table.
    Csv(CsvConfig),
    /// A LEAF file.
    Leaf(LeafConfig),
}

/// IDX files that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct IdxConfig {
    /// Features, one sample along the first dimension.
    pub path: PathBuf,
    /// A label for each sample.
    pub label_path: PathBuf,
    /// The natural device of each sample.
    pub device_path: Option<PathBuf>,
    /// Features and labels of a test part.
    pub test: Option<(PathBuf, PathBuf)>,
    /// Number of classes; `None` to take the largest label's.
    pub classes: Option<u16>,
}

/// A table and the meaning of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvConfig {
    /// The file.
    pub path: PathBuf,
    /// A test part with the same header.
    pub test_path: Option<PathBuf>,
    /// The meaning of the columns.
    pub columns: Columns,
    /// Lengths of the axes of a row that is a grid.
    pub axes: Vec<usize>,
    /// Largest value of a feature.
    pub maximum: Option<f32>,
}

/// A LEAF file.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafConfig {
    /// The file.
    pub path: PathBuf,
    /// A test part.
    pub test_path: Option<PathBuf>,
    /// What the labels are.
    pub task: Task,
    /// Number of classes; `None` to take the largest label's.
    pub classes: Option<u16>,
    /// Lengths of the axes of a row that is a grid.
    pub axes: Vec<usize>,
    /// Largest value of a feature.
    pub maximum: Option<f32>,
}

/// A checked `[data]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawData", into = "RawData")]
pub struct DataConfig {
    /// Where samples come from.
    pub source: SourceConfig,
    /// What is held out for choosing settings.
    pub validation: HoldOut,
    /// What is held out for reporting, beside a test part of the set's own.
    pub test: HoldOut,
}

/// What can be wrong with a `[data]` table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataConfigError {
    /// A key that the source or partition needs.
    #[error("`data.{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// A key that the source or partition does not use.
    #[error("`data.{key}` has no meaning with {context}; remove it")]
    Unused {
        /// The key.
        key: String,
        /// Source and partition.
        context: String,
    },
    /// A value out of range.
    #[error("`data.{key}` is {value}, but must be {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Files that only make sense together.
    #[error("`data.{present}` is given without `data.{absent}`; give both or none")]
    Pair {
        /// The key that is there.
        present: &'static str,
        /// The key that is not.
        absent: &'static str,
    },
}

impl StoredSet {
    /// Whether the set comes with a test part of its own.
    pub fn gives_test(&self) -> bool {
        match self {
            Self::Mnist { .. } => true,
            Self::Digits | Self::Femnist { .. } => false,
            Self::Idx(idx) => idx.test.is_some(),
            Self::Csv(csv) => csv.test_path.is_some(),
            Self::Leaf(leaf) => leaf.test_path.is_some(),
        }
    }

    /// Whether rows belong to natural devices.
    pub fn has_devices(&self) -> bool {
        match self {
            Self::Digits | Self::Mnist { .. } => false,
            Self::Femnist { .. } | Self::Leaf(_) => true,
            Self::Idx(idx) => idx.device_path.is_some(),
            Self::Csv(csv) => csv.columns.device.is_some(),
        }
    }

    /// Whether numbers are to be predicted, not classes.
    pub fn is_regression(&self) -> bool {
        match self {
            Self::Csv(csv) => csv.columns.task == Task::Regression,
            Self::Leaf(leaf) => leaf.task == Task::Regression,
            _ => false,
        }
    }

    /// Every path of the set, to be found before it is read.
    pub(super) fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Digits => Vec::new(),
            Self::Mnist { path } | Self::Femnist { path } => vec![path],
            Self::Idx(idx) => {
                let mut paths = vec![&mut idx.path, &mut idx.label_path];
                paths.extend(&mut idx.device_path);
                if let Some((features, labels)) = &mut idx.test {
                    paths.extend([features, labels]);
                }
                paths
            }
            Self::Csv(csv) => [&mut csv.path]
                .into_iter()
                .chain(&mut csv.test_path)
                .collect(),
            Self::Leaf(leaf) => [&mut leaf.path]
                .into_iter()
                .chain(&mut leaf.test_path)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
