//! Why a masked sum comes to nothing.

use super::refusal::HelperRefusal;

/// Why there is no sum: the round is lost, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// A helper refuses.
    #[error("helper {helper} refuses: {refusal}")]
    Refused {
        /// The helper, from 0.
        helper: u8,
        /// Why.
        refusal: HelperRefusal,
    },
    /// A helper cannot be reached, or does not answer.
    #[error("helper {helper} does not answer: {reason}")]
    Missing {
        /// The helper, from 0.
        helper: u8,
        /// Why, as far as is known.
        reason: String,
    },
    /// What is left after all answers is no sum.
    #[error(
        "an answer does not belong to the sum: what is left is longer than any sum of updates \
         with its noise"
    )]
    Implausible,
    /// More devices than the integers have room for.
    #[error("{found} devices sent an update, and the integers have room for those of {most}")]
    Crowd {
        /// Devices.
        found: usize,
        /// Largest number.
        most: usize,
    },
    /// An answer that does not fit.
    #[error("the answer of helper {helper} is of another round or length")]
    Unfit {
        /// The helper, from 0.
        helper: u8,
    },
    /// Too many rounds were lost one after the other.
    #[error("{rounds} rounds in a row were lost, the last one since {last}")]
    Hopeless {
        /// As many.
        rounds: u32,
        /// Why the last one was.
        last: Box<HelperError>,
    },
    /// A helper that insists on something else than the privacy statement counts on.
    #[error("helper {helper} does not fit this run: {reason}")]
    Unsuited {
        /// The helper, from 0.
        helper: u8,
        /// What is different.
        reason: String,
    },
    /// No helper at all.
    #[error("this process knows no helper")]
    Nobody,
}
