//! Residuals and losses of the models, from scores in units of 2⁻¹⁶.
//!
//! The residual of a score is the derivative of the loss with respect to it: p − 1 or p for a
//! class, prediction minus target for a value. It is an integer of magnitude at most 2¹⁶, in units
//! of 2⁻¹⁶ for classes and of 2⁻¹² for values, which saturate beyond ±16.

use super::exponential::{exp_of_minus, ln};
use crate::format::{SCORE_FRACTION, TARGET_FRACTION, value};
use crate::model::{Dim, Linear, Logistic, Model, Softmax};

/// 1 in units of 2⁻¹⁶, and the largest residual.
pub(super) const ONE: i32 = 1 << 16;

/// A model that can train in integers.
pub trait FixedPointModel: Model {
    /// A class, or a value in multiples of 2^−[`TARGET_FRACTION`].
    type FixedPointTarget: Copy + Default;

    /// Fraction bits of a residual.
    const RESIDUAL_FRACTION: u32;

    /// Returns the loss of one sample in units of 2⁻¹⁶ and the number of saturated residuals.
    /// Replaces the scores by the residuals.
    fn residuals_in_place(&self, scores: &mut [i32], target: Self::FixedPointTarget) -> (u32, u32);

    /// Like [`Model::predict`], from scores in units of 2⁻¹⁶.
    fn predict_in_integers(&self, scores: &[i32]) -> Self::Target;

    /// Like [`Model::probabilities_in_place`], in units of 2⁻¹⁶.
    fn probabilities_in_integers(&self, scores: &mut [i32]);
}

impl<D: Dim> FixedPointModel for Linear<D> {
    type FixedPointTarget = i32;
    const RESIDUAL_FRACTION: u32 = TARGET_FRACTION;

    #[inline(always)]
    fn residuals_in_place(&self, scores: &mut [i32], target: i32) -> (u32, u32) {
        const PLACES: u32 = SCORE_FRACTION - TARGET_FRACTION;
        let (mut loss, mut saturated) = (0, 0);
        for score in scores {
            // Below 2²⁷ and 2²² in magnitude: no overflow.
            let exact = (((*score >> (PLACES - 1)) + 1) >> 1).saturating_sub(target);
            *score = exact.clamp(-ONE, ONE);
            saturated += u32::from(*score != exact);
            // r²/2 of units 2⁻²⁴, in units of 2⁻¹⁶: at most 2³² / 2⁹.
            let magnitude = u64::from(score.unsigned_abs());
            loss += ((magnitude * magnitude) >> (2 * TARGET_FRACTION - 15)) as u32;
        }
        (loss, saturated)
    }

    #[inline]
    fn predict_in_integers(&self, scores: &[i32]) -> f32 {
        let score = scores.first().copied().unwrap_or(0);
        value(score.unsigned_abs().into(), SCORE_FRACTION, score < 0)
    }

    fn probabilities_in_integers(&self, _: &mut [i32]) {}
}

impl<D: Dim> FixedPointModel for Logistic<D> {
    type FixedPointTarget = u16;
    const RESIDUAL_FRACTION: u32 = SCORE_FRACTION;

    /// Treats the model as two classes, one with the score 0.
    #[inline(always)]
    fn residuals_in_place(&self, scores: &mut [i32], target: u16) -> (u32, u32) {
        let mut loss = 0;
        for score in scores {
            let largest = (*score).max(0);
            let (own, other) = (exp_below(*score, largest), exp_below(0, largest));
            let (probability, label) = (share(own, reciprocal(own + other)), target != 0);
            let named = if label { *score } else { 0 };
            loss += ln(own + other).saturating_add(largest.abs_diff(named));
            *score = probability as i32 - if label { ONE } else { 0 };
        }
        (loss, 0)
    }

    #[inline]
    fn predict_in_integers(&self, scores: &[i32]) -> u16 {
        u16::from(scores.first().is_some_and(|score| *score > 0))
    }

    #[inline]
    fn probabilities_in_integers(&self, scores: &mut [i32]) {
        self.residuals_in_place(scores, 0);
    }
}

impl<D: Dim, C: Dim> FixedPointModel for Softmax<D, C> {
    type FixedPointTarget = u16;
    const RESIDUAL_FRACTION: u32 = SCORE_FRACTION;

    /// Scores are shifted by the largest one, whose exponential is 2¹⁶. The sum is at least that,
    /// and at most 2¹⁶ times the number of classes, which has 16 bits.
    #[inline(always)]
    fn residuals_in_place(&self, scores: &mut [i32], target: u16) -> (u32, u32) {
        let largest = scores.iter().fold(i32::MIN, |largest, s| largest.max(*s));
        let named = scores.get(usize::from(target)).copied();
        let mut sum = 0_u32;
        for score in scores.iter_mut() {
            let exponential = exp_below(*score, largest);
            sum = sum.saturating_add(exponential);
            *score = exponential as i32;
        }
        let factor = reciprocal(sum);
        for score in scores.iter_mut() {
            *score = share(score.unsigned_abs(), factor) as i32;
        }
        if let Some(probability) = scores.get_mut(usize::from(target)) {
            *probability -= ONE;
        }
        let behind = largest.abs_diff(named.unwrap_or(largest));
        (ln(sum).saturating_add(behind), 0)
    }

