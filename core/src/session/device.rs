//! The participating device (identity, policy, model, memory and ledger), its check of an
//! invitation before a round, and the errors of a new session.

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

/// Why a session cannot be made from a model and its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SessionError {
    /// The protocol cannot describe the model: its kind is unknown, or it has more than 65,535
    /// features or scores.
    Shape,
    /// An update of the model has more chunks than a chunk number can count.
    Chunks,
    /// A vector of the memory does not have the length of the model.
    Vector {
        /// Parameters of the model.
        expected: usize,
        /// Length of the vector.
        found: usize,
    },
    /// The secure element with the device's secrets did not answer, or has other secrets.
    Element,
    /// The policy requires a feature that this build lacks: `local-noise` or `pseudonym`.
    Build,
    /// The scratch memory is too short for one sample.
    Scratch {
        /// Minimum number of entries.
        expected: usize,
        /// Number of entries found.
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
                "the policy requires device noise or hides the device's number, but this build \
                 supports neither",
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
    /// Recipe of the features that the device computes, or empty if it computes none.
    pub(super) recipe: &'a [u8],
    /// Questions that the device answers.
    #[cfg(feature = "questions")]
    pub(super) questions: QuestionPolicy,
}

/// Checks the parts of a device, and returns its masks. Binds its streams to its ledger.
#[inline(always)]
pub(super) fn prepare<M: Trainable, F, V: Secrets>(
    identity: &mut Identity<V>,
    policy: &Policy,
    model: &M,
    memory: &Memory<'_>,
    ledger: &Ledger<F>,
) -> Result<DeviceMasks, SessionError> {
    check(model, memory)?;
    if !policy.suits_build() {
        return Err(SessionError::Build);
    }
    // From the provisioned root: helpers know nothing of ledgers.
    let masks = DeviceMasks::new(identity, ledger.nonce()).map_err(|_| SessionError::Element)?;
    let recognised = identity.root.recognise(ledger.chain());
    recognised.map_err(|_| SessionError::Element)?;
    identity.root.bind(ledger.nonce());
    Ok(masks)
}

/// Checks that the protocol can carry `model`, and that `memory` fits it.
#[inline(always)]
pub(super) fn check<M: Trainable>(model: &M, memory: &Memory<'_>) -> Result<(), SessionError> {
    if model.shape().is_none() {
        return Err(SessionError::Shape);
    }
    let expected = model.parameter_count();
    // An update has the most chunks with the widest values, of 57 bits.
    if u16::try_from(update_chunks(expected, 57)).is_err() {
        return Err(SessionError::Chunks);
    }
    let Workspace {
        local,
        update,
        scratch,
        ..
    } = &memory.work;
    // One by one: the compiler removes the checks if it knows the lengths.
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

/// Returns the streams of a device in a recorded round.
pub(super) fn streams_of<V: Secrets>(identity: &Identity<V>, round: u32) -> Streams<'_> {
    // The root was bound to the ledger when the session was made, or when the round was recorded.
    Streams::new(identity.device, identity.root.current(), round)
}

impl<M: Trainable, F, K, V: Secrets> Device<'_, M, F, K, V> {
    /// Returns the chain key of the device.
    pub(super) const fn chain(&mut self) -> Held<'_, V> {
        self.ledger.chain_of(&mut self.identity)
    }
}

impl<M: Trainable, F, K, V> Device<'_, M, F, K, V> {
    /// Checks that training can use this number of samples.
    #[inline(always)]
    pub(super) fn check_count(&self, samples: usize) -> Result<(), SampleError> {
        has_count(samples, M::MIN_SAMPLES, self.memory.work.order.len())
    }

    /// Checks that training can use all of the samples.
    #[inline(never)]
    pub(super) fn check_samples<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        self.check_count(samples.len())?;
        self.check_each(samples)
    }

    /// Checks each sample as [`Self::check_samples`] does, for any number of samples.
    #[inline(always)]
    pub(super) fn check_each<S>(&self, samples: &S) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        (0..samples.len()).try_for_each(|index| self.model.check_sample(samples, index))
    }
}

impl<M: Trainable, F, K: PersonalStore, V> Device<'_, M, F, K, V> {
    /// Checks that the device takes part in this round.
    #[inline(always)]
    pub(super) fn accept(&self, round: u32, invitation: &Invitation) -> Result<(), Decline> {
        let policy = &self.policy;
        let personal = invitation.personal().filter(|_| K::IS_PRESENT);
        // A matrix has different noise. The model checks it.
        let is_matrix = M::HAS_REQUESTS && invitation.is_matrix();
        // A round without a request is never silent.
        let is_silent = (M::HAS_REQUESTS || K::IS_PRESENT) && invitation.is_silent();
        let has_update = !(is_silent || is_matrix);
        // An answer has its own minimum noise, and needs no room for a personal model.
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

    /// Whether the store has room for the personal model of the round.
    fn has_room(&self, personal: &PersonalRequest) -> bool {
        personal.state_length(self.memory.global.len()) <= self.store.capacity()
    }
}

impl<M: Trainable, F, K, V: Secrets> Device<'_, M, F, K, V> {
    /// Switches the device's streams to this round, which is recorded next. A fault of the secure
    /// element therefore costs no participation.
    #[inline(always)]
    pub(super) fn draw_from(&mut self, round: u32) -> Result<(), Decline> {
        let begun = self.identity.root.begin(self.ledger.nonce(), round);
        begun.map_err(|_| declined(LedgerError::Element))
    }
}

/// Returns the reason to decline for unusable samples.
pub(super) fn unusable(error: SampleError) -> Decline {
    match error {
        SampleError::Count { .. } => Decline::NoSamples,
        _ => Decline::SAMPLES,
    }
}

/// Returns the reason to decline for an error of the ledger.
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
    /// Checks that the device answers a question, in addition to the checks of all rounds.
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
