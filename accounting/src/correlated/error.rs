//! Errors in a plan of correlated noise, with their texts: its rounds, separation, participations,
//! family or coefficients, and releases of another round.

use super::sensitivity::{COEFFICIENT_UNIT, MAX_COEFFICIENT, MAX_ROUNDS};

/// The reason why there is no such mechanism.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorrelatedError {
    /// There are no rounds, or too many.
    #[error("the number of rounds is {rounds}: it must be from 1 to {MAX_ROUNDS}")]
    Rounds {
        /// n.
        rounds: u32,
    },
    /// The separation is zero, or longer than the run.
    #[error("the separation is {separation}: it must be from 1 to {rounds}, the number of rounds")]
    Separation {
        /// b.
        separation: u32,
        /// n.
        rounds: u32,
    },
    /// No device may take part in the run.
    #[error("the number of participations is 0: a device takes part at least once")]
    NoParticipations,
    /// There is no family with this name.
    #[error("`{name}` is not a family of correlated noise: choose one of {known}")]
    Family {
        /// The given name.
        name: String,
        /// All names.
        known: String,
    },
    /// A release depends on more rounds than the separation of a device's rounds.
    #[error(
        "a release combines the sums of more than {separation} rounds, the separation: \
         block-cyclic sampling needs a family with at most that many bands ({banded})"
    )]
    NotBanded {
        /// b.
        separation: u32,
        /// The names of those families.
        banded: String,
    },
    /// The first coefficient is not 1.
    #[error("the first coefficient is {first}: it must be {COEFFICIENT_UNIT}, which stands for 1")]
    FirstCoefficient {
        /// m_0.
        first: i64,
    },
    /// A coefficient is too large.
    #[error(
        "a coefficient is {coefficient}: it must be from -{MAX_COEFFICIENT} to {MAX_COEFFICIENT}"
    )]
    LargeCoefficient {
        /// m_j.
        coefficient: i64,
    },
    /// The numbers are not parameters of non-increasing buffered linear Toeplitz coefficients.
    #[error(
        "the parameters do not define a BLT: it needs as many weights as decays, weights of at \
         least 0 with a sum of at most 1, and decays from 0 to below 1"
    )]
    Blt,
    /// The decoder's input is not the releases of its next round.
    #[error("the release has {found} numbers: round {round} of this mechanism releases {expected}")]
    Released {
        /// The round, from 0.
        round: u32,
        /// Number of vectors of the round, times the number of entries of each.
        expected: usize,
        /// The given number.
        found: usize,
    },
}
