//! Quantised networks compared with their original numbers.

use proptest::collection::vec as vector;
use proptest::prelude::*;

use smolfed_core::quantised::{Layer, Windows};

use super::network::{Step, Weights};
use super::*;

const SIDE: u16 = 6;

const fn image(height: u16, width: u16, channels: u16) -> Image {
    Image {
        height,
        width,
        channels,
    }
}

fn weights(values: &[f64], inputs: usize, outputs: usize) -> Weights {
    Weights {
        weights: values[..inputs * outputs].to_vec(),
        biases: values[values.len() - outputs..].to_vec(),
    }
}

const PAIRS: Windows = Windows {
    size: [2, 2],
    stride: [2, 2],
};

/// Returns a network of each kind of layer, on images of two channels.
fn network(kind: u8, values: &[f64]) -> Network {
    let convolution = Step::Convolution {
        weights: weights(values, 18, 4),
        kernel: Windows {
            size: [3, 3],
            stride: [1, 1],
        },
        padding: [1, 1],
    };
    let input = image(SIDE, SIDE, 2);
    let whole = image(SIDE, SIDE, 4);
    let half = image(SIDE / 2, SIDE / 2, 4);
    let mut steps = vec![(convolution, input), (Step::Relu, whole)];
    let last = match kind {
        0 => {
            steps.push((Step::MaxPool(PAIRS), whole));
            half
        }
        1 => {
            steps.push((Step::GlobalAverage, whole));
            image(1, 1, 4)
        }
        2 => {
            let overlapping = Windows {
                size: [2, 2],
                stride: [1, 1],
            };
            steps.push((Step::MaxPool(overlapping), whole));
            image(SIDE - 1, SIDE - 1, 4)
        }
        _ => {
            steps.push((Step::Dense(weights(values, whole.count(), 5)), whole));
            steps.push((Step::Relu, image(1, 1, 5)));
            image(1, 1, 5)
        }
    };
    steps.push((Step::Dense(weights(values, last.count(), 3)), last));
    Network::from_steps(steps)
}

/// Returns a bound on the error of scores in 8 bits: one unit of each layer's results and half a
/// unit of each weight, propagated through the layers above. `ranges` bound the values.
fn bound(network: &Network, ranges: &[Interval]) -> f64 {
    let magnitude = |range: &Interval| range.low.abs().max(range.high.abs());
    let unit = |range: &Interval| (range.high.max(0.0) - range.low.min(0.0)) / 255.0;
    let mut error = unit(&ranges[0]);
    for ((step, _), (before, after)) in network.steps().iter().zip(ranges.iter().zip(&ranges[1..]))
    {
        if let Step::Dense(weights) | Step::Convolution { weights, .. } = step {
            let width = weights.weights.len() / weights.biases.len();
            let rows = weights.weights.chunks(width).zip(&weights.biases);
            let of_row = rows.map(|(row, bias)| {
                let largest = row.iter().fold(0.0_f64, |largest, w| largest.max(w.abs()));
                let carried: f64 = row.iter().map(|w| w.abs() * error).sum();
                let rounded = largest / 254.0 * (magnitude(before) + error) * width as f64;
                carried + rounded + 1e-4 * bias.abs()
            });
            error = of_row.fold(0.0, f64::max);
        }
        error += unit(after);
    }
    error + 1e-4
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With ranges from bounds, no value exceeds them.
    #[test]
    fn scores_are_near_those_in_numbers(
        kind in 0_u8..4, values in vector(-1.0_f64..1.0, 800), size in 0.01_f64..4.0,
        row in vector(-1.0_f32..1.0, 72),
    ) {
        let values: Vec<f64> = values.iter().map(|x| x * size).collect();
        let network = network(kind, &values);
        let ranges = network.ranges(&[Interval::new(-1.0, 1.0); 72]);
        let tables = Tables::new(&network, &ranges).unwrap();
        let layers: Vec<Layer<'_>> = tables.layers.iter().map(Table::layer).collect();
        let head = tables.head.dense();
        let quantised = Quantised::new(network.input(), &layers, &head).unwrap();
        let integers: Vec<i8> = row.iter().map(|x| tables.scale.integer(*x)).collect();
        let mut scores = [0; 3];
        let mut scratch = vec![0; quantised.scratch_bytes()];
        quantised.scores(&integers, &mut scratch, &mut scores).unwrap();
        let points: Vec<Interval> = row.iter().map(|x| Interval::point(f64::from(*x))).collect();
        let bound = bound(&network, &ranges);
        for (score, exact) in scores.iter().zip(network.values(&points)) {
            let error = (f64::from(*score) / 65_536.0 - exact.low).abs();
            prop_assert!(error <= bound, "{error} is above {bound}");
            prop_assert!(exact.low == exact.high);
        }
        // Ranges from bounds include the ranges of any row.
        for (wide, narrow) in ranges.iter().zip(network.ranges(&points)) {
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }
    }
}

