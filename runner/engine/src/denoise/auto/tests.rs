//! Weights are weights, structure is found under noise, and noise alone moves little.

use proptest::{collection::vec, prelude::*};
use rand_core::Rng;
use serde_json::Value;
use smolfed_core::smooth::LaplacianSmoothing;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_release::saved::Dtype;

use super::*;

const GOLDENS: &str = include_str!("../../../../../tests/vectors/laplacian_smoothing.json");
const AXES: [usize; 2] = [8, 8];
const LENGTH: usize = 130;

fn stream(seed: u32) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose: Purpose::Synthesis,
        round: seed,
        device: 0,
    })
}

/// Draws approximately normal entries of mean 0 and variance `std`²: sums of twelve uniform
/// numbers.
fn noise(rng: &mut Stream, std: f64) -> Vec<f32> {
    let uniform = |rng: &mut Stream| f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let entry = |_| std * ((0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0);
    (0..LENGTH).map(entry).map(|x| x as f32).collect()
}

/// Returns slow waves over both axes, once for each output, and a bias.
fn waves() -> Vec<f32> {
    let cell = |i: usize| ((i % 8) as f32 / 2.5).sin() * ((i / 8 % 8) as f32 / 2.5).cos();
    (0..LENGTH)
        .map(|i| if i < 128 { cell(i) } else { 1.0 })
        .collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

/// Returns weights and biases of `outputs` outputs, in a model of `length` parameters.
fn tensors(outputs: usize, length: usize) -> [TensorLayout; 2] {
    [vec![outputs, (length - outputs) / outputs], vec![outputs]].map(|shape| TensorLayout {
        name: String::new(),
        shape,
        image: None,
    })
}

fn filters() -> ExpertSet {
    ExpertSet::Filters(Flattenings::of_samples(&AXES))
}

/// Simulates devices that move halfway to `goal` in each round, under noise. Returns the models
/// with `auto` and with none.
fn run(goal: &[f32], std: f64, rounds: u32) -> [Vec<f32>; 2] {
    let mut auto = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &filters());
    let mut rng = stream(7);
    let (mut mixed, mut plain) = (vec![0.0; LENGTH], vec![0.0; LENGTH]);
    for _ in 0..rounds {
        let noise = noise(&mut rng, std);
        let average = |model: &[f32]| -> Vec<f32> {
            let halves = goal.iter().zip(model).map(|(goal, w)| 0.5 * (goal - w));
            halves.zip(&noise).map(|(a, noise)| a + noise).collect()
        };
        let of_plain = average(&plain);
        plain.iter_mut().zip(of_plain).for_each(|(w, a)| *w += a);
        let of_mixed = average(&mixed);
        auto.step(&mut mixed, &of_mixed, std, 1.0);
    }
    [mixed, plain]
}

#[test]
fn structure_is_found_under_noise() {
    let goal = waves();
    for std in [0.5, 1.0, 3.0] {
        let [auto, none] = run(&goal, std, 30).map(|model| distance(&model, &goal));
        assert!(auto < 0.8 * none, "{std}: {auto} {none}");
    }
}

/// Without structure, the model stays close to the accumulated one.
#[test]
fn nothing_is_lost_without_structure() {
    let mut rng = stream(8);
    let goal = noise(&mut rng, 10.0);
    for std in [0.01, 0.1, 1.0] {
        let [auto, none] = run(&goal, std, 30).map(|model| distance(&model, &goal));
        assert!(auto < 1.05 * none, "{std}: {auto} {none}");
    }
}

/// With nothing to learn, the model moves no further than the noise itself.
#[test]
fn nothing_blows_up_under_noise_alone() {
    for std in [1e-3, 1.0, 1e6] {
        let [auto, none] =
            run(&[0.0; LENGTH], std, 100).map(|model| distance(&model, &[0.0; LENGTH]));
        assert!(auto < 1.05 * none, "{std}: {auto} {none}");
    }
}

#[test]
fn the_accumulated_model_wins_on_a_stream_without_noise() {
    let mut auto = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &filters());
    let mut global = vec![0.0; LENGTH];
    let goal = noise(&mut stream(9), 1.0);
    for _ in 0..20 {
        let average: Vec<f32> = goal
            .iter()
            .zip(&global)
            .map(|(g, w)| 0.5 * (g - w))
            .collect();
        auto.step(&mut global, &average, 1e-12, 1.0);
    }
    assert!(distance(&global, &goal) < 1e-2 * distance(&goal, &[0.0; LENGTH]));
    // Filters that know the noise leave V unchanged, and so equal "none" as well.
    let judged = auto.hedge.weights().iter().enumerate();
    let of_none = judged.filter(|(index, _)| auto.filtered(*index) == auto.moved);
    let weight: f64 = of_none.map(|(_, weight)| weight).sum();
    assert!(weight > 0.99, "{:?}", auto.weights());
    assert!((auto.kept()[0] - 1.0).abs() < 1e-3, "{:?}", auto.kept());
}

