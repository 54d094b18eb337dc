//! What can be wrong with the tables of a network, and with the lengths of a prediction.

/// Why there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum QuantisedError {
    /// The tables of a layer do not fit.
    Layer {
        /// Its number, counting from 1; the head is the last.
        number: usize,
        /// Why.
        fault: Fault,
    },
    /// The sample has another number of values.
    Input {
        /// Values of the network's input.
        expected: usize,
        /// Values of the sample.
        found: usize,
    },
    /// The scratch memory is too small.
    Scratch {
        /// Bytes that are needed.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// The number of scores is not that of the classes.
    Scores {
        /// Classes.
        expected: usize,
        /// Scores.
        found: usize,
    },
}

/// What is wrong with the tables of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault {
    /// It has no output, or more than 65,535.
    Outputs,
    /// It has another number of weights than its sizes say.
    Weights {
        /// Weights of these sizes.
        expected: usize,
        /// Weights of the table.
        found: usize,
    },
    /// A window is empty or larger than the padded image, or has a stride of 0.
    Window,
    /// A mantissa is negative, or a shift is beyond ±30.
    Multiplier,
    /// It reads or gives 2³¹ values or more, half the largest `usize` where that is less, or it
    /// averages more than 8 million pixels.
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
