//! Local training against golden values, and properties of every device.

use core::num::NonZeroU32;
use std::{string::String, vec, vec::Vec};

use proptest::{collection::vec, prelude::*};
use serde_json::Value;

use super::*;
use crate::{
    model::{Activation, Encoder, Layer, Linear, Logistic, Parametric, Sequential, Shape, Softmax},
    params::{ClipNorm, LearningRate, Penalty},
    samples::SampleSlice,
    smooth::{LaplacianSmoothing, NarrowSmoothing},
    stream::{Purpose, Root, Stream, StreamId},
};

fn settings(rate: f32, clip_norm: Option<f32>) -> LocalTraining {
    LocalTraining {
        epochs: 1,
        batch_size: NonZeroU32::new(2).unwrap(),
        learning_rate: LearningRate::new(rate).unwrap(),
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clip_norm: clip_norm.map(|bound| ClipNorm::new(bound).unwrap()),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    }
}

fn stream(device: u32) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device,
    })
}

fn run<M: Model<Target = T>, T: Copy + Default>(
    model: &M,
    features: &[f32],
    targets: &[T],
    global: &[f32],
    settings: &LocalTraining,
) -> Result<(Vec<f32>, TrainReport), TrainError> {
    let samples = SampleSlice::new(features, targets, model.feature_count()).unwrap();
    let (mut local, mut update) = (vec![0.0; global.len()], vec![0.0; global.len()]);
    let work = Workspace {
        local: &mut local,
        update: &mut update,
        order: &mut vec![0; targets.len()],
        scratch: &mut vec![0.0; model.scratch_count(4)],
    };
    let report = local_update(model, &samples, global, settings, &mut stream(0), work)?;
    Ok((update, report))
}

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap() as f32],
    }
}

/// One golden case: the batches come in the file's order, so each is a separate training that
/// starts at the end of the previous one, with the global model fixed by hand.
fn golden_case<M: Model<Target = T>, T: Copy + Default>(
    model: &M,
    case: &Value,
    features: &[f32],
    targets: &[T],
) {
    let global = [numbers(&case["W"]), numbers(&case["b"])].concat();
    let clip_norm = ClipNorm::new(case["L"].as_f64().unwrap() as f32).unwrap();
    let mut settings = settings(case["lr"].as_f64().unwrap() as f32, Some(clip_norm.get()));
    settings.weight_decay = Penalty::new(case["weight_decay"].as_f64().unwrap() as f32).unwrap();
    let samples = SampleSlice::new(features, targets, model.feature_count()).unwrap();
    let (mut local, mut update) = (global.clone(), vec![0.0; global.len()]);
    let mut scratch = vec![0.0; 8 * model.output_count()];
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let name = std::format!("{} L {} step {index}", case["model"], case["L"]);
        let batch: Vec<u32> = numbers(&step["batch"]).iter().map(|i| *i as u32).collect();
        let loss = model
            .loss_and_gradient(&local, &samples, &batch, &mut scratch, &mut update)
            .unwrap();
        let squares = descend(&settings, &global, &local, &mut update);
        let norm = lanes::norm_from(squares, &update);
        let shrink = clip::shrink_factor(norm, clip_norm);
        for ((w, start), difference) in local.iter_mut().zip(&global).zip(&update) {
            *w = start + shrink.unwrap_or(1.0) * difference;
        }
        // f32 against f64: a few ulps (6e-8) of values near 1, grown over six steps.
        let close = |found: f32, key: &str| {
            let expected = step[key].as_f64().unwrap();
            assert!(
                (f64::from(found) - expected).abs() < 2e-6 * expected.abs().max(1.0),
                "{name} {key}: {found} {expected}"
            );
        };
        close(loss, "batch_mean_loss_before");
        close(norm, "norm_before_projection");
        assert_eq!(
            shrink.is_some(),
            step["projected"].as_bool().unwrap(),
            "{name}"
        );
        let expected = [numbers(&step["weight"]), numbers(&step["bias"])].concat();
        for (found, expected) in local.iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 2e-6,
                "{name}: {found} {expected}"
            );
        }
    }
}

