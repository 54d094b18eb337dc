//! The coordinator with the core's session over connections that lose, damage, repeat and reorder
//! bytes, and with dishonest devices.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use smolfed_core::NoiseMultiplier;
use smolfed_core::crypto::Key;
use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::ledger::{Budget, Ledger, Limits, Separation};
use smolfed_core::session::{Phase, Policy};
use smolfed_core::wire::frame::{Encoded, Header};
use smolfed_core::wire::greeting::{Greeting, Name, Versions};
use smolfed_core::wire::keys::ChainKey;
use smolfed_core::wire::keys::SessionKey;
use smolfed_core::wire::link::{DeviceEnd, Link};
use smolfed_core::wire::message::{
    Decline, Message, ModelShape, Packed, UpdateChunk, WhyRefused, update_chunks,
};
use smolfed_core::wire::refusal::Refusal;
use smolfed_core::wire::{Direction, VERSION};

use super::connection::Connection;
use super::exchange::{Absence, ExchangeOutcome};
use super::peer::{ConnectionId, MAX_PENDING, Peer};
use super::quorum::Places;
use smolfed_release::ReceivedUpdate;

mod handshake;
mod harness;
mod locks;
#[cfg(feature = "page")]
mod metrics;
mod presence;
mod questions;
mod recipes;
mod reconnected;
mod scripted;
mod slow_links;
mod traffic;
mod windows;

use harness::*;
use scripted::*;

