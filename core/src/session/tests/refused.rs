//! Devices that the coordinator does not work with.

use super::*;

#[test]
fn a_refused_device_is_silent() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    board.sent();
    let versions = Versions {
        lowest: 2,
        highest: 3,
    };
    let answer = |session| {
        let welcome = Welcome::new(&session, [9; 16], Err(versions));
        Greeting::Welcome(welcome).encoded()
    };
    let forged = answer(chain().session(42, &[0; 16], &[9; 16]));
    board.receive(forged.as_slice());
    assert_eq!(board.phase(), Phase::Greeting, "of another session");
    let refusal = answer(chain().session(42, &board.conversation.nonce, &[9; 16]));
    board.receive(refusal.as_slice());
    assert_eq!(board.phase(), Phase::Refused(WhyRefused::Version));
}

/// Returns a device that has sent Ready, and the coordinator's side of its session.
fn ready() -> (Board, Link<CoordinatorEnd>) {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    board.sent();
    let session = chain().session(42, &board.conversation.nonce, &[9; 16]);
    let welcome = Welcome::new(&session, [9; 16], Ok(crate::wire::VERSION));
    board.receive(Greeting::Welcome(welcome).encoded().as_slice());
    assert_eq!(board.phase(), Phase::Ready);
    board.sent();
    (board, Link::new(session.cipher()))
}

/// The other reasons come within the session, only as the answer to Ready.
#[test]
fn a_reason_for_a_refusal_is_no_part_of_the_greeting() {
    for (is_late, phase) in [
        (false, Phase::Refused(WhyRefused::Ledger)),
        (true, Phase::Idle),
    ] {
        let (mut board, mut link) = ready();
        if is_late {
            board.receive(link.seal(0, &Message::Wait).as_slice());
        }
        let refused = Message::Refused(Refused {
            reason: WhyRefused::Ledger,
            experiment: &[],
        });
        board.receive(link.seal(0, &refused).as_slice());
        assert_eq!(board.phase(), phase);
        assert_eq!(board.refusals().total(), u32::from(is_late));
    }
}

/// Its firmware can report the model or recipe of the experiment.
#[cfg(feature = "reports")]
#[test]
fn a_refused_device_knows_what_the_experiment_has() {
    use crate::{
        features::Cells,
        recipe::Recipe,
        session::Experiment,
        wire::message::{MAX_SHAPE_BYTES, NO_RECIPE},
    };

    let shape = ModelShape {
        features: 7,
        ..ModelShape::of(&Softmax::new(Const::<2>, Const::<3>)).unwrap()
    };
    let cells = Cells::new(8, 8, 4).unwrap();
    let recipe = Recipe::Gradients { cells, planes: 1 };
    let (mut of_model, mut of_recipe) = ([0; MAX_SHAPE_BYTES], [0; _]);
    let (of_model, of_recipe) = (shape.write(&mut of_model), recipe.write(&mut of_recipe));
    let cases: [(WhyRefused, &[u8], Option<Experiment>); 7] = [
        (WhyRefused::Shape, of_model, Some(Experiment::Model(shape))),
        (
            WhyRefused::RECIPE,
            of_recipe,
            Some(Experiment::Recipe(Some(recipe))),
        ),
        (
            WhyRefused::RECIPE,
            NO_RECIPE,
            Some(Experiment::Recipe(None)),
        ),
        // From other versions.
        (WhyRefused::RECIPE, &[], None),
        (WhyRefused::Shape, &[], None),
        (WhyRefused::Shape, &[9; 40], None),
        (WhyRefused::Ledger, of_model, None),
    ];
    for (reason, experiment, expected) in cases {
        let (mut board, mut link) = ready();
        let refused = Message::Refused(Refused { reason, experiment });
        board.receive(link.seal(0, &refused).as_slice());
        assert_eq!(board.phase(), Phase::Refused(reason));
        assert_eq!(board.experiment(), expected.as_ref());
        // After a call it is no longer refused.
        board.sent();
        board.receive(Greeting::Call.encoded().as_slice());
        assert_eq!(board.experiment(), None);
    }
}
