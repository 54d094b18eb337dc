//! Why a masked sum comes to nothing.

use super::refusal::HelperRefusal;
use crate::masking::Crowd;

/// Why there is no sum: the round is lost, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// A helper refuses.
    #[error("helper {helper} refuses: {}", refusal.in_public())]
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
    #[error(transparent)]
    Crowd(#[from] Crowd),
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
    NoHelpers,
}

impl HelperError {
    /// The sentence with the number of the device that is to blame, if one is: not for others than
    /// the operator.
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
