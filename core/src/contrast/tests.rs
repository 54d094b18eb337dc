//! The contrastive loss against golden values of an independent implementation (f64), and against
//! differences.

mod networks;

use std::{string::String, vec, vec::Vec};

use serde_json::Value;

use super::{augment::*, correlation::*, *};
use crate::{
    model::{Activation, Encoder, Layer, Parametric, Sequential, Shape},
    noise::DiscreteGaussian,
    params::{ClipNorm, Penalty},
    quantize::Grid,
    samples::SampleSlice,
    stream::{Purpose, Root, Stream, StreamId},
};

fn file() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors/fedsc.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap() as f32],
    }
}

fn number(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

/// Converts rows over features to rows over outputs.
fn transposed(value: &Value) -> Vec<f32> {
    let rows: Vec<Vec<f32>> = value.as_array().unwrap().iter().map(numbers).collect();
    (0..rows[0].len())
        .flat_map(|c| rows.iter().map(move |row| row[c]))
        .collect()
}

/// The upper triangle of a full matrix, off-diagonal entries times √2.
fn packed(value: &Value) -> Vec<f32> {
    let rows: Vec<Vec<f32>> = value.as_array().unwrap().iter().map(numbers).collect();
    let entry = |i: usize, j: usize| rows[i][j] * if i == j { 1.0 } else { 2f32.sqrt() };
    (0..rows.len())
        .flat_map(|i| (i..rows.len()).map(move |j| entry(i, j)))
        .collect()
}

fn close(found: &[f32], expected: &[f32], tolerance: f32, name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        let scale = 1.0 + expected.abs();
        assert!(
            (found - expected).abs() < tolerance * scale,
            "{name}: {found} {expected}"
        );
    }
}

fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(3).stream(StreamId {
        purpose,
        round: 0,
        device: 0,
    })
}

/// Given views: view, sample, feature.
struct Given {
    views: Vec<Vec<Vec<f32>>>,
}

impl Given {
    fn new(value: &Value) -> Self {
        let list = |value: &Value| value.as_array().unwrap().clone();
        let views = list(value)
            .into_iter()
            .map(|v| list(&v).iter().map(numbers).collect());
        Self {
            views: views.collect(),
        }
    }
}

impl Given {
    /// Swaps samples and views.
    fn turned(&self) -> Self {
        let samples = 0..self.views[0].len();
        let views = samples.map(|s| self.views.iter().map(|view| view[s].clone()).collect());
        Self {
            views: views.collect(),
        }
    }
}

impl Views for Given {
    fn sample_count(&self) -> usize {
        self.views[0].len()
    }
    fn pair_count(&self) -> usize {
        self.views.len() / 2
    }
    fn begin_pass(&mut self, _: u32) {}
    fn write(&self, sample: u32, number: usize, view: &mut [f32]) {
        view.copy_from_slice(&self.views[number][sample as usize]);
    }
}

struct Buffers {
    representations: Vec<f32>,
    view: Vec<f32>,
    hidden: Vec<f32>,
    pair: Vec<f32>,
    matrix: Vec<f32>,
    gradient: Vec<f32>,
}

impl Buffers {
    fn of(encoder: &impl Representation, views: usize) -> Self {
        let width = encoder.output_count();
        Self {
            representations: vec![0.0; views * width],
            view: vec![0.0; encoder.feature_count()],
            hidden: vec![0.0; encoder.hidden_count()],
            pair: vec![0.0; 2 * width],
            matrix: vec![0.0; packed_length(width)],
            gradient: vec![0.0; encoder.parameter_count()],
        }
    }

    fn batch(&mut self) -> BatchMemory<'_> {
        BatchMemory {
            representations: &mut self.representations,
            view: &mut self.view,
            hidden: &mut self.hidden,
            pair: &mut self.pair,
            matrix: &mut self.matrix,
            gradient: &mut self.gradient,
        }
    }
}

