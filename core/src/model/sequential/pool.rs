//! Layers without parameters: rectified linear units, the largest of each window, the mean of each
//! channel.

use core::ops::Range;

use super::shape::Shape;
use crate::lanes;

/// max(x, 0) of each entry, in place. NaN stays NaN.
#[inline(always)]
pub(super) fn rectify(v: &mut [f32]) {
    for x in v {
        *x = if *x <= 0.0 { 0.0 } else { *x };
    }
}

/// The derivatives by the results become those by the sums: 0 where the result is 0.
#[inline(always)]
pub(super) fn rectify_backward(results: &[f32], derivatives: &mut [f32]) {
    for (derivative, result) in derivatives.iter_mut().zip(results) {
        *derivative = if *result > 0.0 { *derivative } else { 0.0 };
    }
}

/// The mean of each channel; sums in the order of [`lanes`].
#[inline(always)]
pub(super) fn average(input: &[f32], output: &mut [f32]) {
    let Some(size) = input.len().checked_div(output.len()) else {
        return;
    };
    let part = 1.0 / size as f32;
    for (mean, channel) in output.iter_mut().zip(input.chunks_exact(size.max(1))) {
        *mean = part * lanes::sum(channel);
    }
}

/// Each entry of a channel has the same part in its mean.
#[inline(always)]
pub(super) fn average_backward(derivatives: &[f32], below: &mut [f32]) {
    let Some(size) = below.len().checked_div(derivatives.len()) else {
        return;
    };
    let part = 1.0 / size as f32;
    for (channel, derivative) in below.chunks_exact_mut(size.max(1)).zip(derivatives) {
        channel.fill(part * derivative);
    }
}

/// The windows of an image.
pub(super) struct Windows {
    image: [usize; 2],
    windows: [usize; 2],
    size: [usize; 2],
    stride: [usize; 2],
}

impl Windows {
    /// The windows of `input`, from which `output` is made.
    #[inline(always)]
    pub(super) fn new(
        input: Shape,
        output: Shape,
        size: [u16; 2],
        stride: [u16; 2],
    ) -> Option<Self> {
        Some(Self {
            image: sides(input)?,
            windows: sides(output)?,
            size: size.map(usize::from),
            stride: stride.map(usize::from),
        })
    }

    /// The largest entry of each window.
    #[inline(always)]
    pub(super) fn forward(&self, input: &[f32], output: &mut [f32]) {
        for (image, output) in self.channels(input).zip(self.results_mut(output)) {
            for (row, results) in output.chunks_exact_mut(self.windows[1]).enumerate() {
                for (column, result) in results.iter_mut().enumerate() {
                    *result = self.largest(image, row, column).1;
                }
            }
        }
    }

    /// The derivative by each result goes to the first of the largest entries of its window.
    #[inline(always)]
    pub(super) fn backward(&self, input: &[f32], derivatives: &[f32], below: &mut [f32]) {
        below.fill(0.0);
        let size = self.image[0] * self.image[1];
        let channels = below.chunks_exact_mut(size.max(1));
        let derivatives = derivatives.chunks_exact((self.windows[0] * self.windows[1]).max(1));
        for ((image, below), derivatives) in self.channels(input).zip(channels).zip(derivatives) {
            for (row, derivatives) in derivatives.chunks_exact(self.windows[1]).enumerate() {
                for (column, derivative) in derivatives.iter().enumerate() {
                    let (place, _) = self.largest(image, row, column);
                    if let Some(sum) = below.get_mut(place) {
                        *sum += derivative;
                    }
                }
            }
        }
    }

    /// The largest entry of a window of a channel, and where it is. NaN is taken for the largest.
    #[inline(always)]
    fn largest(&self, image: &[f32], row: usize, column: usize) -> (usize, f32) {
        let width = self.image[1];
        let start = row * self.stride[0] * width + column * self.stride[1];
        let mut best = (start, f32::NEG_INFINITY);
        for row in 0..self.size[0] {
            let start = start + row * width;
            let entries = image.get(start..start + self.size[1]).unwrap_or_default();
            for (place, x) in (start..).zip(entries) {
                if *x > best.1 || x.is_nan() {
                    best = (place, *x);
                }
            }
        }
        best
    }

    #[inline(always)]
    fn channels<'a>(&self, input: &'a [f32]) -> impl Iterator<Item = &'a [f32]> {
        input.chunks_exact((self.image[0] * self.image[1]).max(1))
    }

    #[inline(always)]
    fn results_mut<'a>(&self, output: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> {
        output.chunks_exact_mut((self.windows[0] * self.windows[1]).max(1))
    }
}

/// Height and width of an image.
#[inline(always)]
pub(super) fn sides(shape: Shape) -> Option<[usize; 2]> {
    match shape {
        Shape::Image { height, width, .. } => Some([height.into(), width.into()]),
        _ => None,
    }
}

/// What of a window of `size` entries from `start` lies inside of `length` entries, if `padding`
/// entries are before the first.
#[inline(always)]
pub(super) fn inside(start: usize, size: usize, length: usize, padding: usize) -> Range<usize> {
    padding.saturating_sub(start)..(length + padding).saturating_sub(start).min(size)
}