#[test]
fn biases_are_left_as_they_are() {
    let [auto, none] = run(&waves(), 3.0, 3);
    // Rounded once at the end instead of in each round.
    let of_none = none[128..].iter().map(|x| x + 0.0);
    for (auto, none) in auto[128..].iter().zip(of_none) {
        assert!((auto - none).abs() < 1e-5, "{auto} {none}");
    }
}

/// With smoothing as the only filter, any split of a vector into steps leads to the golden values
/// of the vector itself, added to the initial model.
#[test]
fn a_fixed_filter_is_laplacian_smoothing() {
    let goldens: Value = serde_json::from_str(GOLDENS).unwrap();
    let numbers = |value: &Value| -> Vec<f32> {
        let values = value.as_array().unwrap().iter();
        values.map(|x| x.as_f64().unwrap() as f32).collect()
    };
    let cases = goldens["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        let (input, output) = (numbers(&case["input"]), numbers(&case["output"]));
        let smoothing = LaplacianSmoothing::new(case["sigma"].as_f64().unwrap() as f32).unwrap();
        let expert = Expert {
            name: "smooth".to_owned(),
            filter: Filter::Smooth(smoothing),
        };
        let mut auto = Auto::from_experts(
            &vec![0.25; input.len()],
            &tensors(1, input.len() + 1)[..1],
            vec![expert],
        );
        let mut global = vec![0.0; input.len()];
        for share in [0.5, -0.25, 0.75] {
            let step: Vec<f32> = input.iter().map(|x| share * x).collect();
            // Enough noise to justify any smoothing.
            auto.step(&mut global, &step, 1e3, 1.0);
        }
        let largest = input.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        for (w, expected) in global.iter().zip(&output) {
            let error = (w - 0.25 - expected).abs();
            assert!(
                error <= 1e-5 * (largest + 0.25),
                "{}: {error}",
                case["name"]
            );
        }
    }
}

/// Along the axes of a sample, tensor by tensor.
#[test]
fn weights_are_smoothed_along_axes() {
    let mut auto = Auto::new(&[0.25; LENGTH], &tensors(2, LENGTH), &filters());
    let names: Vec<String> = auto.weights().into_iter().map(|w| w.expert).collect();
    let at = names.iter().position(|name| name == "smooth 3").unwrap();
    let mut expected = waves();
    auto.step(&mut [0.0; LENGTH], &expected, 1.0, 1.0);
    let smoothing = LaplacianSmoothing::new(3.0).unwrap();
    smoothing.apply_grid(&mut expected[..128], &AXES).unwrap();
    assert_eq!(auto.filtered(at), expected);
}

/// Smoothing is omitted if not even the total added noise would justify it.
#[test]
fn smoothing_is_kept_to_where_noise_is_strong() {
    let rough = noise(&mut stream(11), 1.0);
    let smoothed = |noise_std| {
        let mut auto = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &filters());
        auto.step(&mut [0.0; LENGTH], &rough, noise_std, 1.0);
        auto.filtered(0) != rough
    };
    assert!(!smoothed(0.3));
    assert!(smoothed(1.0));
}

#[test]
fn steps_alone_are_multiples() {
    let steps = waves();
    let mut auto = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &ExpertSet::Steps);
    let mut global = vec![0.0; LENGTH];
    auto.step(&mut global, &steps, 1.0, 1.0);
    assert_eq!(global, steps, "no evidence, no change");
    for (at, expert) in auto.weights().into_iter().enumerate() {
        let filtered = auto.filtered(at);
        let length = expert.expert.strip_prefix("step ");
        let length: f32 = length.map_or(1.0, |length| length.parse().unwrap());
        for (index, (y, x)) in filtered.iter().zip(&steps).enumerate() {
            let length = if index < 128 { length } else { 1.0 };
            assert!((y - length * x).abs() < 1e-6, "{}", expert.expert);
        }
    }
}

