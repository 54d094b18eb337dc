//! Convolutions of images stored pixel by pixel. Every implementation keeps this order of sums:
//!
//! - a result adds its terms one after the other to 0: row by row of the kernel, column by column,
//!   channel by channel of the input, with the bias last,
//! - the gradient with respect to a weight or a bias adds its terms one after the other to 0:
//!   sample by sample, row by row of the result, column by column,
//! - a derivative with respect to the input adds its terms one after the other to 0: row by row of
//!   the result, column by column, channel by channel.
//!
//! Terms with a zero of the padding may be left out or added: a sum that starts from 0 is never −0,
//! so the bits are the same for finite numbers.

mod plain;
mod wide;

use super::{
    pass::{Backward, Forward},
    shape::Shape,
};
use crate::lanes::{SOFT, WIDE};

/// Channels or filters of a tile of sums. With their factors, eight sums take at most 14 of the 32
/// registers of a Cortex-M4F, and their addresses nearly all that it has for integers. If an
/// addition is a function call, a tile would move sums from registers to memory and back.
const TILE: usize = if SOFT { 1 } else { 4 };

/// Pixels or channels of a tile: 1 or 2.
const PAIR: usize = if SOFT { 1 } else { 2 };

/// The sizes of a convolution. Pairs are height, width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convolution {
    /// Height and width of the input.
    image: [usize; 2],
    /// Channels of the input.
    inputs: usize,
    result: [usize; 2],
    outputs: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    is_first: bool,
}

impl Convolution {
    /// Creates a convolution with a kernel, a stride and a padding. The first layer does not need
    /// derivatives with respect to its input.
    pub(super) const fn new(
        input: Shape,
        output: Shape,
        [kernel, stride, padding]: [[u16; 2]; 3],
        is_first: bool,
    ) -> Self {
        const fn sizes(pair: [u16; 2]) -> [usize; 2] {
            [pair[0] as usize, pair[1] as usize]
        }
        Self {
            image: input.sides(),
            inputs: input.channels(),
            result: output.sides(),
            outputs: output.channels(),
            kernel: sizes(kernel),
            stride: sizes(stride),
            padding: sizes(padding),
            is_first,
        }
    }

    /// Returns the number of weights of a result.
    const fn patch(&self) -> usize {
        volume([self.kernel[0], self.kernel[1], self.inputs])
    }

    /// Returns the number of entries computed once for all samples.
    pub(super) const fn prepared_count(&self) -> usize {
        if WIDE { self.panels_count() } else { 0 }
    }

    /// Returns the number of entries of the gradient in another order.
    pub(super) const fn sums_count(&self) -> usize {
        if WIDE { self.wide_sums_count() } else { 0 }
    }

    /// Returns the number of entries of working memory.
    pub(super) const fn work_count(&self) -> usize {
        if WIDE { self.frames_count() } else { 0 }
    }

    /// Computes values from the parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        if WIDE {
            self.fill_panels(parameters, prepared);
        }
    }

    /// Writes the sums of a batch to the gradient.
    #[inline(always)]
    pub(super) fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        if WIDE {
            self.write_gradient(sums, gradient);
        }
    }

    /// Computes the results from the input.
    #[inline(always)]
    pub(super) fn forward(&self, pass: Forward<'_>) {
        if WIDE {
            self.wide_forward(pass);
            return;
        }
        let weights = self.outputs * self.patch();
        if let Some((weights, biases)) = pass.parameters.split_at_checked(weights) {
            self.plain_forward::<TILE, PAIR>(weights, biases, pass.input, pass.region);
        }
    }

    /// Adds to the gradient, or to its sums, and writes the derivatives with respect to the input.
    #[inline(always)]
    pub(super) fn backward(&self, pass: Backward<'_>) {
        if WIDE {
            self.wide_backward(pass);
            return;
        }
        self.plain_gradient::<TILE, PAIR>(pass.input, pass.derivatives, pass.gradient);
        if let Some(below) = pass.input_derivatives {
            self.plain_input_derivatives::<TILE, PAIR>(pass.parameters, pass.derivatives, below);
        }
    }
}

/// Returns the saturated product.
const fn volume(sides: [usize; 3]) -> usize {
    sides[0].saturating_mul(sides[1]).saturating_mul(sides[2])
}

#[cfg(test)]
mod tests;
