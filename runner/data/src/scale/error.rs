//! Errors in the scaling of features and targets: no bounds for a private scale, unsuitable
//! constants, overflow of `f32`.

use crate::constants::ConstantError;

/// Errors in scaling.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// `unit` needs a largest value.
    #[error("`scale` is \"unit\", but these data have no known largest value; give `maximum`")]
    NoMaximum,
    /// A private scale needs bounds.
    #[error(
        "`scale` is \"private\", but the values have no known bounds, so one device's influence on \
         a mean is unbounded; give `bounds = {{ min = .., max = .. }}`"
    )]
    NoBounds,
    /// A private scale needs numbers.
    #[error(
        "`scale` is \"private\", but no feature is a number to scale: the 0 and 1 of categories \
         stay as they are; set `scale = \"none\"`"
    )]
    NoNumbers,
    /// The constants do not fit.
    #[error("`{key}`: {reason}")]
    Constants {
        /// The key.
        key: &'static str,
        /// The reason.
        reason: ConstantError,
    },
    /// Scaled features exceed the range of `f32`.
    #[error("after scaling, feature {feature} of row {row} exceeds the range of f32")]
    Overflow {
        /// Row, from 0.
        row: usize,
        /// Feature, from 0.
        feature: usize,
    },
}
