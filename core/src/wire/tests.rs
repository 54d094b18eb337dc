//! The format against an independent implementation (`tests/vectors/wire.py`) and invalid input.

use proptest::{collection::vec, prelude::*};
use std::{format, string::String, vec, vec::Vec};

use super::{
    BODY_BYTES, Direction, FRAME_BYTES, RAW_BYTES, VERSION,
    cobs::{self, Decoder},
    frame::{Encoded, Frame, Header, Sealed},
    greeting::{Greeting, Hello, Name, Versions, Welcome, greeting},
    keys::{Chain, ChainKey, SessionKey, SessionKeys, ledger_fingerprint},
    link::{CoordinatorEnd, DeviceEnd, Link},
    message::{self, Message},
    refusal::{Refusal, Refusals},
};
use crate::bytes::Writer;
use crate::crc32::{crc32, flipped_bit};
use crate::pack;
use crate::{crypto::Key, noise::Sigma};

#[cfg(feature = "x25519")]
mod handshake;
pub(crate) mod vectors;

/// Encodes a frame in COBS, and returns it with its length.
fn stuffed(raw: &[u8]) -> ([u8; FRAME_BYTES], usize) {
    let mut bytes = [0xff; FRAME_BYTES];
    bytes[1..=raw.len()].copy_from_slice(raw);
    let length = cobs::encode(&mut bytes, raw.len()).unwrap();
    (bytes, length)
}

/// Returns all frames in a stream of bytes.
pub(crate) fn frames(bytes: &[u8]) -> Vec<Result<Vec<u8>, Refusal>> {
    let mut decoder = Decoder::new();
    let mut found = vec![];
    for byte in bytes {
        if let Some(frame) = decoder.push(*byte) {
            found.push(frame.map(|bytes| bytes.to_vec()));
        }
    }
    found
}

fn header(kind: u8, sequence: u32) -> Header {
    Header {
        version: VERSION,
        kind,
        round: 7,
        sequence,
    }
}

fn key(byte: u8) -> SessionKey {
    SessionKey::from_secret([byte; 32])
}

/// Returns the name of a device with this chain key.
fn name_of(device: u32, chain: &ChainKey, hides_number: bool) -> Name {
    match hides_number {
        true => Name::Pseudonym(chain.pseudonym()),
        false => Name::Number(device),
    }
}

fn chain(byte: u8) -> ChainKey {
    ChainKey::new(Key::from_secret([byte; 32]))
}

/// Returns a session frame with its first bytes, ciphertext, tag and checksum.
fn raw(sealed: &Encoded) -> Vec<u8> {
    frames(sealed.as_slice()).remove(0).unwrap()
}

/// Adds a valid checksum, as a forger would.
fn checked(mut raw: Vec<u8>) -> Vec<u8> {
    let end = raw.len() - 4;
    let crc = crc32(&raw[..end]).to_le_bytes();
    raw[end..].copy_from_slice(&crc);
    raw
}

fn refuses(key: &SessionKey, direction: Direction, raw: &[u8]) -> bool {
    let mut raw = raw.to_vec();
    match Frame::parse(&mut raw) {
        Ok(Frame::Sealed(mut frame)) => !frame.open(key, direction),
        // It claims to be a greeting, or is too short.
        Ok(Frame::Greeting { .. }) | Err(_) => true,
    }
}

