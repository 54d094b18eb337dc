use std::vec;
use std::vec::Vec;

use proptest::{collection::vec as vec_of, prelude::*};

use super::*;
use crate::{ClipNorm, Grid, clip::clip_l2};

const CLASSES: Dimensions = Dimensions {
    features: 3,
    classes: 4,
};
const VALUES: Dimensions = Dimensions {
    features: 3,
    classes: 0,
};

fn edges() -> Edges {
    Edges::new(&[-1.0, 0.0, 2.5]).unwrap()
}

/// All questions to samples with classes, and to samples with values.
fn questions(of: &Dimensions) -> Vec<Question> {
    let bins = match of.classes {
        0 => Bins::Target(edges()),
        _ => Bins::Classes,
    };
    let all = [
        Question::Evaluate { bound: 2.0 },
        Question::Confusion,
        Question::Histogram(bins),
        Question::Histogram(Bins::Feature(1, edges())),
        Question::Moments(Features::new(0, 3, -1.0, 2.0).unwrap()),
        Question::Presence(bins),
        Question::Presence(Bins::Feature(2, edges())),
        Question::Count,
    ];
    let can_be = all
        .into_iter()
        .filter(|question| question.check(of).is_ok());
    can_be.collect()
}

/// A sample's features, and the numbers that determine its target and the model's result.
type Row = ([f32; 3], u16, f32);

fn answer(question: &Question, of: &Dimensions, rows: &[Row]) -> Vec<f32> {
    let mut vector = vec![0.0; question.length(of)];
    for (features, class, loss) in rows {
        let sample = Sample {
            features: |at: usize| features[at],
            target: match of.classes {
                0 => Target::Value(features[0]),
                _ => Target::Class(class % 4),
            },
            judged: Some(Judged {
                class: class / 4,
                loss: *loss,
            }),
        };
        question.add(of, &sample, &mut vector);
    }
    question.finish(of, rows.len() as u32, &mut vector);
    vector
}

fn numbers() -> impl Strategy<Value = f32> {
    prop_oneof![
        -4f32..4.0,
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(f32::NAN),
        Just(1e30f32)
    ]
}

proptest! {
    /// The claim of the module, for any samples: the norm of a device is at most 1, on the grid and
    /// checked in integers, and its count is 1.
    #[test]
    fn no_answer_is_longer_than_one(
        rows in vec_of(([numbers(), numbers(), numbers()], 0u16..16, numbers()), 0..40),
        has_classes in any::<bool>(),
    ) {
        let of = if has_classes { CLASSES } else { VALUES };
        let bound = ClipNorm::new(1.0).unwrap();
        for question in questions(&of) {
            let mut vector = answer(&question, &of, &rows);
            let squares: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
            prop_assert!(squares <= 1.0 + 1e-6, "{question:?}: {squares}");
            if rows.is_empty() {
                prop_assert!(vector.iter().all(|x| *x == 0.0));
            }
            clip_l2(&mut vector, 1.0).unwrap();
            let mut integers = vec![0; vector.len()];
            let quantised = Grid::new(bound, 20).unwrap().quantize_into(&vector, &mut integers);
            prop_assert!(quantised.is_ok(), "{question:?}");
        }
    }
}

/// Rows of four samples: classes 0, 1, 1 and 3. The model's predictions are correct for the first
/// two.
fn rows() -> [Row; 4] {
    [
        ([-2.0, -1.0, 0.5], 0, 0.5),
        ([0.0, 0.5, 0.5], 5, 1.0),
        ([1.0, 3.0, 0.5], 9, 3.0),
        ([5.0, 0.5, 0.5], 11, f32::INFINITY),
    ]
}

