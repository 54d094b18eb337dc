//! Errors in the tables of a network in integers of 8 bits, and in the lengths of a prediction,
//! with their texts.

/// Reason why there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum QuantisedError {
    /// The tables of a layer do not fit.
    Layer {
        /// Number of the layer, counting from 1. The head is the last.
        number: usize,
        /// Reason.
        fault: Fault,
    },
    /// The number of values of the sample is wrong.
    Input {
        /// Values of the network's input.
        expected: usize,
        /// Values of the sample.
        found: usize,
    },
    /// The scratch memory is too small.
    Scratch {
        /// Number of bytes needed.
        expected: usize,
        /// Number of bytes found.
        found: usize,
    },
    /// The number of scores differs from the number of classes.
    Scores {
        /// Number of classes.
        expected: usize,
        /// Number of scores.
        found: usize,
    },
}

/// Error in the tables of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault {
    /// The layer has no outputs, or more than 65,535.
    Outputs,
    /// The number of weights does not match the sizes.
    Weights {
        /// Number of weights for these sizes.
        expected: usize,
        /// Number of weights in the table.
        found: usize,
    },
    /// A window is empty or larger than the padded image, or has a stride of 0.
    Window,
    /// A mantissa is negative, or a shift is beyond ±30.
    Multiplier,
    /// The input or the result has 2³¹ values or more (or half the largest `usize` if that is
    /// less), or an average has more than 8 million pixels.
    TooLarge,
}

impl core::fmt::Display for QuantisedError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Layer { number, fault } => write!(f, "layer {number}: {fault}"),
            Self::Input { expected, found } => {
                write!(f, "the network reads {expected} values, not {found}")
            }
            Self::Scratch { expected, found } => {
                write!(f, "scratch memory has {found} bytes, but needs {expected}")
            }
            Self::Scores { expected, found } => {
                write!(f, "the network has {expected} scores, not {found}")
            }
        }
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Outputs => f.write_str("it needs 1 to 65,535 outputs"),
            Self::Weights { expected, found } => {
                write!(f, "it needs {expected} weights, not {found}")
            }
            Self::Window => f.write_str("its windows do not fit the image"),
            Self::Multiplier => f.write_str("a multiplier is not between 0 and 2^30"),
            Self::TooLarge => f.write_str("it reads or gives too many values"),
        }
    }
}

impl core::error::Error for QuantisedError {}
