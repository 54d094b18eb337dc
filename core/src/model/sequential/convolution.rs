//! Convolutions of images whose entries lie pixel by pixel. The order of sums, which every way of
//! computing them keeps:
//!
//! - a result adds its terms one after the other to 0: row by row of the kernel, column by column,
//!   channel by channel of the input; the bias comes last;
//! - the gradient by a weight or a bias adds its terms one after the other to 0: sample by sample,
//!   row by row of the result, column by column;
//! - a derivative by the input adds its terms one after the other to 0: row by row of the result,
//!   column by column, channel by channel.
//!
//! Terms with a zero of the padding may be left out or added: a sum that starts from 0 is never −0,
//! so that for finite numbers the bits are the same.

mod plain;
mod wide;

use super::{
    pass::{Backward, Forward},
    shape::Shape,
};
use crate::lanes::{SOFT, WIDE};

/// Channels or filters of a tile of sums. With their factors, eight sums take at most 14 of the 32
/// registers of a Cortex-M4F, and their addresses nearly all that it has for integers. Where an
/// addition is a call, a tile would save sums from registers to memory and back.
const TILE: usize = if SOFT { 1 } else { 4 };

/// Pixels or channels of a tile: 1 or 2.
const PAIR: usize = if SOFT { 1 } else { 2 };

/// The sizes of a convolution; pairs are height, width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convolution {
    /// The input.
    image: [usize; 2],
    /// Its channels.
    inputs: usize,
    result: [usize; 2],
    outputs: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    is_first: bool,
}

impl Convolution {
    /// A convolution with a kernel, a stride and a padding. The first layer needs no derivatives by
    /// its input.
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

    /// Weights of a result.
    const fn patch(&self) -> usize {
        volume([self.kernel[0], self.kernel[1], self.inputs])
    }

    /// Entries computed once for all samples.
    pub(super) const fn prepared_count(&self) -> usize {
        if WIDE { self.panels_count() } else { 0 }
    }

    /// Entries of the gradient in another order.
    pub(super) const fn sums_count(&self) -> usize {
        if WIDE { self.wide_sums_count() } else { 0 }
    }

    /// Entries needed while it works.
    pub(super) const fn work_count(&self) -> usize {
        if WIDE { self.frames_count() } else { 0 }
    }

    /// What it computes from its parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        if WIDE {
            self.fill_panels(parameters, prepared);
        }
    }

    /// Writes what was added to the sums of a batch to the gradient.
    #[inline(always)]
    pub(super) fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        if WIDE {
            self.write_gradient(sums, gradient);
        }
    }

    /// The results from the input.
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

    /// Adds to the gradient, or to its sums, and writes the derivatives by the input.
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

/// The product, or the largest number if that is less.
const fn volume(sides: [usize; 3]) -> usize {
    sides[0].saturating_mul(sides[1]).saturating_mul(sides[2])
}

#[cfg(test)]
mod tests;
