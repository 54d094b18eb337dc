//! The devices whose keys the coordinator has: their lookup by number or pseudonym, and the
//! sessions whose connection was lost.
//!
//! Each device has a separate lock, under which its frames are opened and sealed: two devices never
//! wait for each other's cryptography. All other locks here are held for a lookup, and that of the
//! ledgers also while they are written.
//!
//! A thread takes locks in this order, so that no two threads wait for each other:
//!
//! 1. the list of devices, which is kept only by [`Registry::for_each`],
//! 2. one device, and never two,
//! 3. ledgers, searches or nonces, alone, or names,
//! 4. orphans, then changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::stream::Stream;
use smolfed_core::wire::frame::{Encoded, Sealed};
use smolfed_core::wire::greeting::{Hello, Name};
use smolfed_core::wire::keys::{Nonce, Pseudonym};
use smolfed_core::wire::refusal::Refusal;

use super::chains::SearchLimit;
use super::handshakes::HandshakeLimit;
use super::ledgers::KnownLedgers;
use super::lock::lock;
use super::peer::{ConnectionId, Peer};

/// A device that several connections and the coordinator share.
pub type SharedPeer = Arc<Mutex<Peer>>;

/// Maximum number of sessions without a connection that are compared with a frame of unknown
/// origin: each comparison costs a tag.
const MAX_ORPHANS_COMPARED: usize = 256;

/// The devices whose keys the coordinator has.
pub struct Registry {
    /// Devices by number.
    peers: RwLock<BTreeMap<u32, SharedPeer>>,
    ledgers: Mutex<KnownLedgers>,
    /// The devices by pseudonym, for devices that hide their numbers.
    names: RwLock<HashMap<Pseudonym, u32>>,
    searches: Mutex<SearchLimit>,
    nonces: Mutex<Stream>,
    /// Devices whose connection was lost, and whose session may continue on another one.
    orphans: Mutex<BTreeSet<u32>>,
    /// Devices whose session or part in the round has changed since the coordinator last looked.
    changed: Mutex<BTreeSet<u32>>,
    change: Condvar,
}

impl Registry {
    /// Returns a registry of devices without contact so far, with their remembered chain keys.
    /// `nonces` must be a different stream at each start.
    #[must_use]
    pub fn new(mut peers: BTreeMap<u32, Peer>, ledgers: KnownLedgers, nonces: Stream) -> Self {
        let mut names = HashMap::new();
        for (device, peer) in &mut peers {
            peer.recall(&ledgers);
            names.extend(peer.pseudonyms().map(|name| (name, *device)));
        }
        let shared = |(device, peer)| (device, Arc::new(Mutex::new(peer)));
        Self {
            peers: RwLock::new(peers.into_iter().map(shared).collect()),
            ledgers: Mutex::new(ledgers),
            names: RwLock::new(names),
            searches: Mutex::default(),
            nonces: Mutex::new(nonces),
            orphans: Mutex::default(),
            changed: Mutex::default(),
            change: Condvar::new(),
        }
    }

    /// Returns the device, if the coordinator has its key.
    #[must_use]
    pub fn peer(&self, device: u32) -> Option<SharedPeer> {
        self.all().get(&device).map(Arc::clone)
    }

    /// Visits the devices in the order of their numbers, one after the other.
    pub fn for_each(&self, mut visit: impl FnMut(u32, &Peer)) {
        for (device, peer) in self.all().iter() {
            visit(*device, &lock(peer));
        }
    }

    /// Returns the number of devices.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.all().len()
    }

    /// Adds a device, or replaces the one with its number.
    pub fn insert(&self, device: u32, mut peer: Peer) {
        peer.recall(&self.ledgers());
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.extend(peer.pseudonyms().map(|name| (name, device)));
        drop(names);
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.insert(device, Arc::new(Mutex::new(peer)));
    }

    /// Removes a device and ends its sessions.
    pub fn remove(&self, device: u32) {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        let removed = peers.remove(&device);
        drop(peers);
        let Some(peer) = removed else {
            return;
        };
        let mut peer = lock(&peer);
        peer.revoke();
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        for name in peer.pseudonyms() {
            names.remove(&name);
        }
        self.set_orphan(device, false);
        self.notify(device);
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u32, SharedPeer>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the devices' ledgers.
    pub fn ledgers(&self) -> MutexGuard<'_, KnownLedgers> {
        lock(&self.ledgers)
    }

    /// Returns the device of a Hello, if its key is known. The Hello is not yet authenticated.
    pub(super) fn device_of(&self, name: &Name) -> Option<(u32, SharedPeer)> {
        let device = match name {
            Name::Number(number) => *number,
            Name::Pseudonym(name) => {
                let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
                *names.get(name)?
            }
        };
        Some((device, self.peer(device)?))
    }

    /// Calls [`Peer::hello`] of this device.
    pub(super) fn hello(
        &self,
        peer: &mut Peer,
        connection: ConnectionId,
        hello: &Hello,
        handshakes: &mut HandshakeLimit,
        now: Duration,
    ) -> Result<Encoded, Refusal> {
        let found = peer.find(hello, now, &self.searches, &self.ledgers)?;
        peer.hello(connection, hello, found, self.nonce(), handshakes, now)
    }

    /// Calls [`Peer::receive`] of this device.
    pub(super) fn receive(
        &self,
        device: u32,
        peer: &mut Peer,
        connection: ConnectionId,
        frame: &mut Sealed<'_>,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let answer = peer.receive(connection, frame, now, &self.ledgers, out);
        let renamed = peer.take_renamed();
        if !renamed.is_empty() {
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            for name in renamed.gone {
                names.remove(&name);
            }
            names.extend(renamed.new.into_iter().map(|name| (name, device)));
        }
        answer
    }

    /// Returns an unused nonce.
    pub(super) fn nonce(&self) -> Nonce {
        let mut nonce = [0; 16];
        lock(&self.nonces).fill_bytes(&mut nonce);
        nonce
    }

    /// Records whether the device has a session without a connection.
    pub(super) fn set_orphan(&self, device: u32, is_orphan: bool) {
        let mut orphans = lock(&self.orphans);
        if is_orphan {
            orphans.insert(device);
        } else {
            orphans.remove(&device);
        }
    }

    /// Returns the devices whose session may continue on another connection, or some of them if
    /// there are many.
    pub(super) fn orphans(&self) -> Vec<u32> {
        let orphans = lock(&self.orphans);
        orphans.iter().take(MAX_ORPHANS_COMPARED).copied().collect()
    }

    /// Tells the coordinator that a device has changed.
    pub(super) fn notify(&self, device: u32) {
        lock(&self.changed).insert(device);
        self.change.notify_one();
    }

    /// Returns the devices that have changed since the last call. Waits up to `timeout` for one.
    pub fn changes(&self, timeout: Duration) -> BTreeSet<u32> {
        let changed = lock(&self.changed);
        let waited = self
            .change
            .wait_timeout_while(changed, timeout, |changed| changed.is_empty());
        let (mut changed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut changed)
    }
}