/// The result of [`sum_into`], in separate memory.
fn sum_of(
    encoder: &impl Representation,
    parameters: &[f32],
    views: &impl Views,
    grid: &Grid,
    noise: Option<(&DiscreteGaussian, &mut Stream)>,
) -> Result<Vec<i64>, TrainError> {
    let mut sum = vec![0; packed_length(encoder.output_count())];
    let mut buffers = Buffers::of(encoder, 0);
    let mut memory = SumMemory {
        view: &mut buffers.view,
        hidden: &mut buffers.hidden,
        representation: &mut buffers.pair[..encoder.output_count()],
        matrix: &mut buffers.matrix,
    };
    sum_into(
        encoder,
        parameters,
        views,
        grid,
        noise,
        &mut memory,
        &mut sum,
    )?;
    Ok(sum)
}

#[test]
fn loss_and_gradient_agree() {
    let file = file();
    let views = Given::new(&file["batch_views"]);
    let device = file["batch_client"].as_u64().unwrap() as usize;
    let others = packed(&file["R_minus_j"][device]);
    let batch: Vec<u32> = (0..views.sample_count() as u32).collect();
    let encoder = Projection::new(3usize, 2usize);
    let parameters = transposed(&file["W"]);
    let mut buffers = Buffers::of(&encoder, 12);
    let mut ask = |alpha, others: &[f32]| {
        let objective = Objective {
            alpha,
            others,
            norm_bound: None,
        };
        loss_and_gradient(
            &encoder,
            &parameters,
            &views,
            &batch,
            &objective,
            &mut buffers.batch(),
        )
        .unwrap()
    };
    let zero = vec![0.0; 3];
    close(
        &[ask(1.0, &zero)],
        &[number(&file["loss_alpha1_no_global"])],
        1e-6,
        "alone",
    );
    let loss = ask(number(&file["alpha"]), &others);
    close(&[loss], &[number(&file["loss"])], 1e-6, "loss");
    close(
        &buffers.gradient,
        &transposed(&file["dW"]),
        2e-6,
        "gradient",
    );

    // One hidden layer without biases below, with biases above.
    let mlp = &file["mlp"];
    let encoder = Encoder::new(3usize, 3usize, 2usize, Activation::Tanh);
    let layer = |value: &Value| {
        let rows = value.as_array().unwrap();
        let (bias, weights) = rows.split_last().unwrap();
        [transposed(&Value::Array(weights.to_vec())), numbers(bias)].concat()
    };
    let parameters = [transposed(&mlp["A"]), vec![0.0; 3], layer(&mlp["W"])].concat();
    let mut buffers = Buffers::of(&encoder, 12);
    let objective = Objective {
        alpha: number(&file["alpha"]),
        others: &others,
        norm_bound: None,
    };
    let memory = &mut buffers.batch();
    let loss =
        loss_and_gradient(&encoder, &parameters, &views, &batch, &objective, memory).unwrap();
    close(&[loss], &[number(&mlp["loss"])], 1e-6, "network");
    let gradient = &buffers.gradient;
    close(
        &gradient[..9],
        &transposed(&mlp["dA"]),
        2e-6,
        "hidden layer",
    );
    close(&gradient[12..], &layer(&mlp["dW"]), 2e-6, "upper layer");
}

