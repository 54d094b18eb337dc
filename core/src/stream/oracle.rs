//! Every named stream against another implementation of ChaCha20, `rand_chacha`, with keys and
//! nonces packed here independently, from the documentation: the parent module, docs/same-bits.md
//! for seeds, docs/provisioning.md for ledgers.
//!
//! The reference uses nothing of this crate but the variants of [`Purpose`].

use proptest::{collection::vec, prelude::*};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::vec::Vec;

use super::*;
use crate::{
    crypto::Key,
    identity::Identity,
    ledger::{Budget, Ledger, Limits, MaxJump, Separation, tests::erased},
    secrets::Secrets,
};

/// All purposes, with their numbers repeated. A missing variant does not compile, because the match
/// has no arm for it.
macro_rules! purposes {
    ($($purpose:ident = $number:literal),+ $(,)?) => {
        const PURPOSES: &[Purpose] = &[$(Purpose::$purpose),+];

        const fn number_of(purpose: Purpose) -> u32 {
            match purpose {
                $(Purpose::$purpose => $number),+
            }
        }
    };
}

purposes! {
    CohortSampling = 1,
    BatchShuffle = 2,
    ServerNoise = 3,
    DeviceNoise = 4,
    Initialisation = 5,
    Partition = 6,
    Synthesis = 7,
    SessionNonces = 8,
    Augmentation = 9,
    CorrelationNoise = 10,
    SenderSampling = 11,
    ServerMomentNoise = 12,
    DeviceMomentNoise = 13,
    ServerScoreNoise = 14,
    Trials = 15,
    DeviceBitNoise = 16,
    TrialSeed = 17,
    HelperNoise = 18,
    PartyRoots = 19,
    ServerAnswerNoise = 20,
    AnswerSeed = 21,
}

/// Names in which each byte of round and device once differs from all others.
const ROUNDS_AND_DEVICES: [(u32, u32); 5] = [
    (0, 0),
    (1, 2),
    (u32::MAX, 0),
    (0, u32::MAX),
    (0x0102_0304, 0x8191_a1b1),
];

const SEED: u64 = 0x0123_4567_89ab_cdef;

/// 32 bytes, all different.
const SECRET: [u8; 32] = {
    let mut secret = [0; 32];
    let mut i = 0;
    while i < 32 {
        secret[i] = 0xf3 - 7 * i as u8;
        i += 1;
    }
    secret
};

/// Words of a block.
const BLOCK: u64 = 16;

/// The key of a seed: its eight bytes, the lowest first, and 24 bytes of text.
fn key_of(seed: u64) -> [u8; 32] {
    let mut key: Vec<u8> = (0..8).map(|byte| (seed >> (8 * byte)) as u8).collect();
    key.extend(b"smolfed simulation seed ");
    key.try_into().unwrap()
}

/// RFC 8439 has one word for the number of the block and three for the nonce. Here both have two.
/// So the first word of the nonce is the upper half of the block number, which only counts in the
/// lower half for the length of a stream.
fn rfc_8439(key: [u8; 32], nonce: [u32; 3]) -> ChaCha20Rng {
    let [first, second, third] = nonce.map(u128::from);
    let mut rng = ChaCha20Rng::from_seed(key);
    rng.set_stream((third << 32 | second) as u64);
    rng.set_word_pos((first << 32) * u128::from(BLOCK));
    rng
}

fn oracle(key: [u8; 32], id: StreamId) -> ChaCha20Rng {
    rfc_8439(key, [number_of(id.purpose), id.round, id.device])
}

/// Words from the start of the stream.
fn position_of(oracle: &ChaCha20Rng) -> u64 {
    (oracle.get_word_pos() % (u128::from(BLOCK) << 32)) as u64
}

fn skip_in(oracle: &mut ChaCha20Rng, words: u64) {
    oracle.set_word_pos(oracle.get_word_pos() + u128::from(words));
}

/// The initial state of a block (RFC 8439, section 2.3), as bytes.
fn state_of(key: &[u8; 32], last: [u32; 4]) -> [u8; 64] {
    let mut state = b"expand 32-byte k".to_vec();
    state.extend(key);
    state.extend(last.iter().flat_map(|word| word.to_le_bytes()));
    state.try_into().unwrap()
}

/// HChaCha20 is words 0 to 3 and 12 to 15 after the rounds. A block is its initial state plus the
/// result of the rounds, and the initial values of these words are public.
fn hchacha20(key: [u8; 32], input: [u8; 16]) -> [u8; 32] {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let last = [0, 4, 8, 12].map(|at| word(&input[at..at + 4]));
    let mut rng = ChaCha20Rng::from_seed(key);
    rng.set_stream(u64::from(last[3]) << 32 | u64::from(last[2]));
    let block = u128::from(last[1]) << 32 | u128::from(last[0]);
    rng.set_word_pos(block * u128::from(BLOCK));
    let made: Vec<u32> = (0..BLOCK).map(|_| rng.next_u32()).collect();
    let state = state_of(&key, last);
    let kept = (0..4).chain(12..16);
    let bytes: Vec<u8> = kept
        .flat_map(|i| {
            made[i]
                .wrapping_sub(word(&state[4 * i..][..4]))
                .to_le_bytes()
        })
        .collect();
    bytes.try_into().unwrap()
}

