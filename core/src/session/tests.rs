//! Whole rounds over lines that lose, damage, repeat and reorder frames, and against hostile peers.

use core::num::NonZeroU32;
use proptest::{collection::vec, prelude::*};
use std::{format, string::ToString, vec, vec::Vec};

use super::*;
use crate::{
    bit::BitRequest,
    crypto::Key,
    harness::{self, FEATURES, PARAMETERS, data, deliver, invitation, noise},
    ledger::{
        Budget, Limits, MaxJump, Separation,
        tests::{Ram, erased},
    },
    mask::Tag,
    model::{Const, Linear, ModelKind, Softmax},
    noise::{DiscreteGaussian, Sigma},
    params::{ClipNorm, LearningRate, NoiseMultiplier, Penalty},
    progress::Progress,
    quantize::Grid,
    samples::{SampleSlice, Samples},
    stream::{Purpose, Root, Stream},
    train::{Clipping, Workspace},
    wire::{
        Direction,
        cobs::Decoder,
        frame::{Encoded, Frame},
        greeting::{Greeting, Hello, Name, Versions, Welcome},
        keys::{Chain, ChainKey, SessionKey},
        link::{CoordinatorEnd, Link, read},
        message::{
            Abort, Decline, Invitation, MODEL_CHUNK, Message, ModelShape, PackedInvitation,
            Refused, Request, UPDATE_CHUNK_BYTES, UpdatePart, Values, WhyRefused,
        },
        pack,
        refusal::Refusal,
    },
};

mod bit;
mod coordinator;
#[cfg(feature = "async")]
mod drive;
#[cfg(feature = "element")]
mod element;
#[cfg(feature = "x25519")]
mod handshake;
mod held;
mod integers;
mod last_round;
mod line;
#[cfg(feature = "masks")]
mod masked;
mod network;
mod personal;
mod pieces;
mod predict;
#[cfg(feature = "questions")]
mod questions;
mod refused;
mod resumption;
mod samples;
mod saved_model;
#[cfg(feature = "short")]
mod short;
mod stream;
mod unlabelled;
#[cfg(feature = "sleep")]
mod wake;

use coordinator::Coordinator;

const KEY: [u8; 32] = [3; 32];
const NONCE: [u8; 8] = [7; 8];

type Board<R = Stream, F = Ram, V = Root> =
    Session<'static, Softmax<Const<FEATURES>, Const<6>>, F, R, NoStore, V>;

fn stream(purpose: Purpose, round: u32) -> Stream {
    stream_of(&Root::from_seed(11), purpose, round)
}

fn stream_of(root: &Root, purpose: Purpose, round: u32) -> Stream {
    harness::stream(root, purpose, round, 42)
}

fn policy() -> Policy {
    harness::policy(Limits {
        budget: Budget(5),
        separation: Separation::NONE,
        max_jump: MaxJump(100),
    })
}

fn chain() -> ChainKey {
    ChainKey::new(Key::from_secret(KEY))
}

fn identity() -> Identity {
    Identity {
        device: 42,
        root: Root::from_seed(11),
    }
}

fn board<F>(policy: Policy, ledger: Ledger<F>, start: u32) -> Board<Stream, F> {
    board_with(stream(Purpose::Initialisation, start), policy, ledger)
}

fn board_with<R: Greeter, F>(nonces: R, policy: Policy, ledger: Ledger<F>) -> Board<R, F> {
    board_of(identity(), nonces, policy, ledger)
}

fn board_of<R: Greeter, F, V: Secrets>(
    identity: Identity<V>,
    nonces: R,
    policy: Policy,
    ledger: Ledger<F>,
) -> Board<R, F, V> {
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    Session::new(
        identity,
        policy,
        model,
        memory(PARAMETERS, 10, 6),
        ledger,
        nonces,
    )
    .unwrap()
}