/// The correlation matrices of all devices, the rest without the device's own one, and a round.
#[test]
fn matrices_and_a_round_agree() {
    let file = file();
    let encoder = Projection::new(3usize, 2usize);
    let mut parameters = transposed(&file["W"]);
    let grid = Grid::new(ClipNorm::new(number(&file["mu"])).unwrap(), 20).unwrap();
    let total = packed(&file["R_total"]);
    let shares = numbers(&file["q"]);
    for (device, share) in shares.iter().enumerate() {
        // Here samples are the outer index in the file, and views the inner one.
        let views = Given::new(&file["views_for_calr"][device]).turned();
        let sum = sum_of(&encoder, &parameters, &views, &grid, None).unwrap();
        let scale = grid.step() / views.sample_count() as f64;
        let own: Vec<f32> = sum.iter().map(|s| (*s as f64 * scale) as f32).collect();
        let name = std::format!("device {device}");
        close(&own, &packed(&file["R_j"][device]), 3e-6, &name);
        let mut others = vec![0.0; 3];
        without_own(&total, &packed(&file["R_j"][device]), *share, &mut others);
        close(&others, &packed(&file["R_minus_j"][device]), 2e-6, &name);
    }

    let round = &file["round"];
    for device in ["0", "2"] {
        let views = Given::new(&round["batches"][device]);
        let others = packed(&file["R_minus_j"][device.parse::<usize>().unwrap()]);
        let objective = Objective {
            alpha: number(&file["alpha"]),
            others: &others,
            norm_bound: None,
        };
        let batch: Vec<u32> = (0..views.sample_count() as u32).collect();
        let mut buffers = Buffers::of(&encoder, 12);
        parameters = transposed(&file["W"]);
        loss_and_gradient(
            &encoder,
            &parameters,
            &views,
            &batch,
            &objective,
            &mut buffers.batch(),
        )
        .unwrap();
        for (w, g) in parameters.iter_mut().zip(&buffers.gradient) {
            *w -= number(&file["eta"]) * g;
        }
        close(
            &parameters,
            &transposed(&round["W_local"][device]),
            2e-6,
            device,
        );
    }
}

#[test]
fn alpha_falls_from_one() {
    let file = file();
    let expected = numbers(&file["alpha_schedule"]["values"]);
    let found: Vec<f32> = (0..5).map(|round| alpha(round, 5)).collect();
    close(&found, &expected, 1e-6, "alpha");
    assert_eq!((alpha(0, 1), alpha(9, 5)), (1.0, alpha(4, 5)));
}

/// With and without clipping, for both encoders, against differences of the loss.
#[test]
fn gradients_are_derivatives() {
    let mut rng = stream(Purpose::Synthesis);
    let draw = |rng: &mut Stream| (0..4).map(|_| stream::symmetric(rng)).collect::<Vec<f32>>();
    let views = Given {
        views: (0..4)
            .map(|_| (0..3).map(|_| draw(&mut rng)).collect())
            .collect(),
    };
    let others: Vec<f32> = (0..6).map(|i| 0.1 * i as f32 - 0.2).collect();
    for norm_bound in [None, Some(0.3)] {
        let objective = Objective {
            alpha: 0.6,
            others: &others,
            norm_bound,
        };
        check(
            &Projection::new(4usize, 3usize),
            &views,
            &objective,
            &mut rng,
        );
        let network = Encoder::new(4usize, 5usize, 3usize, Activation::Tanh);
        check(&network, &views, &objective, &mut rng);
    }
}

fn check(
    encoder: &impl Representation,
    views: &Given,
    objective: &Objective<'_>,
    rng: &mut Stream,
) {
    let count = encoder.parameter_count();
    let mut parameters: Vec<f32> = (0..count).map(|_| stream::symmetric(rng)).collect();
    let mut buffers = Buffers::of(encoder, 12);
    let batch = [0, 1, 2];
    let mut ask = |parameters: &[f32]| {
        let memory = &mut buffers.batch();
        let loss =
            loss_and_gradient(encoder, parameters, views, &batch, objective, memory).unwrap();
        (loss, buffers.gradient.clone())
    };
    let (_, gradient) = ask(&parameters);
    for (i, derivative) in gradient.iter().enumerate() {
        let before = parameters[i];
        // A step across a kink has a larger error than a shorter one.
        let slopes = [5e-3, 1e-3, 4e-4].map(|step| {
            parameters[i] = before + step;
            let up = ask(&parameters).0;
            parameters[i] = before - step;
            let slope = (up - ask(&parameters).0) / (2.0 * step);
            parameters[i] = before;
            slope
        });
        let room = 3e-3 * derivative.abs().max(1.0);
        let is_close = |slope: &f32| (slope - derivative).abs() < room;
        let name: String = std::format!("{:?} {i}", objective.norm_bound);
        assert!(
            slopes.iter().any(is_close),
            "{name}: {slopes:?} {derivative}"
        );
    }
}

