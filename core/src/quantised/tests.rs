//! Networks against the specification: layer after layer, with padded images and sums of 64 bits.

use std::{vec, vec::Vec};

use proptest::{collection::vec as vector, prelude::*};

use super::*;

/// An image by rows, columns and channels.
type Grid = Vec<Vec<Vec<i64>>>;

fn grid(image: Image, values: &[i8]) -> Grid {
    let channels = usize::from(image.channels);
    let pixels: Vec<Vec<i64>> = values
        .chunks(channels)
        .map(|pixel| pixel.iter().map(|x| i64::from(*x)).collect())
        .collect();
    let rows = pixels.chunks(usize::from(image.width));
    rows.map(<[Vec<i64>]>::to_vec).collect()
}

/// `MultiplyByQuantizedMultiplier`.
fn rescaled(output: &Output, sum: i64) -> i64 {
    let left = u32::try_from(-i32::from(output.shift)).unwrap_or(0);
    let right = u32::try_from(output.shift).unwrap_or(0);
    let wide = (i128::from(sum) << left).clamp(i32::MIN.into(), i32::MAX.into());
    let high = (wide * i128::from(output.mantissa) + (1 << 30)) >> 31;
    let magnitude = (high.abs() + (1 << right >> 1)) >> right;
    let result = magnitude * high.signum();
    i64::try_from(result).unwrap()
}

fn activated(output: &Output, sum: i64, zero: i8, least: i8) -> i64 {
    let value = rescaled(output, sum + i64::from(output.bias)) + i64::from(zero);
    value.clamp(least.into(), 127)
}

fn convolved(layer: &Convolution<'_>, image: &Grid) -> Grid {
    let zero = i64::from(layer.input_zero);
    let inputs = image[0][0].len();
    let [down, right] = layer.padding.map(usize::from);
    let blank = vec![vec![zero; inputs]; image[0].len() + 2 * right];
    let mut padded = vec![blank.clone(); down];
    for row in image {
        let side = vec![vec![zero; inputs]; right];
        padded.push([side.clone(), row.clone(), side].concat());
    }
    padded.extend(vec![blank; down]);
    let [height, width] = layer.kernel.size.map(usize::from);
    let value = |rows: &[Vec<Vec<i64>>], x: usize, at: usize| {
        let kernel = &layer.weights[at * height * width * inputs..];
        let window = rows.iter().flat_map(|row| row[x..x + width].concat());
        let products = window.zip(kernel).map(|(x, w)| (x - zero) * i64::from(*w));
        let output = &layer.outputs[at];
        activated(output, products.sum(), layer.output_zero, layer.least)
    };
    let [down, right] = layer.kernel.stride.map(usize::from);
    let rows = (0..=padded.len() - height).step_by(down);
    let columns = (0..=padded[0].len() - width).step_by(right);
    let pixel = |y: usize, x| {
        let outputs = 0..layer.outputs.len();
        outputs
            .map(|at| value(&padded[y..y + height], x, at))
            .collect()
    };
    let all: Grid = rows
        .map(|y| columns.clone().map(|x| pixel(y, x)).collect())
        .collect();
    largest(layer.pool, &all)
}

fn largest(windows: Windows, image: &Grid) -> Grid {
    let [height, width] = windows.size.map(usize::from);
    let [down, right] = windows.stride.map(usize::from);
    let pixel = |y: usize, x: usize| -> Vec<i64> {
        let window = image[y..y + height]
            .iter()
            .flat_map(|row| &row[x..x + width]);
        let channels = 0..image[0][0].len();
        let of = |channel: usize| window.clone().map(|pixel| pixel[channel]).max().unwrap();
        channels.map(of).collect()
    };
    let rows = (0..=image.len() - height).step_by(down);
    let columns = (0..=image[0].len() - width).step_by(right);
    rows.map(|y| columns.clone().map(|x| pixel(y, x)).collect())
        .collect()
}

fn sums(dense: &Dense<'_>, values: &[i64]) -> Vec<i64> {
    let zero = i64::from(dense.input_zero);
    let rows = dense.weights.chunks(values.len());
    rows.map(|row| {
        let products = row
            .iter()
            .zip(values)
            .map(|(w, x)| i64::from(*w) * (x - zero));
        products.sum()
    })
    .collect()
}