/// The root of the streams of a ledger with this nonce.
fn bound(root: [u8; 32], nonce: [u8; 8]) -> [u8; 32] {
    let mut input = *b"streams ????????";
    input[8..].copy_from_slice(&nonce);
    hchacha20(root, input)
}

/// A seeded and a secret root, with their keys.
fn roots() -> [(Root, [u8; 32]); 2] {
    [
        (Root::from_seed(SEED), key_of(SEED)),
        (Root::from_secret(SECRET), SECRET),
    ]
}

fn ids() -> impl Iterator<Item = StreamId> {
    PURPOSES.iter().flat_map(|&purpose| {
        ROUNDS_AND_DEVICES.map(|(round, device)| StreamId {
            purpose,
            round,
            device,
        })
    })
}

/// Words, bytes and double words, over many blocks, and from the middle of a block on.
fn assert_same(stream: &mut Stream, oracle: &mut ChaCha20Rng, what: StreamId) {
    for word in 0..1_300 {
        let (ours, theirs) = (stream.next_u32(), oracle.next_u32());
        assert_eq!(ours, theirs, "word {word} of {what:?}");
    }
    let [mut ours, mut theirs] = [[0; 4_099]; 2];
    stream.fill_bytes(&mut ours);
    oracle.fill_bytes(&mut theirs);
    assert_eq!(ours, theirs, "bytes of {what:?}");
    for _ in 0..40 {
        assert_eq!(stream.next_u64(), oracle.next_u64(), "{what:?}");
    }
    assert_eq!(stream.position(), position_of(oracle), "{what:?}");
}

#[test]
fn all_purposes_have_the_numbers_that_are_documented() {
    let numbers: Vec<u32> = PURPOSES.iter().map(|&purpose| purpose as u32).collect();
    assert_eq!(numbers, (1..=21).collect::<Vec<_>>());
    assert!(
        PURPOSES
            .iter()
            .map(|&purpose| number_of(purpose))
            .eq(1..=21)
    );
}

#[test]
fn every_stream_has_the_words_of_another_implementation() {
    for (root, key) in roots() {
        for id in ids() {
            assert_same(&mut root.stream(id), &mut oracle(key, id), id);
        }
    }
}

#[test]
fn the_state_of_every_stream_is_that_of_the_rfc() {
    for (root, key) in roots() {
        for id in ids() {
            let state = root.state(id);
            let ours: Vec<u8> = state.iter().flat_map(|word| word.to_le_bytes()).collect();
            let last = [0, number_of(id.purpose), id.round, id.device];
            assert_eq!(ours, state_of(&key, last), "{id:?}");
        }
    }
}

/// The generators compute one, four or sixteen blocks at once.
#[test]
fn every_place_around_the_ends_of_blocks_is_that_of_another_implementation() {
    for (root, key) in roots() {
        for &purpose in PURPOSES {
            let id = StreamId {
                purpose,
                round: 3,
                device: 5,
            };
            for end in [1, 4, 16].map(|blocks| blocks * BLOCK) {
                for place in end.saturating_sub(BLOCK + 2)..=end + BLOCK + 2 {
                    assert_same_from(&root, key, id, place);
                }
            }
        }
    }
}

fn assert_same_from(root: &Root, key: [u8; 32], id: StreamId, place: u64) {
    let mut expected = oracle(key, id);
    skip_in(&mut expected, place);
    let words: [u32; 3] = core::array::from_fn(|_| expected.next_u32());
    let mut skipped = root.stream(id);
    skipped.skip(place);
    assert_eq!(skipped.position(), place);
    // From the start, and from a stream after one drawn word.
    let mut begun = root.stream(id);
    let mut streams = [begun.at(place), skipped];
    if let Some(rest) = place.checked_sub(1) {
        begun.next_u32();
        streams[0] = begun.at(rest);
    }
    for stream in &mut streams {
        assert_eq!(words.map(|_| stream.next_u32()), words, "{place} of {id:?}");
        assert_eq!(stream.position(), place + 3);
    }
}

#[test]
fn the_last_words_of_a_stream_are_those_of_another_implementation() {
    for (root, key) in roots() {
        for id in ids() {
            // Draws the last three words of the stream.
            for place in (POSITIONS - 70)..=(POSITIONS - 3) {
                let (mut ours, mut theirs) = (root.stream(id), oracle(key, id));
                ours.skip(place);
                skip_in(&mut theirs, place);
                for _ in 0..3 {
                    assert_eq!(ours.next_u32(), theirs.next_u32(), "{place} of {id:?}");
                }
            }
        }
    }
}