/// Replacing any sample by any other moves the sum by at most the claimed bound.
#[test]
fn the_sum_moves_by_no_more_than_its_sensitivity() {
    moves_by_no_more_than_is_claimed(&Projection::new(4usize, 3usize));
    let image = Shape::Image {
        channels: 1,
        height: 2,
        width: 2,
    };
    let convolution = Layer::Convolution {
        channels: 4,
        kernel: [1, 2],
        stride: [1, 1],
        padding: [0, 0],
    };
    let layers = [convolution, Layer::Relu, Layer::Dense { outputs: 3 }];
    moves_by_no_more_than_is_claimed(&Sequential::new(image, &layers).unwrap());
}

/// For an encoder of 4 features and 3 numbers.
fn moves_by_no_more_than_is_claimed(encoder: &impl Representation) {
    let mut rng = stream(Purpose::Synthesis);
    let grid = Grid::new(ClipNorm::new(2.0).unwrap(), 20).unwrap();
    let mut largest = 0.0f64;
    for trial in 0..200 {
        let count = encoder.parameter_count();
        let parameters: Vec<f32> = (0..count)
            .map(|_| 3.0 * stream::symmetric(&mut rng))
            .collect();
        let draw = |rng: &mut Stream| (0..4).map(|_| stream::symmetric(rng)).collect::<Vec<f32>>();
        let mut given = Given {
            views: (0..2)
                .map(|_| (0..5).map(|_| draw(&mut rng)).collect())
                .collect(),
        };
        let ask = |given: &Given| {
            // The same noise each time: it cancels.
            let sampler = DiscreteGaussian::new(3, 1).unwrap();
            let mut noise = stream(Purpose::CorrelationNoise);
            let noise = Some((&sampler, &mut noise));
            sum_of(encoder, &parameters, given, &grid, noise).unwrap()
        };
        let before = ask(&given);
        for view in &mut given.views {
            // Any other data, even with no finite representation.
            view[trial % 5] = match trial % 10 {
                7 => vec![f32::MAX; 4],
                8 => vec![f32::NAN, 0.0, 1.0, f32::INFINITY],
                _ => draw(&mut rng),
            };
        }
        let moved: f64 = ask(&given)
            .iter()
            .zip(&before)
            .map(|(a, b)| ((a - b) as f64).powi(2))
            .sum();
        largest = largest.max(moved.sqrt());
    }
    let bound = sensitivity_in_steps(20, 3, 1);
    assert!(largest <= bound, "{largest} {bound}");
    assert!(largest > 0.7 * bound, "{largest} {bound}");
    assert!(bound < 1.4143 * f64::from(1 << 20));
}

/// A representation of norm 2, its only entry in the first place of 24, in eight views: the margin
/// for `f32` errors in the mean of their clipped matrices, 12 + 8 + 24/8 epsilons of two steps
/// each, is subtracted before, and the quantizer shrinks nothing.
#[test]
fn a_matrix_stays_inside_its_bound_by_a_hair() {
    let encoder = Projection::new(1usize, 24usize);
    let mut parameters = vec![0.0; 24];
    parameters[0] = 2.0;
    let views = Given {
        views: vec![vec![vec![1.0]]; 8],
    };
    let grid = Grid::new(ClipNorm::new(1.0).unwrap(), 24).unwrap();
    let sum = sum_of(&encoder, &parameters, &views, &grid, None).unwrap();
    let missing = (1 << 24) - sum[0];
    assert!((44..=48).contains(&missing), "{missing} steps");
    assert!(sum[1..].iter().all(|entry| *entry == 0));
}