/// Memory that lives forever, as in firmware.
fn memory(parameters: usize, samples: usize, scores: usize) -> Memory<'static> {
    let floats = |count| vec![0.0; count].leak();
    Memory {
        global: floats(parameters),
        work: Workspace {
            local: floats(parameters),
            update: floats(parameters),
            order: vec![0; samples].leak(),
            scratch: floats(scores),
        },
    }
}

fn ledger() -> Ledger<Ram> {
    Ledger::create(erased(), NONCE, Key::from_secret(KEY)).unwrap()
}

/// The length distinguishes a network from other models, and must match the kind.
#[test]
fn bytes_behind_an_invitation_are_refused() {
    let packed = PackedInvitation::from(&invitation(None));
    let mut body = [0; 82];
    body[..70].copy_from_slice(packed.bytes().as_slice());
    for (length, is_valid) in [(70, true), (82, false)] {
        let to_device = crate::wire::Direction::ToDevice;
        let message = Message::parse(17, &body[..length], to_device);
        let Ok(Message::Invitation(packed)) = message else {
            panic!("an invitation of {length} bytes");
        };
        assert_eq!(packed.unpack().is_some(), is_valid);
        assert_eq!(packed.unpack_shared().is_some(), is_valid);
    }
}

fn model() -> Vec<f32> {
    harness::model().to_vec()
}

fn coordinator(round: u32, noise: Option<Sigma>) -> Coordinator {
    Coordinator::new(chain(), round, invitation(noise), model())
}

/// Returns the simulator's result: the same client without a wire.
fn expected(round: u32, invitation: &Invitation) -> Vec<i64> {
    simulated(round, invitation).0
}

/// Returns [`expected`], and the norm of the update before its last clipping.
fn simulated(round: u32, invitation: &Invitation) -> (Vec<i64>, f32) {
    simulated_by(&Root::from_seed(11), round, invitation)
}

/// [`simulated`] for a device with this root of its streams.
fn simulated_by(root: &Root, round: u32, invitation: &Invitation) -> (Vec<i64>, f32) {
    let sent = harness::simulated(root, 42, round, invitation, &harness::model()).unwrap();
    (sent.update.to_vec(), sent.report.norm)
}

/// Sends the device's outgoing bytes through a line.
fn transmit<R: Greeter, F, V: Secrets>(
    board: &mut Board<R, F, V>,
    other: &mut Coordinator,
    line: &mut impl FnMut(Vec<u8>) -> Vec<u8>,
) {
    harness::transmit(board, |said| other.receive(&line(said.to_vec())));
}

/// Runs one turn of both sides through a line: the device sends, then the coordinator sends. The
/// test does the training.
fn turn_without_training<R: Greeter, F, V: Secrets>(
    board: &mut Board<R, F, V>,
    other: &mut Coordinator,
) {
    transmit(board, other, &mut |bytes| bytes);
    for said in core::mem::take(&mut other.outgoing) {
        board.receive(&said);
    }
    if board.outgoing().is_empty() && other.outgoing.is_empty() {
        board.timeout();
        if other.connected() {
            other.invite();
        }
    }
}

fn turn<R: Greeter, V: Secrets>(
    board: &mut Board<R, Ram, V>,
    other: &mut Coordinator,
    line: &mut impl FnMut(Vec<u8>) -> Vec<u8>,
) {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    transmit(board, other, line);
    for said in core::mem::take(&mut other.outgoing) {
        let bytes = line(said);
        deliver(board, &bytes, |board| transmit(board, other, line));
    }
    if board.phase() == Phase::Training {
        board.train(&samples);
    }
    if board.outgoing().is_empty() && other.outgoing.is_empty() {
        board.timeout();
        if other.connected() && !other.done {
            other.invite();
        }
    }
}

