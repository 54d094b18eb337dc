//! Steps of local training in the span of a device's samples, which touch neither features nor
//! parameters.
#![allow(
    clippy::needless_range_loop,
    reason = "the closures of iterators are compiled for the oldest of all processors"
)]

use pulp::Simd;
use smolfed_core::personal::Effort;
use smolfed_core::samples::Samples;
use smolfed_core::stream::{self, Stream};
use smolfed_core::train::{TrainError, TrainReport};

use super::gram::Gram;
use super::residuals::Residuals;
use crate::rows::Rows;

/// Outside this range, far from `f32`'s limits, the common factor of A and U is multiplied in.
const SCALES: std::ops::RangeInclusive<f32> = 1.0 / 65_536.0..=65_536.0;

/// Settings of a device's descent.
#[derive(Clone, Copy)]
pub(super) struct Descent {
    pub(super) effort: Effort,
    pub(super) batch_size: usize,
    /// η
    pub(super) rate: f32,
    /// λ
    pub(super) decay: f32,
    /// μ
    pub(super) pull: f32,
    /// L, if every step is projected.
    pub(super) bound: Option<f32>,
}

/// State of local training: t, p, A and U. A row of each matrix has `stride` entries and belongs to
/// one output.
///
/// A and U have a common factor. Decay and projection change only this factor, and no entry.
pub(super) struct Iterate<'a> {
    pub(super) t: f32,
    pub(super) p: f32,
    pub(super) scale: f32,
    /// A / scale.
    pub(super) coefficients: &'a mut [f32],
    /// U / scale.
    pub(super) products: &'a mut [f32],
    /// S₀.
    pub(super) base: &'a [f32],
    /// D, or empty without a pull.
    pub(super) pulled: &'a [f32],
    pub(super) stride: usize,
    /// ‖w₀‖².
    pub(super) squares: f64,
    /// Scores of a batch, then its residuals, then its steps, and two more rows.
    pub(super) batch: Batch<'a>,
}

/// Memory of a batch, whose rows have another length.
pub(super) struct Batch<'a> {
    pub(super) scores: &'a mut [f32],
    pub(super) spare: &'a mut [f32],
    pub(super) stride: usize,
}

