//! Which questions a device answers, how often, and under how much noise.

use crate::{params::NoiseMultiplier, question::Kinds};

/// The questions that a device accepts, whatever a coordinator asks. The limits of rounds apply as
/// well: each answer is a participation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QuestionPolicy {
    /// The kinds of questions that it answers.
    pub kinds: Kinds,
    /// Maximum number of questions that it answers in its life. Its ledger counts them.
    pub max_answers: u32,
    /// Smallest noise multiplier of its own noise on an answer. With [`NoiseMultiplier::NONE`] the
    /// limit for updates applies:
    /// [`Policy::min_noise_multiplier`](super::Policy::min_noise_multiplier).
    pub min_noise_multiplier: NoiseMultiplier,
}

impl QuestionPolicy {
    /// No answers.
    pub const NONE: Self = Self {
        kinds: Kinds::NONE,
        max_answers: 0,
        min_noise_multiplier: NoiseMultiplier::NONE,
    };

    /// Whether it allows any questions.
    pub(super) fn allows_any(&self) -> bool {
        self.max_answers > 0 && self.kinds != Kinds::NONE
    }
}

impl Default for QuestionPolicy {
    fn default() -> Self {
        Self::NONE
    }
}
