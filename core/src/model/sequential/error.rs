//! Errors in a composition of layers, with their texts: none or too many, an empty sample, a layer
//! that does not fit, or no scores.

use super::{layer::MAX_LAYERS, misfit::LayerError, shape::Shape, text::Text};

/// Reason why layers are not a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SequentialError {
    /// There are no layers.
    NoLayers,
    /// There are more than [`MAX_LAYERS`].
    TooManyLayers {
        /// Number of layers.
        found: usize,
    },
    /// A sample has no entries.
    EmptyInput {
        /// The shape of a sample.
        found: Shape,
    },
    /// A layer does not fit its input.
    Layer {
        /// Number of the layer, counting from 1.
        number: usize,
        /// Reason.
        error: LayerError,
    },
    /// The output of the last layer is not a vector of scores.
    NoScores {
        /// Output of the last layer.
        found: Shape,
    },
}

impl SequentialError {
    /// Writes the text of [`Display`](core::fmt::Display) without shapes, for compiler errors.
    pub(super) const fn describe(self, text: &mut Text) {
        match self {
            Self::NoLayers => text.push("it needs at least one layer"),
            Self::TooManyLayers { .. } => {
                text.push("it has more layers than ");
                text.push_number(MAX_LAYERS);
            }
            Self::EmptyInput { .. } => text.push("its input is empty"),
            Self::Layer { number, error } => {
                text.push("layer ");
                text.push_number(number);
                text.push(" ");
                text.push(error.in_short());
            }
            Self::NoScores { .. } => text.push("its last layer does not give a vector of scores"),
        }
    }
}

impl core::fmt::Display for SequentialError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoLayers => f.write_str("a network needs at least one layer"),
            Self::TooManyLayers { found } => {
                write!(f, "{found} layers: at most {MAX_LAYERS} are supported")
            }
            Self::EmptyInput { found } => write!(f, "the input is {found}, which is empty"),
            Self::Layer { number, error } => write!(f, "layer {number} {error}"),
            Self::NoScores { found } => write!(
                f,
                "the last layer gives {found}, but must give a vector of scores"
            ),
        }
    }
}

impl core::error::Error for SequentialError {}