proptest! {
    #[test]
    fn a_frame_survives_the_line(raw in vec(prop_oneof![Just(0u8), any::<u8>()], 1..=RAW_BYTES)) {
        let (encoded, length) = stuffed(&raw);
        prop_assert_eq!(length, raw.len() + 2);
        prop_assert_eq!(encoded[..length].iter().position(|byte| *byte == 0), Some(length - 1));
        prop_assert_eq!(frames(&encoded[..length]), vec![Ok(raw)]);
    }

    #[test]
    fn after_any_garbage_the_next_frame_is_found(
        garbage in vec(any::<u8>(), 0..600), raw in vec(any::<u8>(), 1..=RAW_BYTES),
    ) {
        let (encoded, length) = stuffed(&raw);
        let mut bytes = garbage;
        bytes.push(0);
        bytes.extend(&encoded[..length]);
        prop_assert_eq!(frames(&bytes).pop(), Some(Ok(raw)));
    }

    /// Damage on the line, or by an attacker who corrects the checksum.
    #[test]
    fn no_damaged_frame_is_let_in(
        body in vec(any::<u8>(), 0..=BODY_BYTES), bit in any::<prop::sample::Index>(),
    ) {
        let direction = Direction::ToDevice;
        let encoded = Encoded::seal(header(22, 1), &body, &key(1), direction);
        let mut bytes = encoded.as_slice().to_vec();
        let at = bit.index(8 * (bytes.len() - 1));
        bytes[at / 8] ^= 1 << (at % 8);
        for raw in frames(&bytes).into_iter().flatten() {
            prop_assert!(refuses(&key(1), direction, &raw));
        }
        let mut raw = raw(&encoded);
        prop_assert!(!refuses(&key(1), direction, &raw));
        let at = bit.index(8 * (raw.len() - 4));
        raw[at / 8] ^= 1 << (at % 8);
        prop_assert!(refuses(&key(1), direction, &checked(raw)));
    }

    /// Another session, the other direction, another number.
    #[test]
    fn a_frame_has_one_place(
        body in vec(any::<u8>(), 0..=BODY_BYTES), keys in any::<[[u8; 32]; 2]>(),
        [number, other] in any::<[u32; 2]>(),
    ) {
        let [key, another] = keys.map(SessionKey::from_secret);
        let direction = Direction::ToCoordinator;
        let encoded = Encoded::seal(header(20, number), &body, &key, direction);
        let raw = raw(&encoded);
        prop_assert!(!refuses(&key, direction, &raw));
        prop_assert!(refuses(&key, direction.opposite(), &raw));
        prop_assert!(keys[0] == keys[1] || refuses(&another, direction, &raw));
        let mut renumbered = raw;
        renumbered[1..5].copy_from_slice(&other.to_le_bytes());
        prop_assert!(number == other || refuses(&key, direction, &checked(renumbered)));
    }

    /// A refused frame stays unchanged, for another key.
    #[test]
    fn a_frame_is_tried_with_many_keys(body in vec(any::<u8>(), 0..=BODY_BYTES)) {
        let direction = Direction::ToCoordinator;
        let mut raw = raw(&Encoded::seal(header(20, 3), &body, &key(9), direction));
        let Frame::Sealed(mut frame) = Frame::parse(&mut raw).unwrap() else {
            panic!("a frame of a session");
        };
        for byte in 0..9 {
            prop_assert!(!frame.open(&key(byte), direction));
        }
        prop_assert!(frame.open(&key(9), direction));
        prop_assert_eq!(frame.opened().body, &body);
        prop_assert_eq!((frame.opened().kind, frame.opened().round), (20, 7));
    }

    /// Also for a Hello and a Welcome.
    #[test]
    fn no_damaged_greeting_is_authentic(
        name in prop_oneof![
            any::<u32>().prop_map(Name::Number), any::<[u8; 8]>().prop_map(Name::Pseudonym)
        ],
        nonces in any::<[[u8; 16]; 2]>(), bit in any::<prop::sample::Index>(),
    ) {
        let session = chain(1).session(5, &nonces[0], &nonces[1]);
        let hello = Hello::new(&chain(1).greeting(), name, nonces[0], Versions::OURS);
        let welcome = Welcome::new(&session, nonces[1], Ok(VERSION));
        let is_authentic = |message: Greeting| match message {
            Greeting::Call => false,
            Greeting::Hello(hello) => hello.is_authentic(&chain(1).greeting()),
            // The nonce is in the key.
            Greeting::Welcome(welcome) => {
                welcome.is_authentic(&chain(1).session(5, &nonces[0], &welcome.nonce))
            }
            #[cfg(feature = "x25519")]
            Greeting::Second(_) => false,
        };
        for (message, direction) in [
            (Greeting::Hello(hello), Direction::ToCoordinator),
            (Greeting::Welcome(welcome), Direction::ToDevice),
        ] {
            prop_assert!(is_authentic(message));
            let mut raw = raw(&message.encoded());
            let at = bit.index(8 * (raw.len() - 4));
            raw[at / 8] ^= 1 << (at % 8);
            let mut raw = checked(raw);
            let refused = match Frame::parse(&mut raw) {
                Err(_) => true,
                Ok(frame) => greeting(&frame, direction).map_or(true, |found| !is_authentic(found)),
            };
            prop_assert!(refused, "bit {}", at);
        }
    }

    /// Even with a valid checksum and tag: anything that a holder of the key can send.
    #[test]
    fn no_body_makes_the_parser_panic(kind in 0u8..40, body in vec(any::<u8>(), 0..=BODY_BYTES)) {
        for direction in [Direction::ToDevice, Direction::ToCoordinator] {
            if let Ok(message) = Message::parse(kind, &body, direction) {
                // Accepted bytes are exactly those that this crate would have written.
                prop_assert_eq!(message.kind(), kind);
                let mut buffer = [0; BODY_BYTES];
                let mut writer = Writer::new(&mut buffer);
                message.write(direction, &mut writer).unwrap();
                let length = writer.finish().unwrap();
                let again = Message::parse(kind, &buffer[..length], direction).unwrap();
                prop_assert_eq!(format!("{again:?}"), format!("{message:?}"));
            }
        }
    }

    #[test]
    fn packed_values_come_back(
        width in 1u32..=57, values in vec(any::<i64>(), 0..100), spare in 0usize..4,
    ) {
        let unused = 64 - width;
        let values: Vec<i64> = values.into_iter().map(|x| x << unused >> unused).collect();
        let mut bytes = vec![0xff; pack::packed_bytes(width, values.len()) + spare];
        let used = pack::pack(values.iter().copied(), width, &mut bytes).unwrap();
        prop_assert_eq!(used, pack::packed_bytes(width, values.len()));
        let mut back = vec![0; values.len()];
        prop_assert_eq!(pack::unpack(&bytes[..used], width, &mut back), Some(()));
        prop_assert_eq!(&back, &values);
        prop_assert_eq!(pack::unpack(&vec![0; used + 1], width, &mut back), None);
        if used > 0 {
            let short = pack::pack(values.iter().copied(), width, &mut bytes[..used - 1]);
            prop_assert_eq!(short, None);
        }
    }
}

