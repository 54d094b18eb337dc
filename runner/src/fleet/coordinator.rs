//! The coordinator: a round with those devices of a cohort that are real.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smolfed_core::stream::{Purpose, Root, StreamId};

use super::exchange::{Absence, ExchangeOutcome, Offer};
use super::keys::{FleetKeys, KeysError};
use super::ledgers::KnownLedgers;
use super::peer::{Peer, Terms};
use super::registry::Registry;
use super::threads::{Report, SharedState};
use super::transport::{Address, Listener};
use crate::entropy::{EntropyError, secret};

/// Why the coordinator could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// An address to listen at.
    #[error("cannot listen at {address}: {source}; choose another address with `--listen`")]
    Listen {
        /// The address.
        address: Address,
        /// Why.
        source: std::io::Error,
    },
    /// A thread.
    #[error("cannot start a thread for a connection: {0}")]
    Thread(std::io::Error),
    /// The nonces of sessions, the identifier of a run.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Where devices are, and how long the coordinator waits for them.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// Addresses that the coordinator connects to.
    pub dial: Vec<Address>,
    /// Addresses at which the coordinator accepts connections.
    pub listen: Vec<Address>,
    /// Time for a device to complete its part in a round, from the invitation to the update.
    pub timeout: Duration,
}

/// The coordinator of a fleet.
#[derive(Debug)]
pub struct Coordinator {
    shared: Arc<SharedState>,
    /// Those that accept connections.
    threads: Vec<JoinHandle<()>>,
    keys: FleetKeys,
    timeout: Duration,
    /// Devices without a connection when they last missed a round: no round waits for them until
    /// they have reconnected.
    away: BTreeSet<u32>,
}

impl Coordinator {
    /// Opens the connections. Devices that cannot be reached are tried again, until it is dropped.
    ///
    /// # Errors
    /// [`FleetError::Keys`], [`FleetError::Listen`], [`FleetError::Entropy`],
    /// [`FleetError::Thread`].
    pub fn new(
        keys: FleetKeys,
        terms: Terms,
        endpoints: &Endpoints,
        report: Report,
    ) -> Result<Self, FleetError> {
        let peers = keys.keys().iter();
        let peers = peers.map(|(device, key)| (*device, Peer::new(*device, key.clone(), terms)));
        // Nonces must never repeat: those of a stream under a fresh secret do not.
        let nonces = Root::from_secret(*secret()?).stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: 0,
        });
        let registry = Registry::new(peers.collect(), KnownLedgers::open(keys.path())?, nonces);
        let shared = Arc::new(SharedState::new(registry, report));
        let listeners: Result<Vec<_>, _> = endpoints.listen.iter().map(listen).collect();
        let mut threads = Vec::new();
        for listener in listeners? {
            let shared = Arc::clone(&shared);
            threads.push(spawn(move || shared.accept(&*listener))?);
        }
        for address in &endpoints.dial {
            let address = address.clone();
            let shared = Arc::clone(&shared);
            // Detached: it may be blocked in an attempt to connect when the coordinator stops.
            spawn(move || shared.dial(&address))?;
        }
        Ok(Self {
            shared,
            threads,
            keys,
            timeout: endpoints.timeout,
            away: BTreeSet::new(),
        })
    }

    /// Whether the device is a real one.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        self.keys.members().contains(&device)
    }

    /// A round with the real devices of `cohort`, while the caller does something `meanwhile`.
    /// Takes at most the time-out, or as long as `meanwhile`.
    ///
    /// # Errors
    /// [`KeysError`] if the round number cannot be recorded as used; no device was invited then.
    pub fn round<T>(
        &mut self,
        offer: Offer,
        cohort: &[u32],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(BTreeMap<u32, ExchangeOutcome>, T), KeysError> {
        self.keys.use_round(offer.number)?;
        let offer = Arc::new(offer);
        let drawn: Vec<u32> = cohort.iter().copied().filter(|x| self.has(*x)).collect();
        let deadline = Instant::now() + self.timeout;
        {
            let mut registry = self.shared.registry();
            for device in &drawn {
                if let Some(peer) = registry.peers.get_mut(device) {
                    peer.offer(Arc::clone(&offer));
                }
            }
        }
        let result = meanwhile();
        self.wait_for(&drawn, deadline);
        Ok((self.close(&drawn), result))
    }

    /// Waits until each device has settled or is known to be away, or until the deadline.
    fn wait_for(&self, drawn: &[u32], deadline: Instant) {
        let mut registry = self.shared.registry();
        loop {
            let is_awaited = |device: &u32| match registry.peers.get(device) {
                None => false,
                Some(peer) if peer.is_settled() => false,
                Some(peer) => peer.is_reachable() || !self.away.contains(device),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !drawn.iter().any(is_awaited) {
                return;
            }
            registry = self.shared.wait(registry, left);
        }
    }

    fn close(&mut self, drawn: &[u32]) -> BTreeMap<u32, ExchangeOutcome> {
        let mut registry = self.shared.registry();
        let mut outcomes = BTreeMap::new();
        for device in drawn {
            let Some(peer) = registry.peers.get_mut(device) else {
                outcomes.insert(*device, ExchangeOutcome::Missing(Absence::Revoked));
                continue;
            };
            let Some(outcome) = peer.close() else {
                continue;
            };
            if peer.is_reachable() {
                self.away.remove(device);
            } else {
                self.away.insert(*device);
            }
            outcomes.insert(*device, outcome);
        }
        outcomes
    }

    /// What the table of devices is made from while a round runs.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        Arc::clone(&self.shared)
    }

    /// Reports an event, in a sentence.
    pub fn report(&self, event: &str) {
        self.shared.report(event);
    }

    /// The lowest round number that the fleet has not used.
    #[must_use]
    pub const fn next_round(&self) -> u32 {
        self.keys.next_round()
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // The panic of a thread was printed; there is nothing else to do about it.
            let _ = thread.join();
        }
    }
}

fn listen(address: &Address) -> Result<Box<dyn Listener>, FleetError> {
    address.listen().map_err(|source| FleetError::Listen {
        address: address.clone(),
        source,
    })
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, FleetError> {
    let spawned = std::thread::Builder::new().spawn(work);
    spawned.map_err(FleetError::Thread)
}