#[test]
fn a_sum_without_samples_or_of_nan_is_refused() {
    let encoder = Projection::new(1usize, 2usize);
    let grid = Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap();
    let sum = |views: &[Vec<Vec<f32>>], noise: Option<(&DiscreteGaussian, &mut Stream)>| {
        let views = Given {
            views: views.to_vec(),
        };
        sum_of(&encoder, &[1.0, 0.0], &views, &grid, noise)
    };
    let (no_samples, one_view) = ([vec![], vec![]], [vec![vec![1.0]]]);
    assert_eq!(sum(&no_samples, None), Err(TrainError::NoSamples));
    assert_eq!(sum(&one_view, None), Err(TrainError::NoSamples));
    let diverged = [vec![vec![1.0], vec![f32::NAN]], vec![vec![1.0]; 2]];
    assert_eq!(sum(&diverged, None), Err(TrainError::Diverged));
    // With noise it cannot be detected, so it is not reported.
    let sampler = DiscreteGaussian::new(3, 1).unwrap();
    let noise = Some((&sampler, &mut stream(Purpose::CorrelationNoise)));
    assert!(sum(&diverged, noise).is_ok());
}

#[test]
fn nothing_is_left_without_the_only_device() {
    let mut others = [7.0; 3];
    without_own(&[1.0, 0.0, 3.0], &[1.0, 0.0, 2.0], 1.0, &mut others);
    assert_eq!(others, [0.0; 3]);
}

/// By hand: two matrices of norm 2²⁰ steps and a non-negative inner product, 36 packed entries, and
/// 6 numbers rounded to 24 bits.
#[test]
fn the_sensitivity_is_that_of_the_formula() {
    let largest = f64::from(1 << 20);
    let expected = core::f64::consts::SQRT_2 * largest + 2.0 * 6.0 * (1.0 + 6.0 / 16.0);
    assert_eq!(packed_length(8), 36);
    assert!((sensitivity_in_steps(20, 8, 1) - expected).abs() < 1e-6);
    let more_views = sensitivity_in_steps(20, 8, 2) - expected;
    assert!((more_views - 2.0 * 6.0 * 2.0 / 16.0).abs() < 1e-6);
}

#[test]
fn views_are_the_same_whenever_they_are_asked_for() {
    let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let samples = SampleSlice::new(&x, &[0u16, 1], 12).unwrap();
    let augment = (
        (
            Jitter(0.1),
            Scaling {
                reach: 0.2,
                time: 4,
            },
        ),
        (
            (
                TimeShift { reach: 1, time: 4 },
                ChannelDrop {
                    probability: 0.2,
                    time: 4,
                },
            ),
            Rotation { reach: 0.5 },
        ),
    );
    let mut views = Augmented::new(&samples, augment, 2, stream(Purpose::Augmentation));
    let ask = |views: &Augmented<'_, _, _>, sample, number| {
        let mut view = [0.0; 12];
        views.write(sample, number, &mut view);
        view
    };
    let first = ask(&views, 1, 3);
    assert_ne!(first, ask(&views, 1, 2));
    assert_ne!(first, ask(&views, 0, 3));
    assert_eq!(first, ask(&views, 1, 3));
    views.begin_pass(1);
    assert_ne!(first, ask(&views, 1, 3));
}

#[test]
fn augmentations_do_what_they_say() {
    let mut rng = stream(Purpose::Augmentation);
    let sample: Vec<f32> = (0..12).map(|i| 1.0 + i as f32).collect();
    let norm = lanes::norm(&sample);
    let vary = |augment: &dyn Fn(&mut [f32], &mut Stream), rng: &mut Stream| {
        let mut view = sample.clone();
        augment(&mut view, rng);
        view
    };
    for _ in 0..50 {
        let turned = vary(&|x, rng| Rotation { reach: 3.0 }.apply(x, rng), &mut rng);
        assert!((lanes::norm(&turned) - norm).abs() < 1e-3 * norm);
        let mut shifted = vary(
            &|x, rng| TimeShift { reach: 2, time: 4 }.apply(x, rng),
            &mut rng,
        );
        shifted.sort_by(f32::total_cmp);
        assert_eq!(shifted, sample);
        let dropped = vary(
            &|x, rng| {
                ChannelDrop {
                    probability: 1.0,
                    time: 4,
                }
                .apply(x, rng)
            },
            &mut rng,
        );
        assert!(dropped.iter().all(|x| *x == 0.0));
        let scaled = vary(
            &|x, rng| {
                Scaling {
                    reach: 0.5,
                    time: 4,
                }
                .apply(x, rng)
            },
            &mut rng,
        );
        let factor = scaled[1] / sample[1];
        assert!((0.5..=1.5).contains(&factor) && (scaled[3] / sample[3] - factor).abs() < 1e-5);
    }
    // Shifts of both signs and none.
    let firsts: Vec<f32> = (0..50)
        .map(|_| {
            vary(
                &|x, rng| TimeShift { reach: 1, time: 4 }.apply(x, rng),
                &mut rng,
            )[0]
        })
        .collect();
    for value in [1.0, 2.0, 4.0] {
        assert!(firsts.contains(&value), "{firsts:?}");
    }
}