/// Returns scores of a network in numbers, and in 8 bits with the ranges of these rows.
fn both(network: &Network, rows: &[Vec<f32>]) -> [Vec<f64>; 2] {
    let points = |row: &Vec<f32>| -> Vec<Interval> {
        row.iter().map(|x| Interval::point(f64::from(*x))).collect()
    };
    let ranges = rows.iter().map(|row| network.ranges(&points(row)));
    let hull =
        |a: Vec<Interval>, b: Vec<Interval>| a.into_iter().zip(b).map(|(a, b)| a.hull(b)).collect();
    let tables = Tables::new(network, &ranges.reduce(hull).unwrap()).unwrap();
    let layers: Vec<Layer<'_>> = tables.layers.iter().map(Table::layer).collect();
    let head = tables.head.dense();
    let quantised = Quantised::new(network.input(), &layers, &head).unwrap();
    let (mut scores, mut scratch) = ([0; 3], vec![0; quantised.scratch_bytes()]);
    let [mut exact, mut found] = [Vec::new(), Vec::new()];
    for row in rows {
        let integers: Vec<i8> = row.iter().map(|x| tables.scale.integer(*x)).collect();
        quantised
            .scores(&integers, &mut scratch, &mut scores)
            .unwrap();
        found.extend(scores.map(|score| f64::from(score) / 65_536.0));
        exact.extend(network.values(&points(row)).iter().map(|score| score.low));
    }
    [exact, found]
}

/// The error of calibrated scores is a small part of their variation between samples. A wrong sign,
/// order or zero point would make up most of it.
#[test]
fn calibrated_scores_follow_those_in_numbers() {
    let mut state = 1_u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 23) - 1.0
    };
    for kind in 0..4 {
        let values: Vec<f64> = (0..800).map(|_| next() / 3.0).collect();
        let network = network(kind, &values);
        let rows: Vec<Vec<f32>> = (0..40)
            .map(|_| (0..72).map(|_| next() as f32).collect())
            .collect();
        let [exact, found] = both(&network, &rows);
        let mean = |class: usize| exact.iter().skip(class).step_by(3).sum::<f64>() / 40.0;
        let means = [0, 1, 2].map(mean);
        let (mut error, mut spread) = (0.0, 0.0);
        for (at, (exact, found)) in exact.iter().zip(&found).enumerate() {
            error += (exact - found).powi(2);
            spread += (exact - means[at % 3]).powi(2);
        }
        let share = (error / spread).sqrt();
        assert!(share < 0.05, "{share} of kind {kind}");
    }
}

/// Outputs without weights keep their bias, and a network of zeros gives zeros.
#[test]
fn outputs_without_weights_are_their_biases() {
    let weights = Weights {
        weights: vec![0.0; 6],
        biases: vec![0.25, 0.0, -3.0],
    };
    let network = Network::from_steps(vec![(Step::Dense(weights), image(1, 1, 2))]);
    let ranges = network.ranges(&[Interval::point(0.0); 2]);
    let tables = Tables::new(&network, &ranges).unwrap();
    let head = tables.head.dense();
    let quantised = Quantised::new(network.input(), &[], &head).unwrap();
    let mut scores = [7; 3];
    quantised.scores(&[1, 2], &mut [], &mut scores).unwrap();
    assert_eq!(scores, [16_384, 0, -196_608]);
}