/// Runs until the coordinator has an answer, and returns the number of turns.
fn run<R: Greeter, V: Secrets>(
    board: &mut Board<R, Ram, V>,
    other: &mut Coordinator,
    mut line: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> usize {
    for number in 0..20_000 {
        if other.done || other.declined.is_some() {
            return number;
        }
        turn(board, other, &mut line);
    }
    panic!("no end: {board:?}");
}

#[test]
fn a_round_brings_the_bits_of_the_simulator() {
    let mut board = board(policy(), ledger(), 0);
    for (round, noise) in [(3, None), (4, noise())] {
        let mut other = coordinator(round, noise);
        board.timeout();
        // A restarted coordinator knows no session, so the device must greet again.
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert_eq!(other.integers, expected(round, &other.invitation));
        assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
    }
    assert_eq!(board.ledger().past().participations, 2);
    let text = format!("{board:?}");
    assert!(text.starts_with("Session(Idle, 126 parameters"), "{text}");
}

/// As many frames as the window allows, and then an answer.
#[test]
fn a_window_saves_answers() {
    // Three chunks of the model, two of the update.
    for (window, frames) in [(1, 3 + 2), (2, 2 + 1), (16, 1 + 1), (255, 1 + 1)] {
        let mut board = board(policy(), ledger(), 0);
        board.set_window(window);
        let mut other = coordinator(3, None);
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.integers, expected(3, &other.invitation));
        assert_eq!(other.requests, frames, "window {window}");
        assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
    }
}

#[test]
fn each_reason_for_no_session_has_a_name() {
    fn refusal(features: usize, memory: Memory<'static>) -> Option<SessionError> {
        let nonces = stream(Purpose::Initialisation, 0);
        let model = Softmax::new(features, 6_usize);
        Session::new(identity(), policy(), model, memory, ledger(), nonces).err()
    }
    let fitting = |features: usize| memory((features + 1) * 6, 10, 6);
    assert_eq!(refusal(65_536, fitting(0)), Some(SessionError::Shape));
    let large = Softmax::new(65_535_usize, 600_usize);
    let chunks = device::check(&large, &fitting(0));
    assert_eq!(chunks, Err(SessionError::Chunks));
    assert_eq!(refusal(4, fitting(4)), None);
    for vector in 0..3 {
        let (mut memory, short) = (fitting(4), fitting(3));
        match vector {
            0 => memory.global = short.global,
            1 => memory.work.local = short.work.local,
            _ => memory.work.update = short.work.update,
        }
        let error = SessionError::Vector {
            expected: 30,
            found: 24,
        };
        assert_eq!(refusal(4, memory), Some(error));
    }
    let error = SessionError::Scratch {
        expected: 6,
        found: 5,
    };
    assert_eq!(refusal(4, memory(30, 10, 5)), Some(error));
    assert_eq!(
        error.to_string(),
        "scratch memory of 5 entries: at least 6 are needed"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One line in four is lost, damaged, repeated, cut or mixed with garbage.
    #[test]
    fn a_bad_line_costs_turns_and_nothing_else(
        faults in vec((0u8..24, any::<u16>()), 200), window in 1u8..5,
    ) {
        let mut board = board(policy(), ledger(), 0);
        board.set_window(window);
        let mut other = coordinator(1, noise());
        other.invitation = bit::adaptive(noise(), 0.5);
        let mut faults = faults.iter().cycle();
        let mut last = vec![];
        run(&mut board, &mut other, |bytes| {
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
                _ => {}
            }
            last = bytes;
            out
        });
        // A session lost in the middle spends the round. Otherwise the bits are right.
        match other.declined {
            Some(reason) => prop_assert_eq!(reason, Decline::RoundUsed),
            None => {
                prop_assert_eq!(&other.integers, &expected(1, &other.invitation));
                prop_assert!(other.bit.is_some());
            }
        }
        prop_assert_eq!(board.ledger().past().participations, 1);
    }

    #[test]
    fn random_bytes_are_left_out_and_counted(
        bytes in vec(prop_oneof![Just(0u8), any::<u8>()], 0..2_000),
    ) {
        let mut board = board(policy(), ledger(), 0);
        board.timeout();
        board.sent();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            rest = &rest[board.receive(rest)..];
        }
        prop_assert_eq!(board.phase(), Phase::Greeting);
        let pieces = bytes.split(|byte| *byte == 0).count() - 1;
        let empty = bytes.split(|byte| *byte == 0).rev().skip(1).filter(|x| x.is_empty()).count();
        prop_assert_eq!(board.refusals().total() as usize, pieces - empty);
    }

    /// A coordinator with the key sends anything in any order.
    #[test]
    fn no_order_of_messages_harms_the_device(
        said in vec((16u8..27, 0u32..4, vec(any::<u8>(), 0..230), any::<bool>()), 0..60),
    ) {
        let mut board = board(policy(), ledger(), 0);
        let mut other = coordinator(1, None);
        while board.phase() != Phase::Receiving {
            turn(&mut board, &mut other, &mut |bytes| bytes);
        }
        let mut rounds = 0;
        for (kind, round, body, sensible) in said {
            other.round = round;
            other.invitation.epochs = 1 + round;
            let values = [0.5; MODEL_CHUNK];
            match kind {
                17 if sensible => other.invite(),
                19 => {
                    let index = body.first().map_or(0, |x| u16::from(x % 4));
                    let count = if index == 2 { PARAMETERS % MODEL_CHUNK } else { MODEL_CHUNK };
                    let values = Values::Floats(&values[..count]);
                    other.send(&Message::ModelChunk { index, values });
                }
                20 => other.send(&Message::Abort(Abort::Late)),
                21 => other.send(&Message::WantUpdate(round as u16)),
                22 => other.send(&Message::Done),
                _ => {
                    if let Ok(message) = Message::parse(kind, &body, Direction::ToDevice) {
                        other.send(&message);
                    }
                }
            }
            turn(&mut board, &mut other, &mut |bytes| bytes);
            let now = board.ledger().past().participations;
            prop_assert!(now >= rounds && now <= 5);
            rounds = now;
        }
    }
}

