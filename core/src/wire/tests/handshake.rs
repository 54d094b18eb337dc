//! The greeting with X25519, against an independent reading of `docs/protocol.md`, another
//! implementation of Noise at the other end, and unauthorised peers.

use snow::Builder;
use std::string::ToString;
use zeroize::Zeroizing;

use super::{
    vectors::{array, chain as chain_of, file, hex},
    *,
};
use crate::wire::{
    handshake::{Ephemeral, Second},
    keys::Nonce,
};

const DEVICE: u32 = 42;
const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

fn pair(secret: [u8; 32]) -> Ephemeral {
    Ephemeral::from_secret(Zeroizing::new(secret))
}

fn hello_of(chain: &ChainKey, name: Name, nonce: Nonce, own: &Ephemeral) -> Hello {
    let (key, psk) = (chain.greeting(), chain.handshake(DEVICE));
    Hello::with_handshake(&key, &psk, name, nonce, Versions::OURS, own)
}

fn hello(chain: &ChainKey, own: &Ephemeral) -> Hello {
    hello_of(chain, Name::Number(DEVICE), [9; 16], own)
}

/// Returns the answer of a coordinator with this chain key.
fn answered(hello: &Hello, chain: &ChainKey, own: &Ephemeral) -> Option<(Second, SessionKey)> {
    hello.admit(&chain.handshake(DEVICE))?.answer(own, VERSION)
}

fn parsed(raw: &mut [u8], direction: Direction) -> Result<Greeting, Refusal> {
    greeting(&Frame::parse(raw)?, direction)
}

#[test]
fn handshakes_agree_with_an_independent_reading() {
    let file = file();
    let (chain, vectors) = (chain_of(&file), &file["x25519"]);
    let [device, coordinator] =
        ["device_ephemeral", "coordinator_ephemeral"].map(|name| pair(array(&vectors[name])));
    let nonce = array(&file["device_nonce"]);
    for (case, is_hidden) in vectors["cases"]
        .as_array()
        .unwrap()
        .iter()
        .zip([false, true])
    {
        let name = name_of(DEVICE, &chain, is_hidden);
        let expected = hello_of(&chain, name, nonce, &device);
        let line = hex(&case["hello"]);
        assert_eq!(Greeting::Hello(expected).encoded().as_slice(), line);
        let mut raw = frames(&line).remove(0).unwrap();
        let found = parsed(&mut raw, Direction::ToCoordinator);
        assert_eq!(found, Ok(Greeting::Hello(expected)));
        assert_eq!(parsed(&mut raw, Direction::ToDevice), Err(Refusal::Kind));
        assert!(expected.is_authentic(&chain.greeting()));

        let (second, key) = answered(&expected, &chain, &coordinator).unwrap();
        let line = hex(&case["welcome"]);
        assert_eq!(Greeting::Second(second).encoded().as_slice(), line);
        let mut raw = frames(&line).remove(0).unwrap();
        let found = parsed(&mut raw, Direction::ToDevice);
        assert_eq!(found, Ok(Greeting::Second(second)));
        assert_eq!(
            parsed(&mut raw, Direction::ToCoordinator),
            Err(Refusal::Kind)
        );
        assert_eq!(key, SessionKey::from_secret(array(&case["session_key"])));
        let opened = second.open(&chain.handshake(DEVICE), &expected, &device);
        assert_eq!(opened, Some((VERSION, key)));
    }
}

