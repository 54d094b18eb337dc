//! Predictions with the current model of a device between rounds.
//!
//! [`Session::model`](crate::session::Session::model) and
//! [`Client::current`](crate::client::Client::current) lend a [`CurrentModel`]. Its scores and
//! probabilities in `f32` have the same bits as the simulator's evaluation and `smolfed predict`.
//! In integers they are the scores used in training, with the same bits on every processor. Nothing
//! here allocates, and the caller owns the scores.

use crate::{
    model::{Model, ModelError, ModelKind},
    samples::is_finite,
};

/// A model for predictions: a [`Model`] in `f32`, or a [`FixedPoint`] in integers.
///
/// [`FixedPoint`]: crate::session::FixedPoint
pub trait Predictor {
    /// A feature of a new sample: `f32`, or `i8` or `i16` of the model's scale.
    type Feature: Copy;

    /// A score: `f32`, or an integer in units of 2^−16.
    type Score: Copy + Default;

    /// A class or a value.
    type Prediction: Copy;

    /// Checks that these can be the parameters of the model.
    ///
    /// # Errors
    /// As [`CurrentModel::new`].
    fn check(&self, parameters: &[f32]) -> Result<(), ModelError>;

    /// Writes the scores of one sample to `scores`, from parameters in the format of the session.
    ///
    /// # Errors
    /// As [`CurrentModel::scores`].
    fn scores_into(
        &self,
        parameters: &[f32],
        features: &[Self::Feature],
        scratch: &mut [f32],
        scores: &mut [Self::Score],
    ) -> Result<(), ModelError>;

    /// See [`CurrentModel::prediction`].
    fn prediction(&self, scores: &[Self::Score]) -> Self::Prediction;

    /// See [`CurrentModel::probabilities_in_place`].
    fn probabilities(&self, scores: &mut [Self::Score]);
}

impl<M: Model> Predictor for M {
    type Feature = f32;
    type Score = f32;
    type Prediction = M::Target;

    fn check(&self, parameters: &[f32]) -> Result<(), ModelError> {
        has_length(self.parameter_count(), parameters)?;
        are_finite(parameters)
    }

    #[inline(always)]
    fn scores_into(
        &self,
        parameters: &[f32],
        features: &[f32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        // In a single layer, no score is finite if a feature is not: 0 · ∞ is NaN.
        let is_layer = const {
            matches!(
                M::KIND,
                ModelKind::Linear | ModelKind::Logistic | ModelKind::Softmax
            )
        };
        if is_layer {
            self.scores(parameters, features, scratch, scores)?;
            return are_finite(scores);
        }
        are_finite(features)?;
        self.scores(parameters, features, scratch, scores)?;
        are_finite(scores)
    }

    #[inline(always)]
    fn prediction(&self, scores: &[f32]) -> M::Target {
        self.predict(scores)
    }

    #[inline(always)]
    fn probabilities(&self, scores: &mut [f32]) {
        self.probabilities_in_place(scores);
    }
}

/// The complete, checked model of a round, for predictions.
///
/// Its parameters are public, because the coordinator sent them. Scores and predictions describe
/// private data.
#[derive(Clone, Copy)]
pub struct CurrentModel<'a, M> {
    round: u32,
    model: &'a M,
    parameters: &'a [f32],
}

impl<'a, M> CurrentModel<'a, M> {
    /// Returns the round whose devices started from this model.
    #[must_use]
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// Returns the parameters: numbers, or the bit patterns of integer weights.
    #[must_use]
    pub const fn parameters(&self) -> &'a [f32] {
        self.parameters
    }
}

impl<'a, M: Predictor> CurrentModel<'a, M> {
    /// Creates a model with the parameters of `round`, or any others: numbers of a [`Model`], or
    /// the bit patterns of integer weights.
    ///
    /// # Errors
    /// [`ModelError::Parameters`] for a wrong length, and [`ModelError::NotFinite`] for parameters
    /// that are not finite, or not weights of integer arithmetic.
    pub fn new(round: u32, model: &'a M, parameters: &'a [f32]) -> Result<Self, ModelError> {
        model.check(parameters)?;
        Ok(Self {
            round,
            model,
            parameters,
        })
    }

    /// Writes the scores of a sample: the value ([`Linear`](crate::model::Linear)), the logit of
    /// class 1 ([`Logistic`](crate::model::Logistic)), or a logit of each class (the others).
    ///
    /// * Shape: `features` and `scores` have the numbers of features and outputs of the model.
    ///   `scratch` has [`Model::score_scratch_count`] entries, which is 0 except for networks and
    ///   encoders.
    /// * Units: for integers 2⁻¹⁶, rounded to the nearest unit and saturated.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit, or a feature or a score is not finite.
    #[inline(always)]
    pub fn scores(
        &self,
        features: &[M::Feature],
        scratch: &mut [f32],
        scores: &mut [M::Score],
    ) -> Result<(), ModelError> {
        (self.model).scores_into(self.parameters, features, scratch, scores)
    }

    /// Writes [`Self::scores`], and returns the prediction: the value, or the most likely class
    /// (the first among equals).
    ///
    /// # Errors
    /// As [`Self::scores`].
    #[inline(always)]
    pub fn predict(
        &self,
        features: &[M::Feature],
        scratch: &mut [f32],
        scores: &mut [M::Score],
    ) -> Result<M::Prediction, ModelError> {
        self.scores(features, scratch, scores)?;
        Ok(self.prediction(scores))
    }

    /// Returns the prediction from scores: the value, or the most likely class (the first among
    /// equals).
    #[inline(always)]
    pub fn prediction(&self, scores: &[M::Score]) -> M::Prediction {
        self.model.prediction(scores)
    }

    /// Turns the scores of a sample into probabilities: of each class (softmax), or of class 1
    /// ([`Logistic`](crate::model::Logistic)). A value stays as it is. Integer probabilities are in
    /// units of 2⁻¹⁶: 65,536 is certain.
    #[inline(always)]
    pub fn probabilities_in_place(&self, scores: &mut [M::Score]) {
        self.model.probabilities(scores);
    }
}

/// Checks the number of parameters.
#[inline(always)]
pub(crate) fn has_length(expected: usize, parameters: &[f32]) -> Result<(), ModelError> {
    match parameters.len() {
        found if found == expected => Ok(()),
        found => Err(ModelError::Parameters { expected, found }),
    }
}

#[inline(always)]
fn are_finite(values: &[f32]) -> Result<(), ModelError> {
    match values.iter().all(|x| is_finite(*x)) {
        true => Ok(()),
        false => Err(ModelError::NotFinite),
    }
}

impl<M> core::fmt::Debug for CurrentModel<'_, M> {
    /// Shows round and size. The parameters are too many for a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (round, parameters) = (self.round, self.parameters.len());
        write!(f, "CurrentModel({parameters} parameters of round {round})")
    }
}

#[cfg(test)]
mod tests;
