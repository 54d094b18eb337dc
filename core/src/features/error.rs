//! Errors in feature settings and samples, with their texts: the size of an image, cells, steps,
//! bounds and lengths.

use core::fmt;

/// Reason why features are not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FeatureError {
    /// The image does not have from 1 to [`MAX_SIDE`](super::MAX_SIDE) rows and columns.
    Size {
        /// Rows of the image.
        rows: usize,
        /// Columns of the image.
        columns: usize,
        /// Maximum of either.
        max: usize,
    },
    /// The cell is empty or larger than the image.
    Cell {
        /// Side of the cell in pixels.
        cell: usize,
        /// Shorter side of the image.
        side: usize,
    },
    /// The number of steps is not from 1 to [`MAX_STEPS`](super::MAX_STEPS).
    Steps {
        /// Requested number of steps.
        found: usize,
        /// Maximum number of steps.
        max: usize,
    },
    /// The lower bound is not below the upper one, or they are not finite or too far apart.
    Bounds,
    /// The length of a slice does not match its shape.
    Length {
        /// Number of values needed.
        expected: usize,
        /// Number of values found.
        found: usize,
    },
}

impl fmt::Display for FeatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { rows, columns, max } => write!(
                f,
                "an image of {rows} × {columns} pixels: each side must have from 1 to {max}"
            ),
            Self::Cell { cell, side } => write!(
                f,
                "cells of {cell} × {cell} pixels: each side must have from 1 to {side}"
            ),
            Self::Steps { found, max } => {
                write!(f, "{found} steps: there must be from 1 to {max}")
            }
            Self::Bounds => f.write_str("the bounds are not finite, or not in ascending order"),
            Self::Length { expected, found } => {
                write!(f, "{found} values, but {expected} are needed")
            }
        }
    }
}

impl core::error::Error for FeatureError {}

/// Refuses a slice of the wrong length.
pub(super) const fn has_length(found: usize, expected: usize) -> Result<(), FeatureError> {
    if found == expected {
        Ok(())
    } else {
        Err(FeatureError::Length { expected, found })
    }
}
