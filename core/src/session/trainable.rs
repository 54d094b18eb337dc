//! What a session trains: models of labelled samples, in numbers or in integers, and encoders
//! without labels.

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

/// What a session trains: a [`Model`](crate::model::Model) on labelled samples, or an encoder
/// without labels ([`Unlabelled`]).
pub trait Trainable {
    /// Of a sample: a class, a value, or nothing.
    type Target: Copy;

    /// What the device remembers of a round, to take part in another part of it.
    type Parts: RoundParts;

    /// How far a training is between two pieces of it.
    type Descent: Copy;

    /// The fewest samples with which there is an update.
    const MIN_SAMPLES: usize = 1;

    /// Whether invitations have a [`Request`](crate::wire::message::Request) of its own.
    const HAS_REQUESTS: bool;

    /// Whether it answers questions about samples and itself.
    #[cfg(feature = "questions")]
    const ANSWERS: bool = false;

    /// What it is on the wire; `None` if the protocol cannot describe it.
    fn shape(&self) -> Option<ModelShape>;

    /// Parameters that are trained, and sent.
    fn parameter_count(&self) -> usize;

    /// Values of [`Memory::global`](super::Memory::global): the parameters, and what may come
    /// behind them.
    fn global_count(&self) -> usize {
        self.parameter_count()
    }

    /// Values that come down in a round.
    fn received_count(&self, _: &Invitation) -> usize {
        self.global_count()
    }

    /// A number of steps of a model's grid as the memory of the session holds it.
    #[cfg(feature = "short")]
    fn of_steps(grid: ModelGrid, steps: i16) -> f32 {
        grid.value(steps)
    }

    /// The number of steps of what the memory holds, which came in steps.
    #[cfg(feature = "short")]
    fn to_steps(grid: ModelGrid, value: f32) -> i16 {
        grid.steps(value)
    }

    /// Entries of scratch memory, at least.
    fn scratch_count(&self) -> usize;

    /// Whether it can do what it is asked for, beside what is checked of all invitations.
    ///
    /// # Errors
    /// Why not.
    fn accepts(
        &self,
        invitation: &Invitation,
        policy: &Policy,
        memory: &Memory<'_>,
    ) -> Result<(), Decline>;

    /// Whether the device can train with what came down. What is refused here costs no
    /// participation. It must not depend on the device's samples, nor on their number unless that
    /// is public.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, _: &Invitation, _global: &[f32], _samples: usize) -> Result<(), Decline> {
        Ok(())
    }

    /// Whether training can use a sample: its length, whether features are finite, and its target.
    ///
    /// # Errors
    /// [`SampleError`].
    fn check_sample<S>(&self, samples: &S, index: usize) -> Result<(), SampleError>
    where
        S: Samples<Target = Self::Target>;

    /// Trains on up to `most` samples more, and where that is the end of it clips, and leaves what
    /// is to be sent in the work space. What cannot be done in pieces is done at once.
    ///
    /// # Errors
    /// Why there is nothing to send.
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

/// What a device remembers of a round that has several parts.
pub trait RoundParts: Default {
    /// Whether the part of a round that an invitation asks for goes on with one that was recorded,
    /// and is not used up.
    fn has(&self, round: u32, invitation: &Invitation) -> bool;

    /// Uses up the part of a round that an invitation asks for. The other one remains if this one
    /// was just recorded.
    fn take(&mut self, round: u32, invitation: &Invitation);
}

/// Rounds of one part.
impl RoundParts for () {
    fn has(&self, _: u32, _: &Invitation) -> bool {
        false
    }

    fn take(&mut self, _: u32, _: &Invitation) {}
}

/// One part of a round, and what it may use of the device.
pub struct LocalRound<'a> {
    pub(super) streams: Streams<'a>,
    pub(super) invitation: &'a Invitation,
    /// That of the invitation, on a device with a store.
    pub(super) personal: Option<&'a PersonalRequest>,
    pub(super) global: &'a [f32],
    pub(super) work: Workspace<'a>,
}

/// What training leaves in the work space.
pub enum Learned {
    /// Training goes on.
    Unfinished,
    /// A clipped update, in numbers, and how training went.
    Update(TrainReport),
    /// Integers on the grid, in two halves: in the places of update and local model.
    Integers,
}

/// How far the training of a round is.
#[derive(Clone, Copy, Debug)]
pub struct Course<D> {
    /// Once it has begun.
    pub(super) descent: Option<D>,
    /// Words that were drawn from the stream of orders. Of a question, which draws none, samples
    /// that were counted in.
    pub(super) words: u64,
    /// The personal state that the device goes on from.
    pub(super) before: Before,
    /// Where it is to be read to, before training goes on.
    pub(super) wants: Option<Place>,
}

impl<D> Course<D> {
    /// Training is to begin.
    pub(super) const START: Self = Self {
        descent: None,
        words: 0,
        before: Before::Unknown,
        wants: None,
    };
}
