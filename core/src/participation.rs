//! A round that a device takes part in: what its ledger gives once, and where the round's
//! randomness comes from.

use crate::stream::{Purpose, Root, Stream, StreamId, shuffle};

/// One participation of a device, from [`Ledger::begin`](crate::ledger::Ledger::begin).
///
/// It is the only source of the device's random streams in this round outside of a session, which
/// records the round itself. It cannot be copied, and the ledger, on flash, gives none for the same
/// round again: so nothing is ever covered by noise that has covered something else.
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
    /// That of a device whose streams in this round are under this root, once its ledger has
    /// recorded the round.
    pub(crate) const fn new(device: u32, root: Root, round: u32) -> Self {
        Self {
            round,
            device,
            root,
        }
    }

    /// The round.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// The streams of the round.
    pub(crate) const fn streams(&self) -> Streams<'_> {
        Streams::new(self.device, &self.root, self.round)
    }
}

/// The random streams of a device in a round. They borrow its root, which is on the stack of none
/// that draws.
#[derive(Clone, Copy)]
pub(crate) struct Streams<'a> {
    round: u32,
    device: u32,
    root: &'a Root,
}

impl<'a> Streams<'a> {
    /// Those of a round that the device's ledger has recorded, under the root of this ledger.
    pub(crate) const fn new(device: u32, root: &'a Root, round: u32) -> Self {
        Self {
            round,
            device,
            root,
        }
    }

    /// The stream for this purpose, from its beginning.
    #[inline]
    pub(crate) fn open(&self, purpose: Purpose) -> Stream {
        self.root.open(StreamId {
            purpose,
            round: self.round,
            device: self.device,
        })
    }

    /// A random order, from where `words` of the stream of orders were drawn; they are counted.
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
