//! What a build of any features declines. Whole sessions of the whole client: `session::tests`.

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
    personal::store::NoStore,
    samples::SampleSlice,
    session::{
        Memory, Outcome, Phase, Session, masks,
        round::{Round, Stage, stage::Covering},
    },
    smooth::SmoothingFactor,
    stream::{Purpose, Root, Stream},
    train::Workspace,
    wire::message::PackedInvitation,
};
use std::{format, vec};

type Board = Session<'static, Softmax<Const<FEATURES>, Const<6>>, Ram, Stream, NoStore, Root>;

fn board(hides_number: bool) -> Board {
    let floats = |count| vec![0.0; count].leak();
    let root = Root::from_seed(11);
    let mut policy = harness::policy(Limits {
        budget: Budget(5),
        separation: Separation::NONE,
        max_jump: MaxJump(100),
    });
    policy.hides_number = hides_number;
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
    .unwrap()
}

/// A round that the device was invited to.
fn round<D>(number: u32, asked: Invitation) -> Round<D> {
    let packed = PackedInvitation::from(&asked);
    Round::new(number, asked, masks::tagged_whole(packed.bytes()), 0)
}

/// Invitations to more than plain training, whether this build has code for it, and the reason of a
/// device that has none.
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
        let mut board = board(false);
        let before = format!("{:?}", board.ledger());
        board.conversation.round = Some(round(3, asked));
        board.conversation.consider();
        let outcome = board.last_round().map(|last| last.outcome);
        let declined = (!is_built).then_some(Outcome::Declined(reason));
        assert_eq!(outcome, declined);
        assert_eq!(board.phase() == Phase::Receiving, is_built);
        assert_eq!(format!("{:?}", board.ledger()), before);
    }
    let mut board = board(false);
    board.conversation.round = Some(round(3, invitation(None)));
    board.conversation.consider();
    assert_eq!(board.phase(), Phase::Receiving);
}

/// Also if nobody had looked at the invitation: nothing is sent, and nothing of the update is left.
#[test]
fn no_update_is_covered_without_the_noise_that_is_asked_for() {
    let asked = invitation(noise());
    let covering = Covering::new(Source::Zeros, &asked);
    assert_eq!(
        covering.is_ok_and(|covering| covering.noise.is_some()),
        HAS_NOISE
    );

    let mut board = board(false);
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

/// A plain round is trained and sent by all builds.
#[test]
fn a_round_of_central_trust_is_covered_by_every_build() {
    let mut board = board(false);
    board.conversation.round = Some(round(3, invitation(None)));
    board.conversation.phase = Phase::Training;
    let (features, targets) = data();
    board.train(&SampleSlice::new(&features, &targets, FEATURES).unwrap());
    assert_eq!(board.phase(), Phase::Sending);
    let stage = board.conversation.round.as_ref().map(|round| &round.stage);
    assert!(matches!(stage, Some(Stage::Covered)));
}

#[test]
fn a_device_that_cannot_hide_its_number_is_silent() {
    let mut shown = board(false);
    shown.timeout();
    assert!(!shown.outgoing().is_empty());
    let mut hidden = board(true);
    hidden.timeout();
    assert_eq!(!hidden.outgoing().is_empty(), cfg!(feature = "pseudonym"));
}
