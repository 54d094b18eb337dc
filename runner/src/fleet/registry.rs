//! The devices whose keys the coordinator has.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::stream::Stream;
use smolfed_core::wire::frame::{Encoded, Sealed};
use smolfed_core::wire::greeting::{Hello, Name};
use smolfed_core::wire::keys::{Nonce, Pseudonym};
use smolfed_core::wire::refusal::Refusal;

use super::chains::SearchLimit;
use super::ledgers::KnownLedgers;
use super::peer::ConnectionId;
use super::peer::Peer;

/// The devices whose keys the coordinator has.
pub struct Registry {
    /// By number.
    pub peers: BTreeMap<u32, Peer>,
    /// The devices' ledgers.
    pub ledgers: KnownLedgers,
    /// The devices by the names that those have which hide their numbers.
    names: HashMap<Pseudonym, u32>,
    searches: SearchLimit,
    nonces: Stream,
}

impl Registry {
    /// Devices that have not been in contact yet, with the chain keys that are remembered of them.
    /// `nonces` must be another stream at each start.
    #[must_use]
    pub fn new(mut peers: BTreeMap<u32, Peer>, ledgers: KnownLedgers, nonces: Stream) -> Self {
        let mut names = HashMap::new();
        for (device, peer) in &mut peers {
            peer.recall(&ledgers);
            names.extend(peer.pseudonyms().map(|name| (name, *device)));
        }
        Self {
            peers,
            ledgers,
            names,
            searches: SearchLimit::default(),
            nonces,
        }
    }

    /// The device of a Hello, if its key is here. Nothing shows yet that the Hello is from it.
    pub(super) fn device_of(&self, name: &Name) -> Option<u32> {
        match name {
            Name::Number(number) => self.peers.contains_key(number).then_some(*number),
            Name::Pseudonym(name) => self.names.get(name).copied(),
        }
    }

    /// [`Peer::hello`] of this device.
    pub(super) fn hello(
        &mut self,
        device: u32,
        connection: ConnectionId,
        hello: &Hello,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let nonce = self.nonce();
        let peer = self.peers.get_mut(&device).ok_or(Refusal::Tag)?;
        let found = peer.find(hello, now, &mut self.searches, &mut self.ledgers)?;
        Ok(peer.hello(connection, hello, found, nonce))
    }

    /// [`Peer::receive`] of this device.
    pub(super) fn receive(
        &mut self,
        device: u32,
        connection: ConnectionId,
        frame: &mut Sealed<'_>,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let peer = self.peers.get_mut(&device).ok_or(Refusal::Tag)?;
        let answer = peer.receive(connection, frame, now, &mut self.ledgers, out);
        let renamed = peer.take_renamed();
        for name in renamed.gone {
            self.names.remove(&name);
        }
        let new = renamed.new.into_iter();
        self.names.extend(new.map(|name| (name, device)));
        answer
    }

    /// A nonce that was never used before.
    pub(super) fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 16];
        self.nonces.fill_bytes(&mut nonce);
        nonce
    }
}
