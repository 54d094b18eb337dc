//! Rounds that builds with any features decline. Whole sessions of the full client:
//! `session::tests`.

use super::{super::round::stage::Source, *};
use crate::{
    bit::BitRequest,
    crypto::Key,
    harness::{self, FEATURES, PARAMETERS, data, invitation, noise},
    identity::Identity,
    ledger::{
        Budget, Ledger, Limits, MaxJump, Separation,
        tests::{Ram, erased},
    },
    model::{Const, Softmax},
    params::NoiseMultiplier,
    personal::store::NoStore,
    samples::SampleSlice,
    session::{
        Memory, Outcome, Phase, Policy, Session, SessionError, masks,
        round::{Round, Stage, stage::Covering},
    },
    smooth::SmoothingFactor,
    stream::{Purpose, Root, Stream},
    train::Workspace,
    wire::message::PackedInvitation,
};
use std::{format, vec};

type Board = Session<'static, Softmax<Const<FEATURES>, Const<6>>, Ram, Stream, NoStore, Root>;

fn board() -> Board {
    board_with(|_| {}).unwrap()
}

/// Creates a device with another policy.
fn board_with(change: impl FnOnce(&mut Policy)) -> Result<Board, SessionError> {
    let floats = |count| vec![0.0; count].leak();
    let root = Root::from_seed(11);
    let mut policy = harness::policy(Limits {
        budget: Budget(5),
        separation: Separation::NONE,
        max_jump: MaxJump(100),
    });
    change(&mut policy);
    let memory = Memory {
        global: floats(PARAMETERS),
        work: Workspace {
            local: floats(PARAMETERS),
            update: floats(PARAMETERS),
            order: vec![0; 10].leak(),
            scratch: floats(6),
        },
    };
    let nonces = harness::stream(&root, Purpose::Initialisation, 0, 42);
    let identity = Identity { device: 42, root };
    let ledger = Ledger::create(erased(), [7; 8], Key::from_secret([3; 32])).unwrap();
    Session::new(
        identity,
        policy,
        Softmax::new(Const, Const),
        memory,
        ledger,
        nonces,
    )
}

/// Creates a round that the device was invited to.
fn round<D>(number: u32, asked: Invitation) -> Round<D> {
    let packed = PackedInvitation::from(&asked);
    Round::new(number, asked, masks::tagged_whole(packed.bytes()), 0)
}

/// Returns invitations to more than plain training, whether this build has code for each, and the
/// reason of a device without it.
fn parts() -> [(Invitation, bool, Decline); 3] {
    let mut smoothed = invitation(None);
    smoothed.gradient_smoothing = SmoothingFactor::new(1.0).ok();
    let mut with_bit = invitation(None);
    with_bit.bit = Some(BitRequest { noise: None });
    [
        (invitation(noise()), HAS_NOISE, Decline::NO_LOCAL_NOISE),
        (smoothed, HAS_SMOOTHING, Decline::NO_SMOOTHING),
        (with_bit, HAS_BIT, Decline::NO_BIT),
    ]
}

#[test]
fn a_round_that_asks_for_what_is_left_out_is_declined_before_it_is_recorded() {
    for (asked, is_built, reason) in parts() {
        let mut board = board();
        let before = format!("{:?}", board.ledger());
        board.conversation.round = Some(round(3, asked));
        board.conversation.consider();
        let outcome = board.last_round().map(|last| last.outcome);
        let declined = (!is_built).then_some(Outcome::Declined(reason));
        assert_eq!(outcome, declined);
        assert_eq!(board.phase() == Phase::Receiving, is_built);
        assert_eq!(format!("{:?}", board.ledger()), before);
    }
    let mut board = board();
    board.conversation.round = Some(round(3, invitation(None)));
    board.conversation.consider();
    assert_eq!(board.phase(), Phase::Receiving);
}

/// Even without a check of the invitation nothing is sent, and nothing of the update remains.
#[test]
fn no_update_is_covered_without_the_noise_that_is_asked_for() {
    let asked = invitation(noise());
    let covering = Covering::new(Source::Zeros, &asked);
    assert_eq!(
        covering.is_ok_and(|covering| covering.noise.is_some()),
        HAS_NOISE
    );

    let mut board = board();
    board.conversation.round = Some(round(3, asked));
    board.conversation.phase = Phase::Training;
    let (features, targets) = data();
    board.train(&SampleSlice::new(&features, &targets, FEATURES).unwrap());
    let outcome = board.last_round().map(|last| last.outcome);
    if HAS_NOISE {
        assert_eq!(outcome, Some(Outcome::Updated));
        assert_eq!(board.phase(), Phase::Sending);
    } else {
        assert_eq!(outcome, Some(Outcome::Declined(Decline::NO_LOCAL_NOISE)));
        assert_eq!(board.phase(), Phase::Idle);
        assert!(board.conversation.round.is_none());
        let work = &board.conversation.device.memory.work;
        assert!(work.update.iter().chain(&*work.local).all(|x| *x == 0.0));
    }
}

/// Every build trains and sends a plain round.
#[test]
fn a_round_of_central_trust_is_covered_by_every_build() {
    let mut board = board();
    board.conversation.round = Some(round(3, invitation(None)));
    board.conversation.phase = Phase::Training;
    let (features, targets) = data();
    board.train(&SampleSlice::new(&features, &targets, FEATURES).unwrap());
    assert_eq!(board.phase(), Phase::Sending);
    let stage = board.conversation.round.as_ref().map(|round| &round.stage);
    assert!(matches!(stage, Some(Stage::Covered)));
}

/// The device could only decline all rounds, or stay silent.
#[test]
fn a_policy_that_insists_on_what_is_left_out_is_refused() {
    let least = NoiseMultiplier::from_units(1);
    let refused = [
        board_with(|policy| policy.min_noise_multiplier = least).is_err(),
        board_with(|policy| policy.min_matrix_noise_multiplier = least).is_err(),
        board_with(|policy| policy.hides_number = true).is_err(),
    ];
    assert_eq!(refused, [!HAS_NOISE, !HAS_NOISE, !HAS_PSEUDONYM]);
    let mut shown = board();
    shown.timeout();
    assert!(!shown.outgoing().is_empty());
}
