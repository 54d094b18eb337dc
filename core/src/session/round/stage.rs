//! The stages of a round on a device: invited, training, saving its personal state, adding noise
//! and masks, and ready to send.

use super::own_noise::{NoNoise, OwnNoise};
use crate::{quantize::Repair, session::trainable::Course, wire::message::Invitation};

/// The progress of a round's update.
#[derive(Clone, Copy)]
pub(in super::super) enum Stage<D> {
    /// Nothing is recorded, and nothing was drawn from the round's streams.
    Invited,
    /// The participation is recorded.
    Training(Course<D>),
    /// Training has ended, and its personal state is saved before anything is sent.
    Keeping(Source, Keep),
    /// Noise and masks are being added.
    Covering(Covering),
    /// The covered update is sent until it arrives.
    Covered,
}

/// The progress of covering the result of training.
#[derive(Clone, Copy)]
pub(in super::super) struct Covering {
    pub(super) source: Source,
    /// The noise of the invitation, or the noise of the bit once all entries are covered.
    pub(in super::super) noise: Option<OwnNoise>,
    /// Number of covered entries.
    pub(super) done: usize,
    /// Words drawn from the stream of their noise.
    pub(super) words: u64,
    /// Number of helpers whose masks are added.
    pub(super) helpers: u8,
}

/// The personal state to save once training has ended.
#[derive(Clone, Copy)]
pub(in super::super) enum Keep {
    /// Save the new state.
    New,
    /// There is no new state: look for the previous one.
    Unchanged,
    /// Save the memory under this round: the state found, zeros, or the remains of a damaged state.
    As(u32),
}

/// The source of the integers.
#[derive(Clone, Copy)]
pub(in super::super) enum Source {
    /// No update: zeros.
    Zeros,
    /// A rounded update, with its repair.
    Update(Repair),
    /// Integers that are already in place.
    Integers,
}

impl Covering {
    /// Starts at the first entry, with the noise that the invitation asks for.
    ///
    /// # Errors
    /// Returns [`NoNoise`] in a build without noise, if the invitation asks for some.
    pub(in super::super) fn new(source: Source, invitation: &Invitation) -> Result<Self, NoNoise> {
        Ok(Self {
            source,
            noise: OwnNoise::of(invitation.noise)?,
            done: 0,
            words: 0,
            helpers: 0,
        })
    }
}
