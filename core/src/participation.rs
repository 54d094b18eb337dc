//! The participation of a device in a round: a one-time token from its ledger, and the source of
//! the round's randomness.

use crate::stream::{Purpose, Root, Stream, StreamId, shuffle};

/// A participation of a device, from [`Ledger::begin`](crate::ledger::Ledger::begin).
///
/// It is the only source of the device's random streams in this round outside of a session, which
/// records the round itself. It cannot be copied, and the ledger, on flash, never returns another
/// one for the same round, so noise never covers two different values.
///
/// ```compile_fail
/// # fn example(participation: smolfed_core::Participation) {
/// let again = participation.clone();
/// # }
/// ```
pub struct Participation {
    round: u32,
    device: u32,
    root: Root,
}

impl Participation {
    /// Creates the participation of a device with this root of its streams, after its ledger has
    /// recorded the round.
    pub(crate) const fn new(device: u32, root: Root, round: u32) -> Self {
        Self {
            round,
            device,
            root,
        }
    }

    /// Returns the round.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Returns the streams of the round.
    pub(crate) const fn streams(&self) -> Streams<'_> {
        Streams::new(self.device, &self.root, self.round)
    }
}

/// The random streams of a device in a round. They borrow its root, to keep it off the stack of
/// functions that draw.
#[derive(Clone, Copy)]
pub(crate) struct Streams<'a> {
    round: u32,
    device: u32,
    root: &'a Root,
}

impl<'a> Streams<'a> {
    /// Creates the streams of a round recorded by the device's ledger, under the root of this
    /// ledger.
    pub(crate) const fn new(device: u32, root: &'a Root, round: u32) -> Self {
        Self {
            round,
            device,
            root,
        }
    }

    /// Opens the stream for this purpose at its start.
    #[inline]
    pub(crate) fn open(&self, purpose: Purpose) -> Stream {
        self.root.open(StreamId {
            purpose,
            round: self.round,
            device: self.device,
        })
    }

    /// Shuffles `order` from position `words` of the stream of orders, and updates `words`.
    #[inline(never)]
    pub(crate) fn shuffle(&self, order: &mut [u32], words: &mut u64) {
        let mut stream = self.open(Purpose::BatchShuffle);
        stream.skip(*words);
        shuffle(order, &mut stream);
        *words = stream.position();
    }
}

impl core::fmt::Debug for Participation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Participation({})", self.round)
    }
}
