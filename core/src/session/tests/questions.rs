//! Questions: which ones a device answers or declines, and how often it answers.

use super::*;
use crate::{
    model::{Model, Parametric},
    question::{Bins, Dimensions, Edges, Features, Judged, Kinds, Question, Sample},
};

const OF: Dimensions = Dimensions {
    features: FEATURES,
    classes: 6,
};

const EVALUATE: Question = Question::Evaluate { bound: 2.0 };

/// Returns the policy of a device that answers any question, `max_answers` times.
fn answers(max_answers: u32) -> QuestionPolicy {
    QuestionPolicy {
        kinds: Kinds::ALL,
        max_answers,
        min_noise_multiplier: NoiseMultiplier::NONE,
    }
}

fn asks(question: Question, noise: Option<Sigma>) -> Invitation {
    Invitation {
        grid: Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap(),
        request: Some(Request::Question(question)),
        ..invitation(noise)
    }
}

fn all() -> Vec<Question> {
    let edges = Edges::new(&[-0.5, 0.25, 0.5]).unwrap();
    vec![
        EVALUATE,
        Question::Confusion,
        Question::Histogram(Bins::Classes),
        Question::Histogram(Bins::Feature(2, edges)),
        Question::Moments(Features::new(1, 3, -1.0, 1.0).unwrap()),
        Question::Presence(Bins::Classes),
        Question::Count,
    ]
}

/// Runs the coordinator's side of one question to this device.
fn ask(board: &mut Board, round: u32, asked: Invitation) -> Coordinator {
    // The key changes with each participation.
    let mut chain = chain();
    for _ in 0..board.ledger().past().participations {
        chain = chain.next();
    }
    let mut other = Coordinator::new(chain, round, asked, model());
    board.send(Answer::Hello);
    run(board, &mut other, |bytes| bytes);
    turn(board, &mut other, &mut |bytes| bytes);
    other
}

fn asked_once(question: Question, policy: QuestionPolicy) -> (Board, Coordinator) {
    let mut board = board(self::policy(), ledger(), 0);
    board.set_questions(policy);
    let other = ask(&mut board, 3, asks(question, None));
    (board, other)
}

/// Returns the answer on the grid, without a session.
fn expected_answer(round: u32, asked: &Invitation) -> Vec<i64> {
    let question = asked.question().unwrap();
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let (model, global) = (
        Softmax::new(Const::<FEATURES>, Const::<6>),
        harness::model(),
    );
    let mut vector = vec![0.0; question.length(&OF)];
    for index in 0..samples.len() {
        let (row, target) = (samples.features(index), samples.target(index));
        let mut scores = vec![0.0; model.output_count()];
        model.scores(&global, row, &mut [], &mut scores).unwrap();
        let predicted = model.predict(&scores);
        let loss = model.loss_in_place(&mut scores, target);
        let judged = Judged::new(target.into(), predicted.into(), loss);
        let sample = Sample {
            features: |at: usize| row[at],
            target: target.into(),
            judged: Some(judged),
        };
        question.add(&OF, &sample, &mut vector);
    }
    question.finish(&OF, samples.len() as u32, &mut vector);
    crate::clip_l2(&mut vector, 1.0).unwrap();
    let mut integers = vec![0; vector.len()];
    asked.grid.quantize_into(&vector, &mut integers).unwrap();
    let mut integers: Vec<i64> = integers.into_iter().map(i64::from).collect();
    if let Some(noise) = asked.noise {
        let noise = DiscreteGaussian::of(noise);
        noise.add_to(&mut integers, &mut stream(Purpose::DeviceNoise, round));
    }
    integers
}

