//! Questions between the coordinator and the core's session.

use smolfed_core::question::{Dimensions, Judged, Kinds, Question, Sample};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::QuestionPolicy;
use smolfed_core::wire::message::{Invitation, Request};
use smolfed_core::{ClipNorm, Grid, clip_l2};

use super::*;
use crate::exchange::Offer;
use smolfed_core::harness::data;
use smolfed_core::model::Model;

const EVALUATE: Question = Question::Evaluate { bound: 2.0 };

fn asking(number: u32, question: Question) -> Arc<Offer> {
    let offer = Arc::into_inner(offer(number, None)).unwrap();
    Arc::new(Offer {
        invitation: Invitation {
            grid: Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap(),
            request: Some(Request::Question(question)),
            ..offer.invitation
        },
        ..offer
    })
}

fn answers(max_answers: u32) -> QuestionPolicy {
    QuestionPolicy {
        kinds: Kinds::EVALUATE,
        max_answers,
        ..QuestionPolicy::NONE
    }
}

/// Returns the answer on the grid, computed without the protocol.
fn expected_answer(offer: &Offer, question: Question) -> ReceivedUpdate {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let of = Dimensions {
        features: FEATURES,
        classes: CLASSES,
    };
    let mut vector = vec![0.0; question.length(&of)];
    for index in 0..samples.len() {
        let (row, target) = (samples.features(index), samples.target(index));
        let mut scores = vec![0.0; CLASSES];
        let scored = model().scores(&offer.model, row, &mut [], &mut scores);
        scored.unwrap();
        let predicted = model().predict(&scores);
        let loss = model().loss_in_place(&mut scores, target);
        let sample = Sample {
            features: |at: usize| row[at],
            target: target.into(),
            judged: Some(Judged::new(target.into(), predicted.into(), loss)),
        };
        question.add(&of, &sample, &mut vector);
    }
    question.finish(&of, samples.len() as u32, &mut vector);
    clip_l2(&mut vector, 1.0).unwrap();
    let mut integers = vec![0; vector.len()];
    let grid = &offer.invitation.grid;
    grid.quantize_into(&vector, &mut integers).unwrap();
    ReceivedUpdate::from(integers.into_iter().map(i64::from).collect::<Vec<_>>())
}

#[test]
fn an_answer_comes_as_the_device_computes_it_and_as_often_as_it_may() {
    let (mut harness, mut board) = (Harness::new(None), board(2));
    board.set_questions(answers(2));
    let mut outcomes = vec![];
    for number in [3, 5, 6] {
        let offer = asking(number, EVALUATE);
        harness.peer(2).offer(Arc::clone(&offer));
        outcomes.push(run(&mut board, &mut harness, 2, |bytes| bytes));
    }
    let answer = ExchangeOutcome::Answered(expected_answer(&asking(3, EVALUATE), EVALUATE));
    let spent = ExchangeOutcome::Missing(Absence::Declined(Decline::ANSWERS));
    assert_eq!(outcomes, [answer.clone(), answer, spent]);
    // A kind of question that it does not answer. Updates continue.
    harness.peer(2).offer(asking(7, Question::Count));
    let outcome = run(&mut board, &mut harness, 2, |bytes| bytes);
    let declined = ExchangeOutcome::Missing(Absence::Declined(Decline::QUESTION));
    assert_eq!(outcome, declined);
    let update = offer(8, None);
    harness.peer(2).offer(Arc::clone(&update));
    let outcome = run(&mut board, &mut harness, 2, |bytes| bytes);
    assert_eq!(outcome, ExchangeOutcome::Answered(expected(2, &update)));
    assert_eq!(harness.peer(2).refusals().total(), 0);
}

/// It says so in its session, whenever that begins. No round waits for it.
#[test]
fn a_device_without_answers_is_not_asked() {
    let declined = ExchangeOutcome::Missing(Absence::Declined(Decline::QUESTION));
    let (mut harness, mut board) = (Harness::new(None), board(1));
    // Before it has a session.
    harness.peer(1).offer(asking(3, EVALUATE));
    let outcome = run(&mut board, &mut harness, 1, |bytes| bytes);
    assert_eq!(outcome, declined);
    // In its session.
    harness.peer(1).hold(asking(4, EVALUATE));
    assert!(harness.peer(1).is_settled());
    assert_eq!(harness.peer(1).close(), Some(declined));
    assert_eq!(board.ledger().past().participations, 0);
    let update = offer(5, None);
    harness.peer(1).offer(Arc::clone(&update));
    let outcome = run(&mut board, &mut harness, 1, |bytes| bytes);
    assert_eq!(outcome, ExchangeOutcome::Answered(expected(1, &update)));
}

#[test]
fn an_answer_out_of_its_norm_is_refused() {
    let bound = 1i64 << 20;
    for (values, is_fine) in [
        ([bound, 0, 0, 0], true),
        ([bound / 2; 4], true),
        ([bound / 2 + 1, bound / 2, bound / 2, bound / 2], false),
        ([bound, 1, 0, 0], false),
    ] {
        let mut harness = Harness::new(None);
        let offer = asking(3, EVALUATE);
        let mut device = ScriptedDevice::answering(&mut harness, 0);
        harness.peer(0).offer(Arc::clone(&offer));
        device.fetch(&mut harness, 3);
        device.send_update(&mut harness, &offer, &values, values[0] == bound);
        let outcome = harness.peer(0).close().unwrap();
        let refused = ExchangeOutcome::Missing(Absence::OutOfBound);
        assert_eq!(outcome != refused, is_fine, "{values:?}: {outcome:?}");
    }
}
