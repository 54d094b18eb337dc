//! The gradient of the weights of an affine layer from the residuals of a batch.

use super::{
    super::pass::Then,
    batch::{BATCH_GROUP, Batch, next_rows},
};
use crate::{
    lanes::{LANES, SPAN, WIDE, each_lane, span, unroll},
    samples::Samples,
};

/// Features of a row processed side by side with vectors: one register of 512 bits, or two of 256.
const WIDTH: usize = 2 * LANES;

/// Initial value of sums. Adding any number to it gives that number, even −0, and the compiler
/// knows this, so the first product costs no addition. 0 + −0 is 0.
const NOTHING: f32 = -0.0;

/// `Σ_s residuals[s][c] · x_s` for each row c of a gradient, added one sample after the other.
pub(in super::super) struct OuterProducts<'a, S> {
    /// Residuals of the first sample, then of the next.
    pub(in super::super) residuals: &'a [f32],
    /// Number of residuals of a sample.
    pub(in super::super) outputs: usize,
    /// At most [`BATCH_GROUP`] samples with vectors.
    pub(in super::super) batch: &'a Batch<'a, S>,
    /// Whether the sum overwrites the gradient.
    pub(in super::super) fresh: bool,
}

impl<S: Samples> OuterProducts<'_, S> {
    /// Adds the sum to the first `weights` entries of `gradient`.
    ///
    /// Calls `then` for each block of these entries when it is complete.
    #[inline(always)]
    pub(in super::super) fn add_to(
        &self,
        gradient: &mut [f32],
        weights: usize,
        mut then: Option<&mut impl Then>,
    ) {
        let (Batch { samples, indices }, outputs) = (self.batch, self.outputs);
        if !WIDE {
            let mut fresh = self.fresh;
            let rows = gradient.get_mut(..weights).unwrap_or_default();
            // The length of every sample, known to the compiler if the model's sizes are.
            let features = weights / outputs;
            for (index, residuals) in indices.iter().zip(self.residuals.chunks_exact(outputs)) {
                let x = samples.features(*index as usize);
                let x = x.get(..features).unwrap_or_default();
                add_outer_product(residuals, x, rows, features, fresh);
                fresh = false;
            }
            if let Some(then) = then {
                then.complete(gradient, 0..weights, weights);
            }
            return;
        }
        let mut x: [&[f32]; BATCH_GROUP] = [&[]; BATCH_GROUP];
        for (x, index) in x.iter_mut().zip(*indices) {
            *x = samples.features(*index as usize);
        }
        let rows = Rows {
            x: x.get(..indices.len()).unwrap_or(&x),
            residuals: self.residuals,
            outputs,
            features: weights / outputs,
            fresh: self.fresh,
        };
        let mut first = 0;
        while first < outputs {
            let then = then.as_deref_mut();
            first += match next_rows(outputs - first) {
                5 => rows.add::<5>(first, gradient, then),
                2 => rows.add::<2>(first, gradient, then),
                _ => rows.add::<1>(first, gradient, then),
            };
        }
    }
}

/// The terms of rows of a gradient.
struct Rows<'a> {
    x: &'a [&'a [f32]],
    residuals: &'a [f32],
    outputs: usize,
    features: usize,
    fresh: bool,
}

