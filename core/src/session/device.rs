//! The device that takes part: who it is, what it agrees to, its model, memory and ledger.

#[cfg(feature = "questions")]
use super::questions::QuestionPolicy;
use super::{
    build,
    masks::DeviceMasks,
    memory::Memory,
    policy::Policy,
    trainable::{RoundParts, Trainable},
};
use crate::{
    identity::Identity,
    ledger::{Ledger, LedgerError},
    participation::Streams,
    personal::{PersonalRequest, store::PersonalStore},
    samples::{SampleError, Samples, has_count},
    secrets::{Held, Secrets},
    train::Workspace,
    wire::message::{Decline, Invitation, update_chunks},
};

#[cfg(feature = "questions")]
use crate::{
    params::NoiseMultiplier,
    question::{Dimensions, Question},
};

/// Why there is no session around a model and its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SessionError {
    /// The protocol cannot describe the model: a kind that it does not know, or more than 65,535
    /// features or scores.
    Shape,
    /// An update of the model has more chunks than can be numbered.
    Chunks,
    /// A vector of the memory has another length than the model.
    Vector {
        /// Parameters of the model.
        expected: usize,
        /// Length of the vector.
        found: usize,
    },
    /// The secure element that has the device's secrets did not answer, or has others.
    Element,
    /// The policy insists on what this crate was built without: `local-noise` or `pseudonym`.
    Build,
    /// The scratch memory is too short for one sample.
    Scratch {
        /// Entries needed at least.
        expected: usize,
        /// Entries there.
        found: usize,
    },
}

impl core::fmt::Display for SessionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Shape => f.write_str(
                "the protocol describes linear, logistic and softmax models and networks of at \
                 most 65,535 features and scores",
            ),
            Self::Element => f.write_str("the secure element did not answer, or has other secrets"),
            Self::Chunks => f.write_str("an update of the model has more than 65,535 chunks"),
            Self::Vector { expected, found } => {
                write!(f, "a vector of {found} entries for a model of {expected}")
            }
            Self::Build => f.write_str(
                "the policy insists on noise of the device's own or hides its number, and this \
                 build has neither",
            ),
            Self::Scratch { expected, found } => {
                write!(
                    f,
                    "scratch memory of {found} entries: at least {expected} are needed"
                )
            }
        }
    }
}

impl core::error::Error for SessionError {}

/// A device without its link to the coordinator.
pub(super) struct Device<'a, M: Trainable, F, K, V> {
    pub(super) identity: Identity<V>,
    pub(super) masks: DeviceMasks,
    pub(super) policy: Policy,
    pub(super) model: M,
    pub(super) memory: Memory<'a>,
    pub(super) ledger: Ledger<F>,
    pub(super) store: K,
    pub(super) parts: M::Parts,
    /// Of the features that the device computes; empty if it computes none.
    pub(super) recipe: &'a [u8],
    /// Which questions it answers.
    #[cfg(feature = "questions")]
    pub(super) questions: QuestionPolicy,
}

/// Whether the protocol can carry `model`, and `memory` fits it.
#[inline(always)]
pub(super) fn check<M: Trainable>(model: &M, memory: &Memory<'_>) -> Result<(), SessionError> {
    if model.shape().is_none() {
        return Err(SessionError::Shape);
    }
    let expected = model.parameter_count();
    // As many chunks as an update can have: one value in each at least.
    if u16::try_from(update_chunks(expected, 57)).is_err() {
        return Err(SessionError::Chunks);
    }
    let Workspace {
        local,
        update,
        scratch,
        ..
    } = &memory.work;
    // One by one: nothing is left of it where the compiler knows the lengths.
    let misfit = |expected, found| Err(SessionError::Vector { expected, found });
    let global = model.global_count();
    if memory.global.len() != global {
        return misfit(global, memory.global.len());
    }
    if local.len() != expected {
        return misfit(expected, local.len());
    }
    if update.len() != expected {
        return misfit(expected, update.len());
    }
    let (expected, found) = (model.scratch_count(), scratch.len());
    if found < expected {
        return Err(SessionError::Scratch { expected, found });
    }
    Ok(())
}

/// The streams of a device in a round that is recorded.
pub(super) fn streams_of<V: Secrets>(identity: &Identity<V>, round: u32) -> Streams<'_> {
    // Bound to the ledger when the session was made, or when the round was recorded.
    Streams::new(identity.device, identity.root.current(), round)
}

impl<M: Trainable, F, K, V: Secrets> Device<'_, M, F, K, V> {
    /// The chain key of the device.
    pub(super) const fn chain(&mut self) -> Held<'_, V> {
        self.ledger.chain_of(&mut self.identity)
    }
}