#[test]
fn rounds_give_the_bits_of_the_simulator() {
    for noise in [None, noise()] {
        let (mut harness, mut board) = (Harness::new(noise), board(2));
        for number in [3, 4, 9] {
            let offer = match number {
                4 => offer_with_bit(number, noise),
                _ => offer(number, noise),
            };
            harness.peer(2).offer(Arc::clone(&offer));
            let outcome = run(&mut board, &mut harness, 2, |bytes| bytes);
            assert_eq!(outcome, ExchangeOutcome::Answered(expected(2, &offer)));
        }
        assert_eq!(harness.peer(2).refusals().total(), 0);
        assert_eq!(harness.peer(2).state(), "ready");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A third of the frames are lost, damaged, repeated, cut short, delayed or mixed with random
    /// bytes, and from time to time the device reconnects. The connection is good in the end,
    /// because a cycle of faults may never let a frame through.
    #[test]
    fn a_bad_connection_costs_only_time(
        faults in vec((0u8..24, any::<u16>()), 200),
        with_noise in any::<bool>(), window in 1u8..5,
    ) {
        let noise = noise().filter(|_| with_noise);
        let (mut harness, mut board) = (Harness::new(noise), board(1));
        board.set_window(window);
        let offer = offer_with_bit(5, noise);
        harness.peer(1).offer(Arc::clone(&offer));
        let mut faults = faults.iter().cycle();
        let (mut last, mut late) = (vec![], vec![]);
        let mut outcome = None;
        for count in 0..20_000 {
            if harness.peer(1).is_settled() {
                outcome = harness.peer(1).close();
                break;
            }
            if count % 37 == 36 {
                harness.reconnect();
            }
            turn(&mut board, &mut harness, &mut |bytes| {
                if count > 10_000 {
                    return bytes;
                }
                let (fault, at) = faults.next().unwrap();
                let at = usize::from(*at) % bytes.len();
                let mut out = bytes.clone();
                match fault {
                    0 => out.clear(),
                    1 => out[at] ^= 0x10,
                    2 => out.extend(&bytes),
                    3 => out.truncate(at),
                    4 => out = [&[0x55; 300][..], &[0], &bytes].concat(),
                    5 => out = [&last[..], &bytes].concat(),
                    6 => out = std::mem::replace(&mut late, out),
                    _ => {}
                }
                last = bytes;
                out
            });
        }
        let participations = board.ledger().past().participations;
        match outcome {
            Some(ExchangeOutcome::Answered(integers)) => {
                prop_assert_eq!(integers, expected(1, &offer));
                prop_assert_eq!(participations, 1);
            }
            // A lost session costs no update either: the update goes out in the next one.
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn random_bytes_are_refused_and_counted(
        bytes in vec(prop_oneof![Just(0u8), any::<u8>()], 0..2_000),
    ) {
        let mut harness = Harness::new(None);
        harness.receive(&[]);
        prop_assert!(harness.receive(&bytes).len() < 100, "at most a `Call`");
        let pieces = bytes.split(|byte| *byte == 0).rev().skip(1);
        let pieces = pieces.filter(|piece| !piece.is_empty()).count();
        prop_assert_eq!(harness.connection.refusals().total() as usize, pieces);
    }
}

#[test]
fn updates_out_of_bound_are_refused() {
    let bound = 1i64 << 20;
    let one = |at: usize, value: i64| {
        let mut values = vec![0; PARAMETERS];
        values[at] = value;
        values
    };
    let mut two = one(3, bound - 1);
    two[90] = bound - 1;
    let cases = [
        (one(5, -bound), false, Some(one(5, -bound))),
        (one(5, -bound), true, Some(one(5, bound))),
        (one(5, bound - 1), false, Some(one(5, bound - 1))),
        (two, false, None),
        // An unnecessary negation: a second encoding would let a device mark its update.
        (one(5, 3), true, None),
        (vec![-bound; PARAMETERS], false, None),
    ];
    for (values, negated, accepted) in cases {
        let mut harness = Harness::new(None);
        let offer = offer(1, None);
        harness.peer(0).offer(Arc::clone(&offer));
        let mut device = ScriptedDevice::new(&mut harness, 0);
        device.fetch(&mut harness, 1);
        let kinds = device.send_update(&mut harness, &offer, &values, negated);
        let expected = match accepted {
            Some(values) => (22, ExchangeOutcome::Answered(values.into())),
            None => (24, ExchangeOutcome::Missing(Absence::OutOfBound)),
        };
        assert_eq!((kinds[0], harness.peer(0).close().unwrap()), expected);
    }
}

/// An update within its bound, with a bit that would count for more than one device.
#[test]
fn bits_of_a_third_value_are_refused() {
    let half = 1i64 << 20;
    for (bit, is_accepted) in [(half, true), (-half, true), (half - 1, false), (0, false)] {
        let mut harness = Harness::new(None);
        let offer = offer_with_bit(1, None);
        harness.peer(0).offer(Arc::clone(&offer));
        let mut device = ScriptedDevice::new(&mut harness, 0);
        device.fetch(&mut harness, 1);
        let kinds = device.send_update(&mut harness, &offer, &[3; PARAMETERS], false);
        assert_eq!(kinds[0], 21, "the bit is wanted");
        let kinds = device.send_bit(&mut harness, &offer, bit);
        let expected = match is_accepted {
            true => {
                let update = ReceivedUpdate::from(vec![3; PARAMETERS]);
                (22, ExchangeOutcome::Answered(update.with_bit(bit)))
            }
            false => (24, ExchangeOutcome::Missing(Absence::InvalidBit)),
        };
        assert_eq!((kinds[0], harness.peer(0).close().unwrap()), expected);
    }
    let named = Absence::InvalidBit.to_string();
    assert_eq!(
        named,
        "the bit that says whether it was clipped is neither 2^b nor -2^b"
    );
}

#[test]
fn malformed_chunks_are_counted_and_the_round_continues() {
    let mut harness = Harness::new(None);
    let offer = offer(1, None);
    harness.peer(0).offer(Arc::clone(&offer));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let chunk = |index, negated, packed| {
        Message::UpdateChunk(UpdateChunk {
            index,
            negated,
            more: false,
            packed: Packed::Bytes(packed),
        })
    };
    // Before the model was delivered.
    device.send(&mut harness, 1, &chunk(0, false, &[0; 221]));
    assert_eq!(harness.peer(0).refusals().get(Refusal::Unexpected), 1);
    device.send(&mut harness, 1, &Message::WantModel { chunk: 3, count: 1 });
    assert_eq!(harness.peer(0).refusals().get(Refusal::Body), 1);
    device.fetch(&mut harness, 1);
    // A chunk that is too short, one out of order, and one of another round.
    device.send(&mut harness, 1, &chunk(0, false, &[0; 220]));
    device.send(&mut harness, 1, &chunk(1, false, &[0; 111]));
    device.send(&mut harness, 2, &chunk(0, false, &[0; 221]));
    let chunks = update_chunks(PARAMETERS, 21);
    assert_eq!(chunks, 2);
    let refusals = *harness.peer(0).refusals();
    assert_eq!(refusals.get(Refusal::Body), 2);
    // The one out of order is answered with the number of the expected chunk.
    assert_eq!(refusals.get(Refusal::Unexpected), 1);
    assert_eq!(refusals.get(Refusal::Round), 1);
    // `negated` must not change between chunks.
    assert_eq!(
        device.send(&mut harness, 1, &chunk(0, false, &[0; 221]))[0],
        21
    );
    device.send(&mut harness, 1, &chunk(1, true, &[0; 111]));
    assert_eq!(harness.peer(0).refusals().get(Refusal::Body), 3);
    assert!(!harness.peer(0).is_settled());
    assert_eq!(
        device.send(&mut harness, 1, &chunk(1, false, &[0; 111]))[0],
        22
    );
    assert_eq!(
        harness.peer(0).close().unwrap(),
        ExchangeOutcome::Answered(vec![0; PARAMETERS].into())
    );
}

/// The speed of others may excuse lateness, but not malformed messages.
#[test]
fn a_device_whose_messages_are_malformed_is_missing_for_that_reason() {
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    device.fetch(&mut harness, 1);
    let chunk = UpdateChunk {
        index: 0,
        negated: false,
        more: false,
        packed: Packed::Bytes(&[0; 220]),
    };
    device.send(&mut harness, 1, &Message::UpdateChunk(chunk));
    let outcome = harness.peer(0).close().unwrap();
    assert_eq!(outcome, ExchangeOutcome::Missing(Absence::Malformed));
}

/// Exactly as many updates count as the quorum has, even if others are complete when the round is
/// closed.
#[test]
fn updates_beyond_the_quorum_do_not_count() {
    let mut harness = Harness::new(None);
    let mut offer = Arc::into_inner(offer(1, None)).unwrap();
    offer.places = Some(Places::new(1));
    let offer = Arc::new(offer);
    harness.peer(0).offer(Arc::clone(&offer));
    harness.peer(1).offer(Arc::clone(&offer));
    harness.peer(2).offer(Arc::clone(&offer));
    let answers = [0, 1].map(|device| {
        let mut device = ScriptedDevice::new(&mut harness, device);
        device.fetch(&mut harness, 1);
        device.send_update(&mut harness, &offer, &[3; PARAMETERS], false)[0]
    });
    assert_eq!(answers, [22, 24], "done, aborted");
    let outcomes = [0, 1, 2].map(|device| harness.peer(device).close().unwrap());
    let missing = ExchangeOutcome::Missing;
    assert_eq!(
        outcomes,
        [
            ExchangeOutcome::Answered(vec![3; PARAMETERS].into()),
            missing(Absence::BeyondQuorum),
            missing(Absence::NotConnected),
        ]
    );
}

/// Two boards with one key alternate.
#[test]
fn sessions_that_alternate_raise_an_alarm() {
    let mut harness = Harness::new(None);
    ScriptedDevice::new(&mut harness, 0);
    for turn in 1..=3 {
        assert!(!harness.peer(0).take_alarm(), "turn {turn}");
        // Another connection. The earlier one stays open.
        harness.connections += 1;
        harness.connection = Connection::new(ConnectionId(harness.connections));
        restart(&mut harness, turn);
    }
    assert_eq!(harness.connection.take_alarm(), Some(0));
    assert_eq!(harness.connection.take_alarm(), None, "once");
    assert_eq!(harness.peer(0).second_sessions(), 3);
}

#[test]
fn another_key_or_number_opens_no_session() {
    let mut harness = Harness::new(None);
    harness.receive(&[]);
    // Device 1 claims to be device 0. Device 7 has no key here.
    let mut other = board_with(0, 1, 0, policy());
    let mut unknown = board(7);
    for _ in 0..10 {
        turn(&mut other, &mut harness, &mut |bytes| bytes);
        turn(&mut unknown, &mut harness, &mut |bytes| bytes);
    }
    assert!(harness.peer(0).refusals().get(Refusal::Tag) >= 10);
    assert!(harness.connection.refusals().get(Refusal::Tag) >= 10);
    assert!((0..4).all(|device| !harness.peer(device).is_reachable()));
}

#[test]
fn a_replayed_hello_does_not_end_a_session() {
    let mut harness = Harness::new(None);
    let offer = offer(1, None);
    let mut board = board(3);
    let mut tape = vec![];
    for _ in 0..3 {
        turn(&mut board, &mut harness, &mut |bytes| {
            tape.extend(&bytes);
            bytes
        });
    }
    assert!(harness.peer(3).is_reachable());
    harness.peer(3).offer(Arc::clone(&offer));
    // More than there are pending sessions.
    for number in 0..5 * MAX_PENDING as u8 {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
        harness.receive(&tape);
        harness.receive(&hello(3, 3, [number; 16]));
    }
    let outcome = run(&mut board, &mut harness, 3, |bytes| bytes);
    assert_eq!(outcome, ExchangeOutcome::Answered(expected(3, &offer)));
}

/// A connection is read a kilobyte at a time, so only the answers to a kilobyte are buffered.
#[test]
fn answers_to_a_flood_of_requests_are_bounded() {
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let request = |_| {
        device
            .link
            .seal(1, &Message::WantModel { chunk: 0, count: 1 })
    };
    let mut flood: Vec<u8> = (0..32)
        .map(request)
        .flat_map(|x| x.as_slice().to_vec())
        .collect();
    flood.truncate(1024);
    let answers = harness.receive(&flood);
    // A frame has at least 32 bytes, and its answer at most 256.
    assert!(answers.len() <= 1024 / 32 * 256, "{} bytes", answers.len());
    assert_eq!(raws(&answers).len(), 29);
}

/// The cost of one request is bounded, however much it asks for.
#[test]
fn a_request_is_answered_by_a_window_of_chunks() {
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let mut ask = |chunk, count| {
        let request = Message::WantModel { chunk, count };
        let kinds = device.send(&mut harness, 1, &request);
        kinds.iter().filter(|kind| **kind == 19).count()
    };
    assert_eq!([ask(0, 1), ask(0, 2), ask(1, 32), ask(2, 32)], [1, 2, 2, 1]);
    assert_eq!((ask(3, 1), ask(0, 33), ask(0, 0)), (0, 0, 0));
    assert_eq!(harness.peer(0).refusals().get(Refusal::Body), 3);
}

/// After several chunks only the last one is answered, with the expected chunk.
#[test]
fn chunks_that_are_followed_by_others_are_not_answered() {
    let mut harness = Harness::new(None);
    let offer = offer(1, None);
    harness.peer(0).offer(Arc::clone(&offer));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    device.fetch(&mut harness, 1);
    let mut send = |index, more| {
        let length = if index == 0 { 221 } else { 111 };
        let chunk = UpdateChunk {
            index,
            negated: false,
            more,
            packed: Packed::Bytes(&[0; 221][..length]),
        };
        device.send(&mut harness, 1, &Message::UpdateChunk(chunk))
    };
    // Chunk 0 is lost.
    assert_eq!(send(1, false), [21]);
    assert!(send(0, true).is_empty());
    assert!(send(0, true).is_empty(), "again");
    assert_eq!(send(1, false), [22]);
    // `Done` is lost: both are sent again.
    assert!(send(0, true).is_empty());
    assert_eq!(send(1, false), [22]);
    let expected = ExchangeOutcome::Answered(vec![0; PARAMETERS].into());
    assert_eq!(harness.peer(0).close().unwrap(), expected);
}

/// A device that has trained and restarts has no update, and says that the round is used. A silent
/// one had its session and its chance.
#[test]
fn a_device_that_lost_its_update_is_missing() {
    for says_so in [true, false] {
        let mut harness = Harness::new(None);
        harness.peer(0).offer(offer(1, None));
        let mut first = ScriptedDevice::new(&mut harness, 0);
        first.send(&mut harness, 1, &Message::WantModel { chunk: 0, count: 1 });
        // Only part of the model was delivered: it cannot have trained.
        let mut second = restart(&mut harness, 1);
        second.fetch(&mut harness, 1);
        let mut third = restart(&mut harness, 2);
        assert!(!harness.peer(0).is_settled());
        assert_eq!(harness.peer(0).state(), "invited again");
        if says_so {
            third.send(&mut harness, 1, &Message::Decline(Decline::RoundUsed));
            assert!(harness.peer(0).is_settled());
        }
        let expected = ExchangeOutcome::Missing(Absence::SessionLost);
        assert_eq!(harness.peer(0).close().unwrap(), expected);
    }
}

/// Only a device that may have trained in an earlier session begins with an update. Chunks from
/// that session are discarded.
#[test]
fn an_update_comes_from_its_beginning_in_a_new_session() {
    let mut harness = Harness::new(None);
    let asked = offer(1, None);
    harness.peer(0).offer(Arc::clone(&asked));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let values = vec![1; PARAMETERS];
    assert!(
        device
            .send_update(&mut harness, &asked, &values, false)
            .is_empty()
    );
    device.fetch(&mut harness, 1);
    let part = UpdateChunk {
        index: 0,
        negated: false,
        more: false,
        packed: Packed::Bytes(&[0; 221]),
    };
    device.send(&mut harness, 1, &Message::UpdateChunk(part));
    assert_eq!(harness.peer(0).state(), "sending");
    let mut device = restart(&mut harness, 1);
    let kinds = device.send_update(&mut harness, &asked, &values, false);
    assert_eq!(kinds, [22]);
    let expected = ExchangeOutcome::Answered(values.into());
    assert_eq!(harness.peer(0).close().unwrap(), expected);
}

#[test]
fn each_missing_update_has_a_reason() {
    let outcome = |harness: &mut Harness| harness.peer(0).close().unwrap();
    let missing = ExchangeOutcome::Missing;
    let mut harness = Harness::new(None);
    harness.peer(0).offer(offer(1, None));
    assert_eq!(outcome(&mut harness), missing(Absence::NotConnected));
    let mut device = ScriptedDevice::new(&mut harness, 0);
    harness.peer(0).offer(offer(2, None));
    assert_eq!(outcome(&mut harness), missing(Absence::Silent));
    harness.peer(0).offer(offer(3, None));
    device.fetch(&mut harness, 3);
    assert_eq!(outcome(&mut harness), missing(Absence::Late));
    // A late message gets an answer, so that the device stops waiting.
    assert_eq!(
        device.send(&mut harness, 3, &Message::WantModel { chunk: 0, count: 1 })[0],
        24
    );
    harness.peer(0).offer(offer(4, None));
    device.send(&mut harness, 4, &Message::Decline(Decline::Budget));
    assert!(harness.peer(0).is_settled());
    assert_eq!(
        outcome(&mut harness),
        missing(Absence::Declined(Decline::Budget))
    );
}

#[test]
fn devices_that_do_not_meet_the_terms_are_refused() {
    let insists = Policy {
        min_noise_multiplier: NoiseMultiplier::from_units(1),
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        ..policy()
    };
    let mut harness = Harness::new(None);
    let mut board = board_with(0, 0, 0, insists);
    for _ in 0..5 {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    assert!(matches!(board.phase(), Phase::Refused(_)));
    assert_eq!(
        harness.peer(0).state(),
        "refused: the federation's devices add no noise"
    );
    // An unsupported version: reported in the greeting.
    let versions = Versions {
        lowest: VERSION + 1,
        highest: 9,
    };
    let hello = hello_of(&chain(1), Name::Number(1), [1; 16], versions);
    let answer = greetings(&harness.receive(&hello));
    let is_message =
        |found: &Greeting| matches!(found, Greeting::Welcome(x) if x.offer == Err(Versions::OURS));
    assert!(answer.iter().any(is_message));
    let state = harness.peer(1).state();
    assert_eq!(state, "refused: no common version of the protocol");
    // Another model: reported in the session.
    let answer = harness.receive(&self::hello(1, 1, [2; 16]));
    let mut device = ScriptedDevice::welcomed(1, [2; 16], &answer);
    let mut ready = ready();
    ready.shape.outputs += 1;
    for _ in 0..2 {
        assert_eq!(device.send(&mut harness, 0, &Message::Ready(ready)), [26]);
    }
    assert!(!harness.peer(1).is_reachable());
    let state = harness.peer(1).state();
    assert_eq!(
        state,
        "refused: the federation trains another model (device: softmax, 20 features, 7 outputs, \
         f32; experiment: softmax, 20 features, 6 outputs, f32)"
    );
    // Training in integers.
    ready.shape = ModelShape {
        integer: FeatureFormat::new(false, 6).ok(),
        ..shape()
    };
    assert_eq!(device.send(&mut harness, 0, &Message::Ready(ready)), [26]);
    let state = harness.peer(1).state();
    assert!(
        state.contains("6 outputs, i8 with 6 places; experiment"),
        "{state}"
    );
}

/// The device's ledger decides, whatever the coordinator claims.
#[test]
fn a_device_stops_at_its_own_budget() {
    let twice = Policy {
        limits: Limits {
            budget: Budget(2),
            ..policy().limits
        },
        ..policy()
    };
    let (mut harness, mut board) = (Harness::new(None), board_with(0, 0, 0, twice));
    let mut outcomes = vec![];
    for number in 0..4 {
        harness.peer(0).offer(offer(number, None));
        outcomes.push(run(&mut board, &mut harness, 0, |bytes| bytes));
    }
    assert!(matches!(
        outcomes[..2],
        [ExchangeOutcome::Answered(_), ExchangeOutcome::Answered(_)]
    ));
    let spent = ExchangeOutcome::Missing(Absence::Declined(Decline::Budget));
    assert_eq!(outcomes[2..], [spent.clone(), spent]);
}

/// The device's ledger decides, and the reason is recorded.
#[test]
fn a_device_that_is_asked_too_early_is_named() {
    let apart = Policy {
        limits: Limits {
            separation: Separation(3),
            ..policy().limits
        },
        ..policy()
    };
    let (mut harness, mut board) = (Harness::new(None), board_with(0, 0, 0, apart));
    let mut answered = vec![];
    for number in 2..9 {
        harness.peer(0).offer(offer(number, None));
        match run(&mut board, &mut harness, 0, |bytes| bytes) {
            ExchangeOutcome::Answered(_) => answered.push(number),
            ExchangeOutcome::Message(_) => panic!("no message was asked for"),
            ExchangeOutcome::Missing(absence) => {
                assert_eq!(absence, Absence::Declined(Decline::TooSoon));
                let named =
                    "declined: the round is closer to the device's last one than it accepts";
                assert_eq!(absence.to_string(), named);
            }
        }
    }
    assert_eq!(answered, [2, 5, 8]);
}

/// An attacker replays the recorded greetings of a fleet on another connection.
#[test]
fn hellos_replayed_on_another_connection_evict_no_session() {
    let mut harness = Harness::new(None);
    let nonce = [77; 16];
    let answer = harness.receive(&hello(0, 0, nonce));
    let mut other = Connection::new(ConnectionId(9));
    let mut out = vec![];
    for number in 0..5 * MAX_PENDING as u8 {
        let replay = hello(0, 0, [number; 16]);
        other.receive(&replay, &harness.registry, harness.now, &mut out);
    }
    // Also the `Hello` now being answered.
    other.receive(
        &hello(0, 0, nonce),
        &harness.registry,
        harness.now,
        &mut out,
    );
    let mut device = ScriptedDevice::welcomed(0, nonce, &answer);
    device.ready(&mut harness);
    assert!(harness.peer(0).is_on(ConnectionId(0)));
}

/// Many connections repeat recorded Hellos, and the one being answered.
#[test]
fn hellos_replayed_on_many_connections_evict_no_greeting() {
    let mut harness = Harness::new(None);
    let ids = 1..200;
    let mut others: Vec<_> = ids.map(|id| Connection::new(ConnectionId(id))).collect();
    let mut replay = |harness: &Harness, nonce: [u8; 16]| {
        let (bytes, mut out) = (hello(0, 0, nonce), vec![]);
        for connection in &mut others {
            connection.receive(&bytes, &harness.registry, harness.now, &mut out);
        }
    };
    let recorded = (0..62).map(|number| [number; 16]);
    for nonce in recorded.clone() {
        replay(&harness, nonce);
    }
    let nonce = [77; 16];
    let answer = harness.receive(&hello(0, 0, nonce));
    for nonce in recorded.chain([nonce]).cycle().take(200) {
        replay(&harness, nonce);
    }
    let mut device = ScriptedDevice::welcomed(0, nonce, &answer);
    device.ready(&mut harness);
    assert!(harness.peer(0).is_on(ConnectionId(0)));
}

#[test]
fn a_refused_device_is_not_called() {
    let mut harness = Harness::new(None);
    let answer = harness.receive(&hello(1, 1, [1; 16]));
    let mut device = ScriptedDevice::welcomed(1, [1; 16], &answer);
    let mut ready = ready();
    ready.shape.outputs += 1;
    device.send(&mut harness, 0, &Message::Ready(ready));
    // Ten seconds.
    let calls = |harness: &mut Harness| {
        (0..50)
            .map(|_| harness.receive(&[]))
            .flat_map(|out| raws(&out))
            .count()
    };
    assert_eq!(calls(&mut harness), 0);
    // On a connection without a session `Call` is sent every second.
    harness.reconnect();
    assert!((8..=10).contains(&calls(&mut harness)));
}

#[test]
fn frames_without_a_session_are_compared_with_orphans_a_few_times() {
    for (unmatched, is_found) in [(15, true), (16, false)] {
        let mut harness = Harness::new(None);
        let mut device = ScriptedDevice::new(&mut harness, 0);
        harness.reconnect();
        assert!(harness.peer(0).is_orphan());
        let mut no_session = Link::<DeviceEnd>::new(SessionKey::from_secret([9; 32]));
        for _ in 0..unmatched {
            harness.receive(no_session.seal(0, &Message::Ready(ready())).as_slice());
        }
        device.ready(&mut harness);
        assert_eq!(harness.peer(0).is_reachable(), is_found);
    }
}

#[test]
fn a_forged_frame_of_another_version_is_attributed_to_no_device() {
    let mut harness = Harness::new(None);
    let mut device = ScriptedDevice::new(&mut harness, 0);
    let header = Header {
        version: VERSION + 1,
        kind: 16,
        round: 0,
        sequence: 9,
    };
    let no_session = SessionKey::from_secret([9; 32]);
    let frame = Encoded::seal(header, &[], &no_session, Direction::ToCoordinator);
    harness.receive(frame.as_slice());
    assert_eq!(harness.peer(0).refusals().total(), 0);
    assert_eq!(harness.connection.refusals().get(Refusal::Version), 1);
    device.ready(&mut harness);
    assert!(harness.peer(0).is_reachable());
}

/// One message cannot disable a device: neither an invitation to the last round number, nor many.
#[test]
fn an_invitation_far_ahead_is_declined_and_the_next_one_answered() {
    let (mut harness, mut board) = (Harness::new(None), board(0));
    for (number, is_answered) in [(0, true), (u32::MAX - 1, false), (70_000, false), (1, true)] {
        let offer = offer(number, None);
        harness.peer(0).offer(Arc::clone(&offer));
        let outcome = run(&mut board, &mut harness, 0, |bytes| bytes);
        let declined = ExchangeOutcome::Missing(Absence::Declined(Decline::TooFar));
        assert_eq!(outcome != declined, is_answered, "{number}: {outcome:?}");
    }
    assert_eq!(board.ledger().past().participations, 2);
}

/// Its flash was erased. It is told so, its earlier session and known ledger stay, and with another
/// key it is another device.
#[test]
fn a_device_with_a_new_ledger_is_refused_until_it_is_provisioned_again() {
    let new_ledger = |key| Ledger::create(Ram::blank(), [8; 8], key).unwrap();
    let mut harness = Harness::new(None);
    harness.peer(2).offer(offer(1, None));
    let outcome = run(&mut board(2), &mut harness, 2, |bytes| bytes);
    assert!(matches!(outcome, ExchangeOutcome::Answered(_)));
    // The coordinator restarts too. Only its records remain.
    let ledgers = std::mem::take(&mut *harness.registry.ledgers());
    let mut harness = Harness::new(None);
    *harness.registry.ledgers() = ledgers;
    let mut erased = board_of(2, 1, policy(), new_ledger(key(2)));
    harness.peer(2).offer(offer(2, None));
    for _ in 0..20 {
        turn(&mut erased, &mut harness, &mut |bytes| bytes);
    }
    assert_eq!(erased.phase(), Phase::Refused(WhyRefused::Ledger));
    assert_eq!(erased.ledger().past().participations, 0, "never invited");
    let state = harness.peer(2).state();
    assert_eq!(
        state,
        "refused: the device has another ledger than before: provision it again"
    );
    let outcome = harness.peer(2).close().unwrap();
    assert_eq!(outcome, ExchangeOutcome::Missing(Absence::NotConnected));
    let events = harness.registry.ledgers().take_events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("device 2 is refused"), "{events:?}");

    let again = Key::from_secret([99; 32]);
    let peer = Peer::new(2, ChainKey::new(again.clone()), terms(None));
    harness.insert(2, peer);
    harness.reconnect();
    harness.peer(2).offer(offer(3, None));
    let mut board = board_of(2, 2, policy(), new_ledger(again));
    let outcome = run(&mut board, &mut harness, 2, |bytes| bytes);
    assert!(
        matches!(outcome, ExchangeOutcome::Answered(_)),
        "{outcome:?}"
    );
}

/// A device made by `smolfed provision --hide-number`, after each of its sessions.
fn hidden(flash: Ram, start: u32) -> Board {
    let policy = Policy {
        hides_number: true,
        ..policy()
    };
    board_of(2, start, policy, Ledger::open(flash).unwrap())
}

/// Many sessions, with a coordinator that restarts and one that is restored from a backup.
#[test]
fn chains_go_on_and_are_found_again() {
    for is_hidden in [false, true] {
        let ledger = Ledger::create(Ram::blank(), NONCE, key(2)).unwrap();
        let mut flash = ledger.into_flash();
        let mut harness = Harness::new(None);
        let mut name = Name::Number(2);
        for number in 1..9 {
            let mut board = match is_hidden {
                true => hidden(flash, number),
                false => board_of(2, number, policy(), Ledger::open(flash).unwrap()),
            };
            if number == 4 {
                // It has only its stored state.
                let ledgers = std::mem::take(&mut *harness.registry.ledgers());
                harness = Harness::with(ledgers, None);
            }
            if number == 6 && !is_hidden {
                // Only the first key: five steps behind, beyond its immediate search.
                harness = Harness::new(None);
            }
            harness.reconnect();
            let offer = offer(number, None);
            harness.peer(2).offer(Arc::clone(&offer));
            let mut names = vec![];
            let outcome = run(&mut board, &mut harness, 2, |bytes| {
                names.extend(named(&bytes));
                bytes
            });
            assert_eq!(outcome, ExchangeOutcome::Answered(expected(2, &offer)));
            let is_new = names.iter().all(|found| *found != name);
            assert_eq!((is_new, names.is_empty()), (is_hidden, false));
            name = names[0];
            flash = board.into_ledger().into_flash();
        }
        assert_eq!(harness.peer(2).refusals().total(), 0);
    }
}

/// Returns the names in the Hellos of these bytes.
fn named(bytes: &[u8]) -> Vec<Name> {
    let raws = raws(bytes).into_iter();
    raws.filter_map(|mut raw| {
        let frame = smolfed_core::wire::frame::Frame::parse(&mut raw).unwrap();
        match smolfed_core::wire::greeting::greeting(&frame, Direction::ToCoordinator) {
            Ok(Greeting::Hello(hello)) => Some(hello.name),
            _ => None,
        }
    })
    .collect()
}

/// A copy of a device's flash: as soon as one of them takes part, the other falls behind.
#[test]
fn a_copy_of_a_device_falls_behind_and_is_reported() {
    for is_hidden in [false, true] {
        let ledger = Ledger::create(Ram::blank(), NONCE, key(2)).unwrap();
        let flash = ledger.into_flash();
        let make = |flash, start| match is_hidden {
            true => hidden(flash, start),
            false => board_of(2, start, policy(), Ledger::open(flash).unwrap()),
        };
        let mut harness = Harness::new(None);
        let (mut first, mut copy) = (make(flash.clone(), 0), make(flash, 1));
        for number in 1..3 {
            harness.peer(2).offer(offer(number, None));
            run(&mut first, &mut harness, 2, |bytes| bytes);
            let flash = first.into_ledger().into_flash();
            first = make(flash, 1 + number);
            harness.reconnect();
        }
        let before = harness.peer(2).refusals().get(Refusal::Stale);
        for _ in 0..5 {
            turn(&mut copy, &mut harness, &mut |bytes| bytes);
        }
        assert_eq!(copy.phase(), Phase::Greeting);
        let stale = harness.peer(2).refusals().get(Refusal::Stale) - before;
        assert!(stale >= 3, "{stale}");
        let events = harness.registry.ledgers().take_events();
        assert_eq!(events.len(), 1, "told once: {events:?}");
        assert!(events[0].starts_with("device 2 presents an old key"));
    }
}