#[test]
fn the_checksum_is_the_usual_one() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32(b""), 0);
    // A flipped bit is identified by its difference, and nothing else is mistaken for one.
    let message = *b"a message of the ledger";
    for bit in 0..8 * message.len() {
        let mut flipped = message;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let difference = crc32(&flipped) ^ crc32(&message);
        assert_eq!(flipped_bit(difference, 8 * message.len()), Some(bit));
        assert_eq!(flipped_bit(1 << (bit % 32), 8 * message.len()), None);
    }
    assert_eq!(flipped_bit(0, 8 * message.len()), None);
}

#[test]
fn torn_frames_are_refused_by_name() {
    assert_eq!(frames(&[5, 1, 2, 0]), [Err(Refusal::Stuffing)]);
    assert_eq!(frames(&[0, 0, 0]), []);
    assert_eq!(frames(&[1, 0]), [Ok(vec![])]);
    assert_eq!(frames(&[1, 1, 0]), [Ok(vec![0])]);
    assert_eq!(
        frames(&[&[0xff; 300][..], &[0]].concat()),
        [Err(Refusal::TooLong)]
    );
    let parse = |raw: &[u8]| Frame::parse(&mut raw.to_vec()).map(|_| ()).unwrap_err();
    assert_eq!(parse(&[0; 3]), Refusal::TooShort);
    assert_eq!(parse(&[1; 30]), Refusal::Checksum);
    assert_eq!(parse(&[0; 255]), Refusal::TooLong);
    assert_eq!(parse(&checked(vec![VERSION; 29])), Refusal::TooShort);
    assert_eq!(cobs::encode(&mut [0; FRAME_BYTES], RAW_BYTES + 1), None);
    let long = Encoded::seal(
        header(22, 1),
        &[1; BODY_BYTES + 1],
        &key(1),
        Direction::ToDevice,
    );
    assert_eq!(long.as_slice(), b"");
    let full = Encoded::seal(
        header(22, 1),
        &[1; BODY_BYTES],
        &key(1),
        Direction::ToDevice,
    );
    assert_eq!(full.as_slice().len(), FRAME_BYTES);
}

/// Returns the link's result for an incoming frame.
fn opened(link: &mut Link<DeviceEnd>, encoded: &Encoded) -> Result<u8, Refusal> {
    let mut raw = raw(encoded);
    match Frame::parse(&mut raw).unwrap() {
        Frame::Greeting { .. } => Err(Refusal::Unexpected),
        Frame::Sealed(mut frame) => link.open(&mut frame).map(|(_, message)| message.kind()),
    }
}

