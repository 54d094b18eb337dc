//! What can be wrong with a recipe, with a scale, and with a window.

use core::fmt;

/// Why a recipe is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RecipeError {
    /// A window has from 2 to [`MAX_LENGTH`](super::MAX_LENGTH) samples of a channel.
    Length {
        /// The length that was asked for.
        found: usize,
        /// The largest.
        max: usize,
    },
    /// Neither features nor bands.
    Nothing,
    /// A feature is listed twice.
    Twice {
        /// Its name.
        feature: &'static str,
    },
    /// One boundary makes no band, and there is room for a number of bands.
    Bounds {
        /// Boundaries that were given.
        found: usize,
        /// The most.
        max: usize,
    },
    /// Boundaries rise.
    Order {
        /// The boundary that is not above the one before.
        bound: u16,
    },
    /// There is no such frequency.
    Beyond {
        /// The boundary.
        bound: u16,
        /// The largest: one more than the last frequency.
        max: u16,
    },
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { found, max } => {
                write!(f, "a window of {found} samples, where 2 to {max} are known")
            }
            Self::Nothing => f.write_str("neither features nor bands"),
            Self::Twice { feature } => write!(f, "the feature {feature} twice"),
            Self::Bounds { found, max } => write!(
                f,
                "{found} boundaries of bands, where there are none, or from 2 to {max}"
            ),
            Self::Order { bound } => write!(f, "the boundary {bound}, which is not above the last"),
            Self::Beyond { bound, max } => {
                write!(
                    f,
                    "the boundary {bound}, where {max} is behind all frequencies"
                )
            }
        }
    }
}

impl core::error::Error for RecipeError {}

/// Why the features of a window are not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WindowError {
    /// The working memory has fewer values than [`Recipe::work_count`](super::Recipe::work_count).
    Work {
        /// Values that are needed.
        expected: usize,
        /// Values that there are.
        found: usize,
    },
    /// The features are no multiple of those of a channel.
    Features {
        /// Features of a channel.
        each: usize,
        /// Features that there is room for.
        found: usize,
    },
    /// A sample is not finite, or so large that a square is not.
    NotFinite,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { expected, found } => write!(
                f,
                "working memory of {found} values, where {expected} are needed"
            ),
            Self::Features { each, found } => write!(
                f,
                "room for {found} features, where each channel has {each}"
            ),
            Self::NotFinite => f.write_str("a sample is not finite, or too large"),
        }
    }
}

impl core::error::Error for WindowError {}

/// Why the scale of a feature is refused.
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