#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn steps_agree_with_the_golden_values() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/vectors/local_update.json"
    );
    let text: String = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let features = numbers(&file["X"]);
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 12);
    for case in cases {
        let targets = numbers(&case["labels"]);
        let classes: Vec<u16> = targets.iter().map(|y| *y as u16).collect();
        match case["model"].as_str().unwrap() {
            "softmax" => golden_case(&Softmax::new(3usize, 3usize), case, &features, &classes),
            "logistic" => golden_case(&Logistic::new(3usize), case, &features, &classes),
            "linear" => golden_case(&Linear::new(3usize), case, &features, &targets),
            other => panic!("unknown model {other}"),
        }
    }
}

const FEATURES: [f32; 8] = [1.0, 0.5, -0.5, 2.0, 0.25, -1.0, 1.5, 1.0];
const TARGETS: [f32; 4] = [1.0, -2.0, 0.5, 3.0];

#[test]
fn an_update_stays_in_the_ball_and_reports_its_clipping() {
    let (update, report) = run(
        &Linear::new(2usize),
        &FEATURES,
        &TARGETS,
        &[0.0; 3],
        &settings(0.5, Some(0.1)),
    )
    .unwrap();
    assert!(lanes::norm(&update) <= 0.1 * (1.0 + 1e-6));
    assert_eq!((report.steps, report.clipped_steps), (2, 2));
    assert!(report.norm > 0.1);
}

#[test]
fn a_loose_bound_changes_nothing() {
    let model = Linear::new(2usize);
    let free = run(&model, &FEATURES, &TARGETS, &[0.1; 3], &settings(0.1, None))
        .unwrap()
        .0;
    let loose = run(
        &model,
        &FEATURES,
        &TARGETS,
        &[0.1; 3],
        &settings(0.1, Some(1e3)),
    )
    .unwrap()
    .0;
    assert_eq!(free, loose);
}

#[test]
fn final_clipping_is_clipping_of_the_free_update() {
    let model = Linear::new(2usize);
    let mut expected = run(&model, &FEATURES, &TARGETS, &[0.1; 3], &settings(0.1, None))
        .unwrap()
        .0;
    clip::clip_l2(&mut expected, 0.05).unwrap();
    let settings = LocalTraining {
        clipping: Clipping::Final,
        ..settings(0.1, Some(0.05))
    };
    let (update, report) = run(&model, &FEATURES, &TARGETS, &[0.1; 3], &settings).unwrap();
    assert_eq!(update, expected);
    assert_eq!(report.clipped_steps, 1);
}

#[test]
fn the_proximal_term_pulls_towards_the_global_model() {
    let model = Linear::new(2usize);
    let train = |strength: f32| {
        let proximal = Penalty::new(strength).unwrap();
        let settings = LocalTraining {
            epochs: 20,
            proximal,
            ..settings(0.05, None)
        };
        lanes::norm(
            &run(&model, &FEATURES, &TARGETS, &[0.0; 3], &settings)
                .unwrap()
                .0,
        )
    };
    assert!(train(5.0) < 0.7 * train(0.0));
}

#[test]
fn smoothing_the_gradient_is_smoothing_of_a_single_step() {
    let model = Linear::new(2usize);
    let smoothing = NarrowSmoothing::new(1.0).unwrap();
    let one_batch = LocalTraining {
        batch_size: NonZeroU32::new(4).unwrap(),
        ..settings(1.0, None)
    };
    let mut expected = run(&model, &FEATURES, &TARGETS, &[0.0; 3], &one_batch)
        .unwrap()
        .0;
    LaplacianSmoothing::new(1.0)
        .unwrap()
        .apply(&mut expected[..2]);
    let smoothed = LocalTraining {
        gradient_smoothing: Some(smoothing),
        ..one_batch
    };
    let update = run(&model, &FEATURES, &TARGETS, &[0.0; 3], &smoothed)
        .unwrap()
        .0;
    for (found, expected) in update.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{update:?} {expected:?}");
    }
}