fn reference(network: &Quantised<'_>, input: &[i8]) -> Vec<i32> {
    let mut image = grid(network.input, input);
    for layer in network.layers {
        image = match layer {
            Layer::Convolution(layer) => convolved(layer, &image),
            Layer::Dense(layer) => {
                let sums = sums(&layer.dense, &image.concat().concat());
                let outputs = sums.iter().zip(layer.dense.outputs);
                let results =
                    outputs.map(|(sum, o)| activated(o, *sum, layer.output_zero, layer.least));
                vec![vec![results.collect()]]
            }
            Layer::MaxPool(windows) => largest(*windows, &image),
            Layer::GlobalAverage(layer) => {
                let pixels = image.concat();
                let mean = |channel: usize| {
                    let values = pixels.iter().map(|pixel| pixel[channel]);
                    let sum = values.map(|x| x - i64::from(layer.input_zero)).sum();
                    activated(&layer.output, sum, layer.output_zero, layer.least)
                };
                vec![vec![(0..pixels[0].len()).map(mean).collect()]]
            }
            Layer::Relu(zero) => {
                let rectified = |x: &mut i64| *x = (*x).max(i64::from(*zero));
                image.iter_mut().flatten().flatten().for_each(rectified);
                image
            }
        };
    }
    let sums = sums(network.head, &image.concat().concat());
    let scores = sums.iter().zip(network.head.outputs);
    let score = |(sum, output): (&i64, &Output)| rescaled(output, sum + i64::from(output.bias));
    scores
        .map(|scored| i32::try_from(score(scored)).unwrap())
        .collect()
}

/// Tables borrowed by layers.
#[derive(Debug)]
struct Tables {
    weights: Vec<i8>,
    outputs: Vec<Output>,
    zeros: [i8; 3],
}

impl Tables {
    /// Returns enough weights for `size`, and outputs.
    fn dense(&self, inputs: usize, outputs: usize) -> Dense<'_> {
        Dense {
            weights: &self.weights[..inputs * outputs],
            outputs: &self.outputs[..outputs],
            input_zero: self.zeros[0],
        }
    }
}

fn tables() -> impl Strategy<Value = Tables> {
    // Magnitudes with results neither all 0 nor all saturated, and others.
    let shift = prop_oneof![4 => 4_i8..12, 1 => -30_i8..=30];
    let mantissa = prop_oneof![4 => 1_i32 << 30..=i32::MAX, 1 => 0..=i32::MAX];
    let output = (-(1_i32 << 20)..1 << 20, mantissa, shift);
    let output = output.prop_map(|(bias, mantissa, shift)| Output {
        bias,
        mantissa,
        shift,
    });
    let parts = (
        vector(any::<i8>(), 2_000),
        vector(output, 8),
        any::<[i8; 3]>(),
    );
    parts.prop_map(|(weights, outputs, zeros)| Tables {
        weights,
        outputs,
        zeros,
    })
}

fn windows(most: u16) -> impl Strategy<Value = Windows> {
    ([1..=most, 1..=most], [1..=most, 1..=most]).prop_map(|(size, stride)| Windows { size, stride })
}

fn image() -> impl Strategy<Value = Image> {
    (1_u16..9, 1_u16..9, 1_u16..6).prop_map(|(height, width, channels)| Image {
        height,
        width,
        channels,
    })
}

fn convolution(tables: &Tables, image: Image, kernel: Windows, pool: Windows) -> Convolution<'_> {
    let [height, width] = kernel.size.map(usize::from);
    let outputs = tables.outputs.len() - 1;
    Convolution {
        weights: &tables.weights[..height * width * usize::from(image.channels) * outputs],
        outputs: &tables.outputs[..outputs],
        kernel,
        padding: kernel.size.map(|side| side / 2),
        pool,
        input_zero: tables.zeros[0],
        output_zero: tables.zeros[1],
        least: tables.zeros[2],
    }
}

fn check(network: &Quantised<'_>, input: &[i8]) -> Result<(), TestCaseError> {
    let expected = reference(network, input);
    let mut scores = vec![7; network.score_count()];
    // Previous contents of the memory do not matter.
    for rest in [0, 85] {
        let mut scratch = vec![rest; network.scratch_bytes() + usize::from(rest > 0)];
        let class = network.predict(input, &mut scratch, &mut scores).unwrap();
        prop_assert_eq!(&scores, &expected);
        let best = expected.iter().max().unwrap();
        let first = expected.iter().position(|score| score == best);
        prop_assert_eq!(Some(usize::from(class)), first);
    }
    Ok(())
}