#[test]
fn what_the_device_does_not_agree_to_is_declined_by_name() {
    let spent = Policy {
        limits: Limits {
            budget: Budget(0),
            ..policy().limits
        },
        ..policy()
    };
    // The invitation offers z = 1.5.
    let noisy = |halves: u64| Policy {
        min_noise_multiplier: NoiseMultiplier::from_units(halves << 31),
        ..policy()
    };
    let lazy = Policy {
        max_epochs: 1,
        ..policy()
    };
    let cases = [
        (spent, None, Some(Decline::Budget)),
        (noisy(3), noise(), None),
        (noisy(4), noise(), Some(Decline::Noise)),
        (noisy(1), None, Some(Decline::Noise)),
        (lazy, None, Some(Decline::Work)),
    ];
    for (policy, noise, reason) in cases {
        let mut board = board(policy, ledger(), 0);
        let mut other = coordinator(1, noise);
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, reason, "{policy:?}");
    }
    let mut other = coordinator(1, None);
    other.invitation.shape.kind = ModelKind::Logistic;
    run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::Shape));
    let mut other = coordinator(1, None);
    other.model[0] = f32::NAN;
    run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::Diverged));
}

#[test]
fn settings_at_the_ends_of_the_arithmetic_are_declined_by_name() {
    let (min, max) = (*SETTING_LIMITS.start(), *SETTING_LIMITS.end());
    let numbers = [
        (min, max, None),
        (max, min, None),
        (1e-25, 4e-25, Some(Decline::Settings)),
        (min.next_down(), 0.25, Some(Decline::Settings)),
        (max.next_up(), 0.25, Some(Decline::Settings)),
        (0.5, min.next_down(), Some(Decline::Settings)),
        (0.5, f32::MAX, Some(Decline::Settings)),
    ];
    let answer = |invitation: Invitation| {
        let mut other = coordinator(1, noise());
        other.invitation = invitation;
        run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
        other.declined
    };
    for (clip_norm, rate, reason) in numbers {
        let invitation = Invitation {
            grid: Grid::new(ClipNorm::new(clip_norm).unwrap(), 24).unwrap(),
            learning_rate: LearningRate::new(rate).unwrap(),
            ..invitation(noise())
        };
        assert_eq!(answer(invitation), reason, "{clip_norm} {rate}");
    }
    let penalties = [
        (-0.0, 0.0, None),
        (max, max, None),
        (max.next_up(), 0.0, Some(Decline::Settings)),
        (0.0, f32::MAX, Some(Decline::Settings)),
    ];
    for (weight_decay, proximal, reason) in penalties {
        let invitation = Invitation {
            weight_decay: Penalty::new(weight_decay).unwrap(),
            proximal: Penalty::new(proximal).unwrap(),
            ..invitation(noise())
        };
        assert_eq!(answer(invitation), reason, "{weight_decay} {proximal}");
    }
}

