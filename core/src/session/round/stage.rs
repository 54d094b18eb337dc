//! How far a round is.

use crate::{quantize::Repair, release::halves, session::trainable::Course};

/// How far the update of a round is.
#[derive(Clone, Copy)]
pub(in super::super) enum Stage<D> {
    /// Nothing is recorded, and nothing was drawn from the round's streams.
    Invited,
    /// The participation is recorded.
    Training(Course<D>),
    /// Training has ended: noise and masks are added.
    Covering(Covering),
    /// What lies where the update was is sent, as often as it takes.
    Covered,
}

/// An integer as it is sent, in two halves.
#[derive(Clone, Copy)]
pub(super) struct Halves {
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Halves {
    /// The halves of this integer.
    pub(super) const fn of(value: i64) -> Self {
        let (low, high) = halves(value);
        Self { low, high }
    }
}

/// What training has left to cover, and how far that is.
#[derive(Clone, Copy)]
pub(in super::super) struct Covering {
    pub(super) source: Source,
    /// Entries that are covered.
    pub(super) done: usize,
    /// Words that their noise took of its stream.
    pub(super) words: u64,
}

/// Where the integers come from.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// No update: zeros.
    Zeros,
    /// A rounded update, with what repairs it.
    Update(Repair),
    /// Integers where they are sent from.
    Integers,
}

impl Covering {
    /// Without an update.
    pub(in super::super) const ZEROS: Self = Self::of(Source::Zeros);

    /// Of integers where they are sent from.
    pub(super) const INTEGERS: Self = Self::of(Source::Integers);

    /// Of a rounded update that is repaired like this.
    pub(in super::super) const fn update(repair: Repair) -> Self {
        Self::of(Source::Update(repair))
    }

    const fn of(source: Source) -> Self {
        Self {
            source,
            done: 0,
            words: 0,
        }
    }
}
