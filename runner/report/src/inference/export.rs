//! A trained model with its preprocessing, for programs in other languages.
//!
//! All formats do the same: a missing value (NaN) is replaced, the value is clipped to `min..=max`,
//! and `(value − mean) / std` goes into the layers. Constants and that quotient are `f64`, as in
//! training, and everything after them is `f32`. Sums are computed in another order than here, so
//! results agree within rounding. A scale of two maps (`then` in preprocessing.json) becomes one,
//! also within rounding.

pub mod c_header;
pub mod format;
pub mod npz;
pub mod onnx;
pub mod rust;

use super::model::TrainedModel;
use smolfed_data::large;
use smolfed_data::preparation::{ColumnMap, Fill};
use smolfed_engine::tables::model::ActivationName;

/// The constants of the columns, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Constants {
    /// Replacements for missing values. NaN for none.
    pub(crate) missing: Vec<f64>,
    /// Smallest values. −∞ without a bound.
    pub(crate) min: Vec<f64>,
    /// Largest values. ∞ without a bound.
    pub(crate) max: Vec<f64>,
    /// Subtracted values.
    pub(crate) mean: Vec<f64>,
    /// Divisors.
    pub(crate) std: Vec<f64>,
}

impl Constants {
    pub(crate) fn of(model: &TrainedModel) -> Self {
        let mut constants = Self::default();
        for column in &model.preprocessing.columns {
            let [missing, min, max, mean, std] = constants_of(&column.map);
            constants.missing.push(missing);
            constants.min.push(min);
            constants.max.push(max);
            constants.mean.push(mean);
            constants.std.push(std);
        }
        constants
    }

    /// Returns whether missing values of some column are replaced.
    pub(crate) fn fills(&self) -> bool {
        self.missing.iter().any(|value| !value.is_nan())
    }

    /// Returns whether values of some column are clipped.
    pub(crate) fn clips(&self) -> bool {
        self.min.iter().chain(&self.max).any(|x| x.is_finite())
    }

    /// Returns whether values of some column are scaled.
    pub(crate) fn scales(&self) -> bool {
        let is = |values: &[f64], constant: f64| {
            let bits = constant.to_bits();
            values.iter().all(|value| value.to_bits() == bits)
        };
        !(is(&self.mean, 0.0) && is(&self.std, 1.0))
    }
}

/// Returns `missing`, `min`, `max`, `mean` and `std` of a column.
fn constants_of(map: &ColumnMap) -> [f64; 5] {
    let ColumnMap::Number(number) = map else {
        // Any value, even an infinity, is clipped to 0.
        return [0.0, 0.0, 0.0, 0.0, 1.0];
    };
    let affine = number.map.affine;
    let (mean, std) = match number.then {
        None => (affine.mean(), affine.std()),
        Some(then) => (
            affine.mean() + affine.std() * then.mean(),
            affine.std() * then.std(),
        ),
    };
    let bounds = number.map.bounds.map(|bounds| bounds.map(large::kept));
    let [min, max] = bounds.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
    let missing = match number.missing {
        None | Some(Fill::Open) => f64::NAN,
        Some(Fill::Mean) => mean,
        Some(Fill::Value(value)) => value,
    };
    [missing, min, max, mean, std]
}

/// Returns how the cells of a table become features, as JSON. `None` if each is a number.
pub(crate) fn cells_of(model: &TrainedModel) -> Option<String> {
    let cells = &model.preprocessing.cells;
    // Serializes without errors: only texts.
    (!cells.is_empty()).then(|| serde_json::to_string(cells).unwrap_or_default())
}

/// Returns the names of a layer's tensors, as in `model.safetensors`.
const fn tensor_names(layer: usize) -> [&'static str; 2] {
    match layer {
        0 => ["weights", "biases"],
        _ => ["head_weights", "head_biases"],
    }
}

/// Returns the name of an activation.
const fn activation_name(activation: ActivationName) -> &'static str {
    match activation {
        ActivationName::Tanh => "tanh",
        ActivationName::Relu => "relu",
    }
}