/// Training lowers the loss, and wrong memory is refused.
#[test]
fn training_lowers_the_loss() {
    let mut rng = stream(Purpose::Synthesis);
    let x: Vec<f32> = (0..80).map(|_| stream::symmetric(&mut rng)).collect();
    let samples = SampleSlice::new(&x, &[0u16; 20], 4).unwrap();
    let mut views = Augmented::new(&samples, Jitter(0.2), 1, stream(Purpose::Augmentation));
    let encoder = Projection::new(4usize, 2usize);
    let mut parameters = vec![0.0; 8];
    encoder.initialise(&mut parameters, &mut rng);
    let mut buffers = Buffers::of(&encoder, 10);
    let objective = Objective {
        alpha: 1.0,
        others: &[0.0; 3],
        norm_bound: None,
    };
    let mut pass = |epochs| {
        let settings = ContrastTraining {
            epochs,
            batch_size: NonZeroU32::new(5).unwrap(),
            learning_rate: LearningRate::new(0.1).unwrap(),
            weight_decay: Penalty::NONE,
        };
        let order = &mut stream(Purpose::BatchShuffle);
        let mut memory = TrainingMemory {
            order: &mut [0; 20],
            batch: buffers.batch(),
        };
        descend(
            &encoder,
            &mut parameters,
            &mut views,
            &objective,
            &settings,
            order,
            &mut memory,
        )
    };
    let first = pass(1).unwrap();
    let last = pass(30).unwrap();
    assert!(last < first - 0.1, "{first} {last}");
    let memory = &mut buffers.batch();
    let short = loss_and_gradient(&encoder, &[0.0; 7], &views, &[0], &objective, memory);
    let wrong = TrainError::Workspace {
        expected: 8,
        found: 7,
    };
    assert_eq!(short, Err(wrong));
}

/// With a few labels, the device's head learns from representations.
#[test]
fn a_head_learns_from_representations() {
    let mut rng = stream(Purpose::Synthesis);
    let x: Vec<f32> = (0..80).map(|_| stream::symmetric(&mut rng)).collect();
    let samples = SampleSlice::new(&x, &[0u16; 20], 4).unwrap();
    let network = Encoder::new(4usize, 3usize, 2usize, Activation::Tanh);
    let mut parameters = vec![0.0; network.parameter_count()];
    network.initialise(&mut parameters, &mut rng).unwrap();
    let (mut hidden, mut z, mut one) = ([0.0; 3], [0.0; 40], [0.0; 2]);
    represent(&network, &parameters, &samples, &mut hidden, &mut z).unwrap();
    for (index, z) in z.chunks(2).enumerate() {
        let features = samples.features(index);
        Representation::forward(&network, &parameters, features, &mut hidden, &mut one).unwrap();
        assert_eq!(z, one);
    }
    let short = represent(&network, &parameters, &samples, &mut hidden, &mut z[1..]);
    let (expected, found) = (40, 39);
    assert_eq!(short, Err(TrainError::Workspace { expected, found }));
    parameters.fill(f32::MAX);
    let diverged = represent(&network, &parameters, &samples, &mut hidden, &mut z);
    assert_eq!(diverged, Err(TrainError::Diverged));
}
