//! Rounds as windows of time.

use std::sync::Arc;
use std::time::Duration;

use smolfed_core::wire::message::{Decline, Message};

use super::harness::*;
use super::scripted::*;
use crate::exchange::{Absence, Offer};
use crate::peer::Position;
use crate::turns::Turns;
use crate::windows::{WindowResult, WindowRule, Windows};

fn windows(staleness: u32) -> Windows {
    Windows::new(WindowRule {
        length: Duration::from_secs(10),
        staleness,
        cohort_size: 4,
        separation: 1 + staleness,
        participations: 10,
    })
}

/// Begins the window of `offer` with these devices, which are all invited as soon as they connect.
fn open(windows: &mut Windows, harness: &Harness, offer: &Arc<Offer>) -> (WindowResult, Vec<u32>) {
    let mut result = WindowResult::default();
    let devices = windows.open(&harness.registry, 0..4, offer, &mut result);
    for device in &devices {
        harness.peer(*device).release(false);
    }
    (result, devices)
}

fn close(windows: &mut Windows, harness: &Harness, now: u32) -> WindowResult {
    let mut result = WindowResult::default();
    windows.close(&harness.registry, &[0, 1, 2, 3], now, &mut result);
    result
}

/// Turns until the device is at this position.
fn go_on(board: &mut Board, harness: &mut Harness, until: impl Fn(&Position) -> bool) {
    for _ in 0..1_000 {
        if harness
            .peer(0)
            .position()
            .is_some_and(|position| until(&position))
        {
            return;
        }
        turn(board, harness, &mut |bytes| bytes);
    }
    panic!("{board:?}, {:?}", harness.peer(0).position());
}

/// A device gets a version, and its update arrives a window later, once: in a separate session, as
/// the same integers.
#[test]
fn an_update_arrives_in_a_later_window_and_counts_once() {
    for reconnects in [false, true] {
        let (mut harness, mut windows) = (Harness::new(None), windows(1));
        let mut board = board(0);
        open(&mut windows, &harness, &offer(1, None));
        go_on(&mut board, &mut harness, |position| position.has_model);
        assert!(close(&mut windows, &harness, 1).arrivals.is_empty());
        if reconnects {
            harness.reconnect();
        }
        let (expired, devices) = open(&mut windows, &harness, &offer(2, None));
        assert!(devices.contains(&0) && expired.wasted.is_empty());
        assert_eq!(
            harness.peer(0).position().map(|x| x.number),
            Some(1),
            "it goes on"
        );
        go_on(&mut board, &mut harness, |position| position.is_settled);
        let mut arrivals = close(&mut windows, &harness, 2).arrivals;
        let arrival = arrivals.remove(&0).unwrap();
        assert_eq!(arrival.number, 1);
        assert_eq!(arrival.update, Ok(expected(0, &offer(1, None))));
        assert!(close(&mut windows, &harness, 2).arrivals.is_empty(), "once");
        // Version 3 is the first one far enough from version 1.
        assert!(!open(&mut windows, &harness, &offer(2, None)).1.contains(&0));
        assert!(open(&mut windows, &harness, &offer(3, None)).1.contains(&0));
    }
}

#[test]
fn an_update_for_a_closed_window_is_refused_and_its_participation_wasted() {
    let (mut harness, mut windows) = (Harness::new(None), windows(0));
    let mut board = board(0);
    open(&mut windows, &harness, &offer(1, None));
    go_on(&mut board, &mut harness, |position| position.has_model);
    let result = close(&mut windows, &harness, 1);
    open(&mut windows, &harness, &offer(2, None));
    assert!(result.wasted.contains(&0) && result.arrivals.is_empty());
    assert_eq!(result.missing[&0], Absence::Expired);
    // It is invited to the newest version, and its ledger has both.
    go_on(&mut board, &mut harness, |position| position.is_settled);
    let arrivals = close(&mut windows, &harness, 2).arrivals;
    assert_eq!(arrivals[&0].number, 2);
    assert_eq!(arrivals[&0].update, Ok(expected(0, &offer(2, None))));
    assert_eq!(board.ledger().past().participations, 2);
}

/// A device that declines because of its data counts as an update of zeros, and keeps its place. A
/// device that declines for a public reason does neither.
#[test]
fn what_a_device_declines_for_decides_whether_it_counts() {
    for (reason, counts) in [
        (Decline::NoSamples, true),
        (Decline::SAMPLES, true),
        (Decline::Diverged, true),
        (Decline::Budget, false),
        (Decline::TooSoon, false),
    ] {
        let (mut harness, mut windows) = (Harness::new(None), windows(1));
        let mut first = ScriptedDevice::new(&mut harness, 0);
        let offer = offer(1, None);
        let mut result = WindowResult::default();
        let devices = windows.open(&harness.registry, 0..2, &offer, &mut result);
        let mut turns = Turns::of_window(&harness.registry, 1, &devices, 8);
        assert_eq!(turns.advance(harness.now).len(), 1);
        let position = |harness: &Harness, device| harness.peer(device).position().unwrap();
        assert!(!position(&harness, 0).is_held && position(&harness, 1).is_held);
        drop(turns);
        first.send(&mut harness, 1, &Message::Decline(reason));
        let result = close(&mut windows, &harness, 1);
        assert_eq!(result.arrivals.contains_key(&0), counts, "{reason}");
        assert_eq!(result.missing[&0], Absence::Declined(reason));
        assert!(result.wasted.is_empty());
    }
}

/// `cohort_size` devices get the newest version. A device that declines for a public reason gives
/// its place to another one.
#[test]
fn so_many_devices_get_a_version_as_there_are_places() {
    for (reason, has_place) in [(Decline::NoSamples, false), (Decline::TooSoon, true)] {
        let mut harness = Harness::new(None);
        let mut windows = windows(1);
        let mut first = ScriptedDevice::new(&mut harness, 0);
        let connection = std::mem::replace(
            &mut harness.connection,
            crate::connection::Connection::new(crate::peer::ConnectionId(7)),
        );
        let _second = ScriptedDevice::new(&mut harness, 1);
        let second_connection = std::mem::replace(&mut harness.connection, connection);
        let offer = offer(1, None);
        let mut result = WindowResult::default();
        let devices = windows.open(&harness.registry, 0..2, &offer, &mut result);
        let registry = std::mem::replace(&mut harness.registry, Harness::new(None).registry);
        let mut turns = Turns::of_window(&registry, 1, &devices, 8);
        assert_eq!(turns.advance(harness.now).len(), 1);
        assert_eq!(turns.advance(harness.now).len(), 0, "no place is left");
        let bytes = first.link.seal(1, &Message::Decline(reason));
        let mut out = Vec::new();
        harness
            .connection
            .receive(bytes.as_slice(), &registry, harness.now, &mut out);
        for device in registry.changes(Duration::ZERO) {
            turns.look_at(device);
        }
        let invited = turns.advance(harness.now).len();
        assert_eq!(invited, usize::from(has_place), "{reason}");
        drop(second_connection);
    }
}
