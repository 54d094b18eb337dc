//! Reasons why a masked sum fails: a helper refuses or cannot be reached, or the answers do
//! not belong to the sum.

use super::refusal::HelperRefusal;
use crate::masking::Crowd;

/// The reason why there is no sum. The only effect is that the round is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// A helper refuses to answer.
    #[error("helper {helper} refuses: {}", refusal.in_public())]
    Refused {
        /// The helper, from 0.
        helper: u8,
        /// The reason.
        refusal: HelperRefusal,
    },
    /// A helper cannot be reached, or does not answer.
    #[error("helper {helper} does not answer: {reason}")]
    Missing {
        /// The helper, from 0.
        helper: u8,
        /// The reason, if it is known.
        reason: String,
    },
    /// The result after all answers cannot be a sum.
    #[error(
        "an answer does not belong to the sum: the rest is longer than any sum of updates with its \
         noise"
    )]
    Implausible,
    /// There are more devices than the integers have room for.
    #[error(transparent)]
    Crowd(#[from] Crowd),
    /// An answer has the wrong length.
    #[error("the answer of helper {helper} has another round or length")]
    Unfit {
        /// The helper, from 0.
        helper: u8,
    },
    /// Too many successive rounds were lost.
    #[error("{rounds} rounds in a row were lost, the last one since {last}")]
    Hopeless {
        /// The number of lost rounds.
        rounds: u32,
        /// The reason for the last one.
        last: Box<HelperError>,
    },
    /// The policy of a helper differs from the assumptions of the privacy statement.
    #[error("helper {helper} does not fit this run: {reason}")]
    Unsuited {
        /// The helper, from 0.
        helper: u8,
        /// The difference.
        reason: String,
    },
    /// There is no helper.
    #[error("this process has no helpers")]
    NoHelpers,
}

impl HelperError {
    /// Returns the sentence with the number of the device at fault, if there is one. Only the
    /// operator may see it.
    #[must_use]
    pub fn in_private(&self) -> String {
        match self {
            Self::Refused { helper, refusal } => format!("helper {helper} refuses: {refusal}"),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_in_private_only() {
        let error = HelperError::Refused {
            helper: 0,
            refusal: HelperRefusal::Tag { device: 17 },
        };
        let (public, private) = (error.to_string(), error.in_private());
        assert!(public.contains("the tag of a device is wrong"), "{public}");
        assert!(
            private.contains("the tag of device 17 is wrong"),
            "{private}"
        );
    }
}
