//! What can be wrong with the slices that a model is given.

/// A model was given slices whose lengths do not fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ModelError {
    /// The parameters or the gradient have another length than the model.
    Parameters {
        /// Parameters of the model.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// A sample has another number of features than the model.
    Features {
        /// Features of the model.
        expected: usize,
        /// Features of the sample.
        found: usize,
    },
    /// The scratch memory is too short, or there is not room for one row of scores a sample.
    Scratch {
        /// Entries needed.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// The model has no features or no outputs.
    Empty,
    /// A batch names a sample that does not exist, or none at all.
    Batch,
    /// A feature of a sample is no symbol of the vocabulary.
    Symbol {
        /// Symbols: whole numbers below this one.
        vocabulary: usize,
    },
    /// A feature, a score or a parameter is not finite, or a weight is beyond those of integer
    /// arithmetic.
    NotFinite,
}

impl core::fmt::Display for ModelError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Parameters { expected, found } => {
                write!(f, "{found} parameters for a model of {expected}")
            }
            Self::Features { expected, found } => {
                write!(f, "a sample of {found} features for a model of {expected}")
            }
            Self::Scratch { expected, found } => {
                write!(
                    f,
                    "scratch memory of {found} entries: at least {expected} are needed"
                )
            }
            Self::Empty => f.write_str("a model needs at least one feature and one output"),
            Self::Batch => f.write_str("a batch is empty or names a sample that does not exist"),
            Self::Symbol { vocabulary } => write!(
                f,
                "a feature is no symbol: whole numbers from 0 to {} are",
                vocabulary.saturating_sub(1)
            ),
            Self::NotFinite => f.write_str(
                "a feature, a score or a parameter is not finite, or a weight of integer \
                 arithmetic is beyond ±8",
            ),
        }
    }
}

impl core::error::Error for ModelError {}
