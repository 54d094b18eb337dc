//! Local training in integers: golden values, and properties of every device.

use core::num::NonZeroU32;
use std::{vec, vec::Vec};

use proptest::{collection::vec as vec_of, prelude::*};
use serde_json::Value;

use super::*;
use crate::{
    lanes,
    model::{Linear, Logistic, Model, Softmax},
    params::{ClipNorm, LearningRate, Penalty},
    quantize::Grid,
    samples::SampleSlice,
    stream::{Purpose, Root, Stream, StreamId},
    train::{self, Clipping, LocalTraining, TrainError, TrainReport, Workspace},
};

fn settings(rate: f32, clip_norm: f32) -> LocalTraining {
    let rate = LearningRate::new(rate).unwrap();
    LocalTraining::new(rate, ClipNorm::new(clip_norm).unwrap())
        .with_epochs(3)
        .with_batch_size(NonZeroU32::new(4).unwrap())
}

fn stream() -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: 0,
    })
}

/// Computes an update in integers from rounded data.
fn run<M: FixedPointModel, X: Feature>(
    model: &M,
    (features, targets): (&[X], &[M::FixedPointTarget]),
    fraction: u8,
    global: &[i32],
    settings: &LocalTraining,
) -> Result<(Vec<i32>, FixedPointReport), TrainError> {
    let samples = FixedPointSlice::new(features, targets, model.feature_count()).unwrap();
    let mut update = vec![0; global.len()];
    let work = FixedPointWork {
        local: &mut vec![0; global.len()],
        update: &mut update,
        order: &mut vec![0; targets.len()],
        scores: &mut vec![0; model.output_count()],
        row: &mut vec![0; model.feature_count()],
    };
    let scale = FeatureScale::new::<X>(fraction).unwrap();
    let order = &mut stream();
    let report = local_update(model, &samples, scale, global, settings, order, work)?;
    Ok((update, report))
}

/// Computes the same update in `f32`.
fn run_f32<M: Model<Target: Copy + Default>>(
    model: &M,
    (features, targets): (&[f32], &[M::Target]),
    global: &[f32],
    settings: &LocalTraining,
) -> (Vec<f32>, TrainReport) {
    let samples = SampleSlice::new(features, targets, model.feature_count()).unwrap();
    let mut update = vec![0.0; global.len()];
    let work = Workspace {
        local: &mut vec![0.0; global.len()],
        update: &mut update,
        order: &mut vec![0; targets.len()],
        scratch: &mut vec![0.0; model.output_count()],
    };
    let report =
        train::local_update(model, &samples, global, settings, &mut stream(), work).unwrap();
    (update, report)
}

fn values(weights: &[i32]) -> Vec<f32> {
    weights.iter().map(|w| value_of_weight(*w)).collect()
}

/// A device of any shape: features, classes, samples and their values.
#[derive(Debug)]
struct Case {
    features: usize,
    classes: usize,
    x: Vec<i8>,
    targets: Vec<u16>,
    global: Vec<i32>,
}

fn case() -> impl Strategy<Value = Case> {
    (1_usize..40, 2_usize..7, 1_usize..12).prop_flat_map(|(features, classes, samples)| {
        (
            vec_of(-64_i8..=64, features * samples),
            vec_of(0..classes as u16, samples),
            vec_of(-(1_i32 << 17)..1 << 17, (features + 1) * classes),
        )
            .prop_map(move |(x, targets, global)| Case {
                features,
                classes,
                x,
                targets,
                global,
            })
    })
}

