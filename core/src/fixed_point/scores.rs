//! Scores of a new sample by a model in integers, the same as in training.

use super::{dot, loss::FixedPointModel};
use crate::format::{Feature, FeatureScale};
use crate::model::ModelError;

/// A model with the scale of its features and checked weights.
pub(crate) struct FixedPointScores<'a, M> {
    pub(crate) model: &'a M,
    pub(crate) scale: FeatureScale,
}

impl<M: FixedPointModel> FixedPointScores<'_, M> {
    /// Writes the scores of a sample in units of 2⁻¹⁶, rounded and saturated, with the same bits as
    /// in training.
    ///
    /// * Shape: `weights` are the model's parameters, and `features` and `scores` have its numbers
    ///   of features and outputs.
    /// * Cost: a product of 32 bits for each weight.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    #[inline(always)]
    pub(crate) fn scores_into<X: Feature>(
        &self,
        weights: &[i32],
        features: &[X],
        scores: &mut [i32],
    ) -> Result<(), ModelError> {
        let (expected, found) = (self.model.feature_count(), features.len());
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
        let (outputs, found) = (self.model.output_count(), scores.len());
        if found != outputs {
            let expected = outputs;
            return Err(ModelError::Scratch { expected, found });
        }
        let (expected, found) = (self.model.parameter_count(), weights.len());
        let (true, Some((weights, biases))) = (
            found == expected,
            weights.split_at_checked(expected - outputs),
        ) else {
            return Err(ModelError::Parameters { expected, found });
        };
        dot::scores_of_features(weights, biases, features, self.scale, scores);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixed_point::MAX_WEIGHT, model::Softmax};
    use proptest::{collection::vec, prelude::*};
    use std::vec::Vec;

    fn same<X: Feature>(weights: &[i32], features: &[X], places: u8) -> [[i32; 3]; 2] {
        let scale = FeatureScale::new::<X>(places).unwrap();
        let model = &Softmax::new(features.len(), 3_usize);
        let (mut scores, mut trained) = ([0; 3], [0; 3]);
        let own = FixedPointScores { model, scale };
        own.scores_into(weights, features, &mut scores).unwrap();
        let row: Vec<i32> = features.iter().map(|x| x.get()).collect();
        let (weights, biases) = weights.split_at(3 * features.len());
        dot::scores::<X>(weights, biases, &row, scale, &mut trained);
        [scores, trained]
    }

    proptest! {
        /// For any number of features, the scores are those of training.
        #[test]
        fn scores_are_those_of_training(
            (wide, weights) in (1_usize..40).prop_flat_map(|count| {
                let weight = prop_oneof![-MAX_WEIGHT..=MAX_WEIGHT, Just(MAX_WEIGHT)];
                (vec(any::<i16>(), count), vec(weight, 3 * (count + 1)))
            }),
            places in 0_u8..=7,
        ) {
            let narrow: Vec<i8> = wide.iter().map(|x| x.to_le_bytes()[1].cast_signed()).collect();
            let [found, expected] = same(&weights, &wide, 2 * places);
            prop_assert_eq!(found, expected);
            let [found, expected] = same(&weights, &narrow, places);
            prop_assert_eq!(found, expected);
        }
    }
}
