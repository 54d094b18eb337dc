//! Conversion of numbers and ranges to tables of integers.

use smolfed_core::quantised::{
    Convolution, Dense, GlobalAverage, Hidden, Image, Layer, Output, Scale, Windows,
};

use super::network::{Interval, Network, Step, Weights};
use crate::inference::error::InferenceError;

/// Integer value of the largest weight.
const LARGEST_WEIGHT: f64 = 127.0;

/// Largest magnitude of a bias, which leaves room for the products.
const LARGEST_BIAS: f64 = (1_u32 << 30) as f64;

/// Value of a unit of scores.
const SCORE: f64 = 1.0 / 65_536.0;

/// A layer with its tables.
#[derive(Clone, Debug)]
pub(super) struct Table {
    weights: Vec<i8>,
    outputs: Vec<Output>,
    /// The layer without its tables.
    kind: Layer<'static>,
}

/// All layers, and the conversion of features to integers.
pub(super) struct Tables {
    pub(super) scale: Scale,
    pub(super) layers: Vec<Table>,
    pub(super) head: Table,
}

/// Mapping of values to 8 bits.
#[derive(Clone, Copy)]
struct Format {
    unit: f64,
    zero: i8,
}

/// Returns a dense layer without its tables.
const fn dense(input: Format) -> Dense<'static> {
    Dense {
        weights: &[],
        outputs: &[],
        input_zero: input.zero,
    }
}

impl Table {
    /// Returns the layer.
    pub(super) fn layer(&self) -> Layer<'_> {
        match self.kind {
            Layer::Convolution(layer) => Layer::Convolution(Convolution {
                weights: &self.weights,
                outputs: &self.outputs,
                ..layer
            }),
            Layer::Dense(layer) => Layer::Dense(Hidden {
                dense: self.dense(),
                ..layer
            }),
            other => other,
        }
    }

    /// Returns the tables as a dense layer.
    pub(super) fn dense(&self) -> Dense<'_> {
        let input_zero = match self.kind {
            Layer::Dense(layer) => layer.dense.input_zero,
            _ => 0,
        };
        Dense {
            weights: &self.weights,
            outputs: &self.outputs,
            input_zero,
        }
    }
}

impl Tables {
    /// Quantises a network with values in these ranges: first the features', then each layer's.
    pub(super) fn new(network: &Network, ranges: &[Interval]) -> Result<Self, InferenceError> {
        let mut format = Format::of(ranges.first().copied());
        // Programs in C and on boards store the unit in 32 bits.
        let scale = Scale {
            unit: format.unit as f32,
            zero: format.zero,
        };
        format.unit = f64::from(scale.unit);
        let steps = network.steps();
        let (mut layers, mut at) = (Vec::new(), 0);
        while let Some((step, image)) = steps.get(at) {
            let follows = Follows::of(step, steps.get(at + 1..).unwrap_or_default());
            if let (Step::Dense(weights), true) = (step, at + 1 == steps.len()) {
                let (weights, outputs) = weights.quantised(format, SCORE);
                let kind = Layer::Dense(Hidden {
                    dense: dense(format),
                    output_zero: 0,
                    least: i8::MIN,
                });
                let head = Table {
                    weights,
                    outputs,
                    kind,
                };
                return Ok(Self {
                    scale,
                    layers,
                    head,
                });
            }
            at += 1 + follows.count;
            let result = Format::of(ranges.get(at).copied());
            let (table, after) = step.table(*image, format, result, &follows);
            layers.push(table);
            format = after;
        }
        Err(InferenceError::Arithmetic)
    }
}

/// Layers that one kernel computes together with the layer below.
struct Follows {
    count: usize,
    is_rectified: bool,
    pool: Windows,
}

impl Follows {
    fn of(step: &Step, above: &[(Step, Image)]) -> Self {
        let mut follows = Self {
            count: 0,
            is_rectified: false,
            pool: Windows::PIXELS,
        };
        let is_convolution = matches!(step, Step::Convolution { .. });
        if matches!(step, Step::MaxPool(_) | Step::Relu) {
            return follows;
        }
        for (next, _) in above {
            match next {
                Step::Relu => follows.is_rectified = true,
                // Overlapping windows would compute sums twice.
                Step::MaxPool(windows)
                    if is_convolution
                        && follows.pool == Windows::PIXELS
                        && windows
                            .size
                            .iter()
                            .zip(windows.stride)
                            .all(|(a, b)| *a <= b) =>
                {
                    follows.pool = *windows;
                }
                _ => break,
            }
            follows.count += 1;
        }
        follows
    }
}