#[test]
fn a_device_that_restarts_in_a_round_does_not_begin_it_again() {
    let mut first = board(policy(), ledger(), 0);
    let mut other = coordinator(6, noise());
    while first.phase() != Phase::Sending {
        turn(&mut first, &mut other, &mut |bytes| bytes);
    }
    let flash = first.into_ledger().into_flash();
    let mut second = board(policy(), Ledger::open(flash).unwrap(), 1);
    run(&mut second, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::RoundUsed));
    assert!(!other.done);
}

#[test]
fn a_flash_that_fails_lets_no_round_begin() {
    let mut flash = ledger().into_flash();
    flash.power = 3;
    let mut board = board(policy(), Ledger::open(flash).unwrap(), 0);
    let mut other = coordinator(1, noise());
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.declined, Some(Decline::Storage));
}

/// An authentic invitation to a round number far ahead is declined and counted, and the device
/// answers the coordinator's next request.
#[test]
fn one_message_cannot_end_a_device() {
    let mut flash = ledger().into_flash();
    for (round, declined) in [
        (u32::MAX - 1, Some(Decline::TooFar)),
        (101, Some(Decline::TooFar)),
        (100, None),
        (0, Some(Decline::RoundUsed)),
        (202, Some(Decline::TooFar)),
        (201, None),
    ] {
        let mut board = board(policy(), Ledger::open(flash).unwrap(), round);
        let mut other = coordinator(round, noise());
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, declined, "round {round}");
        let counted = board.refusals().get(Refusal::Round);
        assert_eq!(counted, u32::from(declined == Some(Decline::TooFar)));
        flash = board.into_ledger().into_flash();
    }
    let past = Ledger::open(flash).unwrap().past();
    assert_eq!((past.participations, past.next_round), (2, 202));
}

/// A declined invitation ends the round whose model the device is receiving. When invited to that
/// round again, it takes part.
#[test]
fn an_invitation_that_is_declined_ends_the_round_before() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise());
    while board.phase() != Phase::Receiving {
        turn_without_training(&mut board, &mut other);
    }
    for (round, phase) in [(u32::MAX - 1, Phase::Idle), (3, Phase::Receiving)] {
        board.sent();
        other.round = round;
        other.outgoing.clear();
        other.invite();
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
        assert_eq!(board.phase(), phase);
        assert_eq!(
            board.conversation.round.is_some(),
            phase == Phase::Receiving
        );
    }
    run(&mut board, &mut other, |bytes| bytes);
    assert_eq!(other.integers, expected(3, &other.invitation));
    assert_eq!(board.refusals().get(Refusal::Round), 1);
}

