//! What can be wrong with a plan of correlated noise.

use super::sensitivity::{COEFFICIENT_UNIT, MAX_COEFFICIENT, MAX_ROUNDS};

/// Why there is no such mechanism.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorrelatedError {
    /// No rounds, or too many.
    #[error("the number of rounds is {rounds}: it must be from 1 to {MAX_ROUNDS}")]
    Rounds {
        /// n.
        rounds: u32,
    },
    /// Rounds of one device that are further apart than the run is long, or not apart.
    #[error("the separation is {separation}: it must be from 1 to {rounds}, the number of rounds")]
    Separation {
        /// b.
        separation: u32,
        /// n.
        rounds: u32,
    },
    /// A run in which no device may take part.
    #[error("the number of participations is 0: a device takes part at least once")]
    NoParticipations,
    /// Not the name of a family.
    #[error("`{name}` is not a family of correlated noise: choose one of {known}")]
    Family {
        /// What was written.
        name: String,
        /// All names.
        known: String,
    },
    /// A release that depends on more rounds than there are between two of one device.
    #[error(
        "a release combines the sums of more than {separation} rounds, the separation: \
         block-cyclic sampling is for families with at most so many bands ({banded})"
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
    /// A coefficient beyond any use.
    #[error(
        "a coefficient is {coefficient}: it must be from -{MAX_COEFFICIENT} to {MAX_COEFFICIENT}"
    )]
    LargeCoefficient {
        /// m_j.
        coefficient: i64,
    },
    /// Numbers that make no non-increasing buffered linear Toeplitz coefficients.
    #[error(
        "the parameters are not those of a BLT: as many weights as decays, weights of at least 0 \
         that add up to at most 1, and decays from 0 to below 1"
    )]
    Blt,
    /// A decoder was given something other than the releases of its next round.
    #[error("the release has {found} numbers: round {round} of this mechanism releases {expected}")]
    Released {
        /// The round, from 0.
        round: u32,
        /// Vectors of the round, times the entries of each.
        expected: usize,
        /// What was given.
        found: usize,
    },
}
