//! Losses of a batch and their derivatives with respect to the scores, for vectors of samples.
//!
//! Scores are stored by class: a row has one entry per sample, padded to a whole vector with
//! unspecified values.

use pulp::Simd;
use smolfed_core::math;
use smolfed_core::model::{Linear, Logistic, Model, Softmax};

use super::exp::exp;

/// A loss on top of linear scores.
pub(super) trait Residuals: Model {
    /// Replaces the scores of a batch with the derivatives of the loss with respect to them, as
    /// [`Model::loss_in_place`]. Returns the sum of the losses if `wanted`, and 0 otherwise.
    ///
    /// * Shape: a row of `stride` entries for each output, where the first entries are for
    ///   `targets`. `spare` has two such rows.
    fn residuals<S: Simd>(
        simd: S,
        scores: &mut [f32],
        stride: usize,
        targets: &[Self::Target],
        spare: &mut [f32],
        wanted: bool,
    ) -> f32;
}

impl Residuals for Linear<usize> {
    #[inline(always)]
    fn residuals<S: Simd>(
        _: S,
        scores: &mut [f32],
        _: usize,
        targets: &[f32],
        _: &mut [f32],
        _: bool,
    ) -> f32 {
        let mut loss = 0.0;
        for (score, target) in scores.iter_mut().zip(targets) {
            *score -= target;
            loss += 0.5 * *score * *score;
        }
        loss
    }
}

impl Residuals for Logistic<usize> {
    /// With e = e^−|z|: σ(|z|) = 1 / (1 + e), and softplus(z) = max(z, 0) + ln(1 + e).
    #[inline(always)]
    fn residuals<S: Simd>(
        simd: S,
        scores: &mut [f32],
        stride: usize,
        targets: &[u16],
        spare: &mut [f32],
        wanted: bool,
    ) -> f32 {
        let (inverse, sums) = spare.split_at_mut(stride);
        let one = simd.splat_f32s(1.0);
        let vectors = S::as_simd_f32s(scores).0.iter();
        let results = S::as_mut_simd_f32s(inverse).0.iter_mut();
        let sums_out = S::as_mut_simd_f32s(sums).0.iter_mut();
        for ((z, inverse), sum) in vectors.zip(results).zip(sums_out) {
            let magnitude = simd.abs_f32s(*z);
            let e = exp(simd, simd.sub_f32s(simd.splat_f32s(0.0), magnitude));
            *sum = simd.add_f32s(one, e);
            *inverse = simd.div_f32s(one, *sum);
        }
        let mut loss = 0.0;
        for (((score, target), inverse), sum) in
            scores.iter_mut().zip(targets).zip(inverse).zip(sums)
        {
            let z = *score;
            let (signed, label) = if *target == 0 { (z, 0.0) } else { (-z, 1.0) };
            let probability = if z >= 0.0 { *inverse } else { 1.0 - *inverse };
            *score = probability - label;
            if wanted {
                loss += signed.max(0.0) + math::ln(*sum);
            }
        }
        loss
    }
}

impl Residuals for Softmax<usize, usize> {
    /// log-sum-exp, shifted by the largest score to avoid overflow.
    #[inline(always)]
    fn residuals<S: Simd>(
        simd: S,
        scores: &mut [f32],
        stride: usize,
        targets: &[u16],
        spare: &mut [f32],
        wanted: bool,
    ) -> f32 {
        let (largest, sums) = spare.split_at_mut(stride);
        let largest = S::as_mut_simd_f32s(largest).0;
        largest.fill(simd.splat_f32s(f32::NEG_INFINITY));
        for row in scores.chunks_exact(stride) {
            for (largest, score) in largest.iter_mut().zip(S::as_simd_f32s(row).0) {
                *largest = simd.max_f32s(*largest, *score);
            }
        }
        for row in scores.chunks_exact_mut(stride) {
            for (largest, score) in largest.iter().zip(S::as_mut_simd_f32s(row).0) {
                *score = simd.sub_f32s(*score, *largest);
            }
        }
        let mut loss = 0.0;
        if wanted {
            for (s, target) in targets.iter().enumerate() {
                // An invalid class counts as the most likely one.
                loss -= scores
                    .get(usize::from(*target) * stride + s)
                    .copied()
                    .unwrap_or(0.0);
            }
        }
        let totals = S::as_mut_simd_f32s(sums).0;
        totals.fill(simd.splat_f32s(0.0));
        for row in scores.chunks_exact_mut(stride) {
            for (total, score) in totals.iter_mut().zip(S::as_mut_simd_f32s(row).0) {
                *score = exp(simd, *score);
                *total = simd.add_f32s(*total, *score);
            }
        }
        for (inverse, total) in largest.iter_mut().zip(&*totals) {
            *inverse = simd.div_f32s(simd.splat_f32s(1.0), *total);
        }
        for row in scores.chunks_exact_mut(stride) {
            for (inverse, score) in largest.iter().zip(S::as_mut_simd_f32s(row).0) {
                *score = simd.mul_f32s(*score, *inverse);
            }
        }
        for (s, target) in targets.iter().enumerate() {
            if let Some(probability) = scores.get_mut(usize::from(*target) * stride + s) {
                *probability -= 1.0;
            }
        }
        if wanted {
            loss += targets
                .iter()
                .zip(sums)
                .map(|(_, sum)| math::ln(*sum))
                .sum::<f32>();
        }
        loss
    }
}
