//! How far a round is.

use super::own_noise::{NoNoise, OwnNoise};
use crate::{quantize::Repair, session::trainable::Course, wire::message::Invitation};

/// How far the update of a round is.
#[derive(Clone, Copy)]
pub(in super::super) enum Stage<D> {
    /// Nothing is recorded, and nothing was drawn from the round's streams.
    Invited,
    /// The participation is recorded.
    Training(Course<D>),
    /// Training has ended, and its personal state is kept before anything is sent.
    Keeping(Source, Keep),
    /// Noise and masks are added.
    Covering(Covering),
    /// What lies where the update was is sent, as often as it takes.
    Covered,
}

/// What training has left to cover, and how far that is.
#[derive(Clone, Copy)]
pub(in super::super) struct Covering {
    pub(super) source: Source,
    /// That of the invitation; once all entries are covered, that of the bit.
    pub(in super::super) noise: Option<OwnNoise>,
    /// Entries that are covered.
    pub(super) done: usize,
    /// Words that their noise took of its stream.
    pub(super) words: u64,
    /// Helpers whose masks are added.
    pub(super) helpers: u8,
}

/// What is done with a personal state once training has ended.
#[derive(Clone, Copy)]
pub(in super::super) enum Keep {
    /// The new one is saved.
    New,
    /// There is no new one: the state before is looked for.
    Unchanged,
    /// What was found, or zeros, or what a damaged one has left, is saved as that of a round.
    As(u32),
}

/// Where the integers come from.
#[derive(Clone, Copy)]
pub(in super::super) enum Source {
    /// No update: zeros.
    Zeros,
    /// A rounded update, with what repairs it.
    Update(Repair),
    /// Integers where they are sent from.
    Integers,
}

impl Covering {
    /// From the first entry on, under the noise that the invitation asks for.
    ///
    /// # Errors
    /// [`NoNoise`] in a build without noise, if some is asked for.
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