#[test]
fn strangers_replays_and_late_frames_stay_outside() {
    let mut coordinator = Link::<CoordinatorEnd>::new(key(1));
    let mut device = Link::<DeviceEnd>::new(key(1));
    let first = coordinator.seal(7, &Message::Done);
    let second = coordinator.seal(7, &Message::WantUpdate(3));
    let third = coordinator.seal(8, &Message::Done);
    assert_eq!(opened(&mut device, &second), Ok(21), "one was lost");
    assert_eq!(opened(&mut device, &second), Err(Refusal::Replayed));
    assert_eq!(opened(&mut device, &first), Err(Refusal::Replayed), "late");
    assert_eq!(opened(&mut device, &third), Ok(22));
    assert_eq!(device.received(), 3);

    let mut other = Link::<CoordinatorEnd>::new(key(2));
    for _ in 0..9 {
        other.seal(7, &Message::Done);
    }
    let forged = other.seal(7, &Message::Done);
    assert_eq!(opened(&mut device, &forged), Err(Refusal::Tag));
    // Its own frame, reflected.
    let own = device.seal(7, &Message::WantModel { chunk: 6, count: 1 });
    assert_eq!(opened(&mut device, &own), Err(Refusal::Tag));
    // No sender of this version does this, even with the right key.
    let seal = |header, body: &[u8]| Encoded::seal(header, body, &key(1), Direction::ToDevice);
    let other_version = Header {
        version: VERSION + 1,
        ..header(22, 20)
    };
    assert_eq!(
        opened(&mut device, &seal(other_version, &[])),
        Err(Refusal::Version)
    );
    assert_eq!(
        opened(&mut device, &seal(header(99, 20), &[])),
        Err(Refusal::Kind)
    );
    assert_eq!(
        opened(&mut device, &seal(header(22, 21), &[0])),
        Err(Refusal::Body)
    );
    assert_eq!(
        opened(&mut device, &seal(header(1, 22), &[])),
        Err(Refusal::Kind)
    );
    assert_eq!(
        opened(&mut device, &seal(header(22, u32::MAX), &[])),
        Ok(22)
    );
}

#[test]
fn a_session_ends_before_its_numbers_do() {
    let mut link = Link::<CoordinatorEnd>::new(key(1));
    link.skip_to(u32::MAX - 1);
    assert_ne!(link.seal(0, &Message::Done).as_slice(), b"");
    assert_eq!(link.seal(0, &Message::Done).as_slice(), b"");
}

#[test]
fn a_greeting_is_read_as_one() {
    let mut call = raw(&Greeting::Call.encoded());
    let frame = Frame::parse(&mut call).unwrap();
    assert_eq!(greeting(&frame, Direction::ToDevice), Ok(Greeting::Call));
    let wrong_way = greeting(&frame, Direction::ToCoordinator);
    assert_eq!(wrong_way, Err(Refusal::Kind));
    let refused = |bytes: &[u8]| {
        let mut raw = checked([bytes, &[0; 4]].concat());
        greeting(&Frame::parse(&mut raw).unwrap(), Direction::ToDevice).unwrap_err()
    };
    assert_eq!(refused(&[0, 1, 0]), Refusal::Body, "a call is empty");
    assert_eq!(refused(&[0, 16]), Refusal::Kind);
    assert_eq!(refused(&[0, 3]), Refusal::Body);
    let welcome = |versions: [u8; 2]| [&[0, 3], &[9; 16][..], &versions, &[0; 16]].concat();
    assert_eq!(refused(&welcome([4, 5])), Refusal::Body, "two versions");
    let session = raw(&Encoded::seal(
        header(22, 1),
        &[],
        &key(1),
        Direction::ToDevice,
    ));
    let mut session = session;
    let frame = Frame::parse(&mut session).unwrap();
    assert_eq!(
        greeting(&frame, Direction::ToDevice),
        Err(Refusal::Unexpected)
    );
    // A number of more than 32 bits is invalid, and a name is either hidden or not.
    for (hidden, byte, is_one) in [(0, 0, true), (0, 1, false), (1, 1, true), (2, 0, false)] {
        let mut name = [0; 8];
        name[7] = byte;
        let body = [&[hidden], &name[..], &[9; 16], &[4, 4], &[0; 16]].concat();
        let found = Greeting::parse(2, &body, Direction::ToCoordinator);
        assert_eq!(found.is_ok(), is_one, "{hidden} {byte}");
    }
}

