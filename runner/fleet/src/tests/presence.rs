//! The awaited devices, before a round and in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smolfed_core::stream::Purpose;
use smolfed_core::wire::keys::ChainKey;

use super::harness::*;
use crate::ledgers::KnownLedgers;
use crate::peer::Peer;
use crate::presence::{ExpectedCohort, Presence, PresenceRule, PresenceSettings};
use crate::registry::Registry;
use crate::service::Service;
use crate::stopping::Stopping;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the rule for four devices, all of them drawn.
fn rule(settings: PresenceSettings) -> PresenceRule {
    let cohort = ExpectedCohort {
        size: 4.0,
        device_count: 4,
    };
    PresenceRule::new(settings, cohort, 5 * SECOND).unwrap()
}

/// Counts the connected devices among devices 0 to 3.
fn presence(rule: &PresenceRule, harness: &Harness) -> Presence {
    rule.presence(
        &harness.registry,
        &BTreeSet::from([0, 1, 2, 3]),
        harness.now,
    )
}

/// Returns devices 0 to 3, with these connected.
fn with_connected(devices: &[u32]) -> Harness {
    let mut harness = Harness::new(None);
    for device in devices {
        let mut board = board(*device);
        while !harness.peer(*device).is_reachable() {
            turn(&mut board, &mut harness, &mut |bytes| bytes);
        }
    }
    harness
}

#[test]
fn a_device_counts_for_a_while_after_it_has_disconnected() {
    let mut harness = with_connected(&[1, 2]);
    let rule = rule(PresenceSettings::default());
    let presence = |harness: &Harness| presence(&rule, harness);
    let counts = |devices, connected, present| Presence {
        devices,
        connected,
        present,
    };
    assert_eq!(presence(&harness), counts(4, 2, 2));
    assert!(rule.is_met(presence(&harness)));
    harness.reconnect();
    assert_eq!(presence(&harness), counts(4, 0, 2));
    // Without connected devices none could answer.
    assert!(!rule.is_met(presence(&harness)));
    harness.now += 5 * SECOND;
    assert_eq!(presence(&harness), counts(4, 0, 0));
    assert!(rule.is_met(counts(4, 1, 2)) && !rule.is_met(counts(4, 1, 1)));
    // Keys were revoked meanwhile.
    assert!(rule.is_met(counts(1, 1, 1)) && !rule.is_met(counts(0, 0, 0)));
}

/// Half of four devices are needed, and one of two once the keys of the others are revoked.
#[test]
fn a_device_without_a_key_is_not_needed() {
    let harness = with_connected(&[1]);
    let rule = rule(PresenceSettings::default());
    assert!(!rule.is_met(presence(&rule, &harness)));
    for device in [0, 3] {
        harness.registry.remove(device);
    }
    let now = presence(&rule, &harness);
    assert_eq!((now.devices, now.present), (2, 1));
    assert!(rule.is_met(now));
}

/// It is not drawn before the next start.
#[test]
fn a_device_that_was_added_to_the_fleet_does_not_count() {
    let harness = with_connected(&[0, 3]);
    let rule = rule(PresenceSettings::default());
    let members = BTreeSet::from([0, 1, 2]);
    let now = rule.presence(&harness.registry, &members, harness.now);
    assert_eq!((now.devices, now.connected, now.present), (3, 1, 1));
}

/// Otherwise a pause would reveal the cohort.
#[test]
fn whether_a_round_begins_does_not_depend_on_draws_updates_or_strikes() {
    let harness = with_connected(&[0, 1]);
    let rule = rule(PresenceSettings::default());
    let before = presence(&rule, &harness);
    for number in 0..9 {
        for device in 0..2 {
            harness.peer(device).offer(offer(number, None));
            // No device answers.
            harness.peer(device).close();
        }
        let now = presence(&rule, &harness);
        assert_eq!(now, before, "round {number}");
    }
}

#[test]
fn a_device_that_answered_and_left_is_waited_for_and_one_that_missed_a_round_is_not() {
    let mut harness = Harness::new(None);
    let mut board = board(2);
    harness.peer(2).hold(offer(0, None));
    harness.peer(2).release(false);
    run(&mut board, &mut harness, 2, |bytes| bytes);
    harness.reconnect();
    assert!(!harness.peer(2).is_away());
    // In the next round it does not come.
    harness.peer(2).hold(offer(1, None));
    harness.peer(2).close();
    assert!(harness.peer(2).is_away());
    while !harness.peer(2).is_reachable() {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    harness.reconnect();
    assert!(!harness.peer(2).is_away(), "it was there meanwhile");
}

/// A registry whose only device never comes.
fn deserted() -> Service {
    let peer = Peer::new(0, ChainKey::new(key(0)), terms(None));
    let peers = BTreeMap::from([(0, peer)]);
    let nonces = stream(Purpose::Initialisation, 0, 99);
    Service::new(Registry::new(peers, KnownLedgers::default(), nonces), 8)
}

#[test]
fn a_run_without_devices_ends() {
    let (service, stopping) = (deserted(), Stopping::default());
    let rule = rule(PresenceSettings {
        away_after: Some(Duration::ZERO),
        give_up_after: Some(Duration::from_millis(50)),
        ..PresenceSettings::default()
    });
    let error = rule
        .wait(&service, &stopping, &mut Presence::default)
        .unwrap_err();
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("no device has been connected for 50ms"),
        "{sentence}"
    );
    stopping.stop_within(Duration::ZERO);
    assert_eq!(
        rule.wait(&service, &stopping, &mut Presence::default),
        Ok(true)
    );
}