#[test]
fn each_question_is_answered_with_the_vector_of_its_samples() {
    for question in all() {
        for noise in [None, noise()] {
            let mut board = board(policy(), ledger(), 0);
            board.set_questions(answers(1));
            let asked = asks(question, noise);
            let other = ask(&mut board, 3, asked);
            assert!(other.done, "{question:?}: {:?}", other.declined);
            assert_eq!(other.integers, expected_answer(3, &asked), "{question:?}");
            assert_eq!((other.refusals.total(), board.refusals().total()), (0, 0));
        }
    }
}

/// The tags cover the question, so another question has other tags.
#[cfg(feature = "masks")]
#[test]
fn an_answer_has_masks_like_an_update() {
    use super::masked::{insists_on, tags, without_masks};
    let mut board = board(insists_on(2), ledger(), 0);
    board.set_questions(answers(1));
    let asked = Invitation {
        masks: crate::mask::Masking::new(2, 30),
        ..asks(EVALUATE, None)
    };
    let mut other = ask(&mut board, 3, asked);
    let expected = expected_answer(3, &asked);
    assert_ne!(other.integers, expected);
    assert_eq!(without_masks(&other, &NONCE), expected);
    assert_eq!(other.tags, tags(&other, &NONCE));
    other.invitation.request = Some(Request::Question(Question::Evaluate { bound: 3.0 }));
    assert_ne!(other.tags, tags(&other, &NONCE));
}

#[test]
fn pieces_of_any_length_give_the_same_answer() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for most in [1, 2, 7, usize::MAX] {
        let mut board = board(policy(), ledger(), 0);
        board.set_questions(answers(1));
        let asked = asks(EVALUATE, noise());
        let mut other = Coordinator::new(chain(), 3, asked, model());
        for _ in 0..10_000 {
            turn_without_training(&mut board, &mut other);
            if other.done {
                break;
            }
            let _ = board.train_some(&samples, most);
        }
        assert_eq!(other.integers, expected_answer(3, &asked), "{most}");
    }
}

#[test]
fn a_device_answers_nothing_that_it_was_not_provisioned_to() {
    let (board, other) = asked_once(EVALUATE, QuestionPolicy::NONE);
    assert_eq!(other.declined, Some(Decline::QUESTION));
    assert_eq!(board.ledger().past().participations, 0);
    let kinds = [
        Kinds::EVALUATE,
        Kinds::CONFUSION,
        Kinds::HISTOGRAM,
        Kinds::MOMENTS,
        Kinds::PRESENCE,
        Kinds::COUNT,
    ];
    for allowed in kinds {
        for question in all() {
            let policy = QuestionPolicy {
                kinds: allowed,
                ..answers(1)
            };
            let (_, other) = asked_once(question, policy);
            let expected = (!allowed.has(&question)).then_some(Decline::QUESTION);
            assert_eq!(other.declined, expected, "{allowed:?}, {question:?}");
        }
    }
}

/// Also after a restart, and with any number of rounds in between: an update is not an answer.
#[test]
fn a_device_answers_as_often_as_it_was_provisioned_to() {
    let mut board = board(policy(), ledger(), 0);
    board.set_questions(answers(2));
    let update = invitation(None);
    for (round, asked, expected) in [
        (3, asks(Question::Count, None), None),
        (4, update, None),
        (5, asks(EVALUATE, None), None),
        (6, asks(Question::Count, None), Some(Decline::ANSWERS)),
        (7, update, None),
    ] {
        let other = ask(&mut board, round, asked);
        assert_eq!(other.declined, expected, "round {round}");
        // Restarted.
        let ledger = Ledger::open(board.into_ledger().into_flash()).unwrap();
        board = self::board(policy(), ledger, round);
        board.set_questions(answers(2));
    }
    assert_eq!(board.ledger().answers(), 2);
    assert_eq!(board.ledger().past().participations, 4);
    // The budget of five also counts answers.
    let other = ask(&mut board, 8, update);
    assert_eq!(other.declined, None);
    board.set_questions(answers(9));
    let other = ask(&mut board, 9, asks(Question::Count, None));
    assert_eq!(other.declined, Some(Decline::Budget));
}