/// Splits a frame into the bytes before Noise's message and the message, as `snow` has only the
/// latter.
fn split(encoded: &Encoded, before: usize) -> (Vec<u8>, Vec<u8>) {
    let raw = raw(encoded);
    let (clear, noise) = raw[..raw.len() - 4].split_at(before);
    (clear.to_vec(), noise.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn another_implementation_answers_a_device(
        secrets in any::<[[u8; 32]; 3]>(), nonce in any::<[u8; 16]>(), is_hidden in any::<bool>(),
    ) {
        let chain = ChainKey::new(Key::from_secret(secrets[0]));
        let own = pair(secrets[1]);
        let hello = hello_of(&chain, name_of(DEVICE, &chain, is_hidden), nonce, &own);
        let (prologue, first) = split(&Greeting::Hello(hello).encoded(), 45);
        let psk = psk_of(&chain);
        let builder = Builder::new(NOISE.parse().unwrap()).psk(0, &psk).unwrap();
        let builder = builder.prologue(&prologue).unwrap();
        let mut other = builder.build_responder().unwrap();
        let mut buffer = [0; 100];
        prop_assert_eq!(other.read_message(&first, &mut buffer).unwrap(), 0);
        let length = other.write_message(&[VERSION, VERSION], &mut buffer).unwrap();
        let found = Greeting::parse(6, &buffer[..length], Direction::ToDevice);
        let Ok(Greeting::Second(second)) = found else {
            panic!("a Welcome");
        };
        let (version, key) = second.open(&chain.handshake(DEVICE), &hello, &own).unwrap();
        let (split, _) = other.dangerously_get_raw_split();
        let expected = Key::from_secret(split).derive(b"smolfed cipher  ");
        prop_assert_eq!((version, key), (VERSION, SessionKey(expected)));
    }

    /// Damage to the Hello is found before the coordinator multiplies anything. Damage to the
    /// Welcome leaves no key.
    #[test]
    fn no_damaged_handshake_opens_a_session(
        secrets in any::<[[u8; 32]; 2]>(), bit in any::<prop::sample::Index>(),
    ) {
        let [device, coordinator] = secrets.map(pair);
        let hello = hello(&chain(1), &device);
        let damaged = |encoded: &Encoded, direction| {
            let mut raw = raw(encoded);
            let at = bit.index(8 * (raw.len() - 4));
            raw[at / 8] ^= 1 << (at % 8);
            parsed(&mut checked(raw), direction)
        };
        let found = damaged(&Greeting::Hello(hello).encoded(), Direction::ToCoordinator);
        if let Ok(Greeting::Hello(hello)) = found {
            let is_authentic = hello.is_authentic(&chain(1).greeting());
            let answer = answered(&hello, &chain(1), &coordinator);
            prop_assert!(!(is_authentic && answer.is_some()));
            // The prologue covers everything outside of Noise's message.
            prop_assert!(answer.is_none());
        }
        let (second, _) = answered(&hello, &chain(1), &coordinator).unwrap();
        let found = damaged(&Greeting::Second(second).encoded(), Direction::ToDevice);
        if let Ok(Greeting::Second(second)) = found {
            prop_assert!(second.open(&chain(1).handshake(DEVICE), &hello, &device).is_none());
        }
    }
}

/// Derives the 32 bytes, which this crate does not expose, as the page describes.
fn psk_of(chain: &ChainKey) -> [u8; 32] {
    let label: [u8; 16] = [&b"smolfed psk "[..], &DEVICE.to_le_bytes()]
        .concat()
        .try_into()
        .unwrap();
    *Key::from_secret(*chain.secret()).derive(&label).secret()
}

/// Another chain key or number, another Hello, another device's ephemeral key.
#[test]
fn a_handshake_belongs_to_one_device_and_one_hello() {
    let [device, other, coordinator] = [[1; 32], [2; 32], [3; 32]].map(pair);
    let ours = hello(&chain(1), &device);
    assert!(answered(&ours, &chain(2), &coordinator).is_none());
    assert!(answered(&ours, &chain(1).next(), &coordinator).is_none());
    assert!(ours.admit(&chain(1).handshake(DEVICE + 1)).is_none());
    let (second, key) = answered(&ours, &chain(1), &coordinator).unwrap();
    let open =
        |chain: &ChainKey, hello: &Hello, own| second.open(&chain.handshake(DEVICE), hello, own);
    assert_eq!(open(&chain(1), &ours, &device), Some((VERSION, key)));
    assert!(open(&chain(1), &ours, &other).is_none());
    assert!(open(&chain(2), &ours, &device).is_none());
    let later = hello_of(&chain(1), ours.name, [8; 16], &device);
    assert!(open(&chain(1), &later, &device).is_none());
}

/// An eavesdropper who later gets the chain key can compute the key of a session without a
/// handshake. With a handshake the key differs each time.
#[test]
fn the_chain_key_and_a_recording_do_not_give_the_key() {
    let hello = hello(&chain(1), &pair([1; 32]));
    let keys: Vec<SessionKey> = (2..5)
        .map(|secret| answered(&hello, &chain(1), &pair([secret; 32])).unwrap().1)
        .collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    let symmetric = chain(1).session(DEVICE, &hello.nonce, &[0; 16]).cipher();
    assert!(!keys.contains(&symmetric));
}

/// Without its handshake, or with the code of the other kind, a Hello is not authentic.
#[test]
fn the_two_kinds_of_hello_are_not_taken_for_each_other() {
    let hello = hello(&chain(1), &pair([1; 32]));
    let body = &raw(&Greeting::Hello(hello).encoded())[2..];
    let body = &body[..body.len() - 4];
    let stripped = Greeting::parse(2, &body[..43], Direction::ToCoordinator);
    let Ok(Greeting::Hello(stripped)) = stripped else {
        panic!("a Hello");
    };
    assert!(hello.is_authentic(&chain(1).greeting()));
    assert!(hello.has_handshake() && !stripped.has_handshake());
    assert!(!stripped.is_authentic(&chain(1).greeting()));
    assert!(answered(&stripped, &chain(1), &pair([2; 32])).is_none());
    for length in [0, 43, 90, 92] {
        let body = [body, &[0; 9]].concat()[..length].to_vec();
        let found = Greeting::parse(5, &body, Direction::ToCoordinator);
        assert_eq!(found, Err(Refusal::Body), "{length}");
        let found = Greeting::parse(6, &body, Direction::ToDevice);
        assert_eq!(found, Err(Refusal::Body), "{length}");
    }
    let text = message::WhyRefused::from_code(5).to_string();
    assert_eq!(text, "the coordinator requires greetings with X25519");
    assert_eq!(message::WhyRefused::HANDSHAKE.code(), 5);
}