#[test]
fn the_same_stream_gives_the_same_bits_and_another_one_other_bits() {
    let model = Linear::new(2usize);
    let samples = SampleSlice::new(&FEATURES, &TARGETS, 2).unwrap();
    let train = |device| {
        let (mut local, mut update, mut order) = ([0.0; 3], [0.0; 3], [0; 4]);
        let work = Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut order,
            scratch: &mut [0.0; 1],
        };
        let mut rng = stream(device);
        local_update(
            &model,
            &samples,
            &[0.0; 3],
            &settings(0.1, None),
            &mut rng,
            work,
        )
        .unwrap();
        update.map(f32::to_bits)
    };
    assert_eq!(train(1), train(1));
    assert_ne!(train(1), train(2));
}

#[test]
fn a_device_that_cannot_train_says_why() {
    let model = Linear::new(2usize);
    let none: [f32; 0] = [];
    let error = run(&model, &[], &none, &[0.0; 3], &settings(0.1, None)).unwrap_err();
    assert_eq!(error, TrainError::NoSamples);
    let wild = LocalTraining {
        epochs: 200,
        ..settings(1e20, None)
    };
    let error = run(&model, &FEATURES, &TARGETS, &[0.0; 3], &wild).unwrap_err();
    assert_eq!(error, TrainError::Diverged);
    let clipped = LocalTraining {
        clipping: Clipping::Final,
        clip_norm: ClipNorm::new(1.0).ok(),
        ..wild
    };
    let error = run(&model, &FEATURES, &TARGETS, &[0.0; 3], &clipped).unwrap_err();
    assert_eq!(error, TrainError::Diverged);
    let error = run(&model, &FEATURES, &TARGETS, &[0.0; 2], &settings(0.1, None)).unwrap_err();
    assert_eq!(
        error,
        TrainError::Workspace {
            expected: 3,
            found: 2
        }
    );

    let samples = SampleSlice::new(&FEATURES, &TARGETS, 2).unwrap();
    let work = Workspace {
        local: &mut [0.0; 3],
        update: &mut [0.0; 3],
        order: &mut [0; 3],
        scratch: &mut [0.0; 1],
    };
    let error = local_update(
        &model,
        &samples,
        &[0.0; 3],
        &settings(0.1, None),
        &mut stream(0),
        work,
    );
    assert_eq!(
        error,
        Err(TrainError::Workspace {
            expected: 4,
            found: 3
        })
    );
}

proptest::proptest! {
    /// The pass that sums up a gradient also takes the step and counts the squares.
    #[test]
    fn fused_steps_have_the_bits_of_separate_passes(
        features in 1usize..150, classes in 1usize..13, count in 1usize..45, batch in 1u32..50,
    ) {
        let value = |i: usize| ((i * 7_919 + features) % 1_000) as f32 * 1e-3 - 0.5;
        let inputs: Vec<f32> = (0..features * count).map(value).collect();
        let targets: Vec<u16> = (0..count).map(|i| (i * 5 % classes) as u16).collect();
        let model = Softmax::new(features, classes);
        let global: Vec<f32> = (0..model.parameter_count()).map(value).collect();
        let settings = LocalTraining {
            batch_size: NonZeroU32::new(batch).unwrap(),
            weight_decay: Penalty::new(0.01).unwrap(),
            proximal: Penalty::new(0.1).unwrap(),
            ..settings(0.1, Some(0.05))
        };
        let (fused, report) = run(&model, &inputs, &targets, &global, &settings).unwrap();

        let samples = SampleSlice::new(&inputs, &targets, features).unwrap();
        let mut order: Vec<u32> = (0..count as u32).collect();
        crate::stream::shuffle(&mut order, &mut stream(0));
        let (mut local, mut update) = (global.clone(), global.clone());
        let mut scratch = vec![0.0; classes];
        let (mut norm, mut factor) = (0.0, 1.0);
        for batch in order.chunks(batch as usize) {
            let gradient = &mut update;
            let loss = model.loss_and_gradient(&local, &samples, batch, &mut scratch, gradient);
            loss.unwrap();
            norm = lanes::norm_from(descend(&settings, &global, &local, &mut update), &update);
            factor = clip::shrink_factor(norm, settings.clip_norm.unwrap()).unwrap_or(1.0);
            for ((w, start), difference) in local.iter_mut().zip(&global).zip(&update) {
                *w = start + factor * difference;
            }
        }
        lanes::scale(&mut update, factor);
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        proptest::prop_assert_eq!(bits(&fused), bits(&update));
        proptest::prop_assert_eq!(report.norm.to_bits(), norm.to_bits());
    }
}

