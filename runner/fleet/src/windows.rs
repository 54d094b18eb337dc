//! Windows of time: which devices get the newest version of the model, and which updates have
//! arrived.
//!
//! A device that connects without an update is invited to the newest version. One that has the
//! model of an earlier version is invited to that again, and sends its update from it: a session
//! that has the update finds it by the round's number and the checksum of the invitation. So an
//! update survives sleep without a separate message.
//!
//! The end of a window depends on the clock alone. The number of invitations depends on the devices
//! that connect, and on those among them that decline for a public reason, such as their ledger. A
//! device that declines for its data keeps its place, and counts as an update of zeros. Otherwise
//! its data would decide whether another device takes part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::exchange::{Absence, ExchangeOutcome, Offer, is_of_data};
use super::lock::lock;
use super::peer::{Peer, Position};
use super::registry::Registry;
use smolfed_release::ReceivedUpdate;

/// The rule of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRule {
    /// Length of a window.
    pub length: Duration,
    /// s: the number of windows after the window of its version in which an update still counts.
    pub staleness: u32,
    /// Maximum number of devices invited to a version.
    pub cohort_size: u32,
    /// Minimum distance between two versions of a device.
    pub separation: u32,
    /// Maximum number of versions of a device.
    pub participations: u32,
}

/// The windows of a run so far.
#[derive(Debug)]
pub struct Windows {
    rule: WindowRule,
    /// When the last window ends.
    end: Option<Instant>,
    /// The number of the last version that each device has taken, and how many there were.
    taken: BTreeMap<u32, (u32, u32)>,
    /// The number of the last burned window, and how many there were. Each counts for all devices.
    burned: Option<(u32, u32)>,
}

/// An update that has arrived in a window.
#[derive(Debug)]
pub struct Arrival {
    /// The number of its version.
    pub number: u32,
    /// The update. Without one it counts as zeros, for this reason.
    pub update: Result<ReceivedUpdate, Absence>,
}

/// The outcomes of a window.
#[derive(Debug, Default)]
pub struct WindowResult {
    /// Updates that have arrived, by device.
    pub arrivals: BTreeMap<u32, Arrival>,
    /// Devices without an update, and the reasons.
    pub missing: BTreeMap<u32, Absence>,
    /// The devices among them that have spent a round.
    pub wasted: BTreeSet<u32>,
}

impl Windows {
    /// Returns the state before the first window.
    #[must_use]
    pub const fn new(rule: WindowRule) -> Self {
        Self {
            rule,
            end: None,
            taken: BTreeMap::new(),
            burned: None,
        }
    }

    /// Returns the rule of its windows.
    #[must_use]
    pub const fn rule(&self) -> &WindowRule {
        &self.rule
    }

    /// Returns whether the first window has begun.
    #[must_use]
    pub const fn have_begun(&self) -> bool {
        self.end.is_some()
    }

    /// Notes that the device has taken the version of this number.
    pub fn takes(&mut self, device: u32, number: u32) {
        let (last, count) = self.taken.entry(device).or_insert((number, 0));
        if *count == 0 || *last < number {
            (*last, *count) = (number, *count + 1);
        }
    }

    /// Returns whether the device may take the version of this number, as far as the coordinator
    /// knows. The device's ledger decides.
    fn may_take(&self, device: u32, number: u32) -> bool {
        let rule = &self.rule;
        let is_apart = |last: u32, least| number.checked_sub(last) >= Some(least);
        let taken = self.taken.get(&device);
        // An update of this version counts in its own window at the earliest.
        let between_windows = rule.separation.saturating_sub(rule.staleness);
        let counts = taken.map_or(0, |(_, count)| *count);
        let burns = self.burned.map_or(0, |(_, count)| count);
        taken.is_none_or(|(last, _)| is_apart(*last, rule.separation))
            && self
                .burned
                .is_none_or(|(last, _)| is_apart(last, between_windows))
            && counts + burns < rule.participations
    }

    /// Notes that the window of this number failed. It counts for all devices.
    pub fn burned(&mut self, number: u32) {
        let burns = self.burned.map_or(0, |(_, count)| count);
        self.burned = Some((number, burns + 1));
    }

    /// Returns whether an update of the version `number` counts in the window of `now`.
    fn is_in_time(&self, number: u32, now: u32) -> bool {
        now.checked_sub(number)
            .is_some_and(|age| age <= self.rule.staleness)
    }

    /// Returns the end of a window that begins now. All ends are a whole number of lengths apart,
    /// so that none depends on the duration of a sum.
    pub(super) fn next_end(&mut self, now: Instant) -> Instant {
        let length = self.rule.length;
        let mut end = self.end.map_or(now + length, |end| end + length);
        if end <= now {
            let late = (now - end).as_nanos() / length.as_nanos().max(1) + 1;
            end += length * u32::try_from(late).unwrap_or(u32::MAX);
        }
        self.end = Some(end);
        end
    }

