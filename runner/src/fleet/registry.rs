//! The devices whose keys the coordinator has.

use std::collections::BTreeMap;

use rand_core::Rng;
use smolfed_core::stream::Stream;
use smolfed_core::wire::mac::Nonce;

use super::ledgers::KnownLedgers;
use super::peer::Peer;

/// The devices whose keys the coordinator has.
pub struct Registry {
    /// By number.
    pub peers: BTreeMap<u32, Peer>,
    /// The devices' ledgers.
    pub ledgers: KnownLedgers,
    nonces: Stream,
}

impl Registry {
    /// Devices that have not been in contact yet. `nonces` must be another stream at each start.
    #[must_use]
    pub const fn new(peers: BTreeMap<u32, Peer>, ledgers: KnownLedgers, nonces: Stream) -> Self {
        Self {
            peers,
            ledgers,
            nonces,
        }
    }

    /// A nonce that was never used before.
    pub(super) fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 16];
        self.nonces.fill_bytes(&mut nonce);
        nonce
    }
}