proptest! {
    /// Any shape, any settings: inside the ball in integers, and on the grid without a repair.
    #[test]
    fn an_update_is_inside_the_ball(
        case in case(), rate in 0.01_f32..3.0, clip_norm in 0.001_f32..2.0,
        decay in 0.0_f32..0.08, proximal in 0.0_f32..0.08, is_final in any::<bool>(),
    ) {
        let settings = LocalTraining {
            weight_decay: Penalty::new(decay).unwrap(),
            proximal: Penalty::new(proximal).unwrap(),
            clipping: if is_final { Clipping::Final } else { Clipping::EveryStep },
            ..settings(rate, clip_norm)
        };
        let model = Softmax::new(case.features, case.classes);
        let data = (&case.x[..], &case.targets[..]);
        let (update, report) = run(&model, data, 6, &case.global, &settings).unwrap();
        let squares: f64 = update.iter().map(|d| f64::from(*d).powi(2)).sum();
        prop_assert!(squares.sqrt() <= f64::from(clip_norm) * f64::from(1 << 18));
        let grid = Grid::new(settings.clip_norm.unwrap(), 20).unwrap();
        let mut integers = vec![0; update.len()];
        grid.quantize_into(&values(&update), &mut integers).unwrap();
        prop_assert_eq!(grid.check(&integers), Ok(()));
        // Without a repair each entry is the multiple of the grid's step below it.
        for (q, d) in integers.iter().zip(values(&update)) {
            prop_assert_eq!(*q, (f64::from(d) / grid.step()) as i32);
        }
        prop_assert!(report.clipped_steps <= report.clipping_chances);
    }

    /// An update projected onto a larger ball than the grid's is inside on the grid, because the
    /// exact clip does not rely on the projection.
    #[test]
    fn the_exact_clip_follows_whatever_the_projection(
        case in case(), rate in 0.1_f32..3.0, excess in 1.01_f32..1.9,
    ) {
        let model = Softmax::new(case.features, case.classes);
        let data = (&case.x[..], &case.targets[..]);
        let settings = settings(rate, 0.05 * excess);
        let (update, report) = run(&model, data, 6, &case.global, &settings).unwrap();
        prop_assume!(report.clipped_steps > 0);
        let grid = Grid::new(ClipNorm::new(0.05).unwrap(), 12).unwrap();
        let mut integers = vec![0; update.len()];
        grid.quantize_into(&values(&update), &mut integers).unwrap();
        prop_assert_eq!(grid.check(&integers), Ok(()));
    }

    /// Compares with `f32`, from the same rounded numbers. A step differs by the rounding of
    /// residuals, of the step size (2⁻¹⁵ of it) and of the weights.
    #[test]
    #[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
    fn an_update_is_near_that_of_f32(case in case(), rate in 0.01_f32..0.3) {
        let settings = settings(rate, 1e3);
        let model = Softmax::new(case.features, case.classes);
        let data = (&case.x[..], &case.targets[..]);
        let (update, report) = run(&model, data, 6, &case.global, &settings).unwrap();
        let x: Vec<f32> = case.x.iter().map(|x| f32::from(*x) / 64.0).collect();
        let global = values(&case.global);
        let (expected, exact) = run_f32(&model, (&x, &case.targets), &global, &settings);
        let norm = lanes::norm(&expected);
        for (found, expected) in values(&update).iter().zip(&expected) {
            let error = (found - expected).abs();
            prop_assert!(error <= 1e-4 * (1.0 + norm), "{error} of {norm}");
        }
        let report = TrainReport::from(report);
        // Mean over samples here and over batches there, which is the same for whole batches.
        if case.targets.len().is_multiple_of(4) {
            prop_assert!((report.last_loss - exact.last_loss).abs() <= 1e-3);
        }
        prop_assert!((report.norm - exact.norm).abs() <= 1e-3 * (1.0 + exact.norm));
        prop_assert_eq!(report.steps, exact.steps);
    }
}

#[test]
fn all_models_train_on_both_kinds_of_features() {
    let narrow = [64_i8, -32, 16, 96, -64, 0, 32, 8];
    let wide: Vec<i16> = narrow.iter().map(|x| i16::from(*x) << 6).collect();
    let x: Vec<f32> = narrow.iter().map(|x| f32::from(*x) / 64.0).collect();
    let settings = settings(0.2, 10.0);
    let near = |found: &[i32], expected: &[f32]| {
        for (found, expected) in values(found).iter().zip(expected) {
            assert!((found - expected).abs() < 2e-4, "{found} {expected}");
        }
    };

    let targets = [1.0_f32, -2.5, 0.25, 4.0];
    let integers = targets.map(|y| round_target(y).0);
    let model = Linear::new(2_usize);
    let (expected, _) = run_f32(&model, (&x, &targets), &[0.0; 3], &settings);
    let narrow_run = run(&model, (&narrow, &integers), 6, &[0; 3], &settings);
    near(&narrow_run.unwrap().0, &expected);
    let wide_run = run(&model, (&wide, &integers), 12, &[0; 3], &settings);
    near(&wide_run.unwrap().0, &expected);

    let classes = [1_u16, 0, 0, 1];
    let model = Logistic::new(2_usize);
    let (expected, _) = run_f32(&model, (&x, &classes), &[0.0; 3], &settings);
    near(
        &run(&model, (&narrow, &classes), 6, &[0; 3], &settings)
            .unwrap()
            .0,
        &expected,
    );
    near(
        &run(&model, (&wide, &classes), 12, &[0; 3], &settings)
            .unwrap()
            .0,
        &expected,
    );

    let model = Softmax::new(2_usize, 3_usize);
    let (expected, _) = run_f32(&model, (&x, &classes), &[0.0; 9], &settings);
    near(
        &run(&model, (&wide, &classes), 12, &[0; 9], &settings)
            .unwrap()
            .0,
        &expected,
    );
}