impl Step {
    /// Returns the layer from values of one format to values of another, and the format of its
    /// results.
    fn table(
        &self,
        image: Image,
        input: Format,
        result: Format,
        follows: &Follows,
    ) -> (Table, Format) {
        let least = match follows.is_rectified {
            true => result.zero,
            false => i8::MIN,
        };
        let (input_zero, output_zero) = (input.zero, result.zero);
        let without = |kind| Table {
            weights: Vec::new(),
            outputs: Vec::new(),
            kind,
        };
        let (weights, kind) = match self {
            Self::Convolution {
                weights,
                kernel,
                padding,
            } => {
                let layer = Convolution {
                    weights: &[],
                    outputs: &[],
                    kernel: *kernel,
                    padding: *padding,
                    pool: follows.pool,
                    input_zero,
                    output_zero,
                    least,
                };
                (weights, Layer::Convolution(layer))
            }
            Self::Dense(weights) => {
                let layer = Hidden {
                    dense: dense(input),
                    output_zero,
                    least,
                };
                (weights, Layer::Dense(layer))
            }
            Self::GlobalAverage => {
                let pixels = f64::from(image.height) * f64::from(image.width);
                let layer = GlobalAverage {
                    output: multiplied(0, input.unit / pixels / result.unit),
                    input_zero,
                    output_zero,
                    least,
                };
                return (without(Layer::GlobalAverage(layer)), result);
            }
            // Both have the same format.
            Self::MaxPool(windows) => return (without(Layer::MaxPool(*windows)), input),
            Self::Relu => return (without(Layer::Relu(input_zero)), input),
        };
        let (weights, outputs) = weights.quantised(input, result.unit);
        let table = Table {
            weights,
            outputs,
            kind,
        };
        (table, result)
    }
}

impl Weights {
    /// Returns the tables for an input of this format, with results in multiples of `unit`.
    fn quantised(&self, input: Format, unit: f64) -> (Vec<i8>, Vec<Output>) {
        let width = self.weights.len() / self.biases.len().max(1);
        let rows = self.weights.chunks_exact(width.max(1));
        let (mut weights, mut outputs) = (Vec::new(), Vec::new());
        for (row, bias) in rows.zip(&self.biases) {
            let (row, output) = quantised(row, *bias, input, unit);
            weights.extend(row);
            outputs.push(output);
        }
        (weights, outputs)
    }
}

/// Returns the weights of an output, its bias and its multiplier.
fn quantised(row: &[f64], bias: f64, input: Format, unit: f64) -> (Vec<i8>, Output) {
    let largest = row.iter().fold(0.0_f64, |largest, w| largest.max(w.abs()));
    let of_bias = bias.abs() / input.unit / LARGEST_BIAS;
    let mut scale = (largest / LARGEST_WEIGHT).max(of_bias);
    if scale <= 0.0 {
        // All are 0 at any scale.
        scale = 1.0;
    }
    loop {
        // At most 127 in magnitude.
        let weights: Vec<i8> = row.iter().map(|w| (w / scale).round() as i8).collect();
        let bias = (bias / input.unit / scale).round();
        // No sum of any values overflows.
        let reach = f64::from(input.zero).abs() + 128.0;
        let magnitudes = weights.iter().map(|w| f64::from(w.unsigned_abs()));
        if magnitudes.sum::<f64>() * reach + bias.abs() < f64::from(i32::MAX) {
            return (weights, multiplied(bias as i32, input.unit * scale / unit));
        }
        scale *= 2.0;
    }
}

/// Returns a bias with the multiplier of this value.
fn multiplied(bias: i32, ratio: f64) -> Output {
    let (mut mantissa, mut shift) = (ratio, 0_i8);
    while mantissa < 0.5 && shift < 30 {
        mantissa *= 2.0;
        shift += 1;
    }
    while mantissa >= 1.0 && shift > -30 {
        mantissa /= 2.0;
        shift -= 1;
    }
    // Casts saturate: just below 1 becomes 1 minus 2⁻³¹.
    let mantissa = (mantissa * 2_147_483_648.0).round() as i32;
    Output {
        bias,
        mantissa,
        shift,
    }
}

impl Format {
    /// Returns 256 steps over a range extended to include 0, which is one of the steps.
    fn of(range: Option<Interval>) -> Self {
        let range = range.unwrap_or(Interval::point(0.0));
        let (low, high) = (range.low.min(0.0), range.high.max(0.0));
        let unit = (high - low) / 255.0;
        // Below the smallest positive f32 all values are 0.
        if unit < f64::from(f32::MIN_POSITIVE) || !unit.is_finite() {
            return Self { unit: 1.0, zero: 0 };
        }
        let zero = (-128.0 - low / unit).round().clamp(-128.0, 127.0);
        Self {
            unit,
            zero: zero as i8,
        }
    }
}
