//! Convolutions without memory, with some sums side by side, for boards and as a reference for
//! tests.
//!
//! A tile is a few sums in registers. Results, and derivatives with respect to the input, have
//! tiles of `N` channels at `P` pixels, and gradients have tiles of the weights of `N` filters for
//! `P` channels. A factor is read once for all its sums. Each sum adds its terms in the same order
//! as alone, so the bits do not depend on the tile. If fewer sums are left than a tile has, the
//! last of them are computed more than once, or the tile computes unused sums.

mod gradient;

use core::ops::Range;

use super::Convolution;
use crate::lanes::unroll;

impl Convolution {
    #[inline(always)]
    pub(super) fn plain_forward<const N: usize, const P: usize>(
        &self,
        weights: &[f32],
        biases: &[f32],
        input: &[f32],
        output: &mut [f32],
    ) {
        let way = Way {
            source: input,
            width: self.image[1],
            channels: self.inputs,
            weights,
            kernel_width: self.kernel[1],
            from_sum_to_sum: self.patch(),
            from_channel_to_channel: self.kernel[0] * self.kernel[1],
            from_place_to_place: [self.kernel[1], 1],
            apart: 1,
            view: Self::seen,
        };
        self.write_sums::<N, P>(&way, output, self.result, self.outputs);
        for results in output.chunks_exact_mut(self.outputs.max(1)) {
            for (result, bias) in results.iter_mut().zip(biases) {
                *result += bias;
            }
        }
    }

    #[inline(always)]
    pub(super) fn plain_input_derivatives<const N: usize, const P: usize>(
        &self,
        weights: &[f32],
        derivatives: &[f32],
        below: &mut [f32],
    ) {
        let [down, along] = self.stride;
        let way = Way {
            source: derivatives,
            width: self.result[1],
            channels: self.outputs,
            weights,
            kernel_width: self.kernel[1],
            from_sum_to_sum: self.kernel[0] * self.kernel[1],
            from_channel_to_channel: self.patch(),
            from_place_to_place: [(down * self.kernel[1]).wrapping_neg(), along.wrapping_neg()],
            apart: along.max(1),
            view: Self::seen_by,
        };
        self.write_sums::<N, P>(&way, below, self.image, self.inputs);
    }

    /// Writes the sums of all pixels of an image of these sides and channels.
    ///
    /// Not inlined, because both directions share it.
    #[inline(never)]
    fn write_sums<const N: usize, const P: usize>(
        &self,
        way: &Way<'_>,
        image: &mut [f32],
        [height, width]: [usize; 2],
        channels: usize,
    ) {
        const { assert!(P == 1 || P == 2, "one pixel or a pair") };
        let view = |x: usize| (way.view)(self, x, 1);
        let is_pair =
            |x: usize, next: usize| P == 2 && next < width && view(x).is_like(&view(next));
        let rows = image.chunks_exact_mut((width * channels).max(1));
        for (y, row) in rows.enumerate().take(height) {
            let rows = (way.view)(self, y, 0);
            for x in 0..width {
                // Neighbouring pixels see different places of the kernel, unless they are a stride
                // apart.
                let is_second = x / way.apart % 2 == 1;
                if is_second && is_pair(x - way.apart, x) {
                    continue;
                }
                let next = x + way.apart;
                let next = if !is_second && is_pair(x, next) {
                    next
                } else {
                    x
                };
                let columns = [x, next].map(view);
                for first in (0..channels).step_by(N) {
                    let tile = first..channels.min(first + N);
                    let sums = way.sums::<N, P>(&rows, &columns, tile.clone());
                    for (sums, x) in sums.iter().zip([x, next]) {
                        let pixel = row.get_mut(x * channels..).unwrap_or_default();
                        let written = pixel.get_mut(tile.clone()).unwrap_or_default();
                        for (written, sum) in written.iter_mut().zip(sums) {
                            *written = *sum;
                        }
                    }
                }
            }
        }
    }

    /// Returns the entries of the input in the sum of a result, along an axis.
    #[inline(always)]
    fn seen(&self, window: usize, axis: usize) -> View {
        let (start, padding) = (window * self.stride[axis], self.padding[axis]);
        let end = (self.image[axis] + padding).saturating_sub(start);
        let place = padding.saturating_sub(start);
        let count = end.min(self.kernel[axis]).saturating_sub(place);
        View {
            first: start + place - padding,
            count,
            place,
        }
    }

    /// Returns the results along an axis whose windows contain this place of the input.
    #[inline(always)]
    fn seen_by(&self, at: usize, axis: usize) -> View {
        let (kernel, stride) = (self.kernel[axis], self.stride[axis].max(1));
        let at = at + self.padding[axis];
        let first = (at + 1).saturating_sub(kernel).div_ceil(stride);
        let end = (at / stride + 1).min(self.result[axis]);
        View {
            first,
            count: end.saturating_sub(first),
            place: at.saturating_sub(first * stride),
        }
    }
}