/// With 8 bits and targets of ±1,000, residuals and weights saturate, and are counted.
#[test]
fn what_has_no_place_saturates_and_is_counted() {
    let model = Linear::new(1_usize);
    let targets = [round_target(1_000.0).0, round_target(-1_000.0).0];
    let settings = settings(2.0, 1e3);
    let (update, report) = run(&model, (&[127_i8, 127], &targets), 4, &[0; 2], &settings).unwrap();
    assert!(report.saturations.residuals > 0, "{report:?}");
    assert!(update.iter().all(|d| d.abs() <= 2 * MAX_WEIGHT));
    let targets = [round_target(1_000.0).0; 2];
    let (update, report) = run(&model, (&[127_i8, 127], &targets), 4, &[0; 2], &settings).unwrap();
    assert_eq!(update[0], MAX_WEIGHT, "{report:?}");
    assert!(report.saturations.weights > 0);
    assert_eq!(report.saturations.scores, 0);
}

#[test]
fn what_is_outside_the_ranges_is_refused() {
    let model = Softmax::new(1_usize, 2_usize);
    let data = (&[1_i8, 2][..], &[0_u16, 1][..]);
    let refused = |global: &[i32; 4], settings: &LocalTraining| {
        run(&model, data, 0, global, settings).unwrap_err()
    };
    let usual = settings(0.1, 1.0);
    assert_eq!(
        refused(&[MAX_WEIGHT + 1, 0, 0, 0], &usual),
        TrainError::Range
    );
    assert_eq!(refused(&[0, 0, 0, i32::MIN], &usual), TrainError::Range);
    assert_eq!(refused(&[0; 4], &settings(1e9, 1.0)), TrainError::Range);
    assert_eq!(refused(&[0; 4], &settings(0.1, 1e-6)), TrainError::Range);
    let decaying = usual.with_weight_decay(Penalty::new(100.0).unwrap());
    assert_eq!(refused(&[0; 4], &decaying), TrainError::Range);

    let misfit = run(&model, data, 0, &[0; 3], &usual).unwrap_err();
    assert_eq!(
        misfit,
        TrainError::Workspace {
            expected: 4,
            found: 3
        }
    );
    let none = run::<_, i8>(&model, (&[], &[]), 0, &[0; 4], &usual).unwrap_err();
    assert_eq!(none, TrainError::NoSamples);
}

/// An independent implementation with integers of any width (`tests/vectors/integer.py`).
#[test]
fn golden_values_agree() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/integer.json");
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    for pair in file["exponential"].as_array().unwrap() {
        let [x, expected] = [0, 1].map(|i| pair[i].as_u64().unwrap() as u32);
        assert_eq!(exponential::exp_of_minus(x), expected, "{x}");
    }
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 36);
    for case in cases {
        let features = case["features"].as_u64().unwrap() as usize;
        let global = integers(&case["global"]);
        let outputs = global.len() / (features + 1);
        let labels: Vec<u16> = integers(&case["targets"])
            .iter()
            .map(|y| *y as u16)
            .collect();
        match case["model"].as_str().unwrap() {
            "softmax" => golden_case(&Softmax::new(features, outputs), case, &labels),
            "logistic" => golden_case(&Logistic::new(features), case, &labels),
            _ => golden_case(&Linear::new(features), case, &integers(&case["targets"])),
        }
    }
}

fn golden_case<M: FixedPointModel>(model: &M, case: &Value, targets: &[M::FixedPointTarget]) {
    let number = |key: &str| case[key].as_f64().unwrap() as f32;
    let settings = LocalTraining {
        epochs: case["epochs"].as_u64().unwrap() as u32,
        batch_size: NonZeroU32::MAX,
        weight_decay: Penalty::new(number("weight_decay")).unwrap(),
        proximal: Penalty::new(number("proximal")).unwrap(),
        clipping: match case["final"].as_bool().unwrap() {
            true => Clipping::Final,
            false => Clipping::EveryStep,
        },
        ..settings(number("learning_rate"), number("clip_norm"))
    };
    let (x, global) = (integers(&case["x"]), integers(&case["global"]));
    let fraction = case["fraction"].as_u64().unwrap() as u8;
    let (update, report) = if case["bits"] == 7 {
        let x: Vec<i8> = x.iter().map(|x| *x as i8).collect();
        run(model, (&x, targets), fraction, &global, &settings).unwrap()
    } else {
        let x: Vec<i16> = x.iter().map(|x| *x as i16).collect();
        run(model, (&x, targets), fraction, &global, &settings).unwrap()
    };
    assert_eq!(update, integers(&case["update"]), "{case}");
    let expected = |key: &str| case[key].as_u64().unwrap();
    assert_eq!(u64::from(report.clipped_steps), expected("clipped_steps"));
    assert_eq!(
        u64::from(report.saturations.weights),
        expected("saturated_weights")
    );
    assert_eq!(report.last_loss, expected("last_loss"), "{case}");
    assert_eq!(report.norm, expected("norm"));
}

fn integers(value: &Value) -> Vec<i32> {
    let items = value.as_array().unwrap().iter();
    items.map(|item| item.as_i64().unwrap() as i32).collect()
}
