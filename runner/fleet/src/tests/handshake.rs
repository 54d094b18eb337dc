//! Devices that greet with X25519.

use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use smolfed_core::ledger::Ledger;
use smolfed_core::session::{Phase, Policy, X25519};
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions};
use smolfed_core::wire::handshake::{Ephemeral, Second};
use smolfed_core::wire::keys::{Chain as _, Nonce};
use smolfed_core::wire::message::{Message, WhyRefused};
use smolfed_core::wire::refusal::Refusal;
use smolfed_core::wire::{VERSION, link::Link};
use zeroize::Zeroizing;

use super::harness::*;
use super::scripted::*;
use crate::connection::Connection;
use crate::exchange::ExchangeOutcome;
use crate::ledgers::KnownLedgers;
use crate::peer::{ConnectionId, Terms};

/// Its keys come from a stand-in for its hardware generator, and not from the root of its streams.
/// Under a root that is later found they would be worthless.
type Secure = Board<X25519<ChaCha20Rng>>;

fn secure(flash: Ram, start: u32, policy: Policy) -> Secure {
    let rng = ChaCha20Rng::seed_from_u64(start.into());
    board_by(X25519::new(rng), 2, policy, Ledger::open(flash).unwrap())
}

fn flash() -> Ram {
    let ledger = Ledger::create(Ram::blank(), NONCE, key(2)).unwrap();
    ledger.into_flash()
}

fn pair(byte: u8) -> Ephemeral {
    Ephemeral::from_secret(Zeroizing::new([byte; 32]))
}

/// A Hello of device 2.
fn hello_of(name: Name, nonce: Nonce, versions: Versions, own: &Ephemeral) -> Hello {
    let (key, psk) = (chain(2).greeting(), chain(2).handshake(2));
    Hello::with_handshake(&key, &psk, name, nonce, versions, own)
}

/// Returns a recorded Hello of device 2.
fn recorded(number: u8) -> Hello {
    let (name, nonce) = (Name::Number(2), [number; 16]);
    hello_of(name, nonce, Versions::OURS, &pair(number))
}

fn bytes(hello: &Hello) -> Vec<u8> {
    Greeting::Hello(*hello).encoded().as_slice().to_vec()
}

fn answers(out: &[u8]) -> Vec<Second> {
    let found = greetings(out).into_iter();
    let second = |found| match found {
        Greeting::Second(second) => Some(second),
        _ => None,
    };
    found.filter_map(second).collect()
}

/// Many sessions under successive chain keys, also of a device that hides its number, and with a
/// coordinator restored from a backup.
#[test]
fn rounds_with_handshakes_give_the_bits_of_the_simulator() {
    for hides_number in [false, true] {
        let policy = Policy {
            hides_number,
            ..policy()
        };
        let (mut harness, mut flash) = (Harness::new(None), flash());
        for number in 1..8 {
            let mut board = secure(flash, number, policy);
            if number == 6 && !hides_number {
                // Only the first key: five steps behind, beyond its immediate search.
                harness = Harness::new(None);
            }
            harness.reconnect();
            let offer = offer(number, None);
            harness.peer(2).offer(Arc::clone(&offer));
            let outcome = run(&mut board, &mut harness, 2, |bytes| bytes);
            assert_eq!(outcome, ExchangeOutcome::Answered(expected(2, &offer)));
            flash = board.into_ledger().into_flash();
        }
        assert_eq!(harness.peer(2).refusals().total(), 0);
    }
}

#[test]
fn a_coordinator_that_requires_handshakes_refuses_devices_without_and_tells_them() {
    let required = Terms {
        handshake: true,
        ..terms(None)
    };
    let mut harness = Harness::under(required, KnownLedgers::default());
    let mut plain = board(1);
    let mut secure = secure(flash(), 0, policy());
    for _ in 0..5 {
        turn(&mut plain, &mut harness, &mut |bytes| bytes);
    }
    assert_eq!(plain.phase(), Phase::Refused(WhyRefused::HANDSHAKE));
    assert!(!harness.peer(1).is_reachable());
    let state = harness.peer(1).state();
    let expected = "refused: the coordinator requires greetings with X25519";
    assert_eq!(state, expected);
    harness.reconnect();
    for _ in 0..5 {
        turn(&mut secure, &mut harness, &mut |bytes| bytes);
    }
    assert_eq!(secure.phase(), Phase::Idle);
    assert!(harness.peer(2).is_reachable());
}

/// Also a device that only knows future versions.
#[test]
fn a_device_without_a_common_version_is_told_in_the_greeting() {
    let mut harness = Harness::new(None);
    let versions = Versions {
        lowest: VERSION + 1,
        highest: 9,
    };
    let (name, own) = (Name::Number(2), pair(1));
    let hello = hello_of(name, [1; 16], versions, &own);
    let answer = greetings(&harness.receive(&bytes(&hello)));
    let is_message =
        |found: &Greeting| matches!(found, Greeting::Welcome(x) if x.offer == Err(Versions::OURS));
    assert!(answer.iter().any(is_message));
}

