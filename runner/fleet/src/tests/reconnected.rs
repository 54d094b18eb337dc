//! Devices that return on another connection.

use smolfed_core::wire::greeting::Greeting;
use smolfed_core::wire::message::{Message, Packed, UpdateChunk};
use smolfed_core::wire::refusal::Refusal;

use super::harness::*;
use super::scripted::*;
use crate::connection::Connection;
use crate::exchange::{Absence, ExchangeOutcome};
use crate::peer::ConnectionId;

/// The kind of an invitation (docs/protocol.md).
const INVITATION: u8 = 17;

/// `Done` was lost with the connection, and the next round has begun. The device's repetition is
/// refused, but shows where it is, and it is invited there.
#[test]
fn a_device_that_repeats_a_chunk_of_an_earlier_round_is_invited() {
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    device.fetch(&mut harness, 1);
    harness.peer(0).close().unwrap();
    harness.reconnect();
    harness.peer(0).hold(offer(2, None));
    harness.registry.changes(STEP);
    let chunk = Message::UpdateChunk(UpdateChunk {
        index: 0,
        negated: false,
        more: false,
        packed: Packed::Bytes(&[0; 221]),
    });
    device.send(&mut harness, 1, &chunk);
    assert_eq!(harness.peer(0).refusals().get(Refusal::Round), 1);
    // The giver of turns is notified, and the invitation goes to this connection.
    assert!(harness.registry.changes(STEP).contains(&0));
    let released = harness.peer(0).release(false);
    assert_eq!(released, Some(ConnectionId(harness.connections)));
    let invited = harness.receive(&[]);
    assert_eq!(device.kinds(&invited), [INVITATION]);
}

/// A waiting device's share of a round depends on the others, so it is not a straggler.
#[test]
fn a_device_that_had_to_wait_for_its_turn_is_not_late() {
    for (turn, expected) in [
        (Some(false), Absence::Silent),
        (Some(true), Absence::NoTurn),
        (None, Absence::NoTurn),
    ] {
        let mut harness = Harness::new(None);
        let _device = ScriptedDevice::new(&mut harness, 0);
        harness.peer(0).hold(offer(1, None));
        if let Some(has_waited) = turn {
            harness.peer(0).release(has_waited);
        }
        let outcome = harness.peer(0).close().unwrap();
        assert_eq!(outcome, ExchangeOutcome::Missing(expected), "{turn:?}");
    }
}

/// It may sleep, so its reason differs from that of a device connected for the whole round.
#[test]
fn a_device_that_was_not_connected_for_the_whole_round_is_not_late() {
    let close = |harness: &mut Harness| harness.peer(0).close().unwrap();
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let came_late = ExchangeOutcome::Missing(Absence::CameLate);
    assert_eq!(close(&mut harness), came_late);
    harness.peer(0).offer(offer(2, None));
    device.fetch(&mut harness, 2);
    harness.reconnect();
    let disconnected = ExchangeOutcome::Missing(Absence::Disconnected);
    assert_eq!(close(&mut harness), disconnected);
}

/// The connection of the replaced session is notified: a device that is still there is called, and
/// greets again.
#[test]
fn a_second_session_names_the_connection_of_the_first_one() {
    let mut harness = Harness::new(None);
    ScriptedDevice::new(&mut harness, 0);
    assert_eq!(harness.connection.take_displaced(), None);
    let first = std::mem::replace(&mut harness.connection, Connection::new(ConnectionId(1)));
    restart(&mut harness, 1);
    let displaced = harness.connection.take_displaced();
    assert_eq!(displaced, Some((0, ConnectionId(0))));
    let second = std::mem::replace(&mut harness.connection, first);
    harness.now += std::time::Duration::from_secs(1);
    assert_eq!(greetings(&harness.receive(&[])), [Greeting::Call]);
    // The first device continues, and the second one is named.
    restart(&mut harness, 2);
    let displaced = harness.connection.take_displaced();
    assert_eq!(displaced, Some((0, ConnectionId(1))));
    assert!(!second.has_session() && harness.connection.has_session());
}