    #[inline]
    fn predict_in_integers(&self, scores: &[i32]) -> u16 {
        let mut best = (0, i32::MIN);
        for (class, score) in (0..).zip(scores) {
            if *score > best.1 {
                best = (class, *score);
            }
        }
        best.0
    }

    /// Uses the residuals for a target that is not a class: models have at most 65,535 classes.
    #[inline]
    fn probabilities_in_integers(&self, scores: &mut [i32]) {
        self.residuals_in_place(scores, u16::MAX);
    }
}

/// Returns e^(score − largest).
#[inline(always)]
fn exp_below(score: i32, largest: i32) -> u32 {
    exp_of_minus(largest.abs_diff(score))
}

/// Returns 2³² / sum, for a sum of at least 2¹⁶.
#[inline(always)]
fn reciprocal(sum: u32) -> u32 {
    u32::MAX / sum.max(ONE.unsigned_abs())
}

/// Returns the quotient of a term and the sum, in units of 2⁻¹⁶, from the sum's [`reciprocal`],
/// which is below 2¹⁶: with half a unit at most 2³² − 2¹⁵.
#[inline(always)]
fn share(term: u32, reciprocal: u32) -> u32 {
    (term * reciprocal + 0x8000) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::vec::Vec;

    /// Returns the error of a probability, in units of 2⁻¹⁶. Each exponential is off by 1.3, and
    /// their sum by 1.3 for each class but the largest, weighted by the share p. The reciprocal is
    /// off by one, of at most 2¹⁶, and rounding by a half.
    fn error(classes: usize, p: f64) -> f64 {
        1.3 + p * 1.3 * classes as f64 + 1.0 + 0.5
    }

    fn exact(scores: &[i32]) -> Vec<f64> {
        let largest = f64::from(*scores.iter().max().unwrap());
        let exponentials = scores
            .iter()
            .map(|s| ((f64::from(*s) - largest) / 65_536.0).exp());
        let sum: f64 = exponentials.clone().sum();
        exponentials.map(|e| e / sum).collect()
    }

    proptest! {
        #[test]
        fn softmax_is_near_the_exact_one(
            scores in vec(prop_oneof![-200_000..200_000, any::<i32>()], 1..40), target in 0_u16..50,
        ) {
            let model = Softmax::new(1_usize, scores.len());
            let mut residuals = scores.clone();
            let (loss, saturated) = model.residuals_in_place(&mut residuals, target);
            let exact = exact(&scores);
            for ((class, residual), p) in (0..).zip(&residuals).zip(&exact) {
                let expected = 65_536.0 * (p - f64::from(u8::from(class == target)));
                let bound = error(scores.len(), *p);
                prop_assert!((f64::from(*residual) - expected).abs() <= bound, "{class}");
                prop_assert!(residual.abs() <= ONE);
            }
            if let Some(p) = exact.get(usize::from(target)).filter(|p| **p > 1e-9) {
                let error = f64::from(loss) / 65_536.0 + p.ln();
                prop_assert!(error.abs() < 1e-3, "{error}");
            }
            prop_assert_eq!(saturated, 0);
        }

        #[test]
        fn logistic_is_near_the_exact_one(
            score in prop_oneof![-200_000..200_000, any::<i32>()], target in 0_u16..3,
        ) {
            let mut residual = [score];
            let model = Logistic::new(1_usize);
            let (loss, _) = model.residuals_in_place(&mut residual, target);
            let p = 1.0 / (1.0 + (-f64::from(score) / 65_536.0).exp());
            let expected = 65_536.0 * (p - f64::from(u8::from(target != 0)));
            prop_assert!((f64::from(residual[0]) - expected).abs() <= error(2, 1.0));
            let named = if target == 0 { 1.0 - p } else { p };
            if named > 1e-9 {
                prop_assert!((f64::from(loss) / 65_536.0 + named.ln()).abs() < 1e-3);
            }
        }

        #[test]
        fn linear_residuals_saturate(score in any::<i32>(), target in -(1 << 22)..1 << 22) {
            let mut residual = [score];
            let (loss, saturated) = Linear::new(1_usize).residuals_in_place(&mut residual, target);
            let exact = (f64::from(score) / 16.0 + 0.5).floor() - f64::from(target);
            let expected = exact.clamp(-65_536.0, 65_536.0);
            prop_assert_eq!(f64::from(residual[0]), expected);
            prop_assert_eq!(saturated, u32::from(exact.abs() > 65_536.0));
            let exact = expected * expected / f64::from(1 << 9);
            prop_assert_eq!(f64::from(loss), exact.floor());
        }
    }

    /// The model never predicts a target that is not a class: training pushes away from all
    /// classes.
    #[test]
    fn a_target_that_is_no_class_has_no_residual_of_its_own() {
        let mut residuals = [0, 0];
        let model = Softmax::new(1_usize, 2_usize);
        let (loss, _) = model.residuals_in_place(&mut residuals, 7);
        assert_eq!(residuals, [ONE / 2 - 1; 2], "within a unit");
        assert_eq!(loss, 45_426);
    }

    #[test]
    fn as_many_classes_as_the_protocol_has_fit() {
        let mut residuals = std::vec![0; 65_535];
        let model = Softmax::new(1_usize, 65_535_usize);
        model.residuals_in_place(&mut residuals, 0);
        assert_eq!((residuals[0], residuals[1]), (1 - ONE, 1));
    }
}
