//! Reasons why no fixed features are computed: samples that are not images, unsuitable cells
//! or bounds, a missing pixel.

use smolfed_core::features::FeatureError;

use crate::constants::ConstantError;
use crate::dataset::DatasetError;

/// The reason why no features are computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeaturesError {
    /// The samples are not images.
    #[error(
        "`[features]` of images need samples of rows × columns, or 1 or 3 such planes, but the \
         shape is {}; `data.axes` sets it for tables, and kind = \"steps\" is for columns",
        shape(.0)
    )]
    NoImage(Vec<usize>),
    /// A cell does not fit.
    #[error("`features.cell`: {0}")]
    Cells(FeatureError),
    /// Other settings are invalid.
    #[error(transparent)]
    Core(FeatureError),
    /// The bounds do not fit the columns.
    #[error("`features.bounds`: {}", of_columns(.0))]
    Constants(#[from] ConstantError),
    /// The bounds are too far apart or too close to each other.
    #[error("`features.bounds`: min = {low} and max = {high} are not a range of 32-bit numbers")]
    Bounds {
        /// The smallest value.
        low: f64,
        /// The largest one.
        high: f64,
    },
    /// A pixel is missing.
    #[error(
        "pixel {at} is missing, but features of an image need all of its pixels; leave out the row"
    )]
    NoPixel {
        /// Its place, from 0.
        at: usize,
    },
    /// A pixel has more than 8 bits.
    #[error(
        "pixel {at} is {value}, but features of images need whole numbers from 0 to 255; set \
         `data.maximum = 1` if pixels are from 0 to 1"
    )]
    Pixel {
        /// Its place, from 0.
        at: usize,
        /// The value of the pixel.
        value: f32,
    },
    /// A row has an error.
    #[error("row {}: {reason}", row + 1)]
    Row {
        /// The row, from 0.
        row: usize,
        /// The reason.
        reason: Box<Self>,
    },
    /// The features are not a valid data set.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl FeaturesError {
    /// Adds the row, from 0.
    #[must_use]
    pub fn in_row(self, row: usize) -> Self {
        let reason = Box::new(self);
        Self::Row { row, reason }
    }
}

fn shape(axes: &[usize]) -> String {
    match axes {
        [] => "unknown".to_owned(),
        axes => {
            let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
            axes.join(" × ")
        }
    }
}

/// Describes the error with "columns of numbers" instead of features.
fn of_columns(error: &ConstantError) -> String {
    match error {
        ConstantError::Length {
            key,
            expected,
            found,
        } => format!("`{key}` lists {found} numbers, but there are {expected} columns of numbers"),
        other => other.to_string(),
    }
}