#[test]
fn less_noise_than_a_device_insists_on_is_declined() {
    let half = |halves: u64| NoiseMultiplier::from_units(halves << 31);
    let none = NoiseMultiplier::NONE;
    // The invitation has z = 1.5.
    for (of_updates, of_answers, is_declined) in [
        (none, none, false),
        (none, half(3), false),
        (none, half(4), true),
        (half(4), none, true),
        (half(4), half(3), false),
        (half(2), half(4), true),
    ] {
        let policy = Policy {
            min_noise_multiplier: of_updates,
            ..policy()
        };
        let mut board = board(policy, ledger(), 0);
        board.set_questions(QuestionPolicy {
            min_noise_multiplier: of_answers,
            ..answers(1)
        });
        let other = ask(&mut board, 3, asks(EVALUATE, noise()));
        let expected = is_declined.then_some(Decline::Noise);
        assert_eq!(other.declined, expected, "{of_updates:?}, {of_answers:?}");
    }
}

#[test]
fn an_answer_longer_than_an_update_is_declined() {
    let model = Linear::new(Const::<2>);
    let nonces = stream(Purpose::Initialisation, 0);
    let memory = memory(3, 10, 1);
    let session = Session::new(identity(), policy(), model, memory, ledger(), nonces);
    let mut session: Session<'_, _, _, _> = session.unwrap();
    session.set_questions(answers(9));
    let shape = ModelShape::of(&model).unwrap();
    let moments = |count| Question::Moments(Features::new(0, count, -1.0, 1.0).unwrap());
    for (question, expected) in [
        (EVALUATE, Ok(())),
        (moments(1), Ok(())),
        (moments(2), Err(Decline::LONG_ANSWER)),
    ] {
        let asked = Invitation {
            shape,
            ..asks(question, None)
        };
        let device = &session.conversation.device;
        assert_eq!(device.accept(3, &asked), expected, "{question:?}");
    }
}

#[test]
fn a_device_without_samples_answers_zeros() {
    let samples = SampleSlice::new(&[], &[], FEATURES).unwrap();
    let mut board = board(policy(), ledger(), 0);
    board.set_questions(answers(1));
    let mut other = Coordinator::new(chain(), 3, asks(EVALUATE, None), model());
    for _ in 0..10_000 {
        turn_without_training(&mut board, &mut other);
        board.train(&samples);
        if other.done || other.declined.is_some() {
            break;
        }
    }
    assert_eq!((other.declined, other.integers), (None, vec![0; 4]));
}

/// It arrives unchanged, and no byte of it has a second meaning.
#[test]
fn a_question_survives_the_line_and_nothing_else_does() {
    for question in all() {
        let asked = asks(question, None);
        let packed = PackedInvitation::from(&asked);
        let bytes = packed.bytes().as_slice().to_vec();
        assert_eq!(bytes.len(), 70 + 79);
        let read = |bytes: &[u8]| match Message::parse(17, bytes, Direction::ToDevice) {
            Ok(Message::Invitation(packed)) => packed.unpack(),
            _ => None,
        };
        let found = read(&bytes).unwrap();
        assert_eq!(found.request, Some(Request::Question(question)));
        for index in 70..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[index] ^= 1 << bit;
                let same = read(&changed).is_some_and(|found| {
                    PackedInvitation::from(&found).bytes().as_slice() != changed.as_slice()
                        || found.request == Some(Request::Question(question))
                });
                assert!(!same, "bit {bit} of byte {index}: {question:?}");
            }
        }
        // An answer has norm 1 and no bit.
        let wide = Invitation {
            grid: invitation(None).grid,
            ..asked
        };
        let with_bit = Invitation {
            bit: Some(BitRequest { noise: None }),
            ..asked
        };
        for wrong in [wide, with_bit] {
            assert!(read(PackedInvitation::from(&wrong).bytes().as_slice()).is_none());
        }
    }
}
