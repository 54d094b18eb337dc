//! What can be wrong with a composition of layers.

use super::{layer::MAX_LAYERS, misfit::LayerError, shape::Shape, text::Text};

/// Why layers are no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SequentialError {
    /// There are no layers.
    NoLayers,
    /// There are more than [`MAX_LAYERS`].
    TooManyLayers {
        /// How many.
        found: usize,
    },
    /// A sample has no entries.
    EmptyInput {
        /// The shape of a sample.
        found: Shape,
    },
    /// A layer does not fit what it is given.
    Layer {
        /// Its number, counting from 1.
        number: usize,
        /// Why.
        error: LayerError,
    },
    /// What the last layer gives is no vector of scores.
    NoScores {
        /// What it gives.
        found: Shape,
    },
}

impl SequentialError {
    /// What [`Display`](core::fmt::Display) writes, without shapes: for the compiler.
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
                "the last layer gives {found}, where a vector of scores is needed"
            ),
        }
    }
}

impl core::error::Error for SequentialError {}