impl Iterate<'_> {
    /// Runs all steps of a round. `order` holds the samples in order.
    #[inline(always)]
    pub(super) fn descend<S: Simd, M: Residuals<Target: Default>>(
        &mut self,
        simd: S,
        samples: &Rows<'_, M::Target>,
        gram: &Gram,
        descent: &Descent,
        rng: &mut Stream,
        order: &mut [u32],
    ) -> Result<TrainReport, TrainError> {
        let (epochs, max_steps) = match descent.effort {
            Effort::Epochs(epochs) => (epochs, u32::MAX),
            Effort::Steps(steps) => (u32::MAX, steps.get()),
        };
        let steps_an_epoch = order.len().div_ceil(descent.batch_size) as u64;
        let mut targets = Vec::with_capacity(descent.batch_size.min(order.len()));
        let mut report = TrainReport::default();
        for epoch in 0..epochs {
            if report.steps >= max_steps {
                break;
            }
            // Only losses of the first and the last epoch are computed, since they are reported.
            let is_last = epoch + 1 == epochs
                || u64::from(report.steps) + steps_an_epoch >= u64::from(max_steps);
            let wanted = epoch == 0 || is_last;
            stream::shuffle(order, rng);
            let (mut loss, mut batches) = (0.0, 0.0);
            for batch in order.chunks(descent.batch_size) {
                if report.steps >= max_steps {
                    break;
                }
                targets.clear();
                targets.extend(batch.iter().map(|s| samples.target(*s as usize)));
                loss += self.step::<S, M>(simd, gram, descent, batch, &targets, wanted);
                batches += 1.0;
                report.steps += 1;
                if let Some(bound) = descent.bound {
                    report.norm = self.norm(simd);
                    if !report.norm.is_finite() {
                        return Err(TrainError::Diverged);
                    }
                    report.clipping_chances += 1;
                    if report.norm > bound {
                        let factor = bound / report.norm;
                        self.t *= factor;
                        self.scale *= factor;
                        report.clipped_steps += 1;
                    }
                }
            }
            report.last_loss = loss / batches;
            if epoch == 0 {
                report.first_loss = report.last_loss;
            }
        }
        Ok(report)
    }

    /// Takes one step. Returns the mean loss before it if `wanted`.
    #[inline(always)]
    fn step<S: Simd, M: Residuals>(
        &mut self,
        simd: S,
        gram: &Gram,
        descent: &Descent,
        batch: &[u32],
        targets: &[M::Target],
        wanted: bool,
    ) -> f32 {
        self.gather(batch);
        let Batch {
            scores,
            spare,
            stride,
        } = &mut self.batch;
        let stride = *stride;
        let loss = M::residuals(simd, scores, stride, targets, spare, wanted);

        let keep = 1.0 - descent.rate * (descent.decay + descent.pull);
        self.t = keep * self.t - descent.rate * descent.decay;
        self.p = keep * self.p - descent.rate * descent.pull;
        self.scale *= keep;
        if !SCALES.contains(&self.scale) {
            self.rescale();
        }
        let factor = -descent.rate / (batch.len() as f32 * self.scale);
        let rows = self.batch.scores.chunks_exact_mut(stride);
        let coefficients = self.coefficients.chunks_exact_mut(self.stride);
        let products = self.products.chunks_exact_mut(self.stride);
        for ((steps, a), u) in rows.zip(coefficients).zip(products) {
            for (step, s) in steps.iter_mut().zip(batch) {
                *step *= factor;
                a[*s as usize] += *step;
            }
            add_columns(simd, gram, batch, steps, u);
        }
        loss / batch.len() as f32
    }

    /// Computes the scores of a batch: (1 + t) S₀ + p D + U.
    #[inline(always)]
    fn gather(&mut self, batch: &[u32]) {
        let rows = self.batch.scores.chunks_exact_mut(self.batch.stride);
        let base = self.base.chunks_exact(self.stride);
        let products = self.products.chunks_exact(self.stride);
        for ((scores, base), u) in rows.zip(base).zip(products) {
            for (score, s) in scores.iter_mut().zip(batch) {
                let s = *s as usize;
                *score = (1.0 + self.t) * base[s] + self.scale * u[s];
            }
        }
        let rows = self.batch.scores.chunks_exact_mut(self.batch.stride);
        for (scores, pulled) in rows.zip(self.pulled.chunks_exact(self.stride)) {
            for (score, s) in scores.iter_mut().zip(batch) {
                *score += self.p * pulled[*s as usize];
            }
        }
    }

    /// Multiplies the common factor into A and U.
    #[cold]
    fn rescale(&mut self) {
        for x in self.coefficients.iter_mut().chain(self.products.iter_mut()) {
            *x *= self.scale;
        }
        self.scale = 1.0;
    }

    /// Returns ‖t w₀ + X'A‖, which is meaningless with a pull.
    #[inline(always)]
    fn norm<S: Simd>(&self, simd: S) -> f32 {
        let mut sums = [simd.splat_f32s(0.0); 2];
        let coefficients = S::as_simd_f32s(self.coefficients).0.iter();
        let products = S::as_simd_f32s(self.products).0;
        let base = S::as_simd_f32s(self.base).0;
        for ((a, u), s) in coefficients.zip(products).zip(base) {
            sums[0] = simd.mul_add_e_f32s(*a, *u, sums[0]);
            sums[1] = simd.mul_add_e_f32s(*a, *s, sums[1]);
        }
        let of_products = f64::from(simd.reduce_sum_f32s(sums[0]));
        let of_base = f64::from(simd.reduce_sum_f32s(sums[1]));
        let (t, scale) = (f64::from(self.t), f64::from(self.scale));
        let squares = t * t * self.squares + scale * (2.0 * t * of_base + scale * of_products);
        // Rounding may give a value slightly below zero. NaN stays.
        if squares < 0.0 {
            0.0
        } else {
            squares.sqrt() as f32
        }
    }
}

/// Computes `u += Σ_j steps[j] · G[batch[j]]`.
#[inline(always)]
fn add_columns<S: Simd>(simd: S, gram: &Gram, batch: &[u32], steps: &[f32], u: &mut [f32]) {
    const V: usize = 4;
    let u = S::as_mut_simd_f32s(u).0;
    let (blocks, rest) = u.as_chunks_mut::<V>();
    let done = blocks.len() * V;
    for (block, u) in blocks.iter_mut().enumerate() {
        add_block(simd, gram, batch, steps, block * V, u);
    }
    for (v, u) in rest.iter_mut().enumerate() {
        add_block(simd, gram, batch, steps, done + v, std::array::from_mut(u));
    }
}

/// Computes [`add_columns`] for `V` vectors, from the vector `first`.
#[inline(always)]
fn add_block<S: Simd, const V: usize>(
    simd: S,
    gram: &Gram,
    batch: &[u32],
    steps: &[f32],
    first: usize,
    u: &mut [S::f32s; V],
) {
    let mut sums = *u;
    for (s, step) in batch.iter().zip(steps) {
        let step = simd.splat_f32s(*step);
        let row = &S::as_simd_f32s(gram.row(*s)).0[first..first + V];
        for v in 0..V {
            sums[v] = simd.mul_add_e_f32s(step, row[v], sums[v]);
        }
    }
    *u = sums;
}