/// Rounds 1 and 5 are four apart. The first is free, and a declined round changes nothing.
#[test]
fn a_round_too_close_to_the_last_one_is_declined() {
    let policy = Policy {
        limits: Limits {
            separation: Separation(4),
            ..policy().limits
        },
        ..policy()
    };
    let mut flash = ledger().into_flash();
    for (round, declined) in [
        (1, None),
        (1, Some(Decline::RoundUsed)),
        (2, Some(Decline::TooSoon)),
        (4, Some(Decline::TooSoon)),
        (5, None),
        (8, Some(Decline::TooSoon)),
        (20, None),
    ] {
        let mut board = board(policy, Ledger::open(flash).unwrap(), round);
        let mut other = coordinator(round, noise());
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, declined, "round {round}");
        flash = board.into_ledger().into_flash();
    }
    assert_eq!(Ledger::open(flash).unwrap().past().participations, 3);
}

/// Returns the update of a device with this secret root and ledger in round 3.
fn sent_by(root: Root, ledger: Ledger<Ram>) -> Vec<i64> {
    let identity = Identity { root, ..identity() };
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    let nonces = stream(Purpose::Initialisation, 9);
    let memory = memory(PARAMETERS, 10, 6);
    let session = Session::new(identity, policy(), model, memory, ledger, nonces);
    let mut board = session.unwrap();
    let mut other = coordinator(3, noise());
    run(&mut board, &mut other, |bytes| bytes);
    assert!(other.done, "{:?}", other.declined);
    other.integers
}

/// The same record after all flash was erased, in the same round with the same model. If the noise
/// were the same, the updates would be the same. With another model their difference would have no
/// noise.
#[test]
fn erased_device_never_repeats_streams() {
    let root = || Root::from_secret([5; 32]);
    let first = sent_by(root(), ledger());
    // Firmware without entropy stops here.
    let erased = erased::<4, 64>;
    let error = Ledger::open(erased()).unwrap_err();
    assert_eq!(error, crate::ledger::LedgerError::Blank);
    let new = Ledger::open_or_create(erased(), [8; 8], Some(Key::from_secret(KEY))).unwrap();
    let second = sent_by(root(), new);
    let equal = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    // Differences of two values of a discrete Gaussian of σ = 1.5 · 2^20 on each coordinate. They
    // are equal with probability 1.9e-7, so one of 126 with 2.4e-5. The seeds are fixed.
    assert_eq!(equal, 0);
    // The root of a ledger's streams depends on the nonce and on the secret, and survives a
    // restart.
    assert_eq!(first, sent_by(root(), ledger()));
    assert_ne!(first, sent_by(Root::from_secret([6; 32]), ledger()));
    // A simulation names its streams by its seed alone.
    let simulated = expected(3, &invitation(noise()));
    assert_eq!(simulated, sent_by(Root::from_seed(11), ledger()));
}

#[test]
fn an_empty_device_loses_no_participation() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(1, None);
    while board.phase() != Phase::Receiving {
        turn(&mut board, &mut other, &mut |bytes| bytes);
    }
    board.train(&SampleSlice::new(&[], &[], FEATURES).unwrap());
    assert_eq!(board.phase(), Phase::Receiving, "not yet");
    board.conversation.phase = Phase::Training;
    board.train(&SampleSlice::new(&[], &[], FEATURES).unwrap());
    assert_eq!(board.phase(), Phase::Idle);
    assert_eq!(board.ledger().past().participations, 0);
}

#[test]
fn a_recorded_coordinator_is_worth_nothing() {
    let mut tape = vec![];
    let mut first = board(policy(), ledger(), 0);
    let mut other = coordinator(1, noise());
    run(&mut first, &mut other, |bytes| {
        tape.extend(&bytes);
        bytes
    });
    // The same device after a restart, even with a blank ledger: its nonce differs.
    let mut second = board(policy(), ledger(), 1);
    second.timeout();
    second.sent();
    deliver(&mut second, &tape, |_| ());
    assert_eq!(second.phase(), Phase::Greeting);
    assert!(
        second.refusals().get(Refusal::Tag) > 0,
        "the recorded welcome"
    );
    assert!(
        second.refusals().get(Refusal::Unexpected) > 0,
        "all that follows it"
    );
    // The tape also goes to the first device, which is still there.
    let before = first.refusals().total();
    deliver(&mut first, &tape, |_| ());
    assert!(first.refusals().total() > before);
    assert!(first.refusals().get(Refusal::Replayed) > 0);
    assert_eq!(first.ledger().past().participations, 1);
}