/// The range that a sum reads along an axis.
struct View {
    /// The first pixel.
    first: usize,
    /// Number of pixels.
    count: usize,
    /// The place of the kernel for the first pixel.
    place: usize,
}

impl View {
    /// Returns whether two sums read the same number of pixels, with the same places of the kernel.
    #[inline(always)]
    const fn is_like(&self, other: &Self) -> bool {
        self.count == other.count && self.place == other.place
    }
}

/// The direction of a pass: from the input to results, or from the derivatives of the results to
/// those of the input. Distances are in entries, and a step back wraps around.
struct Way<'a> {
    /// An image.
    source: &'a [f32],
    width: usize,
    channels: usize,
    weights: &'a [f32],
    kernel_width: usize,
    /// Distance between the weights of two channels of the sums.
    from_sum_to_sum: usize,
    /// Distance between the weights of two channels of the source.
    from_channel_to_channel: usize,
    /// Distances between the weights of two rows, and of two columns, of the source.
    from_place_to_place: [usize; 2],
    /// Distance between two pixels of the sums with the same places of the kernel.
    apart: usize,
    /// The range that a sum reads in the source.
    view: fn(&Convolution, usize, usize) -> View,
}

impl Way<'_> {
    /// Computes the sums of a tile's channels at one or two pixels, whose views only differ in
    /// their columns.
    #[inline(always)]
    fn sums<const N: usize, const P: usize>(
        &self,
        rows: &View,
        columns: &[View; 2],
        channels: Range<usize>,
    ) -> [[f32; N]; P] {
        let weights = from(self.weights, channels.start * self.from_sum_to_sum);
        let place = rows.place * self.kernel_width + columns[0].place;
        let mut sums = [[0.0; N]; P];
        for row in 0..rows.count {
            let y = rows.first + row;
            let mut lines: [&[f32]; P] = [&[]; P];
            for (line, columns) in lines.iter_mut().zip(columns) {
                let pixel = y * self.width + columns.first;
                *line = from(self.source, pixel * self.channels);
            }
            let first = place.wrapping_add(row.wrapping_mul(self.from_place_to_place[0]));
            let weights = Weights {
                from_first: weights,
                sums: channels.len(),
                first,
            };
            self.add_products(&mut sums, &weights, &lines, columns[0].count);
        }
        sums
    }

    /// Adds to each sum the products of the entries of some pixels with its weights.
    ///
    /// Not inlined, so that the loop over channels has all registers.
    #[inline(never)]
    fn add_products<const N: usize, const P: usize>(
        &self,
        sums: &mut [[f32; N]; P],
        weights: &Weights<'_>,
        lines: &[&[f32]; P],
        pixels: usize,
    ) {
        let last = weights.sums.min(N).saturating_sub(1);
        // All have the length of the last one, so one bounds check is enough for a tile.
        let length = from(weights.from_first, last * self.from_sum_to_sum).len();
        let mut rows: [&[f32]; N] = [&[]; N];
        let mut images = *lines;
        unroll!(n < N, {
            let start = n.min(last) * self.from_sum_to_sum;
            let Some(row) = from(weights.from_first, start).get(..length) else {
                return;
            };
            rows[n] = row;
        });
        unroll!(p < P, {
            let Some(line) = lines[p].get(..pixels * self.channels) else {
                return;
            };
            images[p] = line;
        });
        let mut totals = *sums;
        let (mut first, mut pixel) = (weights.first, 0);
        for _ in 0..pixels {
            let mut kernels: [&[f32]; N] = [&[]; N];
            unroll!(n < N, {
                kernels[n] = from(rows[n], first);
            });
            let mut entries: [&[f32]; P] = [&[]; P];
            unroll!(p < P, {
                let Some(pixel) = images[p].get(pixel..pixel + self.channels) else {
                    return;
                };
                entries[p] = pixel;
            });
            let mut at = 0;
            for channel in 0..self.channels {
                unroll!(n < N, {
                    let Some(weight) = kernels[n].get(at) else {
                        return;
                    };
                    unroll!(p < P, {
                        let Some(entry) = entries[p].get(channel) else {
                            return;
                        };
                        totals[p][n] += weight * entry;
                    });
                });
                at += self.from_channel_to_channel;
            }
            first = first.wrapping_add(self.from_place_to_place[1]);
            pixel += self.channels;
        }
        *sums = totals;
    }
}

/// The weights of a tile.
struct Weights<'a> {
    /// All weights from the first channel of the sums on.
    from_first: &'a [f32],
    /// Number of channels.
    sums: usize,
    /// Position of the weight of the first entry.
    first: usize,
}

/// Returns the entries from `start`.
#[inline(always)]
fn from(v: &[f32], start: usize) -> &[f32] {
    v.get(start..).unwrap_or_default()
}