#[test]
fn a_repeated_hello_gets_the_same_answer() {
    let mut harness = Harness::new(None);
    let first = answers(&harness.receive(&bytes(&recorded(1))));
    for _ in 0..100 {
        assert_eq!(answers(&harness.receive(&bytes(&recorded(1)))), first);
    }
    assert_eq!((first.len(), harness.peer(2).refusals().total()), (1, 0));
    // On another connection it is another session.
    harness.reconnect();
    let other = answers(&harness.receive(&bytes(&recorded(1))));
    assert!(other.len() == 1 && other != first);
}

/// A flood of recorded Hellos on one connection. Each would cost two multiplications.
#[test]
fn recorded_hellos_are_answered_a_few_times() {
    let mut harness = Harness::new(None);
    let mut flood = Connection::new(ConnectionId(9));
    let mut out = vec![];
    for number in 0..200 {
        let hello = bytes(&recorded(number));
        flood.receive(&hello, &harness.registry, Duration::ZERO, &mut out);
    }
    assert_eq!(answers(&out).len(), 8);
    assert_eq!(harness.peer(2).refusals().get(Refusal::Replayed), 192);
    // The device itself, on its own connection, is not held up.
    let mut board = secure(flash(), 0, policy());
    for _ in 0..3 {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    assert!(harness.peer(2).is_on(ConnectionId(0)));
}

/// Hellos with a changed key do not count against the connection's handshakes.
#[test]
fn forged_hellos_are_refused_before_anything_is_multiplied() {
    let mut harness = Harness::new(None);
    let mut forged = raws(&bytes(&recorded(1))).remove(0);
    forged.truncate(forged.len() - 4);
    // The tag of the greeting does not cover Noise's message.
    forged[45] ^= 1;
    let crc = smolfed_core::wire::crc32::crc32(&forged).to_le_bytes();
    forged.extend(crc);
    let mut frame = [0; 256];
    frame[1..=forged.len()].copy_from_slice(&forged);
    let length = smolfed_core::wire::cobs::encode(&mut frame, forged.len()).unwrap();
    for _ in 0..100 {
        let out = harness.receive(&frame[..length]);
        assert!(answers(&out).is_empty());
    }
    assert_eq!(harness.peer(2).refusals().get(Refusal::Tag), 100);
    assert_eq!(answers(&harness.receive(&bytes(&recorded(1)))).len(), 1);
}

/// A recorded greeting opens nothing without a secret of the device: neither frames of the old
/// session nor the answer are of any use.
#[test]
fn a_recorded_greeting_opens_no_session() {
    let mut harness = Harness::new(None);
    let mut board = secure(flash(), 0, policy());
    let mut tape = vec![];
    for _ in 0..3 {
        turn(&mut board, &mut harness, &mut |bytes| {
            tape.extend(&bytes);
            bytes
        });
    }
    assert!(harness.peer(2).is_reachable());
    harness.reconnect();
    assert!(harness.peer(2).is_orphan());
    harness.receive(&tape);
    assert!(!harness.peer(2).is_reachable());
    // The device's earlier key does not work either, once it has taken part.
    let offer = offer(1, None);
    harness.peer(2).offer(Arc::clone(&offer));
    run(&mut board, &mut harness, 2, |bytes| bytes);
    let mut board = secure(board.into_ledger().into_flash(), 1, policy());
    harness.reconnect();
    for _ in 0..3 {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    let before = harness.peer(2).refusals().get(Refusal::Stale);
    let out = harness.receive(&bytes(&recorded(1)));
    assert!(answers(&out).is_empty());
    assert_eq!(harness.peer(2).refusals().get(Refusal::Stale), before + 1);
}

/// Only the party that finishes a handshake gets a session.
#[test]
fn ready_is_heard_under_the_key_of_the_handshake() {
    let mut harness = Harness::new(None);
    let hello = recorded(1);
    let second = answers(&harness.receive(&bytes(&hello))).remove(0);
    let (version, key) = second
        .open(&chain(2).handshake(2), &hello, &pair(1))
        .unwrap();
    assert_eq!(version, VERSION);
    assert!(
        second
            .open(&chain(2).handshake(2), &hello, &pair(2))
            .is_none()
    );
    let mut device = ScriptedDevice {
        link: Link::new(key),
        device: 2,
    };
    assert_eq!(device.send(&mut harness, 0, &Message::Ready(ready())), [25]);
    assert!(harness.peer(2).is_reachable());
}