#[test]
fn another_key_and_a_recorded_hello_change_nothing() {
    let mut first = board(policy(), ledger(), 0);
    let mut other = Coordinator::new(
        ChainKey::new(Key::from_secret([4; 32])),
        1,
        invitation(None),
        model(),
    );
    for _ in 0..50 {
        turn(&mut first, &mut other, &mut |bytes| bytes);
    }
    assert!(other.refusals.get(Refusal::Tag) > 10 && !other.connected());

    let mut other = coordinator(1, None);
    let hello = first.outgoing().to_vec();
    while first.phase() != Phase::Sending {
        turn(&mut first, &mut other, &mut |bytes| bytes);
        // An attacker replays the recorded hello repeatedly.
        if other.connected() {
            other.receive(&hello);
            other.outgoing.pop();
        }
    }
    run(&mut first, &mut other, |bytes| bytes);
    assert_eq!(other.integers, expected(1, &other.invitation));
}

#[test]
fn waiting_is_bounded_and_a_call_begins_anew() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(1, None);
    while board.phase() != Phase::Sending {
        turn(&mut board, &mut other, &mut |bytes| bytes);
    }
    let mut frames = 0;
    while board.phase() == Phase::Sending {
        board.sent();
        board.timeout();
        frames += 1;
        assert!(frames < 100);
    }
    assert_eq!(
        (frames, board.phase()),
        (REPETITIONS as usize + 1, Phase::Greeting)
    );

    let call = Greeting::Call.encoded();
    board.sent();
    board.receive(call.as_slice());
    assert_eq!(
        board.refusals().get(Refusal::Unexpected),
        1,
        "it greets already"
    );
    board.conversation.phase = Phase::Refused(WhyRefused::Version);
    board.sent();
    board.timeout();
    assert!(board.outgoing().is_empty(), "silent");
    board.receive(call.as_slice());
    assert_eq!(board.phase(), Phase::Greeting);
    assert!(!board.outgoing().is_empty());
}

/// Each session with a participation has another chain key, and a coordinator with an older key
/// finds it.
#[test]
fn the_chain_goes_on_with_participations() {
    let mut flash = ledger().into_flash();
    let mut known = chain();
    let mut pseudonyms = vec![];
    for round in 1..4 {
        let policy = Policy {
            hides_number: true,
            ..policy()
        };
        let mut board = board(policy, Ledger::open(flash).unwrap(), round);
        let mut other = Coordinator::new(known, round, invitation(noise()), model());
        run(&mut board, &mut other, |bytes| bytes);
        assert!(other.done);
        pseudonyms.push(other.name.unwrap());
        known = other.chain.clone();
        flash = board.into_ledger().into_flash();
    }
    assert_eq!(known, chain().next().next());
    let expected: Vec<Name> = [chain(), chain().next(), known]
        .map(|chain| Name::Pseudonym(chain.pseudonym()))
        .to_vec();
    assert_eq!(pseudonyms, expected);
}

