//! The integers of a release, and their encoding in messages.

use super::halves::whole;
use crate::pack;
use crate::wire::message::{Packed, UPDATE_CHUNK_BYTES, UpdateChunk};

/// Integers in two halves, in the memory of two vectors of the model.
pub struct Integers<'a> {
    pub(super) low: &'a mut [u32],
    pub(super) high: &'a mut [u32],
    /// See [`UpdateChunk::negated`].
    pub(super) negated: bool,
    /// Bits of an integer in messages.
    pub(super) width: u32,
}

impl Integers<'_> {
    pub(super) const fn len(&self) -> usize {
        self.low.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = i64> {
        let halves = self.low.iter().zip(self.high.iter());
        halves.map(|(low, high)| match self.negated {
            true => -whole(*low, *high),
            false => whole(*low, *high),
        })
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = UpdateChunk<'_>> {
        let count = pack::capacity(self.width, UPDATE_CHUNK_BYTES).max(1);
        let parts = self.low.chunks(count).zip(self.high.chunks(count));
        (0..).zip(parts).map(|(index, (low, high))| UpdateChunk {
            index,
            negated: self.negated,
            more: false,
            packed: Packed::Halves {
                low,
                high,
                width: self.width,
            },
        })
    }
}

impl core::fmt::Debug for Integers<'_> {
    /// Shape only: an update for a trusted coordinator is private.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} integers", self.low.len())
    }
}
