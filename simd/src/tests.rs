//! The same bits at every vector width of this machine, for random shapes and values.

use core::num::NonZeroU32;

use proptest::prelude::*;
use pulp::Arch;
use smolfed_core::model::{
    BatchPart, Distilled, Encoder, Layer, Linear, Logistic, Model, Parametric, Sequential, Shape,
    Softmax, Sums, WithRow,
};
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::personal::{self, Anchor, Effort, PersonalTraining, StepMemory};
use smolfed_core::smooth::NarrowSmoothing;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_core::train::{self, Clipping, LocalTraining, TrainReport, Workspace};

use crate::apart::Part;
use crate::kernels::{LocalUpdate, Scores};
use crate::{Kernels, Rows, Steps, distil};

/// Returns the instruction sets available on this machine: SSE2, AVX2 and AVX-512, or NEON.
fn widths() -> Vec<Arch> {
    let mut widths = vec![Arch::Scalar, Arch::new()];
    #[cfg(target_arch = "x86_64")]
    {
        widths.extend(pulp::x86::V3::try_new().map(Arch::V3));
        #[cfg(feature = "avx512")]
        widths.extend(pulp::x86::V4::try_new().map(Arch::V4));
    }
    widths
}

/// Returns deterministic values in [-1, 1) without a generator.
fn values(count: usize, salt: u32) -> Vec<f32> {
    let value = |i: u32| (i.wrapping_mul(2_654_435_761) ^ salt).wrapping_mul(2_246_822_519) as i32;
    let unit = 1.0 / (1u32 << 31) as f32;
    (0..count as u32).map(|i| value(i) as f32 * unit).collect()
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

/// Returns the stream for the order of the samples.
fn stream() -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: 0,
    })
}

/// Size of a problem.
#[derive(Clone, Copy, Debug)]
struct Problem {
    features: usize,
    samples: usize,
    batch: u32,
    salt: u32,
    proximal: f32,
}

fn shapes() -> impl Strategy<Value = Problem> {
    let proximal = prop_oneof![Just(0.0), Just(0.1)];
    let sizes = (1usize..200, 1usize..45, 1u32..50);
    (sizes, any::<u32>(), proximal).prop_map(|((features, samples, batch), salt, proximal)| {
        Problem {
            features,
            samples,
            batch,
            salt,
            proximal,
        }
    })
}

/// Returns an update, its report and the scores, at one width.
fn at_width<M: Model<Target: Default>>(
    width: Arch,
    model: &M,
    shape: Problem,
    targets: &[M::Target],
) -> (Vec<u32>, [u32; 3], Vec<u32>) {
    let table = values(shape.features * shape.samples, shape.salt);
    let rows: Vec<u32> = (0..shape.samples as u32).rev().collect();
    let samples = Rows::new(&table, shape.features, targets, &rows);
    let global = values(model.parameter_count(), !shape.salt);
    let clip_norm = ClipNorm::new(0.3).unwrap();
    let settings = LocalTraining {
        epochs: 2,
        batch_size: NonZeroU32::new(shape.batch).unwrap(),
        learning_rate: LearningRate::new(0.1).unwrap(),
        weight_decay: Penalty::new(4e-5).unwrap(),
        proximal: Penalty::new(shape.proximal).unwrap(),
        clip_norm: Some(clip_norm),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    };
    let (mut local, mut update) = (global.clone(), global.clone());
    let report = width.dispatch(LocalUpdate {
        model,
        samples: &samples,
        global: &global,
        settings: &settings,
        stream: &mut stream(),
        work: Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut vec![0; shape.samples],
            scratch: &mut vec![0.0; model.scratch_count(20)],
        },
    });
    let report = report.unwrap();
    let mut scores = vec![0.0; shape.samples * model.output_count()];
    let scored = width.dispatch(Scores {
        model,
        parameters: &local,
        samples: &samples,
        batch: &rows,
        scratch: &mut vec![0.0; model.score_scratch_count()],
        scores: &mut scores,
    });
    scored.unwrap();
    let report = [report.first_loss, report.last_loss, report.norm].map(f32::to_bits);
    (bits(&update), report, bits(&scores))
}

