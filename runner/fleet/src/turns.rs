//! One round in progress: the awaited devices, and their turns.
//!
//! Devices that receive the model share the line and the processors, so a bounded number of them is
//! *in flight*: invited, and without the whole model. The next one is invited when one of them has
//! its model, declines, or stays silent for so long that it must not hold up the others. Devices
//! then take as long as they need: training is slow, and updates come when they are ready.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::exchange::Offer;
use super::lock::lock;
use super::peer::ConnectionId;
use super::quorum::Places;
use super::registry::Registry;

/// Silence after which a device in flight loses its turn to another one. It may still complete the
/// round.
const STALL: Duration = Duration::from_secs(2);

/// Condition for the end of a round.
#[derive(Clone, Copy)]
enum Over<'a> {
    /// When no device is awaited, or these places are taken.
    Complete(Option<&'a Places>),
    /// At the end of a window of time, in which at most `cohort_size` devices get the newest
    /// version.
    AtItsTime { cohort_size: usize },
}

/// A round in progress.
pub(super) struct Turns<'a> {
    registry: &'a Registry,
    /// When the round is over.
    over: Over<'a>,
    /// Devices invited to the newest version, in a window of time.
    invited: BTreeSet<u32>,
    /// Maximum number of devices in flight.
    window: usize,
    drawn: BTreeSet<u32>,
    /// Devices that are still at work on the round.
    awaited: BTreeSet<u32>,
    /// Devices with a session that wait for their turn, since this call of [`Self::advance`].
    queue: VecDeque<(u32, u64)>,
    /// Number of calls of [`Self::advance`].
    calls: u64,
    queued: BTreeSet<u32>,
    /// When each device in flight got its turn.
    flight: BTreeMap<u32, Duration>,
}

impl<'a> Turns<'a> {
    /// Offers the round to the selected devices.
    pub(super) fn new(
        registry: &'a Registry,
        offer: &'a Arc<Offer>,
        drawn: &[u32],
        window: usize,
    ) -> Self {
        for device in drawn {
            if let Some(peer) = registry.peer(*device) {
                lock(&peer).hold(Arc::clone(offer));
            }
        }
        let over = Over::Complete(offer.places.as_ref());
        Self::of(registry, over, drawn, window)
    }

    /// Returns a window of time with devices that have an offer, in which at most `cohort_size`
    /// devices get the newest version.
    pub(super) fn of_window(
        registry: &'a Registry,
        cohort_size: usize,
        devices: &[u32],
        window: usize,
    ) -> Self {
        Self::of(registry, Over::AtItsTime { cohort_size }, devices, window)
    }

    fn of(registry: &'a Registry, over: Over<'a>, drawn: &[u32], window: usize) -> Self {
        let mut turns = Self {
            registry,
            over,
            invited: BTreeSet::new(),
            window: window.max(1),
            drawn: drawn.iter().copied().collect(),
            awaited: BTreeSet::new(),
            queue: VecDeque::new(),
            calls: 0,
            queued: BTreeSet::new(),
            flight: BTreeMap::new(),
        };
        drawn.iter().for_each(|device| turns.look_at(*device));
        turns
    }

    /// Updates the state of a device.
    pub(super) fn look_at(&mut self, device: u32) {
        if !self.drawn.contains(&device) {
            return;
        }
        let Some(peer) = self.registry.peer(device) else {
            // Its key was revoked.
            self.awaited.remove(&device);
            return;
        };
        let peer = lock(&peer);
        if peer.is_settled() {
            self.awaited.remove(&device);
        } else if peer.is_reachable() {
            self.awaited.insert(device);
            if !self.flight.contains_key(&device) && self.queued.insert(device) {
                self.queue.push_back((device, self.calls));
            }
        } else if peer.is_away() {
            self.awaited.remove(&device);
        } else {
            self.awaited.insert(device);
        }
    }

    /// Gives turns to as many devices as the window allows. Returns their connections, which have
    /// invitations to send.
    pub(super) fn advance(&mut self, now: Duration) -> Vec<ConnectionId> {
        let registry = self.registry;
        self.flight.retain(|device, turn| {
            registry.peer(*device).is_some_and(|peer| {
                let peer = lock(&peer);
                let last = peer.last_received().unwrap_or_default().max(*turn);
                peer.is_in_flight() && now.saturating_sub(last) < STALL
            })
        });
        let mut connections = Vec::new();
        let mut places = self.places_left();
        // Without a place no device is invited. Devices that have a version come by themselves.
        while self.flight.len() < self.window && places > 0 {
            let Some((device, since)) = self.queue.pop_front() else {
                break;
            };
            self.queued.remove(&device);
            let Some(peer) = registry.peer(device) else {
                continue;
            };
            let mut peer = lock(&peer);
            // A device without a session returns to the queue with its next session.
            if peer.is_reachable() && !peer.is_settled() {
                if peer.position().is_some_and(|position| position.is_held) {
                    places -= 1;
                    self.invited.insert(device);
                }
                connections.extend(peer.release(since < self.calls));
                if peer.is_in_flight() {
                    self.flight.insert(device, now);
                }
            }
        }
        self.calls += 1;
        connections
    }

    /// Returns how many more devices may be invited. In a window of time, devices that decline for
    /// public reasons give their places to others.
    fn places_left(&self) -> usize {
        let Over::AtItsTime { cohort_size } = self.over else {
            return usize::MAX;
        };
        let has_declined = |device: &u32| {
            let peer = self.registry.peer(*device);
            let position = peer.and_then(|peer| lock(&peer).position());
            position.is_some_and(|position| position.has_declined)
        };
        let taken = self.invited.iter().filter(|device| !has_declined(device));
        cohort_size.saturating_sub(taken.count())
    }

    /// Returns the number of awaited devices.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Returns whether no device is awaited any more, or the round has its quorum.
    pub(super) fn is_over(&self) -> bool {
        match self.over {
            Over::Complete(places) => {
                self.awaited.is_empty() || places.is_some_and(Places::are_taken)
            }
            Over::AtItsTime { .. } => false,
        }
    }
}