impl Rows<'_> {
    /// Adds to the `R` rows from `first`, one [`SPAN`] at a time, and returns `R`.
    #[inline(always)]
    fn add<const R: usize>(
        &self,
        first: usize,
        gradient: &mut [f32],
        mut then: Option<&mut impl Then>,
    ) -> usize {
        let features = self.features;
        let mut start = 0;
        while start < features {
            let end = features.min(start + SPAN);
            let mut at = start;
            while at + WIDTH <= end {
                self.add_block::<R, WIDTH>(first, at, gradient);
                at += WIDTH;
            }
            while at + LANES <= end {
                self.add_block::<R, LANES>(first, at, gradient);
                at += LANES;
            }
            while at < end {
                self.add_block::<R, 1>(first, at, gradient);
                at += 1;
            }
            if let Some(then) = &mut then {
                for row in first..first + R {
                    let row = row * features;
                    then.complete(gradient, row + start..row + end, first * features + end);
                }
            }
            start = end;
        }
        R
    }

    /// Adds to `W` features of the `R` rows from `first`. The sums stay in registers for all
    /// samples.
    #[inline(always)]
    fn add_block<const R: usize, const W: usize>(
        &self,
        first: usize,
        at: usize,
        gradient: &mut [f32],
    ) {
        let mut sums = [[NOTHING; W]; R];
        if !self.fresh {
            unroll!(r < R, {
                sums[r] = *span(gradient, (first + r) * self.features + at);
            });
        }
        for (x, residuals) in (self.x.iter()).zip(self.residuals.chunks_exact(self.outputs)) {
            let (x, a): (&[f32; W], &[f32; R]) = (span(x, at), span(residuals, first));
            unroll!(r < R, {
                for l in 0..W {
                    sums[r][l] += a[r] * x[l];
                }
            });
        }
        unroll!(r < R, {
            let row = gradient.get_mut((first + r) * self.features + at..);
            if let Some(entries) = row.and_then(|row| row.first_chunk_mut()) {
                *entries = sums[r];
            }
        });
    }
}

/// Adds the products of one sample without vectors. Eight of its values at a time stay in registers
/// for all rows.
#[inline(always)]
fn add_outer_product(
    residuals: &[f32],
    x: &[f32],
    gradient: &mut [f32],
    features: usize,
    fresh: bool,
) {
    let features = features.max(1);
    let (blocks, rest) = x.as_chunks::<LANES>();
    for (block, x) in blocks.iter().enumerate() {
        // A copy, because the compiler would reload values that a store to a row may have changed.
        let x = *x;
        for (row, a) in gradient.chunks_exact_mut(features).zip(residuals) {
            let (row, _) = row.as_chunks_mut::<LANES>();
            if let Some(row) = row.get_mut(block) {
                let a = *a;
                if fresh {
                    each_lane!(l, {
                        row[l] = a * x[l];
                    });
                } else {
                    each_lane!(l, {
                        row[l] += a * x[l];
                    });
                }
            }
        }
    }
    for (row, a) in gradient.chunks_exact_mut(features).zip(residuals) {
        let (_, row) = row.as_chunks_mut::<LANES>();
        for (y, x) in row.iter_mut().zip(rest) {
            *y = if fresh { NOTHING } else { *y } + a * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::SampleSlice;
    use std::vec;

    const FEATURES: usize = 11;
    const OUTPUTS: usize = 3;

    /// Products of all signs, including zeros of both signs.
    fn sample(seed: usize) -> ([f32; FEATURES], [f32; OUTPUTS]) {
        let x = core::array::from_fn(|i| [0.0, -0.0, 0.3, -1.7][(i + seed) % 4]);
        let residuals = core::array::from_fn(|c| [-0.7, 0.0, 0.9][(c + seed) % 3]);
        (x, residuals)
    }

    /// Covers both paths, in the order of the samples. The first is written.
    #[test]
    fn the_first_sample_writes_its_products_and_the_others_add_theirs() {
        let samples = [sample(0), sample(1)];
        let mut expected = vec![0.0; OUTPUTS * FEATURES];
        let mut found = vec![1.0; OUTPUTS * FEATURES];
        for (s, (x, residuals)) in samples.iter().enumerate() {
            for (c, a) in residuals.iter().enumerate() {
                for (i, x) in x.iter().enumerate() {
                    let entry = &mut expected[c * FEATURES + i];
                    *entry = if s == 0 { a * x } else { *entry + a * x };
                }
            }
            add_outer_product(residuals, x, &mut found, FEATURES, s == 0);
        }
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<vec::Vec<_>>();
        assert_eq!(bits(&found), bits(&expected));

        let features = samples.map(|(x, _)| x).concat();
        let rows = SampleSlice::new(&features, &[0u16; 2], FEATURES).unwrap();
        let products = OuterProducts {
            residuals: &samples.map(|(_, residuals)| residuals).concat(),
            outputs: OUTPUTS,
            batch: &Batch {
                samples: &rows,
                indices: &[0, 1],
            },
            fresh: true,
        };
        let mut found = vec![1.0; OUTPUTS * FEATURES];
        products.add_to(&mut found, OUTPUTS * FEATURES, None::<&mut ()>);
        assert_eq!(bits(&found), bits(&expected));
    }
}
