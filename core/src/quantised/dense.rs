//! Dense layers in integers of 8 bits: hidden ones, and the last one with the scores.

use super::{Fault, Image, Output, output::dot};

/// A dense layer with scores as results: `Wx + b`.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    /// One row for each output, over the values pixel by pixel.
    pub weights: &'a [i8],
    /// Biases and multipliers. Those of scores lead to units of 2⁻¹⁶.
    pub outputs: &'a [Output],
    /// The zero point of the input.
    pub input_zero: i8,
}

/// A hidden dense layer.
#[derive(Clone, Copy, Debug)]
pub struct Hidden<'a> {
    /// Weights, biases and multipliers.
    pub dense: Dense<'a>,
    /// The zero point of the results.
    pub output_zero: i8,
    /// The smallest result: the zero point with a rectifier, else −128.
    pub least: i8,
}

impl Dense<'_> {
    pub(super) const fn check(&self, inputs: usize) -> Result<(), Fault> {
        if let Err(fault) = Output::check(self.outputs) {
            return Err(fault);
        }
        let expected = self.outputs.len().saturating_mul(inputs);
        let found = self.weights.len();
        if found == expected {
            Ok(())
        } else {
            Err(Fault::Weights { expected, found })
        }
    }

    /// Returns the sum of each output without its bias.
    #[inline(always)]
    fn sums(&self, input: &[i8]) -> impl Iterator<Item = (Output, i32)> {
        let zero = i32::from(self.input_zero);
        let rows = self.weights.chunks_exact(input.len().max(1));
        let outputs = self.outputs.iter().zip(rows);
        outputs.map(move |(output, row)| (*output, dot(row, input, zero)))
    }

    pub(super) fn scores(&self, input: &[i8], scores: &mut [i32]) {
        for (score, (output, sum)) in scores.iter_mut().zip(self.sums(input)) {
            *score = output.scaled(sum.wrapping_add(output.bias));
        }
    }
}

impl Hidden<'_> {
    pub(super) const fn output(&self, image: Image) -> Result<Image, Fault> {
        match self.dense.check(image.count()) {
            Err(fault) => Err(fault),
            Ok(()) => Ok(Image {
                height: 1,
                width: 1,
                // `check` limits their number.
                channels: self.dense.outputs.len() as u16,
            }),
        }
    }

    pub(super) fn apply(&self, input: &[i8], results: &mut [i8]) {
        for (result, (output, sum)) in results.iter_mut().zip(self.dense.sums(input)) {
            *result = output.activation(sum, self.output_zero, self.least);
        }
    }
}
