//! Convolutions, in the order of sums that every way of computing them keeps:
//!
//! - a result adds its terms one after the other to 0: channel by channel of the input, row by row
//!   of the kernel, column by column; the bias comes last;
//! - the gradient by a weight adds its terms one after the other: sample by sample, row by row of
//!   the result, column by column; that by a bias adds the sum of the channel's derivatives
//!   ([`lanes::sum`]);
//! - a derivative by the input adds its terms one after the other to 0: channel by channel of the
//!   result, row by row, column by column.
//!
//! Terms with a zero of the padding may be left out or added: a sum that starts from 0 is never −0,
//! so that for finite numbers the bits are the same.

mod plain;

use super::{
    pass::Backward,
    pool::{inside, sides},
    shape::Shape,
};
use crate::lanes;

/// The sizes of a convolution; pairs are height, width.
#[derive(Clone, Copy)]
pub(super) struct Convolution {
    image: [usize; 2],
    result: [usize; 2],
    /// Channels of the input and of the result.
    inputs: usize,
    outputs: usize,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
}

impl Convolution {
    #[inline(always)]
    pub(super) fn new(
        input: Shape,
        output: Shape,
        kernel: [u16; 2],
        stride: [u16; 2],
        padding: [u16; 2],
    ) -> Option<Self> {
        Some(Self {
            image: sides(input)?,
            result: sides(output)?,
            inputs: channels(input)?,
            outputs: channels(output)?,
            kernel: kernel.map(usize::from),
            stride: stride.map(usize::from),
            padding: padding.map(usize::from),
        })
    }

    /// The results from the input.
    #[inline(always)]
    pub(super) fn forward(&self, parameters: &[f32], input: &[f32], output: &mut [f32]) {
        let weights = self.outputs * self.patch();
        if let Some((weights, biases)) = parameters.split_at_checked(weights) {
            self.plain_forward(weights, biases, input, output);
        }
    }

    /// Adds to the gradient, and writes the derivatives by the input.
    #[inline(always)]
    pub(super) fn backward(&self, pass: Backward<'_>) {
        let weights = self.outputs * self.patch();
        let Some((sums, bias_sums)) = pass.gradient.split_at_mut_checked(weights) else {
            return;
        };
        let size = (self.result[0] * self.result[1]).max(1);
        for (sum, channel) in bias_sums
            .iter_mut()
            .zip(pass.derivatives.chunks_exact(size))
        {
            *sum += lanes::sum(channel);
        }
        self.plain_gradient(pass.input, pass.derivatives, sums);
        if let Some(below) = pass.input_derivatives {
            self.plain_input_derivatives(pass.parameters, pass.derivatives, below);
        }
    }

    /// Weights of a result.
    const fn patch(&self) -> usize {
        self.inputs * self.kernel[0] * self.kernel[1]
    }
}

#[inline(always)]
fn channels(shape: Shape) -> Option<usize> {
    match shape {
        Shape::Image { channels, .. } => Some(channels.into()),
        _ => None,
    }
}
