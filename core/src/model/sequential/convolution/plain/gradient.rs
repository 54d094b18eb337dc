//! Gradients of a convolution with respect to its weights, without memory, for boards.

use core::ops::Range;

use super::{super::Convolution, from};
use crate::lanes::unroll;

impl Convolution {
    #[inline(always)]
    pub(in super::super) fn plain_gradient<const N: usize, const P: usize>(
        &self,
        input: &[f32],
        derivatives: &[f32],
        gradient: &mut [f32],
    ) {
        let weights = self.outputs * self.patch();
        let Some((gradient, biases)) = gradient.split_at_mut_checked(weights) else {
            return;
        };
        for derivatives in derivatives.chunks_exact(self.outputs.max(1)) {
            for (sum, derivative) in biases.iter_mut().zip(derivatives) {
                *sum += derivative;
            }
        }
        let [height, width] = self.kernel;
        let places = (0..height).flat_map(|row| (0..width).map(move |column| [row, column]));
        for place in places {
            let windows = [0, 1].map(|axis| self.seeing(place[axis], axis));
            for channel in (0..self.inputs).step_by(P) {
                for filter in (0..self.outputs).step_by(N) {
                    let tile = Corner {
                        place,
                        channel,
                        filter,
                    };
                    self.add_gradients::<N, P>(&tile, &windows, [input, derivatives], gradient);
                }
            }
        }
    }

    /// Adds to a tile of the gradient.
    #[inline(always)]
    fn add_gradients<const N: usize, const P: usize>(
        &self,
        tile: &Corner,
        windows: &[Range<usize>; 2],
        [input, derivatives]: [&[f32]; 2],
        gradient: &mut [f32],
    ) {
        let area = self.kernel[0] * self.kernel[1];
        let first = tile.filter * self.patch()
            + tile.channel * area
            + tile.place[0] * self.kernel[1]
            + tile.place[1];
        let mut sums = [[0.0; N]; P];
        let filters = N.min(self.outputs - tile.filter);
        let channels = P.min(self.inputs - tile.channel);
        let at = |p: usize, n: usize| first + n * self.patch() + p * area;
        for (p, sums) in sums.iter_mut().enumerate().take(channels) {
            for (n, sum) in sums.iter_mut().enumerate().take(filters) {
                *sum = gradient.get(at(p, n)).copied().unwrap_or_default();
            }
        }
        self.add_pixels(&mut sums, tile, windows, input, derivatives);
        for (p, sums) in sums.iter().enumerate().take(channels) {
            for (n, sum) in sums.iter().enumerate().take(filters) {
                if let Some(gradient) = gradient.get_mut(at(p, n)) {
                    *gradient = *sum;
                }
            }
        }
    }

    /// Adds the products of the derivatives of a tile's results with the entries at its place of
    /// the kernel, window by window.
    ///
    /// Not inlined, so that the loop over columns has all registers.
    #[inline(never)]
    fn add_pixels<const N: usize, const P: usize>(
        &self,
        sums: &mut [[f32; N]; P],
        tile: &Corner,
        windows: &[Range<usize>; 2],
        input: &[f32],
        derivatives: &[f32],
    ) {
        let (place, [rows, columns]) = (tile.place, windows);
        let mut totals = *sums;
        let x = columns.start * self.stride[1] + place[1] - self.padding[1];
        for row in rows.clone() {
            let y = row * self.stride[0] + place[0] - self.padding[0];
            let first = (y * self.image[1] + x) * self.inputs + tile.channel;
            let mut entries = from(input, first);
            let first = (row * self.result[1] + columns.start) * self.outputs + tile.filter;
            let mut derivatives = from(derivatives, first);
            for _ in columns.clone() {
                let (factors, pair) = (some::<N>(derivatives), some::<P>(entries));
                unroll!(p < P, {
                    unroll!(n < N, {
                        totals[p][n] += factors[n] * pair[p];
                    });
                });
                derivatives = from(derivatives, self.outputs);
                entries = from(entries, self.stride[1] * self.inputs);
            }
        }
        *sums = totals;
    }

    /// Returns the results along an axis for which a place of the kernel is within the input.
    #[inline(always)]
    fn seeing(&self, place: usize, axis: usize) -> Range<usize> {
        let (stride, padding) = (self.stride[axis].max(1), self.padding[axis]);
        let end = (self.image[axis] + padding).saturating_sub(place);
        let end = end.div_ceil(stride).min(self.result[axis]);
        padding.saturating_sub(place).div_ceil(stride)..end
    }
}

/// The first weight of a tile of the gradient.
struct Corner {
    place: [usize; 2],
    channel: usize,
    filter: usize,
}

/// Returns the first values, padded with 0.
#[inline(always)]
fn some<const N: usize>(v: &[f32]) -> [f32; N] {
    #[cold]
    fn all<const N: usize>(v: &[f32]) -> [f32; N] {
        core::array::from_fn(|i| v.get(i).copied().unwrap_or_default())
    }
    match v.first_chunk() {
        Some(values) => *values,
        None => all(v),
    }
}
