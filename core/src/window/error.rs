//! Errors in recipes, scales and windows of sensor samples, with their texts: lengths, bands, and
//! samples that are not finite.

use core::fmt;

/// Reason why a recipe is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RecipeError {
    /// The length is not from 2 to [`MAX_LENGTH`](super::MAX_LENGTH) samples of a channel.
    Length {
        /// Requested length.
        found: usize,
        /// Largest length.
        max: usize,
    },
    /// There are neither features nor bands.
    Nothing,
    /// A feature is listed twice.
    Twice {
        /// Name of the feature.
        feature: &'static str,
    },
    /// There is only one boundary, or there are too many.
    Bounds {
        /// Number of boundaries found.
        found: usize,
        /// Maximum number of boundaries.
        max: usize,
    },
    /// The boundaries do not increase.
    Order {
        /// The boundary that is not above the previous one.
        bound: u16,
    },
    /// A boundary is beyond the frequencies.
    Beyond {
        /// The boundary.
        bound: u16,
        /// Largest boundary: one more than the last frequency.
        max: u16,
    },
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found, max } => {
                write!(f, "a window of {found} samples: 2 to {max} are supported")
            }
            Self::Nothing => f.write_str("neither features nor bands"),
            Self::Twice { feature } => write!(f, "the feature {feature} occurs twice"),
            Self::Bounds { found, max } => write!(
                f,
                "{found} boundaries of bands: there must be none, or from 2 to {max}"
            ),
            Self::Order { bound } => {
                write!(f, "the boundary {bound} is not above the previous one")
            }
            Self::Beyond { bound, max } => {
                write!(
                    f,
                    "the boundary {bound} is above {max}, the end of the frequencies"
                )
            }
        }
    }
}

impl core::error::Error for RecipeError {}

/// Reason why the features of a window are not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WindowError {
    /// The working memory has fewer values than [`Recipe::work_count`](super::Recipe::work_count).
    Work {
        /// Number of values needed.
        expected: usize,
        /// Number of values found.
        found: usize,
    },
    /// The number of features is not a multiple of the features of a channel.
    Features {
        /// Features of a channel.
        each: usize,
        /// Length of the slice.
        found: usize,
    },
    /// A sample is not finite, or its square is not.
    NotFinite,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { expected, found } => write!(
                f,
                "working memory of {found} values, but {expected} are needed"
            ),
            Self::Features { each, found } => {
                write!(f, "room for {found} features, but each channel has {each}")
            }
            Self::NotFinite => f.write_str("a sample is not finite, or too large"),
        }
    }
}

impl core::error::Error for WindowError {}

/// Reason why the scale of a feature is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ScaleError {
    /// All features would be 0.
    Zero,
    /// The shift is larger than 47 bits: all features would be 0.
    Shift,
}

impl fmt::Display for ScaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "the multiplier of a feature is 0",
            Self::Shift => "the shift of a feature is larger than 47 bits",
        })
    }
}

impl core::error::Error for ScaleError {}