proptest! {
    #[test]
    fn scores_are_those_of_the_specification(
        size in image(), first in tables(), second in tables(), last in tables(),
        (kernel, pool, other) in (windows(3), windows(3), windows(2)),
        values in vector(any::<i8>(), 400), kinds in vector(0_u8..4, 0..4),
    ) {
        let convolution = convolution(&first, size, kernel, pool);
        let mut layers = vec![Layer::Convolution(convolution)];
        let mut image = convolution.output(size);
        for kind in kinds {
            let Ok(size) = image else { break };
            let layer = match kind {
                0 => Layer::MaxPool(other),
                1 => Layer::Relu(second.zeros[0]),
                2 => Layer::GlobalAverage(GlobalAverage {
                    output: second.outputs[0],
                    input_zero: second.zeros[0],
                    output_zero: second.zeros[1],
                    least: second.zeros[2],
                }),
                _ => Layer::Dense(Hidden {
                    dense: second.dense(size.count(), 3),
                    output_zero: second.zeros[1],
                    least: second.zeros[2],
                }),
            };
            image = layer.output(size);
            layers.push(layer);
        }
        let head = last.dense(image.map_or(1, Image::count), 4);
        let network = Quantised::new(size, &layers, &head);
        prop_assert_eq!(network.is_ok(), image.is_ok());
        if let Ok(network) = network {
            check(&network, &values[..size.count()])?;
        }
    }

    /// For any sum, any multiplier and any shift.
    #[test]
    fn sums_are_scaled_as_the_specification_has_it(
        sum in prop_oneof![any::<i32>(), -9..9],
        mantissa in prop_oneof![0..=i32::MAX, Just(1 << 30), Just(3 << 29)],
        shift in -30_i8..=30,
    ) {
        let output = Output { bias: 0, mantissa, shift };
        prop_assert_eq!(i64::from(output.scaled(sum)), rescaled(&output, sum.into()));
    }

    #[test]
    fn numbers_become_the_nearest_integers(x in -3.0_f32..3.0, zero in any::<i8>()) {
        let scale = Scale { unit: 1.0 / 64.0, zero };
        let integer = scale.integer(x);
        let nearest = (f64::from(x) * 64.0).round() + f64::from(zero);
        prop_assert_eq!(f64::from(integer), nearest.clamp(-128.0, 127.0));
        prop_assert_eq!(scale.integer(scale.value(integer)), integer);
    }

    /// Tables of any lengths work or are refused.
    #[test]
    fn no_tables_panic(
        sides in any::<[u16; 3]>(), windows in any::<[u16; 8]>(), padding in any::<[u16; 2]>(),
        weights in 0_usize..50, count in 0_usize..3, shift in any::<i8>(),
    ) {
        let [height, width, channels] = sides.map(|side| side % 200);
        let size = Image { height, width, channels };
        let [a, b, c, d, e, f, g, h] = windows.map(|side| side % 5);
        let weights = vec![1; weights];
        let outputs = vec![Output { bias: 0, mantissa: 1, shift }; count];
        let layer = Convolution {
            weights: &weights,
            outputs: &outputs,
            kernel: Windows { size: [a, b], stride: [c, d] },
            padding: padding.map(|side| side % 300),
            pool: Windows { size: [e, f], stride: [g, h] },
            input_zero: 1,
            output_zero: 2,
            least: 3,
        };
        layer.apply(size, &[1; 30], &mut [0; 30]);
        let layers = [Layer::Convolution(layer)];
        let head = Dense { weights: &weights, outputs: &outputs, input_zero: 0 };
        let _ = Quantised::new(size, &layers, &head);
    }
}

#[test]
fn numbers_beyond_all_integers_saturate() {
    let scale = Scale {
        unit: 1.0,
        zero: 100,
    };
    let found = [f32::INFINITY, 1e30, 28.0, -1e30].map(|x| scale.integer(x));
    assert_eq!(found, [127, 127, 127, -128]);
}

const HEAD: Dense<'_> = Dense {
    weights: &[1, 2, 3, 4],
    outputs: &[Output {
        bias: 0,
        mantissa: 1 << 30,
        shift: 0,
    }; 2],
    input_zero: 0,
};

const PAIR: Image = Image {
    height: 1,
    width: 2,
    channels: 1,
};

#[test]
fn wrong_lengths_and_tables_are_named() {
    let network = Quantised::new(PAIR, &[Layer::Relu(0)], &HEAD).unwrap();
    let mut scores = [5; 2];
    let wrong = [
        (
            network.scores(&[0; 3], &mut [0; 2], &mut scores),
            "2 values, not 3",
        ),
        (
            network.scores(&[0; 2], &mut [0; 1], &mut scores),
            "1 bytes, but needs 2",
        ),
        (
            network.scores(&[0; 2], &mut [0; 2], &mut scores[..1]),
            "2 scores, not 1",
        ),
    ];
    for (result, words) in wrong {
        let error = std::format!("{}", result.unwrap_err());
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(scores, [5; 2], "unchanged");
    let pool = Layer::MaxPool(Windows {
        size: [2, 1],
        stride: [1, 1],
    });
    let error = Quantised::new(PAIR, &[Layer::Relu(0), pool], &HEAD).unwrap_err();
    let fault = Fault::Window;
    assert_eq!(error, QuantisedError::Layer { number: 2, fault });
    let (size, stride) = ([1, 2], [1, 1]);
    let pool = Layer::MaxPool(Windows { size, stride });
    let (expected, found) = (2, 4);
    let fault = Fault::Weights { expected, found };
    let error = Quantised::new(PAIR, &[pool], &HEAD).unwrap_err();
    assert_eq!(error, QuantisedError::Layer { number: 2, fault });
}

#[test]
fn probabilities_follow_from_scores() {
    let mut scores = [0, 1 << 16, -(1 << 16)];
    probabilities_in_place(&mut scores);
    let exact = [0.244_73, 0.665_24, 0.090_03];
    for (found, exact) in scores.iter().zip(exact) {
        assert!((f64::from(*found) / 65_536.0 - exact).abs() < 1e-4);
    }
}
