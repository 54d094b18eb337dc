//! A device that trains in integers: the updates that it sends, and the rounds that it declines.

use super::*;
use crate::{
    fixed_point::{
        FeatureFormat, FeatureScale, FixedPointSlice, FixedPointWork, MAX_WEIGHT, local_update,
        round_feature, value_of_weight,
    },
    session::FixedPoint,
    smooth::SmoothingFactor,
};

type Model = Softmax<Const<FEATURES>, Const<6>>;

fn scale() -> FeatureScale {
    FeatureScale::new::<i8>(6).unwrap()
}

fn weight(index: usize) -> i32 {
    (index as i32 * 7_919 % 20_011) - 10_000
}

/// Creates an invitation for these integers.
fn asked() -> Invitation {
    let mut asked = invitation(None);
    asked.shape.integer = Some(FeatureFormat::of::<i8>(scale()));
    asked
}

/// Runs a round of a device that trains in integers, from these weights.
fn round(asked: Invitation, weight: impl Fn(usize) -> i32) -> Coordinator {
    round_in_pieces(asked, weight, usize::MAX)
}

/// [`round`] with pieces of up to `most` samples.
fn round_in_pieces(asked: Invitation, weight: impl Fn(usize) -> i32, most: usize) -> Coordinator {
    round_of(asked, weight, most, |_| {})
}

type Board = Session<'static, FixedPoint<Model, i8>, Ram, Stream>;

/// [`round_in_pieces`] of a device that `set` has changed.
fn round_of(
    asked: Invitation,
    weight: impl Fn(usize) -> i32,
    most: usize,
    set: impl Fn(&mut Board),
) -> Coordinator {
    let nonces = stream(Purpose::Initialisation, 0);
    let memory = memory(PARAMETERS, 10, 6 + FEATURES);
    let model = FixedPoint::<Model, i8>::new(Softmax::new(Const, Const), scale());
    let session = Session::new(identity(), policy(), model, memory, ledger(), nonces);
    let mut board = session.unwrap();
    set(&mut board);
    let words = (0..PARAMETERS).map(|i| f32::from_bits(weight(i).cast_unsigned()));
    let mut other = Coordinator::new(chain(), 1, asked, words.collect());
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for _ in 0..100 {
        if other.done || other.declined.is_some() {
            return other;
        }
        board.timeout();
        other.receive(board.outgoing());
        board.sent();
        if board.phase() == Phase::Idle {
            other.invite();
        }
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
        while board.train_some(&samples, most) == Progress::More {}
    }
    panic!("no end: {board:?}");
}

/// As on the wire: rounded features, training in integers, quantisation as `f32`.
#[test]
fn a_device_sends_what_integers_give() {
    let other = round(asked(), weight);
    for most in [1, 3, 4] {
        let pieces = round_in_pieces(asked(), weight, most);
        assert_eq!(pieces.integers, other.integers);
    }
    let (features, targets) = data();
    let features: Vec<i8> = (features.iter())
        .map(|x| round_feature(*x, scale()).0)
        .collect();
    let samples = FixedPointSlice::new(&features, &targets, FEATURES).unwrap();
    let global: Vec<i32> = (0..PARAMETERS).map(weight).collect();
    let mut update = vec![0; PARAMETERS];
    let work = FixedPointWork {
        local: &mut vec![0; PARAMETERS],
        update: &mut update,
        order: &mut [0; 10],
        scores: &mut [0; 6],
        row: &mut [0; FEATURES],
    };
    let model: Model = Softmax::new(Const, Const);
    let order = &mut stream(Purpose::BatchShuffle, 1);
    let training = &asked().training();
    let report = local_update(&model, &samples, scale(), &global, training, order, work);
    assert!(report.unwrap().clipped_steps > 0);
    let update: Vec<f32> = update.iter().map(|d| value_of_weight(*d)).collect();
    let mut integers = vec![0; PARAMETERS];
    asked().grid.quantize_into(&update, &mut integers).unwrap();
    let integers: Vec<i64> = integers.into_iter().map(i64::from).collect();
    assert_eq!(other.integers, integers);
}

