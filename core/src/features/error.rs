//! What can be wrong with the settings of features, and with a sample.

use core::fmt;

/// Why features are not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FeatureError {
    /// An image has from 1 to [`MAX_SIDE`](super::MAX_SIDE) rows and columns.
    Size {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The most of either.
        max: usize,
    },
    /// A cell is at least one pixel, and no larger than the image.
    Cell {
        /// Pixels of its side.
        cell: usize,
        /// The shorter side of the image.
        side: usize,
    },
    /// A number has from 1 to [`MAX_STEPS`](super::MAX_STEPS) steps.
    Steps {
        /// The number of steps that was asked for.
        found: usize,
        /// The most.
        max: usize,
    },
    /// The lower bound is not below the upper one, or they are not finite or too far apart.
    Bounds,
    /// A slice has another length than its shape says.
    Length {
        /// Values that are needed.
        expected: usize,
        /// Values that there are.
        found: usize,
    },
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { rows, columns, max } => write!(
                f,
                "an image of {rows} × {columns} pixels, where a side has from 1 to {max}"
            ),
            Self::Cell { cell, side } => write!(
                f,
                "cells of {cell} × {cell} pixels, where a side has from 1 to {side}"
            ),
            Self::Steps { found, max } => {
                write!(f, "{found} steps, where a number has from 1 to {max}")
            }
            Self::Bounds => f.write_str("bounds that are not finite, or not in ascending order"),
            Self::Length { expected, found } => {
                write!(f, "{found} values, where {expected} are needed")
            }
        }
    }
}

impl core::error::Error for FeatureError {}

/// Refuses a slice of another length.
pub(super) const fn has_length(found: usize, expected: usize) -> Result<(), FeatureError> {
    if found == expected {
        Ok(())
    } else {
        Err(FeatureError::Length { expected, found })
    }
}