#[test]
fn a_restored_denoiser_goes_on_with_the_same_bits() {
    let mut rng = stream(10);
    let averages: Vec<_> = (0..8).map(|_| noise(&mut rng, 1.0)).collect();
    let start = vec![0.5; LENGTH];
    let mut whole = Auto::new(&start, &tensors(2, LENGTH), &filters());
    let mut global = start.clone();
    let mut saved = Saved::default();
    for (round, average) in averages.iter().enumerate() {
        whole.step(&mut global, average, 1.0, 0.5);
        if round == 3 {
            whole.save(&mut saved);
        }
    }
    let mut resumed = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &filters());
    resumed.restore(&saved).unwrap();
    let mut again = vec![0.0; LENGTH];
    for average in &averages[4..] {
        resumed.step(&mut again, average, 1.0, 0.5);
    }
    assert_eq!(again, global);
    for name in saved.tensors.keys() {
        let mut short = saved.clone();
        short.tensors.get_mut(name).unwrap().bytes.truncate(8);
        assert!(resumed.restore(&short).is_err(), "{name}");
        let mut without = saved.clone();
        without.tensors.remove(name);
        assert!(resumed.restore(&without).is_err(), "{name}");
        let mut earlier = saved.clone();
        earlier.tensors.get_mut(name).unwrap().dtype = Dtype::I64;
        let reason = resumed.restore(&earlier).unwrap_err();
        assert!(reason.contains("this version"), "{reason}");
    }
}

/// A model of several blocks gives the same entries as one of a single block.
#[test]
fn blocks_do_not_show() {
    let length = 10_001;
    let average: Vec<f32> = (0..length).map(|i| ((i * 37 % 101) as f32).sin()).collect();
    let set = ExpertSet::Steps;
    let mut auto = Auto::new(&vec![0.5; length], &tensors(1, length), &set);
    let mut global = vec![0.0; length];
    for _ in 0..3 {
        auto.step(&mut global, &average, 0.1, 0.5);
    }
    let weights = auto.weights();
    let factor: f64 = weights
        .iter()
        .map(|w| {
            w.weight
                * w.expert
                    .strip_prefix("step ")
                    .map_or(1.0, |l| l.parse().unwrap())
        })
        .sum();
    for (w, a) in global[..length - 1].iter().zip(&average) {
        let expected = 0.5 + factor * 1.5 * f64::from(*a);
        assert!((f64::from(*w) - expected).abs() < 1e-5, "{w} {expected}");
    }
    assert!((auto.kept()[0] - factor).abs() < 1e-5, "{:?}", auto.kept());
}

proptest! {
    /// For any release, weights are at least 0 and add up to 1, and the model is finite.
    #[test]
    fn weights_are_weights(
        averages in vec(vec(-1e18f32..1e18, LENGTH), 1..6),
        scale in prop_oneof![Just(0f32), Just(1e-30), Just(1.0)],
        noise_std in prop_oneof![Just(0f64), Just(1e-20), Just(1.0), Just(1e20)],
    ) {
        let mut auto = Auto::new(&[0.0; LENGTH], &tensors(2, LENGTH), &filters());
        let mut global = vec![0.0; LENGTH];
        for average in averages {
            let average: Vec<f32> = average.iter().map(|x| x * scale).collect();
            auto.step(&mut global, &average, noise_std, 1.0);
            let weights: Vec<f64> = auto.weights().iter().map(|w| w.weight).collect();
            prop_assert!(weights.iter().all(|p| (0.0..=1.0).contains(p)), "{weights:?}");
            prop_assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{weights:?}");
            prop_assert!(global.iter().all(|w| w.is_finite()));
        }
    }

    /// Tensors of one entry, and samples without axes.
    #[test]
    fn small_tensors_are_fine(averages in vec(vec(-1f32..1.0, 2), 1..9)) {
        let along = ExpertSet::Filters(Flattenings::default());
        let mut auto = Auto::new(&[0.0; 2], &tensors(1, 2), &along);
        let mut global = vec![0.0; 2];
        for average in averages {
            auto.step(&mut global, &average, 0.1, 1.0);
            prop_assert!(global.iter().all(|w| w.is_finite() && w.abs() < 10.0));
        }
    }
}
