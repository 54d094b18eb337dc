//! A round that a device takes part in: what its ledger gives once, and where the round's
//! randomness comes from.

use crate::{
    identity::Identity,
    stream::{Purpose, Root, Stream, StreamId},
};

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
    /// That of a device whose streams are bound to the ledger which has recorded the round.
    pub(crate) fn new(bound: &Identity, round: u32) -> Self {
        Self {
            round,
            device: bound.device,
            root: bound.root.clone(),
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
}

impl core::fmt::Debug for Participation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Participation({})", self.round)
    }
}