/// Records the whole line in a round with a hidden device, in both directions.
#[test]
fn nothing_of_a_round_can_be_read_on_the_line() {
    let policy = Policy {
        hides_number: true,
        ..policy()
    };
    let mut board = board(policy, ledger(), 0);
    let mut other = coordinator(3, None);
    // Numbers without a zero byte, which could be found by chance.
    let (rate, norm) = (0.123_456_7, 0.765_432_1);
    other.invitation.learning_rate = LearningRate::new(rate).unwrap();
    other.invitation.grid = Grid::new(ClipNorm::new(norm).unwrap(), 20).unwrap();
    let mut tape = vec![];
    run(&mut board, &mut other, |bytes| {
        for frame in crate::wire::tests::frames(&bytes) {
            tape.extend(frame.unwrap());
        }
        bytes
    });
    assert!(tape.len() > 1_000);
    let contains = |bytes: &[u8]| tape.windows(bytes.len()).any(|window| window == bytes);
    // The search finds unencrypted bytes.
    assert!(contains(&board.conversation.nonce));
    let shape = [3, FEATURES as u8, 0, 6, 0];
    assert!(!contains(&shape), "the model's shape");
    assert!(!contains(&42u32.to_le_bytes()), "the device's number");
    assert!(!contains(&rate.to_le_bytes()), "the learning rate");
    assert!(!contains(&norm.to_le_bytes()), "the clip norm");
    for pair in other.model.windows(2).filter(|pair| pair[0] != 0.0) {
        let bytes = [pair[0].to_le_bytes(), pair[1].to_le_bytes()].concat();
        assert!(!contains(&bytes), "the model");
    }
    let width = other.invitation.width();
    for start in (0..PARAMETERS - 8).step_by(8) {
        let mut packed = [0; UPDATE_CHUNK_BYTES];
        let values = other.integers[start..start + 8].iter().copied();
        let length = pack::pack(values, width, &mut packed).unwrap();
        assert!(!contains(&packed[..length]), "the update");
    }
}

/// Divergence depends on the data, so a device with its own noise sends noise.
#[test]
fn training_that_diverges_is_told_to_nobody_who_must_not_know() {
    let diverging = |noise| {
        let mut other = coordinator(3, noise);
        other.model.fill(f32::MAX);
        run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
        other
    };
    assert_eq!(diverging(None).declined, Some(Decline::Diverged));
    let other = diverging(noise());
    assert_eq!(other.declined, None);
    let mut expected = vec![0; PARAMETERS];
    let noise = DiscreteGaussian::of(noise().unwrap());
    noise.add_to(&mut expected, &mut stream(Purpose::DeviceNoise, 3));
    assert_eq!(other.integers, expected);
}

#[test]
fn with_noise_of_its_own_an_empty_device_does_not_say_so() {
    for (noise, phase) in [(None, Phase::Idle), (noise(), Phase::Sending)] {
        let mut board = board(policy(), ledger(), 0);
        let mut other = coordinator(1, noise);
        while board.phase() != Phase::Receiving {
            turn(&mut board, &mut other, &mut |bytes| bytes);
        }
        board.conversation.phase = Phase::Training;
        board.train(&SampleSlice::new(&[], &[], FEATURES).unwrap());
        assert_eq!(board.phase(), phase);
    }
}

/// The only update that needs the flag: a single positive coordinate at the bound.
#[test]
fn an_update_of_one_coordinate_at_the_bound_arrives() {
    for target in [100.0, -100.0] {
        let model = Linear::new(Const::<1>);
        let nonces = stream(Purpose::Initialisation, 0);
        let mut board = Session::new(
            identity(),
            policy(),
            model,
            memory(2, 1, 1),
            ledger(),
            nonces,
        )
        .unwrap();
        let mut asked = invitation(None);
        asked.shape = ModelShape {
            kind: ModelKind::Linear,
            features: 1,
            outputs: 1,
            network: None,
            integer: None,
        };
        let mut other = Coordinator::new(chain(), 1, asked, vec![0.0; 2]);
        for turn in 0.. {
            if other.done {
                break;
            }
            assert!(turn < 100, "no end: {board:?}");
            board.timeout();
            other.receive(board.outgoing());
            board.sent();
            if board.phase() == Phase::Idle {
                other.invite();
            }
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
            // Only the bias learns.
            board.train(&SampleSlice::new(&[0.0], &[target], 1).unwrap());
        }
        let largest = if target > 0.0 { 1 << 20 } else { -(1 << 20) };
        assert_eq!(other.integers, [0, largest]);
    }
}
