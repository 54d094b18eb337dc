//! All devices of a fleet: a round with those of them that were drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smolfed_core::stream::{Purpose, Root, StreamId};

use super::address::{Address, Listener};
use super::exchange::{Offer, Verdict};
use super::keys::{FleetKeys, KeysError};
use super::line::Roster;
use super::links::Switchboard;
use super::peer::{Peer, Terms};

/// Why a fleet could not be brought together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// Devices cannot be waited for.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: Address,
        /// Why.
        source: std::io::Error,
    },
    /// No thread.
    #[error("the operating system gives no thread for a connection: {0}")]
    Thread(std::io::Error),
    /// No secrets.
    #[error("the operating system gives no random bytes: {0}")]
    Entropy(String),
}

/// 32 secret bytes of the operating system.
///
/// # Errors
/// [`FleetError::Entropy`].
pub fn secret() -> Result<[u8; 32], FleetError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| FleetError::Entropy(error.to_string()))?;
    Ok(secret)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, FleetError> {
    let spawned = std::thread::Builder::new().spawn(work);
    spawned.map_err(FleetError::Thread)
}

/// Where devices are, and how long they are waited for.
#[derive(Clone, Debug)]
pub struct Places {
    /// Devices that the coordinator connects to.
    pub dial: Vec<Address>,
    /// Where devices connect to the coordinator.
    pub listen: Vec<Address>,
    /// Time for a device to complete its part in a round, from the invitation to the update.
    pub timeout: Duration,
}

/// A fleet at work.
#[derive(Debug)]
pub struct Fleet {
    shared: Arc<Switchboard>,
    /// Those that accept connections.
    threads: Vec<JoinHandle<()>>,
    keys: FleetKeys,
    timeout: Duration,
    /// Devices that had no connection when they last missed a round: they are not waited for until
    /// they are back.
    away: BTreeSet<u32>,
}

impl Fleet {
    /// Opens the connections. `report` is told in a sentence when one comes or goes.
    ///
    /// # Errors
    /// [`FleetError::Listen`], [`FleetError::Entropy`]. Devices that cannot be reached are tried
    /// again for as long as the fleet is there.
    pub fn new(
        keys: FleetKeys,
        terms: Terms,
        places: &Places,
        report: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Self, FleetError> {
        let peers = keys.keys().iter();
        let peers = peers.map(|(device, key)| (*device, Peer::new(*device, key.clone(), terms)));
        // Nonces only have to be new, and a stream under a fresh secret is.
        let nonces = Root::from_secret(secret()?).stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: 0,
        });
        let shared = Arc::new(Switchboard::new(
            Roster::new(peers.collect(), nonces),
            report,
        ));
        let listeners: Result<Vec<Listener>, FleetError> = places
            .listen
            .iter()
            .map(|address| {
                let listener = address.listen();
                listener.map_err(|source| FleetError::Listen {
                    address: address.clone(),
                    source,
                })
            })
            .collect();
        let mut threads = Vec::new();
        for listener in listeners? {
            let shared = Arc::clone(&shared);
            threads.push(spawn(move || shared.accept(&listener))?);
        }
        for address in &places.dial {
            let address = address.clone();
            let shared = Arc::clone(&shared);
            // Not waited for at the end: it may be in the middle of connecting.
            spawn(move || shared.dial(&address))?;
        }
        Ok(Self {
            shared,
            threads,
            keys,
            timeout: places.timeout,
            away: BTreeSet::new(),
        })
    }

    /// Whether the device is a real one.
    #[must_use]
    pub fn has(&self, device: u32) -> bool {
        self.keys.keys().contains_key(&device)
    }

    /// A round with those of `cohort` that are real; the others are left to the caller, who may do
    /// something `meanwhile`. Takes no longer than the time-out and what happens meanwhile.
    ///
    /// # Errors
    /// [`KeysError`] if the round's number cannot be used up: nobody was invited then.
    pub fn round<T>(
        &mut self,
        offer: Offer,
        cohort: &[u32],
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(BTreeMap<u32, Verdict>, T), KeysError> {
        self.keys.use_round(offer.number)?;
        let offer = Arc::new(offer);
        let drawn: Vec<u32> = cohort.iter().copied().filter(|x| self.has(*x)).collect();
        let deadline = Instant::now() + self.timeout;
        {
            let mut roster = self.shared.roster();
            for device in &drawn {
                if let Some(peer) = roster.peers.get_mut(device) {
                    peer.offer(Arc::clone(&offer));
                }
            }
        }
        let result = meanwhile();
        self.wait_for(&drawn, deadline);
        Ok((self.close(&drawn), result))
    }

    /// Waits until each device has settled, is known to be away, or the time is up.
    fn wait_for(&self, drawn: &[u32], deadline: Instant) {
        let mut roster = self.shared.roster();
        loop {
            let is_awaited = |device: &u32| match roster.peers.get(device) {
                None => false,
                Some(peer) if peer.is_settled() => false,
                Some(peer) => peer.is_reachable() || !self.away.contains(device),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !drawn.iter().any(is_awaited) {
                return;
            }
            roster = self.shared.wait(roster, left);
        }
    }

    fn close(&mut self, drawn: &[u32]) -> BTreeMap<u32, Verdict> {
        let mut roster = self.shared.roster();
        let mut verdicts = BTreeMap::new();
        for device in drawn {
            let Some(peer) = roster.peers.get_mut(device) else {
                continue;
            };
            let Some(verdict) = peer.close() else {
                continue;
            };
            if peer.is_reachable() {
                self.away.remove(device);
            } else {
                self.away.insert(*device);
            }
            verdicts.insert(*device, verdict);
        }
        verdicts
    }

    /// What shows the table of devices while a round goes on.
    #[must_use]
    pub fn switchboard(&self) -> Arc<Switchboard> {
        Arc::clone(&self.shared)
    }

    /// Tells whoever watches.
    pub fn say(&self, what: &str) {
        self.shared.say(what);
    }

    /// The lowest round number that the fleet has not used.
    #[must_use]
    pub const fn next_round(&self) -> u32 {
        self.keys.next_round()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}
