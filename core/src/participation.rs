//! A round that a device takes part in: what its ledger gives once, and where the round's
//! randomness comes from.

use crate::stream::{Purpose, Root, Stream, StreamId, shuffle};

/// One participation of a device, from [`Ledger::begin`](crate::ledger::Ledger::begin).
///
/// It is the only source of the device's random streams in this round, it cannot be copied, and the
/// ledger, on flash, gives none for the same round again: so nothing is ever covered by noise that
/// has covered something else.
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

    /// The device's stream for this purpose in this round, from its beginning.
    pub(crate) fn stream(&self, purpose: Purpose) -> Stream {
        self.root.open(StreamId {
            purpose,
            round: self.round,
            device: self.device,
        })
    }

    /// [`Self::stream`] from where `words` of it were drawn.
    #[inline(never)]
    pub(crate) fn stream_from(&self, purpose: Purpose, words: u64) -> Stream {
        let mut stream = self.stream(purpose);
        stream.skip(words);
        stream
    }

    /// A random order, from where `words` of the stream of orders were drawn; they are counted.
    #[inline(never)]
    pub(crate) fn shuffle(&self, order: &mut [u32], words: &mut u64) {
        let mut stream = self.stream_from(Purpose::BatchShuffle, *words);
        shuffle(order, &mut stream);
        *words = stream.position();
    }
}

impl core::fmt::Debug for Participation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Participation({})", self.round)
    }
}