#[test]
fn sessions_have_keys_of_their_own() {
    let cipher = |keys: SessionKeys| keys.cipher();
    let session = cipher(chain(1).session(5, &[1; 16], &[2; 16]));
    assert_ne!(session, cipher(chain(2).session(5, &[1; 16], &[2; 16])));
    assert_ne!(
        session,
        cipher(chain(1).next().session(5, &[1; 16], &[2; 16]))
    );
    assert_ne!(session, cipher(chain(1).session(6, &[1; 16], &[2; 16])));
    assert_ne!(session, cipher(chain(1).session(5, &[2; 16], &[1; 16])));
    assert_eq!(format!("{session:?}"), "SessionKey(Key(..))");
    assert_eq!(
        format!("{:?}", chain(1)),
        "ChainKey { key: Key(..), kdf: HChaCha20 }"
    );
    assert_ne!(chain(1).pseudonym(), chain(1).next().pseudonym());
    assert_ne!(ledger_fingerprint(&[1; 8]), ledger_fingerprint(&[2; 8]));
}

/// The goal of the design: 650 parameters at b = 20 in less than 2 KiB.
#[test]
fn bytes_of_an_update_on_the_line() {
    let line = |width| {
        let chunk = pack::capacity(width, message::UPDATE_CHUNK_BYTES);
        let mut left = 650_usize;
        let mut bytes = 0;
        let mut chunks = 0;
        while left > 0 {
            let count = left.min(chunk);
            let mut packed = [0; message::UPDATE_CHUNK_BYTES];
            let length = pack::pack((0..count).map(|_| 0), width, &mut packed).unwrap();
            let chunk = message::UpdateChunk {
                index: chunks,
                negated: false,
                more: false,
                packed: message::Packed::Bytes(&packed[..length]),
            };
            let mut link = Link::<DeviceEnd>::new(key(1));
            bytes += link.seal(1, &Message::UpdateChunk(chunk)).as_slice().len();
            left -= count;
            chunks += 1;
        }
        assert_eq!(usize::from(chunks), message::update_chunks(650, width));
        bytes
    };
    let central = |bits| line(pack::width(bits, None));
    let local = |bits| {
        let noise = Sigma::new(1_u64 << bits, 1).unwrap();
        line(pack::width(bits, Some(noise)))
    };
    let sizes = [4, 6, 8, 10, 12, 16, 20].map(central);
    assert_eq!(sizes, [477, 675, 873, 1069, 1232, 1627, 1990]);
    assert_eq!([8, 16, 20].map(local), [1232, 1990, 2384]);
    // Masked, without the chunk of the tag.
    assert_eq!(line(19), 1790);
}

#[test]
fn widths_hold_what_they_must() {
    assert_eq!(pack::width(20, None), 21);
    let noise = |numerator, denominator| Sigma::new(numerator, denominator).ok();
    // 2^20 + 12 · 2^20 < 2^24, and a sign.
    assert_eq!(pack::width(20, noise(1 << 20, 1)), 25);
    assert_eq!(pack::width(4, noise(1, 1 << 48)), 6);
    assert_eq!(pack::width(24, noise(1 << 52, 1)), 57);
    assert_eq!(pack::capacity(0, 10), 0);
    assert_eq!(pack::pack([1].into_iter(), 58, &mut [0; 8]), None);
    assert_eq!(pack::unpack(&[0; 8], 0, &mut [0]), None);
    assert_eq!(
        pack::unpack(&[0xe1], 5, &mut [0]),
        None,
        "bits behind the last value"
    );
}

#[test]
fn refusals_are_counted_and_named() {
    let mut refusals = Refusals::new();
    for refusal in Refusal::ALL {
        refusals.count(refusal);
        refusals.count(Refusal::Tag);
    }
    assert_eq!(refusals.get(Refusal::Tag), 14);
    assert_eq!(refusals.get(Refusal::Round), 1);
    assert_eq!(refusals.total(), 26);
    let names: std::collections::BTreeSet<String> = refusals
        .iter()
        .map(|(refusal, _)| format!("{refusal}"))
        .collect();
    assert_eq!(names.len(), Refusal::ALL.len());
}
