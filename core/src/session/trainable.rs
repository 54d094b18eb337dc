//! The models that a session trains: models of labelled samples, in floats or in integers, and
//! encoders without labels.

#[cfg(feature = "questions")]
mod answer;
mod integer;
mod labelled;
mod unlabelled;

pub use integer::FixedPoint;
pub use unlabelled::{Parts, Unlabelled};

use super::{memory::Memory, policy::Policy};
#[cfg(feature = "short")]
use crate::wire::message::ModelGrid;
use crate::{
    participation::Streams,
    personal::{Before, PersonalRequest, Place},
    samples::{SampleError, Samples},
    train::{TrainReport, Workspace},
    wire::message::{Decline, Invitation, ModelShape},
};

/// A model that a session trains: a [`Model`](crate::model::Model) on labelled samples, or an
/// encoder without labels ([`Unlabelled`]).
pub trait Trainable {
    /// The target of a sample: a class, a value, or nothing.
    type Target: Copy;

    /// State of a round that the device remembers to take part in its other part.
    type Parts: RoundParts;

    /// Progress of training between two pieces.
    type Descent: Copy;

    /// Minimum number of samples for an update.
    const MIN_SAMPLES: usize = 1;

    /// Whether its invitations have a [`Request`](crate::wire::message::Request).
    const HAS_REQUESTS: bool;

    /// Whether it answers questions about samples and itself.
    #[cfg(feature = "questions")]
    const ANSWERS: bool = false;

    /// Returns its description on the wire. `None` if the protocol cannot describe it.
    fn shape(&self) -> Option<ModelShape>;

    /// Returns the number of parameters that are trained and sent.
    fn parameter_count(&self) -> usize;

    /// Returns the length of [`Memory::global`](super::Memory::global): the parameters, and any
    /// values after them.
    fn global_count(&self) -> usize {
        self.parameter_count()
    }

    /// Returns the number of values that come down in a round.
    fn received_count(&self, _: &Invitation) -> usize {
        self.global_count()
    }

    /// Converts steps of a model's grid to the value that the session's memory holds.
    #[cfg(feature = "short")]
    fn of_steps(grid: ModelGrid, steps: i16) -> f32 {
        grid.value(steps)
    }

    /// Converts a value in memory back to the steps in which it came.
    #[cfg(feature = "short")]
    fn to_steps(grid: ModelGrid, value: f32) -> i16 {
        grid.steps(value)
    }

    /// Returns the minimum number of entries of scratch memory.
    fn scratch_count(&self) -> usize;

    /// Checks that it supports this invitation, in addition to the checks of all invitations.
    ///
    /// # Errors
    /// Returns the reason to decline.
    fn accepts(
        &self,
        invitation: &Invitation,
        policy: &Policy,
        memory: &Memory<'_>,
    ) -> Result<(), Decline>;

    /// Checks that the device can train with the received values. A decline here costs no
    /// participation. The result must not depend on the device's samples, or on their number unless
    /// that is public.
    ///
    /// # Errors
    /// Returns the reason to decline.
    fn check(&self, _: &Invitation, _global: &[f32], _samples: usize) -> Result<(), Decline> {
        Ok(())
    }

    /// Checks that training can use a sample: its length, its target, and that its features are
    /// finite.
    ///
    /// # Errors
    /// Returns [`SampleError`] if it cannot.
    fn check_sample<S>(&self, samples: &S, index: usize) -> Result<(), SampleError>
    where
        S: Samples<Target = Self::Target>;

    /// Trains on up to `most` more samples. At the end of training, clips and leaves the result to
    /// send in the work space. Training that has no pieces runs at once.
    ///
    /// # Errors
    /// Returns the reason that there is nothing to send.
    fn train<S>(
        &self,
        samples: &S,
        round: LocalRound<'_>,
        course: &mut Course<Self::Descent>,
        most: usize,
    ) -> Result<Learned, Decline>
    where
        S: Samples<Target = Self::Target>;
}

/// State of a round with several parts.
pub trait RoundParts: Default {
    /// Whether an invitation asks for the other part of a recorded round, and that part is not used
    /// up.
    fn has(&self, round: u32, invitation: &Invitation) -> bool;

    /// Uses up the part of a round that an invitation asks for. The other part remains available if
    /// this one was just recorded.
    fn take(&mut self, round: u32, invitation: &Invitation);
}

/// Rounds of one part.
impl RoundParts for () {
    fn has(&self, _: u32, _: &Invitation) -> bool {
        false
    }

    fn take(&mut self, _: u32, _: &Invitation) {}
}

/// One part of a round, and the device's resources for it.
pub struct LocalRound<'a> {
    pub(super) streams: Streams<'a>,
    pub(super) invitation: &'a Invitation,
    /// The request of the invitation, on a device with a store.
    pub(super) personal: Option<&'a PersonalRequest>,
    pub(super) global: &'a [f32],
    pub(super) work: Workspace<'a>,
}

/// The result of training in the work space.
pub enum Learned {
    /// Training continues.
    Unfinished,
    /// A clipped update in floats, and its training report.
    Update(TrainReport),
    /// Integers on the grid in two halves, in place of update and local model.
    Integers,
}

/// The progress of training in a round.
#[derive(Clone, Copy, Debug)]
pub struct Course<D> {
    /// Set once training has begun.
    pub(super) descent: Option<D>,
    /// Words drawn from the stream of orders. A question draws none, and stores here the number of
    /// samples already counted.
    pub(super) words: u64,
    /// The personal state from which the device continues.
    pub(super) before: Before,
    /// The place to read it to, before training continues.
    pub(super) wants: Option<Place>,
}

impl<D> Course<D> {
    /// Training that has not begun.
    pub(super) const START: Self = Self {
        descent: None,
        words: 0,
        before: Before::Unknown,
        wants: None,
    };
}