    /// Offers a version to all devices that may take it and are not at work on an earlier one.
    /// Returns the devices that may send an update in the window.
    pub(super) fn open(
        &mut self,
        registry: &Registry,
        devices: impl Iterator<Item = u32>,
        offer: &Arc<Offer>,
        result: &mut WindowResult,
    ) -> Vec<u32> {
        let now = offer.number;
        let mut awaited = Vec::new();
        for device in devices {
            let Some(peer) = registry.peer(device) else {
                continue;
            };
            let mut peer = lock(&peer);
            let has_begun = |at: &Position| at.is_settled || at.is_engaged;
            match peer.position().filter(has_begun) {
                Some(at) if self.is_in_time(at.number, now) => awaited.push(device),
                begun => {
                    // A device that never began its version has missed nothing.
                    if let Some(at) = begun {
                        self.ends(device, &mut peer, &at, now, result);
                    }
                    if self.may_take(device, now) {
                        peer.hold(Arc::clone(offer));
                        awaited.push(device);
                    }
                }
            }
        }
        awaited
    }

    /// Takes the final outcomes at the end of the window `now`, and ends the exchanges whose update
    /// would count in no later window.
    pub(super) fn close(
        &mut self,
        registry: &Registry,
        devices: &[u32],
        now: u32,
        result: &mut WindowResult,
    ) {
        for device in devices {
            let Some(peer) = registry.peer(*device) else {
                result.missing.insert(*device, Absence::Revoked);
                continue;
            };
            let mut peer = lock(&peer);
            let Some(at) = peer.position() else {
                continue;
            };
            let is_last = !self.is_in_time(at.number, now.saturating_add(1));
            if at.is_settled || (is_last && at.is_engaged) {
                self.ends(*device, &mut peer, &at, now, result);
            } else if at.has_model {
                self.takes(*device, at.number);
            }
        }
    }

    /// Ends an exchange in the window `now`, and records its outcome.
    fn ends(
        &mut self,
        device: u32,
        peer: &mut Peer,
        at: &Position,
        now: u32,
        result: &mut WindowResult,
    ) {
        let update = match peer.close() {
            Some(ExchangeOutcome::Answered(_)) if !self.is_in_time(at.number, now) => {
                Err(Absence::Expired)
            }
            Some(ExchangeOutcome::Answered(update)) => Ok(update),
            Some(ExchangeOutcome::Missing(Absence::Malformed)) => Err(Absence::Malformed),
            Some(ExchangeOutcome::Missing(_)) if at.has_model => Err(Absence::Expired),
            Some(ExchangeOutcome::Missing(absence)) => Err(absence),
            // No other message was requested.
            Some(ExchangeOutcome::Message(_)) | None => return,
        };
        let number = at.number;
        match update {
            Ok(update) => {
                self.takes(device, number);
                // It may have lost an earlier version before.
                result.missing.remove(&device);
                let update = Ok(update);
                result.arrivals.insert(device, Arrival { number, update });
            }
            Err(absence) => {
                result.missing.insert(device, absence);
                if is_zero(absence) && self.is_in_time(number, now) {
                    self.takes(device, number);
                    let update = Err(absence);
                    result.arrivals.insert(device, Arrival { number, update });
                } else if at.has_model || is_spent(absence) {
                    self.takes(device, number);
                    result.wasted.insert(device);
                }
            }
        }
    }
}

/// Returns whether a device without an update counts as one with an update of zeros.
fn is_zero(absence: Absence) -> bool {
    matches!(absence, Absence::Declined(reason) if is_of_data(reason))
}

/// Returns whether the device has spent a round without an update that counts.
const fn is_spent(absence: Absence) -> bool {
    matches!(
        absence,
        Absence::SessionLost | Absence::OutOfBound | Absence::InvalidBit | Absence::Expired
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows() -> Windows {
        Windows::new(WindowRule {
            length: Duration::from_secs(10),
            staleness: 2,
            cohort_size: 5,
            separation: 4,
            participations: 2,
        })
    }

    #[test]
    fn a_device_takes_versions_that_are_far_enough_apart() {
        let mut windows = windows();
        assert!(windows.may_take(7, 3));
        windows.takes(7, 3);
        windows.takes(7, 3);
        let may: Vec<u32> = (0..12)
            .filter(|number| windows.may_take(7, *number))
            .collect();
        assert_eq!(may, [7, 8, 9, 10, 11]);
        windows.takes(7, 8);
        assert!(!windows.may_take(7, 100), "its third time");
        assert!(windows.may_take(8, 4));
    }

    /// b is two here, and s is two.
    #[test]
    fn after_a_window_that_came_to_nothing_nobody_takes_a_version_for_b_windows() {
        let mut windows = windows();
        windows.burned(5);
        let may: Vec<u32> = (5..10)
            .filter(|number| windows.may_take(7, *number))
            .collect();
        assert_eq!(may, [7, 8, 9]);
        windows.takes(7, 8);
        assert!(
            !windows.may_take(7, 100),
            "its second time, after that window"
        );
        assert!(windows.may_take(8, 100));
    }

    #[test]
    fn an_update_counts_in_the_windows_after_that_of_its_version() {
        let counts: Vec<u32> = (0..9).filter(|now| windows().is_in_time(4, *now)).collect();
        assert_eq!(counts, [4, 5, 6]);
    }

    #[test]
    fn windows_end_a_whole_number_of_lengths_apart() {
        let (mut windows, start) = (windows(), Instant::now());
        let seconds = |windows: &mut Windows, at| {
            let end = windows.next_end(start + Duration::from_secs(at));
            (end - start).as_secs()
        };
        assert_eq!(seconds(&mut windows, 0), 10);
        assert_eq!(seconds(&mut windows, 11), 20);
        assert_eq!(seconds(&mut windows, 47), 50, "a sum took long");
        assert_eq!(seconds(&mut windows, 50), 60);
        assert_eq!(seconds(&mut windows, 70), 80);
    }
}
