//! Convolutions sum by sum, without memory: for boards, and as what other ways are tested against.

use core::ops::Range;

use super::Convolution;

impl Convolution {
    #[inline(always)]
    pub(super) fn plain_forward(
        &self,
        weights: &[f32],
        biases: &[f32],
        input: &[f32],
        output: &mut [f32],
    ) {
        let filters = weights.chunks_exact(self.patch().max(1));
        for (pixel, results) in output.chunks_exact_mut(self.outputs.max(1)).enumerate() {
            let Some(at) = self.place(pixel, self.result[1]) else {
                return;
            };
            for ((result, filter), bias) in results.iter_mut().zip(filters.clone()).zip(biases) {
                *result = self.sum(filter, input, at) + bias;
            }
        }
    }

    /// The sum of a window's entries with the weights of a filter.
    #[inline(always)]
    fn sum(&self, filter: &[f32], input: &[f32], at: [usize; 2]) -> f32 {
        let [rows, columns] = [0, 1].map(|axis| self.inside(at[axis], axis));
        let mut sum = 0.0;
        for row in rows {
            let y = at[0] * self.stride[0] + row - self.padding[0];
            for column in columns.clone() {
                let x = at[1] * self.stride[1] + column - self.padding[1];
                let pixel = input.get((y * self.image[1] + x) * self.inputs..);
                let pixel = pixel.unwrap_or_default();
                for (weight, x) in self.weights(filter, row, column).zip(pixel) {
                    sum += weight * x;
                }
            }
        }
        sum
    }

    #[inline(always)]
    pub(super) fn plain_gradient(&self, input: &[f32], derivatives: &[f32], gradient: &mut [f32]) {
        let pixels = derivatives.chunks_exact(self.outputs.max(1));
        let weights = self.outputs * self.patch();
        let Some((sums, bias_sums)) = gradient.split_at_mut_checked(weights) else {
            return;
        };
        for (pixel, derivatives) in pixels.enumerate() {
            let Some(at) = self.place(pixel, self.result[1]) else {
                return;
            };
            for (sum, derivative) in bias_sums.iter_mut().zip(derivatives) {
                *sum += derivative;
            }
            let filters = sums.chunks_exact_mut(self.patch().max(1));
            for (filter, derivative) in filters.zip(derivatives) {
                self.add_terms(input, *derivative, at, filter);
            }
        }
    }

    /// Adds the products of a derivative with the entries of its window.
    #[inline(always)]
    fn add_terms(&self, input: &[f32], derivative: f32, at: [usize; 2], filter: &mut [f32]) {
        let [rows, columns] = [0, 1].map(|axis| self.inside(at[axis], axis));
        let step = (self.kernel[0] * self.kernel[1]).max(1);
        for row in rows {
            let y = at[0] * self.stride[0] + row - self.padding[0];
            for column in columns.clone() {
                let x = at[1] * self.stride[1] + column - self.padding[1];
                let pixel = input.get((y * self.image[1] + x) * self.inputs..);
                let first = row * self.kernel[1] + column;
                let sums = filter.iter_mut().skip(first).step_by(step);
                for (sum, x) in sums.zip(pixel.unwrap_or_default()) {
                    *sum += derivative * x;
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn plain_input_derivatives(
        &self,
        weights: &[f32],
        derivatives: &[f32],
        below: &mut [f32],
    ) {
        let kernel = self.kernel[0] * self.kernel[1];
        for (pixel, below) in below.chunks_exact_mut(self.inputs.max(1)).enumerate() {
            let Some(at) = self.place(pixel, self.image[1]) else {
                return;
            };
            for (channel, derivative) in below.iter_mut().enumerate() {
                let weights = weights.get(channel * kernel..).unwrap_or_default();
                *derivative = self.input_derivative(weights, derivatives, at);
            }
        }
    }

    /// The derivative by one entry of a channel; `weights` start with those of that channel.
    #[inline(always)]
    fn input_derivative(&self, weights: &[f32], derivatives: &[f32], at: [usize; 2]) -> f32 {
        let [rows, columns] = [0, 1].map(|axis| self.seen_by(at[axis], axis));
        let mut sum = 0.0;
        for y in rows {
            let row = at[0] + self.padding[0] - y * self.stride[0];
            for x in columns.clone() {
                let column = at[1] + self.padding[1] - x * self.stride[1];
                let first = row * self.kernel[1] + column;
                let weights = weights.iter().skip(first).step_by(self.patch().max(1));
                let pixel = derivatives.get((y * self.result[1] + x) * self.outputs..);
                let pixel = pixel.unwrap_or_default().iter().take(self.outputs);
                for (weight, derivative) in weights.zip(pixel) {
                    sum += weight * derivative;
                }
            }
        }
        sum
    }

    /// The weights of a filter at one place of the kernel, channel by channel.
    #[inline(always)]
    fn weights<'a>(
        &self,
        filter: &'a [f32],
        row: usize,
        column: usize,
    ) -> impl Iterator<Item = &'a f32> {
        let step = (self.kernel[0] * self.kernel[1]).max(1);
        let first = row * self.kernel[1] + column;
        filter.iter().skip(first).step_by(step)
    }

    /// Row and column of a pixel.
    #[inline(always)]
    fn place(&self, pixel: usize, width: usize) -> Option<[usize; 2]> {
        Some([pixel.checked_div(width)?, pixel.checked_rem(width)?])
    }

    /// What of the kernel's places along an axis see the input in this window.
    #[inline(always)]
    fn inside(&self, window: usize, axis: usize) -> Range<usize> {
        let (start, padding) = (window * self.stride[axis], self.padding[axis]);
        let end = (self.image[axis] + padding).saturating_sub(start);
        padding.saturating_sub(start)..end.min(self.kernel[axis])
    }

    /// The results along an axis whose windows hold this place of the input.
    #[inline(always)]
    fn seen_by(&self, at: usize, axis: usize) -> Range<usize> {
        let (kernel, stride) = (self.kernel[axis], self.stride[axis].max(1));
        let at = at + self.padding[axis];
        let first = (at + 1).saturating_sub(kernel).div_ceil(stride);
        first..(at / stride + 1).min(self.result[axis])
    }
}
