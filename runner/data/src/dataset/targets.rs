//! The targets of prediction (labels): a class or a number for each row, and the kind of task,
//! classification or regression.

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{DatasetError, MAX_CLASSES};
use super::order::reorder;

/// What is to be predicted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// One of several classes.
    Classification,
    /// A number.
    Regression,
}

/// The targets of prediction, one entry per row.
#[derive(Clone, PartialEq)]
pub enum Targets {
    /// Classification.
    Classes {
        /// Label of each row, below `class_count`.
        labels: Vec<u16>,
        /// Number of classes C, at least 2.
        class_count: usize,
    },
    /// Regression: one finite value per row.
    Values(Vec<f32>),
}

impl Targets {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the targets of some rows.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Self {
        match self {
            Self::Classes {
                labels,
                class_count,
            } => Self::Classes {
                labels: rows.iter().map(|&row| labels[row as usize]).collect(),
                class_count: *class_count,
            },
            Self::Values(values) => {
                Self::Values(rows.iter().map(|&row| values[row as usize]).collect())
            }
        }
    }

    /// Moves the target of row `order[i]` to place i, for all i.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        match self {
            Self::Classes { labels, .. } => reorder(labels, 1, order),
            Self::Values(values) => reorder(values, 1, order),
        }
    }

    /// Creates classification targets from labels. Labels of at least `class_count`, if there are
    /// any, get one additional class, the last.
    ///
    /// # Errors
    /// The errors of [`Self::classes`].
    pub(crate) fn with_others(
        mut labels: Vec<u32>,
        class_count: usize,
    ) -> Result<Self, DatasetError> {
        // At most 2³², as labels are.
        let last = class_count as u32;
        let mut has_others = false;
        for label in &mut labels {
            has_others |= *label >= last;
            *label = last.min(*label);
        }
        Self::classes(&labels, class_count + usize::from(has_others))
    }

    /// Creates classification targets from labels.
    ///
    /// # Errors
    /// [`DatasetError::TooManyClasses`], [`DatasetError::Label`] if a label is not below
    /// `class_count`, [`DatasetError::OneClass`] if all rows have the same label.
    pub fn classes(labels: &[u32], class_count: usize) -> Result<Self, DatasetError> {
        if class_count > MAX_CLASSES {
            return Err(DatasetError::TooManyClasses { found: class_count });
        }
        let mut narrow = Vec::with_capacity(labels.len());
        for (row, &label) in labels.iter().enumerate() {
            match u16::try_from(label) {
                Ok(small) if usize::from(small) < class_count => narrow.push(small),
                _ => {
                    return Err(DatasetError::Label {
                        row,
                        label,
                        class_count,
                    });
                }
            }
        }
        match narrow.split_first() {
            Some((first, rest)) if rest.iter().all(|label| label == first) => {
                Err(DatasetError::OneClass {
                    label: first.to_string(),
                })
            }
            _ => Ok(Self::Classes {
                labels: narrow,
                class_count,
            }),
        }
    }
}

/// Shape only: device data never reach a log.
impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Classes {
                labels,
                class_count,
            } => {
                write!(f, "Classes({} rows, {class_count} classes)", labels.len())
            }
            Self::Values(values) => write!(f, "Values({} rows)", values.len()),
        }
    }
}
