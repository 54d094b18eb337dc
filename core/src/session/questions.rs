//! Which questions a device answers, how often, and under how much noise.

use crate::{params::NoiseMultiplier, question::Kinds};

/// What a device agrees to of questions, whatever a coordinator asks for. The limits of rounds hold
/// for answers as well: each of them is a participation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QuestionPolicy {
    /// The kinds that it answers.
    pub kinds: Kinds,
    /// How many questions it answers in its life, at most. Its ledger counts them.
    pub max_answers: u32,
    /// Smallest noise multiplier of its own noise on an answer. [`NoiseMultiplier::NONE`] asks for
    /// that of updates: [`Policy::min_noise_multiplier`](super::Policy::min_noise_multiplier).
    pub min_noise_multiplier: NoiseMultiplier,
}

impl QuestionPolicy {
    /// No answers.
    pub const NONE: Self = Self {
        kinds: Kinds::NONE,
        max_answers: 0,
        min_noise_multiplier: NoiseMultiplier::NONE,
    };

    /// Whether there are questions that it allows.
    pub(super) fn allows_any(&self) -> bool {
        self.max_answers > 0 && self.kinds != Kinds::NONE
    }
}

impl Default for QuestionPolicy {
    fn default() -> Self {
        Self::NONE
    }
}
