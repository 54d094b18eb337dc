//! What becomes of a row on its way to the model, column by column: a missing value is replaced,
//! the value is clipped and scaled. Applied to a new row, it gives the bits that the same row would
//! have had in training.
//!
//! None of it is computed here: [`missing`](super::missing), [`scale`](super::scale) and
//! [`moments`](super::scale::moments) say what they used.

use super::constants::{Affine, FeatureMap};

/// What stands in the place of a missing value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// A value in the unit of the file.
    Value(f64),
    /// The mean that the scale subtracts: the model reads 0.
    Mean,
    /// Nothing, and the value stays NaN: fixed features have zeros for it.
    Open,
}

/// From a number in a column to what the model reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberMap {
    /// What stands for a missing number; `None` if nothing does.
    pub missing: Option<Fill>,
    /// Clips and scales it.
    pub map: FeatureMap,
    /// A second map: of moments that devices released of what the first one gives.
    pub then: Option<Affine>,
}

/// What the model reads of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnMap {
    /// A number.
    Number(NumberMap),
    /// 0, whatever the column holds: all training rows had the same value.
    Zero,
}

/// What becomes of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Preparation {
    /// One column a feature.
    pub columns: Vec<ColumnMap>,
    /// How regression targets were scaled.
    pub target: Affine,
}

impl NumberMap {
    /// A number that the model reads as it is.
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
    /// A number that the model reads as it is.
    pub const AS_IT_IS: Self = Self::Number(NumberMap::AS_IT_IS);

    /// What the model reads of a value, `None` for a missing one; `None` if nothing stands for it.
    /// NaN only for a missing value that stays open.
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
    /// Of `width` features that are read as they are.
    pub(super) fn none(width: usize) -> Self {
        Self {
            columns: vec![ColumnMap::AS_IT_IS; width],
            target: Affine::IDENTITY,
        }
    }
}