/// Trains on up to `most` samples at a time, or with split steps, from a stream reopened by each
/// epoch.
fn run_in_pieces<M: Model<Target = T>, T: Copy + Default, const SPLIT: bool>(
    model: &M,
    samples: &SampleSlice<'_, T>,
    global: &[f32],
    settings: &LocalTraining,
    mut most: impl FnMut() -> usize,
) -> Result<(Vec<f32>, TrainReport), TrainError> {
    let (mut local, mut update) = (vec![0.0; global.len()], vec![0.0; global.len()]);
    let mut work = Workspace {
        local: &mut local,
        update: &mut update,
        order: &mut vec![0; samples.len()],
        scratch: &mut vec![0.0; model.scratch_count(1)],
    };
    let task = Local::<_, _, SPLIT> {
        model,
        samples,
        global,
        settings,
    };
    let (mut descent, mut report) = (task.begin(&mut work)?, Report::default());
    let mut words = 0;
    while !descent.is_complete(settings) {
        let shuffle = |order: &mut [u32]| {
            let mut stream = stream(0);
            stream.skip(words);
            crate::stream::shuffle(order, &mut stream);
            words = stream.position();
        };
        task.advance(&mut descent, shuffle, &mut work, most(), &mut report)?;
    }
    task.finish(&descent, work.update, &mut report);
    Ok((update, report.train))
}

proptest! {
    /// Covers each kind of model, and pieces of any lengths.
    #[test]
    fn pieces_have_the_bits_of_the_whole(
        count in 1_usize..12,
        batch_size in 1_u32..14,
        epochs in 0_u32..4,
        pieces in vec(1_usize..6, 1..8),
        is_final in any::<bool>(),
        sigma in proptest::option::of(0.5_f32..2.0),
        salt in any::<u32>(),
    ) {
        let image = Shape::Image { channels: 1, height: 2, width: 5 };
        let convolution = Layer::Convolution {
            channels: 2,
            kernel: [2, 2],
            stride: [1, 1],
            padding: [0, 0],
        };
        let layers = [convolution, Layer::Relu, Layer::Dense { outputs: 3 }];
        let network = Sequential::new(image, &layers).unwrap();
        let settings = LocalTraining {
            epochs,
            batch_size: NonZeroU32::new(batch_size).unwrap(),
            clipping: if is_final { Clipping::Final } else { Clipping::EveryStep },
            gradient_smoothing: sigma.map(|sigma| NarrowSmoothing::new(sigma).unwrap()),
            proximal: Penalty::new(0.1).unwrap(),
            ..settings(0.3, Some(0.4))
        };
        let number = |i: u32| (i.wrapping_mul(2_654_435_761) ^ salt) as f32 / u32::MAX as f32 - 0.5;
        let features: Vec<f32> = (0..10 * count as u32).map(number).collect();
        let targets: Vec<u16> = (0..count as u16).map(|i| i % 3).collect();
        let values: Vec<f32> = (0..count as u32).map(|i| number(i + 1_000)).collect();
        macro_rules! check {
            ($model:expr, $targets:expr) => {{
                let (model, targets) = ($model, &$targets[..]);
                let samples = &SampleSlice::new(&features, targets, 10).unwrap();
                let global: Vec<f32> = (0..model.parameter_count() as u32).map(number).collect();
                let whole = run(&model, &features, targets, &global, &settings).unwrap();
                let mut lengths = pieces.iter().cycle();
                let most = || *lengths.next().unwrap();
                let parts = run_in_pieces::<_, _, false>(&model, samples, &global, &settings, most);
                let split = run_in_pieces::<_, _, true>(&model, samples, &global, &settings, || 1);
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                for parts in [parts.unwrap(), split.unwrap()] {
                    prop_assert_eq!(bits(&parts.0), bits(&whole.0));
                    prop_assert_eq!(parts.1, whole.1);
                }
            }};
        }
        check!(Softmax::new(10_usize, 3_usize), targets);
        check!(Logistic::new(10_usize), targets);
        check!(Linear::new(10_usize), values);
        check!(Encoder::new(10_usize, 4_usize, 3_usize, Activation::Tanh), targets);
        check!(network, targets);
    }
}
