//! The devices whose keys the coordinator has.
//!
//! Each device has a lock of its own, under which its frames are opened and sealed: two devices
//! never wait for each other's cryptography. All other locks here are held for a lookup.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::stream::Stream;
use smolfed_core::wire::mac::Nonce;

use super::ledgers::KnownLedgers;
use super::peer::Peer;

/// A device that several connections and the coordinator share.
pub type SharedPeer = Arc<Mutex<Peer>>;

/// Sessions without a connection that are compared with a frame of unknown origin: each comparison
/// costs a tag.
const MAX_ORPHANS_COMPARED: usize = 256;

/// The devices whose keys the coordinator has.
pub struct Registry {
    /// By number.
    peers: RwLock<BTreeMap<u32, SharedPeer>>,
    ledgers: Mutex<KnownLedgers>,
    nonces: Mutex<Stream>,
    /// Devices whose connection was lost, and whose session may continue on another one.
    orphans: Mutex<BTreeSet<u32>>,
    /// Devices whose session or part in the round has changed since the coordinator last looked.
    changed: Mutex<BTreeSet<u32>>,
    change: Condvar,
}

impl Registry {
    /// Devices that have not been in contact yet. `nonces` must be another stream at each start.
    #[must_use]
    pub fn new(peers: BTreeMap<u32, Peer>, ledgers: KnownLedgers, nonces: Stream) -> Self {
        let shared = |(device, peer)| (device, Arc::new(Mutex::new(peer)));
        Self {
            peers: RwLock::new(peers.into_iter().map(shared).collect()),
            ledgers: Mutex::new(ledgers),
            nonces: Mutex::new(nonces),
            orphans: Mutex::default(),
            changed: Mutex::default(),
            change: Condvar::new(),
        }
    }

    /// The device, if the coordinator has its key.
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

    /// How many devices there are.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.all().len()
    }

    /// A device in the place of the one with its number, if any.
    pub fn insert(&self, device: u32, peer: Peer) {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.insert(device, Arc::new(Mutex::new(peer)));
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u32, SharedPeer>> {
        self.peers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The devices' ledgers.
    pub fn ledgers(&self) -> MutexGuard<'_, KnownLedgers> {
        lock(&self.ledgers)
    }

    /// A nonce that was never used before.
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

    /// Devices whose session may continue on another connection, or some of them if there are many.
    pub(super) fn orphans(&self) -> Vec<u32> {
        let orphans = lock(&self.orphans);
        orphans.iter().take(MAX_ORPHANS_COMPARED).copied().collect()
    }

    /// Tells the coordinator that something about a device has changed.
    pub(super) fn notify(&self, device: u32) {
        lock(&self.changed).insert(device);
        self.change.notify_one();
    }

    /// The devices about which something has changed since the last call; waits for one, at most
    /// `timeout`.
    pub fn changes(&self, timeout: Duration) -> BTreeSet<u32> {
        let changed = lock(&self.changed);
        let waited = self
            .change
            .wait_timeout_while(changed, timeout, |changed| changed.is_empty());
        let (mut changed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut changed)
    }
}

/// Takes a lock. A thread that panicked while it held it left nothing half done that matters: what
/// is behind these locks is changed by single assignments.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
