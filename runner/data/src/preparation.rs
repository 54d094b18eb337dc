//! The preparation of a row for the model, column by column: a missing value is replaced, and the
//! value is clipped and scaled. Applied to a new row, it gives the bits that the same row would
//! have had in training.
//!
//! None of it is computed here: [`missing`](super::missing), [`scale`](super::scale) and
//! [`moments`](super::scale::moments) return it.

use super::constants::{Affine, FeatureMap};

/// The replacement of a missing value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// A value in the unit of the file.
    Value(f64),
    /// The mean that the scale subtracts: the input of the model is 0.
    Mean,
    /// None. The value stays NaN, and fixed features are zeros.
    Open,
}

/// The map from a number in a column to the input of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberMap {
    /// The replacement of a missing number, if there is one.
    pub missing: Option<Fill>,
    /// Clips and scales it.
    pub map: FeatureMap,
    /// A second map, from moments that devices released about the results of the first one.
    pub then: Option<Affine>,
}

/// The input of the model for a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnMap {
    /// A number.
    Number(NumberMap),
    /// 0, for any value of the column: all training rows had the same value.
    Zero,
}

/// The preparation of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Preparation {
    /// One column per feature.
    pub columns: Vec<ColumnMap>,
    /// The scale of regression targets.
    pub target: Affine,
}

impl NumberMap {
    /// The identity map of a number.
    pub const AS_IT_IS: Self = Self {
        missing: None,
        map: FeatureMap {
            bounds: None,
            affine: Affine::IDENTITY,
        },
        then: None,
    };
}

impl ColumnMap {
    /// The identity map of a number.
    pub const AS_IT_IS: Self = Self::Number(NumberMap::AS_IT_IS);

    /// Returns the input of the model for a value (`None` if it is missing), or `None` if a missing
    /// value has no replacement. It is NaN only for a missing value that stays open.
    #[must_use]
    pub fn apply(&self, value: Option<f64>) -> Option<f32> {
        let Self::Number(number) = self else {
            return Some(0.0);
        };
        let value = match (value, number.missing) {
            (Some(value), _) | (None, Some(Fill::Value(value))) => value,
            (None, Some(Fill::Mean)) => return Some(0.0),
            (None, Some(Fill::Open)) => return Some(f32::NAN),
            (None, None) => return None,
        };
        let (scaled, _) = number.map.apply_exact(value);
        Some(number.then.map_or(scaled, |then| then.apply(scaled)))
    }
}

impl Preparation {
    /// Creates the identity for `width` features.
    pub(super) fn none(width: usize) -> Self {
        Self {
            columns: vec![ColumnMap::AS_IT_IS; width],
            target: Affine::IDENTITY,
        }
    }
}
