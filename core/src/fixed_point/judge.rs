//! Prediction and loss of a model in integers for one sample, for questions to devices that train
//! in integers.

use super::{dot, loss::FixedPointModel};
use crate::{
    format::{Feature, FeatureScale, SCORE_FRACTION, round_target, value},
    model::ModelError,
    question::Judged,
};

/// A target of samples that training in integers can use.
pub trait IntegerTarget: Copy {
    /// The target as an integer.
    type Integer: Copy + Default;

    /// Rounds the target.
    fn to_integer(self) -> Self::Integer;
}

impl IntegerTarget for u16 {
    type Integer = Self;

    fn to_integer(self) -> Self {
        self
    }
}

impl IntegerTarget for f32 {
    type Integer = i32;

    fn to_integer(self) -> i32 {
        round_target(self).0
    }
}

/// A model in integers, with the scale of its features.
#[derive(Clone, Copy, Debug)]
pub struct FixedPointJudge<'a, M> {
    /// The model.
    pub model: &'a M,
    /// Scale of the features.
    pub scale: FeatureScale,
    /// Its parameters in units of 2⁻¹⁸, of magnitude up to [`MAX_WEIGHT`](super::MAX_WEIGHT).
    pub weights: &'a [i32],
}

impl<M> FixedPointJudge<'_, M>
where
    M: FixedPointModel<Target: IntegerTarget<Integer = M::FixedPointTarget>>,
{
    /// Returns the model's result for a sample of integers of type `X`. For classes, scores and
    /// loss are those of training. For values, the squared error is computed in `f32` from the
    /// score and the target as given. Overwrites `scores`.
    ///
    /// # Errors
    /// [`ModelError`] if the number of weights, features or scores does not fit the model.
    #[inline(always)]
    pub fn judge<X: Feature>(
        &self,
        features: &[i32],
        target: M::Target,
        scores: &mut [i32],
    ) -> Result<Judged, ModelError> {
        let (expected, found) = (self.model.feature_count(), features.len());
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
        let (outputs, found) = (self.model.output_count(), scores.len());
        if found != outputs {
            let expected = outputs;
            return Err(ModelError::Scratch { expected, found });
        }
        let (expected, found) = (self.model.parameter_count(), self.weights.len());
        let (true, Some((weights, biases))) = (
            found == expected,
            self.weights.split_at_checked(expected - outputs),
        ) else {
            return Err(ModelError::Parameters { expected, found });
        };
        dot::scores::<X>(weights, biases, features, self.scale, scores);
        let predicted = self.model.predict_in_integers(scores);
        let (loss, _) = (self.model).residuals_in_place(scores, target.to_integer());
        let loss = value(loss.into(), SCORE_FRACTION, false);
        Ok(Judged::new(target.into(), predicted.into(), loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixed_point::MAX_WEIGHT,
        model::{Linear, Softmax},
    };
    use proptest::{collection::vec, prelude::*};
    use std::{vec, vec::Vec};

    /// Returns the scores in real numbers, of a sample of integers.
    fn exact(weights: &[i32], row: &[i32], places: u8, outputs: usize) -> Vec<f64> {
        let (weights, biases) = weights.split_at(weights.len() - outputs);
        let unit = 2_f64.powi(-18);
        let score = |(weights, bias): (&[i32], &i32)| {
            let products = weights.iter().zip(row);
            let sum: f64 = products
                .map(|(w, x)| f64::from(*w) * unit * f64::from(*x) * 2_f64.powi(-i32::from(places)))
                .sum();
            sum + f64::from(*bias) * unit
        };
        weights.chunks(row.len()).zip(biases).map(score).collect()
    }

    proptest! {
        /// The class is that of the largest score, and the loss is near that of real numbers.
        #[test]
        fn a_softmax_model_is_judged_as_in_real_numbers(
            row in vec(-128_i32..128, 5),
            weights in vec(-MAX_WEIGHT / 8..MAX_WEIGHT / 8, 4 * 6),
            target in 0_u16..4,
            places in 4_u8..=7,
        ) {
            let model = &Softmax::new(5_usize, 4_usize);
            let scale = FeatureScale::new::<i8>(places).unwrap();
            let judge = FixedPointJudge { model, scale, weights: &weights };
            let judged = judge.judge::<i8>(&row, target, &mut [0; 4]).unwrap();
            let scores = exact(&weights, &row, places, 4);
            let largest = scores.iter().copied().fold(f64::MIN, f64::max);
            prop_assert!(largest - scores[usize::from(judged.class)] < 1e-4);
            let sum: f64 = scores.iter().map(|s| (s - largest).exp()).sum();
            let loss = sum.ln() + largest - scores[usize::from(target)];
            prop_assert!((f64::from(judged.loss) - loss).abs() < 1e-3, "{loss} {judged:?}");
        }

        /// The error of a value is that of the prediction in real numbers.
        #[test]
        fn a_linear_model_is_judged_as_in_real_numbers(
            row in vec(-32_768_i32..32_768, 3),
            weights in vec(-MAX_WEIGHT..MAX_WEIGHT, 4),
            target in -8.0_f32..8.0,
        ) {
            let model = &Linear::new(3_usize);
            let scale = FeatureScale::new::<i16>(13).unwrap();
            let judge = FixedPointJudge { model, scale, weights: &weights };
            let judged = judge.judge::<i16>(&row, target, &mut [0]).unwrap();
            let error = exact(&weights, &row, 13, 1)[0] - f64::from(target);
            let tolerance = 1e-4 * (1.0 + error * error);
            prop_assert!((f64::from(judged.loss) - error * error).abs() < tolerance, "{error}");
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        let model = &Linear::new(3_usize);
        let scale = FeatureScale::new::<i8>(6).unwrap();
        for count in [0, 3, 5] {
            let weights = &vec![0; count];
            let judge = FixedPointJudge {
                model,
                scale,
                weights,
            };
            let (expected, found) = (4, count);
            let judged = judge.judge::<i8>(&[1, 2, 3], 0.5, &mut [0]);
            assert_eq!(judged, Err(ModelError::Parameters { expected, found }));
        }
        let weights = &[0; 4];
        let judge = FixedPointJudge {
            model,
            scale,
            weights,
        };
        let scores: &mut [i32] = &mut [0; 5];
        let (expected, found) = (1, 5);
        let judged = judge.judge::<i8>(&[1, 2, 3], 0.5, scores);
        assert_eq!(judged, Err(ModelError::Scratch { expected, found }));
        let (expected, found) = (3, 2);
        let judged = judge.judge::<i8>(&[1, 2], 0.5, &mut [0]);
        assert_eq!(judged, Err(ModelError::Features { expected, found }));
    }
}
