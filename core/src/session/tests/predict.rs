//! The model that a session lends between rounds.

use super::*;
use crate::{
    fixed_point::{FeatureFormat, FeatureScale, MAX_WEIGHT},
    model::Model,
    session::FixedPoint,
};

/// Returns the values that a board would show: the round, the parameters and a prediction.
fn lent<R: Greeter>(board: &Board<R>) -> Option<(u32, Vec<f32>, u16)> {
    let current = board.model()?;
    let (features, _) = data();
    let mut scores = [0.0; 6];
    let class = current.predict(&features[..FEATURES], &mut [], &mut scores);
    let mut expected = [0.0; 6];
    let model = Softmax::new(FEATURES, 6_usize);
    let computed = model.scores(
        current.parameters(),
        &features[..FEATURES],
        &mut [],
        &mut expected,
    );
    computed.unwrap();
    assert_eq!(scores.map(f32::to_bits), expected.map(f32::to_bits));
    Some((
        current.round(),
        current.parameters().to_vec(),
        class.unwrap(),
    ))
}

/// Returns a coordinator whose model depends on the round.
fn coordinator_of(round: u32) -> Coordinator {
    let mut other = coordinator(round, noise());
    other.model.iter_mut().zip(0..).for_each(|(w, at)| {
        *w = ((at * 31 + round as usize * 7) % 13) as f32 * 0.1 - 0.6;
    });
    other
}

#[test]
fn a_session_lends_the_model_of_its_last_round() {
    let mut board = board(policy(), ledger(), 0);
    assert!(lent(&board).is_none(), "before the first");
    for round in [3, 4] {
        let mut other = coordinator_of(round);
        board.send(Answer::Hello);
        run(&mut board, &mut other, |bytes| bytes);
        turn(&mut board, &mut other, &mut |bytes| bytes);
        assert_eq!(board.phase(), Phase::Idle);
        let (number, parameters, _) = lent(&board).unwrap();
        assert_eq!((number, parameters), (round, other.model));
    }
}

/// No model is lent while one comes down, or after it was cut short.
#[test]
fn half_a_model_is_not_lent() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator_of(3);
    run(&mut board, &mut other, |bytes| bytes);
    let mut next = coordinator_of(4);
    board.send(Answer::Hello);
    while board.phase() != Phase::Receiving {
        turn_without_training(&mut board, &mut next);
    }
    assert_eq!(lent(&board).unwrap().0, 3, "nothing has come yet");
    while board.conversation.round.as_ref().unwrap().chunk == 0 {
        turn_without_training(&mut board, &mut next);
    }
    assert_eq!(board.phase(), Phase::Receiving);
    assert!(lent(&board).is_none());
    // The link is lost, and the new session has not brought a model.
    board.send(Answer::Hello);
    assert!(lent(&board).is_none());
    let mut again = coordinator_of(5);
    run(&mut board, &mut again, |bytes| bytes);
    assert_eq!(lent(&board).unwrap().0, 5);
}

#[test]
fn a_model_of_another_shape_or_of_an_older_round_never_comes() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator_of(3);
    run(&mut board, &mut other, |bytes| bytes);
    // The device learns that its update has arrived.
    turn(&mut board, &mut other, &mut |bytes| bytes);
    let before = lent(&board).unwrap();
    let mut shape = coordinator_of(4);
    shape.invitation.shape.kind = ModelKind::Logistic;
    for (mut next, reason) in [
        (shape, Decline::Shape),
        (coordinator_of(3), Decline::RoundUsed),
        (coordinator_of(2), Decline::RoundUsed),
    ] {
        board.send(Answer::Hello);
        run(&mut board, &mut next, |bytes| bytes);
        assert_eq!(next.declined, Some(reason));
        assert_eq!(lent(&board).unwrap(), before);
    }
}

#[test]
fn a_model_that_is_not_finite_is_not_lent() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator_of(3);
    other.model[77] = f32::NAN;
    run(&mut board, &mut other, |bytes| bytes);
    assert!(lent(&board).is_none());
}

/// In integers the model must consist of weights.
#[test]
fn a_session_in_integers_lends_its_weights() {
    let scale = FeatureScale::new::<i8>(6).unwrap();
    for (weight, is_lent) in [(MAX_WEIGHT, true), (MAX_WEIGHT + 1, false)] {
        let nonces = stream(Purpose::Initialisation, 0);
        let model = Softmax::new(Const::<FEATURES>, Const::<6>);
        let model = FixedPoint::<_, i8>::new(model, scale);
        let memory = memory(PARAMETERS, 10, 6 + FEATURES);
        let session = Session::new(identity(), policy(), model, memory, ledger(), nonces);
        let mut board = session.unwrap();
        let mut asked = invitation(None);
        asked.shape.integer = Some(FeatureFormat::of::<i8>(scale));
        let mut words = vec![0.0; PARAMETERS];
        // The bias of the third class.
        words[6 * FEATURES + 2] = f32::from_bits(weight.cast_unsigned());
        let mut other = Coordinator::new(chain(), 1, asked, words);
        while board.phase() != Phase::Training {
            board.timeout();
            harness::transmit(&mut board, |said| other.receive(said));
            if board.phase() == Phase::Idle {
                other.invite();
            }
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
        }
        assert_eq!(board.model().is_some(), is_lent);
        if let Some(current) = board.model() {
            let mut scores = [0; 6];
            let class = current.predict(&[5; FEATURES], &mut [], &mut scores);
            assert_eq!((current.round(), class), (1, Ok(2)));
            // 2²¹ − 1 in units of 2⁻¹⁸, in units of 2⁻¹⁶.
            assert_eq!(scores, [0, 0, 1 << 19, 0, 0, 0]);
            current.probabilities_in_place(&mut scores);
            assert!(scores[2] > 65_000 && scores[0] < 100, "{scores:?}");
        }
    }
}