impl<M: Trainable, F, K, V> Device<'_, M, F, K, V> {
    /// Whether training can use so many samples.
    #[inline(always)]
    pub(super) fn check_count(&self, samples: usize) -> Result<(), SampleError> {
        has_count(samples, M::MIN_SAMPLES, self.memory.work.order.len())
    }

    /// Whether training can use the samples, all of them.
    #[inline(never)]
    pub(super) fn check_samples<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        self.check_count(samples.len())?;
        self.check_each(samples)
    }

    /// [`Self::check_samples`] of any number of samples.
    #[inline(always)]
    pub(super) fn check_each<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        (0..samples.len()).try_for_each(|index| self.model.check_sample(samples, index))
    }
}

impl<M: Trainable, F, K: PersonalStore, V> Device<'_, M, F, K, V> {
    /// Whether the device takes part in this round.
    #[inline(always)]
    pub(super) fn accept(&self, round: u32, invitation: &Invitation) -> Result<(), Decline> {
        let policy = &self.policy;
        let personal = invitation.personal().filter(|_| K::IS_PRESENT);
        // The noise of a matrix is another one: the model looks at it.
        let is_matrix = M::HAS_REQUESTS && invitation.is_matrix();
        // Nor is a round silent without a request.
        let is_silent = (M::HAS_REQUESTS || K::IS_PRESENT) && invitation.is_silent();
        let has_update = !(is_silent || is_matrix);
        // An answer has a smallest noise of its own, and needs no room for a personal model.
        #[cfg(feature = "questions")]
        let has_update = has_update && invitation.question().is_none();
        if self.model.shape() != Some(invitation.shape) {
            Err(Decline::Shape)
        } else if let Err(lacking) = build::check(invitation) {
            Err(lacking)
        } else if !is_silent && !DeviceMasks::are_for(invitation, policy.helpers) {
            Err(Decline::Helpers)
        } else if has_update && !policy.accepts_noise(invitation) {
            Err(Decline::Noise)
        } else if !personal.is_none_or(|personal| self.has_room(personal)) {
            Err(Decline::Personal)
        } else if !policy.accepts_work(invitation.epochs, personal) {
            Err(Decline::Work)
        } else if !Policy::accepts_settings(invitation, personal) {
            Err(Decline::Settings)
        } else {
            #[cfg(feature = "questions")]
            if let Some(question) = invitation.question() {
                self.accept_question(question, invitation)?;
            }
            self.model.accepts(invitation, policy, &self.memory)?;
            if self.parts.has(round, invitation) {
                return Ok(());
            }
            let allowed = self.ledger.check(round, &policy.limits);
            allowed.map_err(declined)
        }
    }

    /// Whether there is a place for the personal model of the round.
    fn has_room(&self, personal: &PersonalRequest) -> bool {
        personal.state_length(self.memory.global.len()) <= self.store.capacity()
    }
}

impl<M: Trainable, F, K, V: Secrets> Device<'_, M, F, K, V> {
    /// From now on the device's streams are those of this round, which is recorded next: a fault of
    /// its secure element costs no participation.
    #[inline(always)]
    pub(super) fn draw_from(&mut self, round: u32) -> Result<(), Decline> {
        let begun = self.identity.root.begin(self.ledger.nonce(), round);
        begun.map_err(|_| declined(LedgerError::Element))
    }
}

/// The reason of a decline that samples give.
pub(super) fn unusable(error: SampleError) -> Decline {
    match error {
        SampleError::Count { .. } => Decline::NoSamples,
        _ => Decline::SAMPLES,
    }
}

/// The reason of a decline that the ledger gives.
pub(super) fn declined(error: LedgerError) -> Decline {
    match error {
        LedgerError::Spent => Decline::Budget,
        LedgerError::RoundUsed => Decline::RoundUsed,
        LedgerError::TooSoon => Decline::TooSoon,
        LedgerError::TooFar => Decline::TooFar,
        _ => Decline::Storage,
    }
}

#[cfg(feature = "questions")]
impl<M: Trainable, F, K, V> Device<'_, M, F, K, V> {
    /// Whether the device answers a question, beside all that it asks of rounds.
    #[inline(never)]
    pub(super) fn accept_question(
        &self,
        question: &Question,
        invitation: &Invitation,
    ) -> Result<(), Decline> {
        let allowed = &self.questions;
        let of: &Dimensions = &invitation.shape.dimensions();
        let policy = match allowed.min_noise_multiplier {
            NoiseMultiplier::NONE => self.policy,
            min_noise_multiplier => Policy {
                min_noise_multiplier,
                ..self.policy
            },
        };
        if !M::ANSWERS || !allowed.kinds.has(question) {
            Err(Decline::QUESTION)
        } else if self.ledger.answers() >= allowed.max_answers {
            Err(Decline::ANSWERS)
        } else if question.length(of) > self.memory.work.update.len() {
            Err(Decline::LONG_ANSWER)
        } else if !policy.accepts_noise(invitation) {
            Err(Decline::Noise)
        } else {
            Ok(())
        }
    }
}