#[test]
fn a_model_is_evaluated() {
    let vector = answer(&Question::Evaluate { bound: 2.0 }, &CLASSES, &rows());
    let half = core::f32::consts::FRAC_1_SQRT_2;
    // Losses: a quarter, a half, and twice the bound.
    let expected = [0.5, 0.5, 0.6875, 0.3125].map(|x| x * half);
    assert_eq!(vector, expected);
    let vector = answer(&Question::Evaluate { bound: 2.0 }, &VALUES, &rows());
    assert_eq!(vector, [0.6875, 0.3125]);
}

#[test]
fn samples_are_counted_by_class_and_bin() {
    let vector = answer(&Question::Confusion, &CLASSES, &rows());
    let mut expected = [0.0; 16];
    for cell in [0, 5, 6, 14] {
        expected[cell] = 0.25;
    }
    assert_eq!(vector, expected);
    let classes = answer(&Question::Histogram(Bins::Classes), &CLASSES, &rows());
    assert_eq!(classes, [0.25, 0.5, 0.0, 0.25]);
    // A value at an edge is in the bin above.
    let feature = Question::Histogram(Bins::Feature(1, edges()));
    assert_eq!(answer(&feature, &CLASSES, &rows()), [0.0, 0.25, 0.5, 0.25]);
    let target = Question::Histogram(Bins::Target(edges()));
    assert_eq!(answer(&target, &VALUES, &rows()), [0.25, 0.0, 0.5, 0.25]);
}

#[test]
fn presence_is_a_bit_for_each_bin() {
    let vector = answer(&Question::Presence(Bins::Classes), &CLASSES, &rows());
    let PresenceScales { bit, count } = PresenceScales::new(4);
    assert_eq!(vector, [bit, bit, 0.0, bit, count]);
    let whole = 4.0 * bit * bit + count * count;
    assert!((whole - 1.0).abs() < 1e-6, "{whole}");
}

#[test]
fn moments_are_those_of_clipped_features() {
    let features = Features::new(0, 2, -1.0, 1.0).unwrap();
    let vector = answer(&Question::Moments(features), &CLASSES, &rows());
    let MomentScales { moment, count } = MomentScales::new(2);
    // -1, 0, 1, 1 and -1, 0.5, 1, 0.5.
    let means = [0.25, 0.5, 0.25, 0.25].map(|x| x * moment);
    assert_eq!(vector[..4], means);
    assert_eq!(vector[4], count);
    let whole = 4.0 * moment * moment + count * count;
    assert!((whole - 1.0).abs() < 1e-6, "{whole}");
}

#[test]
fn questions_that_cannot_be_answered_are_refused() {
    for edges in [&[][..], &[1.0, 1.0], &[2.0, 1.0], &[f32::NAN], &[0.0; 17]] {
        assert_eq!(Edges::new(edges), Err(QuestionError::Edges));
    }
    for (lower, upper) in [(1.0, 1.0), (2.0, 1.0), (f32::NAN, 1.0), (-3e38, 3e38)] {
        let refused = Features::new(0, 1, lower, upper);
        assert_eq!(refused, Err(QuestionError::Bounds));
    }
    assert_eq!(Features::new(0, 0, 0.0, 1.0), Err(QuestionError::Feature));
    let beyond = Features::new(2, 2, 0.0, 1.0).unwrap();
    for (question, of, error) in [
        (Question::Confusion, VALUES, QuestionError::NoClasses),
        (Question::Moments(beyond), CLASSES, QuestionError::Feature),
        (
            Question::Histogram(Bins::Classes),
            VALUES,
            QuestionError::NoClasses,
        ),
        (
            Question::Presence(Bins::Target(edges())),
            CLASSES,
            QuestionError::NoValues,
        ),
        (
            Question::Histogram(Bins::Feature(3, edges())),
            CLASSES,
            QuestionError::Feature,
        ),
        (
            Question::Evaluate { bound: 0.0 },
            CLASSES,
            QuestionError::LossBound,
        ),
        (
            Question::Evaluate {
                bound: f32::INFINITY,
            },
            VALUES,
            QuestionError::LossBound,
        ),
    ] {
        assert_eq!(question.check(&of), Err(error), "{question:?}");
    }
}
