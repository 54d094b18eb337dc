//! Convolutions sum by sum, without memory: for boards, and as what other ways are tested against.

use super::{Convolution, inside};

impl Convolution {
    #[inline(always)]
    pub(super) fn plain_forward(
        &self,
        weights: &[f32],
        biases: &[f32],
        input: &[f32],
        output: &mut [f32],
    ) {
        let [height, width] = self.result;
        let filters = weights.chunks_exact(self.patch().max(1)).zip(biases);
        let channels = output.chunks_exact_mut((height * width).max(1));
        for (channel, (filter, bias)) in channels.zip(filters) {
            for (y, row) in channel.chunks_exact_mut(width.max(1)).enumerate() {
                for (x, result) in row.iter_mut().enumerate() {
                    *result = self.sum(filter, input, [y, x]) + bias;
                }
            }
        }
    }

    /// The sum of a window's entries with the weights of a filter.
    #[inline(always)]
    fn sum(&self, filter: &[f32], input: &[f32], at: [usize; 2]) -> f32 {
        let [height, width] = self.image;
        let [top, left] = [at[0] * self.stride[0], at[1] * self.stride[1]];
        let rows = inside(top, self.kernel[0], height, self.padding[0]);
        let columns = inside(left, self.kernel[1], width, self.padding[1]);
        let first = (left + columns.start).saturating_sub(self.padding[1]);
        let size = (self.kernel[0] * self.kernel[1]).max(1);
        let mut sum = 0.0;
        let channels = input.chunks_exact((height * width).max(1));
        for (channel, kernel) in channels.zip(filter.chunks_exact(size)) {
            for row in rows.clone() {
                let weights = row * self.kernel[1];
                let weights = kernel.get(weights + columns.start..weights + columns.end);
                let start = (top + row).saturating_sub(self.padding[0]) * width + first;
                let entries = channel.get(start..).unwrap_or_default();
                for (x, weight) in entries.iter().zip(weights.unwrap_or_default()) {
                    sum += weight * x;
                }
            }
        }
        sum
    }

    #[inline(always)]
    pub(super) fn plain_gradient(&self, input: &[f32], derivatives: &[f32], gradient: &mut [f32]) {
        let [height, width] = self.image;
        let size = (self.result[0] * self.result[1]).max(1);
        let kernel = (self.kernel[0] * self.kernel[1]).max(1);
        let filters = gradient.chunks_exact_mut(self.patch().max(1));
        for (filter, derivatives) in filters.zip(derivatives.chunks_exact(size)) {
            let channels = input.chunks_exact((height * width).max(1));
            for (sums, channel) in filter.chunks_exact_mut(kernel).zip(channels) {
                for (row, sums) in sums.chunks_exact_mut(self.kernel[1].max(1)).enumerate() {
                    for (column, sum) in sums.iter_mut().enumerate() {
                        self.add_terms(channel, derivatives, [row, column], sum);
                    }
                }
            }
        }
    }

    /// Adds the products of a channel's derivatives with what one place of the kernel saw.
    #[inline(always)]
    fn add_terms(&self, channel: &[f32], derivatives: &[f32], at: [usize; 2], sum: &mut f32) {
        let [height, width] = self.image;
        for (y, derivatives) in derivatives.chunks_exact(self.result[1].max(1)).enumerate() {
            let row = (y * self.stride[0] + at[0]).wrapping_sub(self.padding[0]);
            if row >= height {
                continue;
            }
            let entries = channel
                .get(row * width..(row + 1) * width)
                .unwrap_or_default();
            for (x, derivative) in derivatives.iter().enumerate() {
                let column = (x * self.stride[1] + at[1]).wrapping_sub(self.padding[1]);
                if let Some(entry) = entries.get(column) {
                    *sum += derivative * entry;
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
        let [height, width] = self.image;
        let kernel = self.kernel[0] * self.kernel[1];
        let channels = below.chunks_exact_mut((height * width).max(1));
        for (index, channel) in channels.enumerate() {
            let weights = weights.get(index * kernel..).unwrap_or_default();
            for (y, row) in channel.chunks_exact_mut(width.max(1)).enumerate() {
                for (x, derivative) in row.iter_mut().enumerate() {
                    *derivative = self.input_derivative(weights, derivatives, [y, x]);
                }
            }
        }
    }

    /// The derivative by one entry of a channel; `weights` start with those of that channel.
    #[inline(always)]
    fn input_derivative(&self, weights: &[f32], derivatives: &[f32], at: [usize; 2]) -> f32 {
        let [height, width] = self.result;
        let [rows, columns] = [0, 1].map(|axis| self.seen_by(at[axis], axis));
        let mut sum = 0.0;
        let channels = derivatives.chunks_exact((height * width).max(1));
        // Of the last filter, the weights of later channels are missing.
        for (filter, channel) in weights.chunks(self.patch().max(1)).zip(channels) {
            for y in rows.clone() {
                let row = at[0] + self.padding[0] - y * self.stride[0];
                for x in columns.clone() {
                    let column = at[1] + self.padding[1] - x * self.stride[1];
                    let weight = filter.get(row * self.kernel[1] + column);
                    let derivative = channel.get(y * width + x);
                    if let (Some(weight), Some(derivative)) = (weight, derivative) {
                        sum += weight * derivative;
                    }
                }
            }
        }
        sum
    }

    /// The results along an axis whose windows hold this place of the input.
    #[inline(always)]
    fn seen_by(&self, at: usize, axis: usize) -> core::ops::Range<usize> {
        let (kernel, stride) = (self.kernel[axis], self.stride[axis].max(1));
        let at = at + self.padding[axis];
        let first = (at + 1).saturating_sub(kernel).div_ceil(stride);
        first..(at / stride + 1).min(self.result[axis])
    }
}
