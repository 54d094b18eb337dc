//! The same bits at every vector width of this machine, for random shapes and values.

use core::num::NonZeroU32;

use proptest::prelude::*;
use pulp::Arch;
use smolfed_core::model::{
    BatchPart, Encoder, Layer, Linear, Logistic, Model, Sequential, Shape, Softmax, Sums,
};
use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{Clipping, LocalTraining, Workspace};

use crate::Rows;
use crate::apart::Part;
use crate::kernels::{LocalUpdate, Scores};

/// What kernels are compiled for, as far as this machine has it: SSE2, AVX2, AVX-512; NEON.
fn widths() -> Vec<Arch> {
    let mut widths = vec![Arch::Scalar, Arch::new()];
    #[cfg(target_arch = "x86_64")]
    {
        widths.extend(pulp::x86::V3::try_new().map(Arch::V3));
        widths.extend(pulp::x86::V4::try_new().map(Arch::V4));
    }
    widths
}

/// Deterministic values in [-1, 1) without a generator.
fn values(count: usize, salt: u32) -> Vec<f32> {
    let value = |i: u32| (i.wrapping_mul(2_654_435_761) ^ salt).wrapping_mul(2_246_822_519) as i32;
    let unit = 1.0 / (1u32 << 31) as f32;
    (0..count as u32).map(|i| value(i) as f32 * unit).collect()
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

/// The size of a problem.
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

/// An update, its report and the scores, at one width.
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
        stream: &mut Root::from_seed(1).stream(StreamId {
            purpose: Purpose::BatchShuffle,
            round: 0,
            device: 0,
        }),
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
