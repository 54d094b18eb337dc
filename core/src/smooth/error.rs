//! Errors of Laplacian smoothing, with their texts: a factor sigma that is negative, too large or
//! not finite, and lengths that do not match.

use core::fmt;

use super::recursion::NARROW_SIGMA;

/// Reason why a smoothing factor or the shape of a vector is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SmoothingError {
    /// Sigma is NaN or infinite.
    NotFinite,
    /// Sigma is below 0.
    Negative,
    /// Sigma is above [`NARROW_SIGMA`], the limit for gradients.
    TooLarge,
    /// The lengths do not add up to the length of the vector.
    Length {
        /// Sum of the lengths, or `usize::MAX` if it does not fit.
        expected: usize,
        /// Length of the vector.
        found: usize,
    },
    /// The vector is not a whole number of grids.
    Grid {
        /// Elements in one grid, the product of its axes, or `usize::MAX` if it does not fit.
        cells: usize,
        /// Length of the vector.
        found: usize,
    },
}

impl fmt::Display for SmoothingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotFinite => write!(f, "sigma must be finite"),
            Self::Negative => write!(f, "sigma must be 0 or more"),
            Self::TooLarge => write!(f, "sigma must be at most {NARROW_SIGMA}"),
            Self::Length { expected, found } => {
                write!(
                    f,
                    "the lengths add up to {expected}, but the vector has {found}"
                )
            }
            Self::Grid { cells, found } => {
                write!(
                    f,
                    "a grid has {cells} elements, but the vector's {found} are not a multiple of it"
                )
            }
        }
    }
}

impl core::error::Error for SmoothingError {}