/// draft-irtf-cfrg-xchacha-03, section 2.2.1: the reference of the other tests is correct.
#[test]
fn the_other_hchacha20_is_that_of_the_draft() {
    let mut key = [0; 32];
    hex::<32>(
        "000102030405060708090a0b0c0d0e0f\
         101112131415161718191a1b1c1d1e1f",
        &mut key,
    );
    let (mut input, mut expected) = ([0; 16], [0; 32]);
    hex("000000090000004a0000000031415927", &mut input);
    hex(
        "82413b4227b27bfed30e42508a877d73\
         a0f9e4d58a74a853c12ec41326d3ecdc",
        &mut expected,
    );
    assert_eq!(hchacha20(key, input), expected);
}

fn hex<const N: usize>(digits: &str, bytes: &mut [u8; N]) {
    assert_eq!(digits.len(), 2 * N);
    *bytes = core::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..][..2], 16).unwrap());
}

const NONCES: [[u8; 8]; 3] = [[0; 8], *b"\x01\x23\x45\x67\x89\xab\xcd\xef", [0xff; 8]];

#[test]
fn the_root_of_a_ledgers_streams_is_that_of_another_implementation() {
    for nonce in NONCES {
        let Ok(root) = Root::from_secret(SECRET).streams(&nonce, 3);
        assert_eq!(root.secret(), &bound(SECRET, nonce));
        // A seed names the same streams on all devices.
        let Ok(root) = Root::from_seed(SEED).streams(&nonce, 3);
        assert_eq!(root.secret(), &key_of(SEED));
    }
}

/// From the ledger on, as on a device.
#[test]
fn the_streams_of_a_participation_are_those_of_another_implementation() {
    let limits = Limits {
        budget: Budget(9),
        separation: Separation::NONE,
        max_jump: MaxJump(u32::MAX),
    };
    for nonce in NONCES {
        let mut identity = Identity {
            device: 0xd3c2_b1a0,
            root: Root::from_secret(SECRET),
        };
        let mut ledger =
            Ledger::create(erased::<4, 64>(), nonce, Key::from_secret([1; 32])).unwrap();
        for round in [0, 3, 0x0102_0304] {
            let participation = ledger.begin(round, &mut identity, &limits).unwrap();
            for &purpose in PURPOSES {
                let id = StreamId {
                    purpose,
                    round,
                    device: identity.device,
                };
                let mut stream = participation.streams().open(purpose);
                assert_same(&mut stream, &mut oracle(bound(SECRET, nonce), id), id);
            }
        }
    }
}

/// An operation on a stream.
#[derive(Clone, Copy, Debug)]
enum Step {
    Word,
    Double,
    Bytes(usize),
    Skip(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Word),
        Just(Step::Double),
        (0_usize..400).prop_map(Step::Bytes),
        (0_u64..600).prop_map(Step::Skip),
        // Sixteen blocks are 256 words, so positions are also far from the generator's.
        (0_u64..1 << 34).prop_map(Step::Skip),
    ]
}

/// Any name under any key, from any position.
fn follows(root: &Root, key: [u8; 32], id: StreamId, start: u64, steps: &[Step]) {
    let (mut ours, mut theirs) = (root.stream(id), oracle(key, id));
    ours.skip(start);
    skip_in(&mut theirs, start);
    for step in steps {
        match *step {
            Step::Word => assert_eq!(ours.next_u32(), theirs.next_u32()),
            Step::Double => assert_eq!(ours.next_u64(), theirs.next_u64()),
            Step::Bytes(count) => {
                let [mut a, mut b] = [[0; 400]; 2];
                ours.fill_bytes(&mut a[..count]);
                theirs.fill_bytes(&mut b[..count]);
                assert_eq!(a, b);
            }
            Step::Skip(words) => {
                // A stream ends before it repeats.
                let words = words.min((POSITIONS - 1_000_000).saturating_sub(ours.position()));
                ours = ours.at(words);
                skip_in(&mut theirs, words);
            }
        }
        assert_eq!(ours.position(), position_of(&theirs), "after {step:?}");
    }
}

fn any_id() -> impl Strategy<Value = StreamId> {
    let purpose = prop::sample::select(PURPOSES);
    (purpose, any::<u32>(), any::<u32>()).prop_map(|(purpose, round, device)| StreamId {
        purpose,
        round,
        device,
    })
}

proptest! {
    #[test]
    fn any_stream_of_a_seed_is_that_of_another_implementation(
        seed: u64, id in any_id(), start in 0..POSITIONS - 2_000_000, steps in vec(step(), 0..40),
    ) {
        follows(&Root::from_seed(seed), key_of(seed), id, start, &steps);
    }

    #[test]
    fn any_stream_of_a_ledger_is_that_of_another_implementation(
        secret: [u8; 32], nonce: [u8; 8], id in any_id(), start in 0_u64..2_000,
        steps in vec(step(), 0..40),
    ) {
        let Ok(root) = Root::from_secret(secret).streams(&nonce, id.round);
        follows(&root, bound(secret, nonce), id, start, &steps);
    }
}
