//! Layers without parameters: rectified linear units (ReLU), the maximum of each window (max
//! pooling), the mean of each channel. Images are stored pixel by pixel.

use super::shape::Shape;
use crate::lanes::LANES;

/// Computes max(x, 0) of each entry, in place. NaN stays NaN.
#[inline(always)]
pub(super) fn rectify(v: &mut [f32]) {
    for x in v {
        *x = if *x <= 0.0 { 0.0 } else { *x };
    }
}

/// Turns derivatives with respect to the results into derivatives with respect to the sums: 0 where
/// the result is 0.
#[inline(always)]
pub(super) fn rectify_backward(results: &[f32], derivatives: &mut [f32]) {
    for (derivative, result) in derivatives.iter_mut().zip(results) {
        *derivative = if *result > 0.0 { *derivative } else { 0.0 };
    }
}

/// Computes the mean of each channel, summed up pixel by pixel from 0.
#[inline(always)]
pub(super) fn average(input: &[f32], output: &mut [f32]) {
    output.fill(0.0);
    let channels = output.len().max(1);
    for pixel in input.chunks_exact(channels) {
        for (sum, x) in output.iter_mut().zip(pixel) {
            *sum += x;
        }
    }
    let part = 1.0 / (input.len() / channels) as f32;
    for mean in output {
        *mean *= part;
    }
}

/// Distributes the derivative of a mean equally over the entries of its channel.
#[inline(always)]
pub(super) fn average_backward(derivatives: &[f32], below: &mut [f32]) {
    let channels = derivatives.len().max(1);
    let part = 1.0 / (below.len() / channels) as f32;
    for pixel in below.chunks_exact_mut(channels) {
        for (x, derivative) in pixel.iter_mut().zip(derivatives) {
            *x = part * derivative;
        }
    }
}

/// The windows of an image.
pub(super) struct Windows {
    channels: usize,
    /// Number of pixels in a row of the image.
    width: usize,
    /// Number of windows side by side.
    columns: usize,
    size: [usize; 2],
    stride: [usize; 2],
}

impl Windows {
    /// Creates the windows of `input` that produce `output`.
    #[inline(always)]
    pub(super) fn new(input: Shape, output: Shape, size: [u16; 2], stride: [u16; 2]) -> Self {
        Self {
            channels: input.channels(),
            width: input.sides()[1],
            columns: output.sides()[1],
            size: size.map(usize::from),
            stride: stride.map(usize::from),
        }
    }

    /// Computes the largest entry of each window.
    #[inline(always)]
    pub(super) fn forward(&self, input: &[f32], output: &mut [f32]) {
        let channels = self.channels.max(1);
        for (y, row) in output.chunks_exact_mut(self.row()).enumerate() {
            for (x, results) in row.chunks_exact_mut(channels).enumerate() {
                let mut start = self.start(y, x);
                let (blocks, rest) = results.as_chunks_mut::<LANES>();
                for block in blocks {
                    *block = self.largest(input, start);
                    start += LANES;
                }
                for result in rest {
                    [*result] = self.largest(input, start);
                    start += 1;
                }
            }
        }
    }

    /// Passes the derivative of each result to the first of the largest entries of its window.
    #[inline(always)]
    pub(super) fn backward(&self, input: &[f32], derivatives: &[f32], below: &mut [f32]) {
        below.fill(0.0);
        let channels = self.channels.max(1);
        for (y, row) in derivatives.chunks_exact(self.row()).enumerate() {
            for (x, derivatives) in row.chunks_exact(channels).enumerate() {
                let mut start = self.start(y, x);
                let (blocks, rest) = derivatives.as_chunks::<LANES>();
                for block in blocks {
                    self.give(input, start, block, below);
                    start += LANES;
                }
                for derivative in rest {
                    self.give(input, start, &[*derivative], below);
                    start += 1;
                }
            }
        }
    }

    /// Returns the largest entries of the window at `window`, for `W` channels. NaN counts as the
    /// largest.
    #[inline(always)]
    fn largest<const W: usize>(&self, input: &[f32], window: usize) -> [f32; W] {
        let mut largest = [f32::NEG_INFINITY; W];
        for row in 0..self.size[0] {
            for column in 0..self.size[1] {
                let start = window + (row * self.width + column) * self.channels;
                if let Some(x) = input.get(start..).and_then(|v| v.first_chunk::<W>()) {
                    for (largest, x) in largest.iter_mut().zip(x) {
                        let is_larger = (*x > *largest) | x.is_nan();
                        *largest = if is_larger { *x } else { *largest };
                    }
                }
            }
        }
        largest
    }

    /// Adds the derivatives of a window's results, for `W` channels, to their source entries.
    #[inline(always)]
    fn give<const W: usize>(
        &self,
        input: &[f32],
        window: usize,
        derivatives: &[f32; W],
        below: &mut [f32],
    ) {
        let largest = self.largest::<W>(input, window);
        // Derivatives not yet added.
        let mut left = *derivatives;
        for row in 0..self.size[0] {
            for column in 0..self.size[1] {
                let start = window + (row * self.width + column) * self.channels;
                let x = input.get(start..).and_then(|v| v.first_chunk::<W>());
                let sums = below
                    .get_mut(start..)
                    .and_then(|v| v.first_chunk_mut::<W>());
                let (Some(x), Some(sums)) = (x, sums) else {
                    return;
                };
                for l in 0..W {
                    let is_largest = (x[l] >= largest[l]) | x[l].is_nan();
                    let part = if is_largest { left[l] } else { 0.0 };
                    sums[l] += part;
                    left[l] = if is_largest { 0.0 } else { left[l] };
                }
            }
        }
    }

    /// Returns the number of results of a row of windows.
    #[inline(always)]
    fn row(&self) -> usize {
        (self.columns * self.channels).max(1)
    }

    /// Returns the start of a window.
    #[inline(always)]
    const fn start(&self, y: usize, x: usize) -> usize {
        (y * self.stride[0] * self.width + x * self.stride[1]) * self.channels
    }
}