/// A device answers from the integers that it trains on.
#[cfg(feature = "questions")]
#[test]
fn a_device_answers_from_its_integers() {
    use crate::{
        fixed_point::FixedPointJudge,
        question::{Bins, Dimensions, Edges, Features, Kinds, Question, Sample},
        session::QuestionPolicy,
        wire::message::Request,
    };

    let policy = QuestionPolicy {
        kinds: Kinds::ALL,
        max_answers: 1,
        ..QuestionPolicy::NONE
    };
    let of = &Dimensions {
        features: FEATURES,
        classes: 6,
    };
    let edges = Edges::new(&[-0.5, 0.25, 0.5]).unwrap();
    let (features, targets) = data();
    let weights: Vec<i32> = (0..PARAMETERS).map(weight).collect();
    let judge = FixedPointJudge {
        model: &Model::new(Const, Const),
        scale: scale(),
        weights: &weights,
    };
    for question in [
        Question::Evaluate { bound: 2.0 },
        Question::Confusion,
        Question::Histogram(Bins::Feature(2, edges)),
        Question::Moments(Features::new(1, 3, -1.0, 1.0).unwrap()),
        Question::Presence(Bins::Classes),
        Question::Count,
    ] {
        let asked = Invitation {
            grid: Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap(),
            request: Some(Request::Question(question)),
            ..asked()
        };
        let mut vector = vec![0.0; question.length(of)];
        for (row, target) in features.chunks(FEATURES).zip(&targets) {
            let row: Vec<i32> = (row.iter())
                .map(|x| round_feature::<i8>(*x, scale()).0.into())
                .collect();
            let judged = judge.judge::<i8>(&row, *target, &mut [0; 6]).unwrap();
            let sample = Sample {
                features: |at: usize| row[at] as f32 / 64.0,
                target: (*target).into(),
                judged: Some(judged),
            };
            question.add(of, &sample, &mut vector);
        }
        question.finish(of, targets.len() as u32, &mut vector);
        crate::clip_l2(&mut vector, 1.0).unwrap();
        let mut integers = vec![0; vector.len()];
        asked.grid.quantize_into(&vector, &mut integers).unwrap();
        let integers: Vec<i64> = integers.into_iter().map(i64::from).collect();
        for most in [1, usize::MAX] {
            let other = round_of(asked, weight, most, |board| board.set_questions(policy));
            assert_eq!(other.integers, integers, "{question:?}");
        }
        let smoothed = Invitation {
            gradient_smoothing: SmoothingFactor::new(1.0).ok(),
            ..asked
        };
        let other = round_of(smoothed, weight, 1, |board| board.set_questions(policy));
        assert_eq!(other.declined, Some(Decline::Settings));
    }
}

#[test]
fn other_arithmetics_and_numbers_that_are_no_weights_are_declined() {
    let mut numbers = asked();
    numbers.shape.integer = None;
    let mut finer = asked();
    finer.shape.integer = FeatureFormat::new(false, 7).ok();
    let mut wide = asked();
    wide.shape.integer = FeatureFormat::new(true, 6).ok();
    for shape in [numbers, finer, wide] {
        assert_eq!(round(shape, weight).declined, Some(Decline::Shape));
    }
    let mut smoothed = asked();
    smoothed.gradient_smoothing = SmoothingFactor::new(1.0).ok();
    assert_eq!(round(smoothed, weight).declined, Some(Decline::Settings));
    for beyond in [MAX_WEIGHT + 1, -MAX_WEIGHT - 1, i32::MIN] {
        let model = |i| if i == 77 { beyond } else { weight(i) };
        assert_eq!(round(asked(), model).declined, Some(Decline::Settings));
    }
    let model = |i| if i == 77 { -MAX_WEIGHT } else { weight(i) };
    assert!(round(asked(), model).done);
}

/// Every format has its own byte.
#[test]
fn formats_come_back_from_the_wire() {
    let formats = [false, true].map(|is_wide| {
        let formats = (0..=16).filter_map(move |f| FeatureFormat::new(is_wide, f).ok());
        formats.map(Some).collect::<Vec<_>>()
    });
    assert_eq!((formats[0].len(), formats[1].len()), (8, 16));
    let mut bytes = Vec::new();
    for integer in formats.into_iter().flatten().chain([None]) {
        for kind in [ModelKind::Linear, ModelKind::Logistic, ModelKind::Softmax] {
            let mut asked = invitation(None);
            (asked.shape.kind, asked.shape.integer) = (kind, integer);
            let packed = PackedInvitation::from(&asked);
            assert_eq!(packed.bytes().unpack().unwrap().shape, asked.shape);
            bytes.push(packed.bytes().as_slice()[0]);
        }
    }
    let count = bytes.len();
    bytes.sort_unstable();
    bytes.dedup();
    assert_eq!(bytes.len(), count);
}