fn same_at_every_width<M: Model<Target: Default>>(
    model: &M,
    shape: Problem,
    targets: &[M::Target],
) {
    let expected = at_width(Arch::Scalar, model, shape, targets);
    for width in widths() {
        let found = at_width(width, model, shape, targets);
        assert_eq!(found, expected, "{width:?} of {shape:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    })]

    #[test]
    fn models_have_the_same_bits_at_every_width(shape in shapes(), classes in 1usize..13) {
        let classes_of = |count: usize| -> Vec<u16> {
            (0..shape.samples).map(|i| (i * 7 % count) as u16).collect()
        };
        let softmax = Softmax::new(shape.features, classes);
        same_at_every_width(&softmax, shape, &classes_of(classes));
        let encoder = Encoder::new(shape.features, classes, 3, Default::default());
        same_at_every_width(&encoder, shape, &classes_of(3));
        same_at_every_width(&Logistic::new(shape.features), shape, &classes_of(2));
        same_at_every_width(&Linear::new(shape.features), shape, &values(shape.samples, 5));
    }
    #[test]
    fn networks_have_the_same_bits_at_every_width(
        [inputs, outputs, hidden] in [1u16..10, 1u16..25, 1u16..40],
        kernel in 1u16..6,
        stride in 1u16..3,
        salt in any::<u32>(),
    ) {
        let convolution = Layer::Convolution {
            channels: outputs,
            kernel: [kernel, 3],
            stride: [stride, 1],
            padding: [kernel / 2, 1],
        };
        let pool = Layer::MaxPool { size: [1, 2], stride: [1, 2] };
        let layers = [convolution, Layer::Relu, pool, convolution, Layer::Dense { outputs: 3 }];
        let image = Shape::Image { channels: inputs, height: 7, width: 9 };
        network_has_the_same_bits(&Sequential::new(image, &layers).unwrap(), salt);
        let lstm = Layer::Lstm { hidden };
        let layers = [lstm, lstm, Layer::Last, Layer::Dense { outputs: 3 }];
        let sequence = Shape::Sequence { length: 5, width: inputs };
        network_has_the_same_bits(&Sequential::new(sequence, &layers).unwrap(), salt);
    }
}

fn network_has_the_same_bits(network: &Sequential, salt: u32) {
    let features = network.feature_count();
    let table = values(features * 3, salt);
    let samples = Rows::new(&table, features, &[0, 2, 1], &[2, 0, 1]);
    let parameters = values(network.parameter_count(), !salt);
    let run = |width: Arch| {
        let mut gradient = vec![f32::NAN; parameters.len()];
        let mut scores = vec![f32::NAN; 9];
        let (scratch, mut loss) = (&mut vec![f32::NAN; network.scratch_count(1)], 0.0);
        // In two parts.
        for (at, most) in [(0, 2), (2, 2)] {
            let summed = width.dispatch(Part {
                model: network,
                parameters: &parameters,
                samples: &samples,
                part: BatchPart::of(&[0, 1, 2], at, most),
                scratch,
                sums: Sums {
                    gradient: &mut gradient,
                    loss: &mut loss,
                },
            });
            assert_eq!(summed, Ok(()));
        }
        let scored = width.dispatch(Scores {
            model: network,
            parameters: &parameters,
            samples: &samples,
            batch: &[0, 1, 2],
            scratch: &mut vec![f32::NAN; network.score_scratch_count()],
            scores: &mut scores,
        });
        assert_eq!(scored, Ok(()));
        (loss.to_bits(), bits(&gradient), bits(&scores))
    };
    let expected = run(Arch::Scalar);
    for width in widths() {
        assert_eq!(run(width), expected, "{width:?} of {network:?}");
    }
}

const FEATURES: usize = 70;
const SAMPLES: usize = 33;

fn classes() -> Vec<u16> {
    (0..SAMPLES as u16).map(|i| i * 7 % 3).collect()
}

fn settings() -> PersonalTraining {
    PersonalTraining {
        effort: Effort::Epochs(2),
        batch_size: NonZeroU32::new(10).unwrap(),
        learning_rate: LearningRate::new(0.1).unwrap(),
        weight_decay: Penalty::new(4e-5).unwrap(),
    }
}

/// Returns the model after steps from the same start, and their report.
fn after<M: Model>(
    model: &M,
    steps: impl FnOnce(&mut [f32], &mut Stream, StepMemory<'_>) -> TrainReport,
) -> (Vec<u32>, TrainReport) {
    let mut local = values(model.parameter_count(), 1);
    let memory = StepMemory {
        gradient: &mut vec![f32::NAN; local.len()],
        order: &mut [0; SAMPLES],
        scratch: &mut vec![f32::NAN; model.scratch_count(20)],
    };
    let report = steps(&mut local, &mut stream(), memory);
    (bits(&local), report)
}

/// Compares the separately compiled kernels of a model with the core.
fn has_the_bits_of_the_core<M: Kernels<Target: Default>>(model: &M, targets: &[M::Target]) {
    let (table, count) = (values(FEATURES * SAMPLES, 0), model.parameter_count());
    let rows: Vec<u32> = (0..SAMPLES as u32).rev().collect();
    let samples = &Rows::new(&table, FEATURES, targets, &rows);
    let (at, settings) = (&values(count, 2)[..], &settings());
    let strength = Penalty::new(0.1).unwrap();
    let anchor = Some(&Anchor {
        at,
        strength,
        importance: None,
    });

    let expected = after(model, |local, rng, memory| {
        personal::descend(model, samples, local, anchor, settings, rng, memory).unwrap()
    });
    let found = after(model, |local, rng, memory| {
        let steps = Steps {
            settings,
            anchor,
            release: None,
        };
        model.descend(samples, local, steps, rng, memory).unwrap()
    });
    assert_eq!(found, expected, "steps");

    // The release halves each gradient.
    let mut halve = |gradient: &mut [f32]| {
        gradient.iter_mut().for_each(|g| *g *= 0.5);
        Ok(())
    };
    let expected = after(model, |local, rng, memory| {
        personal::descend_released(model, samples, local, settings, rng, memory, &mut halve)
            .unwrap()
    });
    let found = after(model, |local, rng, memory| {
        let steps = Steps {
            settings,
            anchor: None,
            release: Some(&mut halve),
        };
        model.descend(samples, local, steps, rng, memory).unwrap()
    });
    assert_eq!(found, expected, "steps that are released");

    for smoothing in [None, Some(NarrowSmoothing::new(1.0).unwrap())] {
        let settings = &LocalTraining {
            gradient_smoothing: smoothing,
            ..LocalTraining::new(settings.learning_rate, ClipNorm::new(0.3).unwrap())
        };
        let trained = |is_core| {
            let mut update = vec![f32::NAN; count];
            let work = Workspace {
                local: &mut vec![f32::NAN; count],
                update: &mut update,
                order: &mut [0; SAMPLES],
                scratch: &mut vec![f32::NAN; model.scratch_count(20)],
            };
            let report = match is_core {
                true => train::local_update(model, samples, at, settings, &mut stream(), work),
                false => model.local_update(samples, at, settings, &mut stream(), work),
            };
            (bits(&update), report.unwrap())
        };
        assert_eq!(trained(false), trained(true), "{smoothing:?}");
    }
    scores_have_the_bits_of_the_core(model, samples, at);
}

/// Compares the scores of rows, and the refusals, with the core.
fn scores_have_the_bits_of_the_core<M: Kernels<Target: Default>>(
    model: &M,
    samples: &Rows<'_, M::Target>,
    at: &[f32],
) {
    let batch: Vec<u32> = (0..SAMPLES as u32).step_by(2).collect();
    let outputs = model.output_count();
    let scored = |is_core: bool, parameters: &[f32], batch: &[u32], count: usize| {
        let mut scores = vec![f32::NAN; count];
        let scratch = &mut vec![f32::NAN; model.score_scratch_count()];
        let result = match is_core {
            true => model.batch_scores(parameters, samples, batch, scratch, &mut scores),
            false => model.row_scores(parameters, samples, batch, scratch, &mut scores),
        };
        (result, bits(&scores))
    };
    let count = batch.len() * outputs;
    let expected = scored(true, at, &batch, count);
    assert_eq!(expected.0, Ok(()));
    assert_eq!(scored(false, at, &batch, count), expected, "scores");
    // Invalid input is refused with the same error.
    let beyond = [SAMPLES as u32];
    for (parameters, batch, count) in [
        (&at[1..], &batch[..], count),
        (at, &batch, count + 1),
        (at, &beyond, outputs),
        (at, &[], 0),
    ] {
        let (expected, _) = scored(true, parameters, batch, count);
        assert!(expected.is_err());
        assert_eq!(scored(false, parameters, batch, count).0, expected);
    }
}

/// Networks have their own test: their kernels take minutes to compile again.
#[test]
fn kernels_have_the_bits_of_the_core() {
    let bit: Vec<u16> = classes().iter().map(|class| class % 2).collect();
    has_the_bits_of_the_core(&Linear::new(FEATURES), &values(SAMPLES, 3));
    has_the_bits_of_the_core(&Logistic::new(FEATURES), &bit);
    has_the_bits_of_the_core(&Softmax::new(FEATURES, 3), &classes());
    let encoder = Encoder::new(FEATURES, 6, 3, Default::default());
    has_the_bits_of_the_core(&encoder, &classes());
}

#[test]
fn distilling_has_the_bits_of_the_core() {
    let (table, targets) = (values(FEATURES * SAMPLES, 0), classes());
    let rows: Vec<u32> = (0..SAMPLES as u32).collect();
    let samples = &Rows::new(&table, FEATURES, &targets, &rows);
    // Nonzero logarithms, and one sample without a teacher.
    let teacher = values(3 * (SAMPLES - 1), 4);
    let model = &Distilled::new(Softmax::new(FEATURES, 3), &teacher, 0.5);
    let settings = &settings();
    let expected = after(model, |local, rng, memory| {
        let samples = &WithRow(samples);
        personal::descend(model, samples, local, None, settings, rng, memory).unwrap()
    });
    let found = after(model, |local, rng, memory| {
        distil(model, samples, local, settings, rng, memory).unwrap()
    });
    assert_eq!(found, expected);
}
