//! Errors in the slices passed to a model, with their texts: wrong lengths, empty batches, unknown
//! symbols, and values that are not finite.

/// Reason why a model refuses its slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ModelError {
    /// The length of the parameters or the gradient differs from the model's.
    Parameters {
        /// Parameters of the model.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// The number of features of a sample differs from the model's.
    Features {
        /// Features of the model.
        expected: usize,
        /// Features of the sample.
        found: usize,
    },
    /// The scratch memory is too short, or the scores do not have one row for each sample.
    Scratch {
        /// Number of entries needed.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// The model has no features or no outputs.
    Empty,
    /// A batch is empty or contains a sample that does not exist.
    Batch,
    /// A feature of a sample is not a symbol of the vocabulary.
    Symbol {
        /// Size of the vocabulary: symbols are whole numbers below it.
        vocabulary: usize,
    },
    /// A feature, a score or a parameter is not finite, or a weight is outside the range of integer
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
                "a feature is not a symbol, a whole number from 0 to {}",
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
