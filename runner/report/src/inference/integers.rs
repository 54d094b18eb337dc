//! A model that predicts in integers, with the bits of boards without a floating-point unit: a
//! model of one layer with the arithmetic of its training, or a network in 8 bits.

use smolfed_core::fixed_point::{
    Feature, FeatureFormat, FixedPointModel, round_feature, round_weight,
};
use smolfed_core::predict::{CurrentModel, Predictor};
use smolfed_core::session::FixedPoint;
use smolfed_data::dataset::DatasetView;
use smolfed_engine::task::Task;

use super::error::InferenceError;
use super::model::{Outputs, TrainedModel};
use super::prediction::{IntegerPredictions, Prediction};
use super::quantised::QuantisedModel;

/// One in the unit of scores and probabilities.
const ONE: f32 = 65_536.0;

/// A trained model of one layer with integer weights and features.
#[derive(Clone, Copy)]
pub struct IntegerModel<'a> {
    model: &'a TrainedModel,
    format: FeatureFormat,
}

/// A model that predicts in integers.
#[derive(Clone)]
pub enum Integers<'a> {
    /// A model of one layer.
    Layer(IntegerModel<'a>),
    /// A network.
    Network(QuantisedModel<'a>),
}

impl<'a> Integers<'a> {
    /// Returns the model in floating point.
    #[must_use]
    pub const fn model(&self) -> &'a TrainedModel {
        match self {
            Self::Layer(model) => model.model(),
            Self::Network(model) => model.model(),
        }
    }

    /// Returns predictions of samples, whose features are rounded first.
    ///
    /// # Errors
    /// [`InferenceError`] if samples and model do not fit.
    pub fn predictions(
        &self,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError> {
        match self {
            Self::Layer(model) => model.predictions(samples),
            Self::Network(model) => model.predictions(samples),
        }
    }
}

impl TrainedModel {
    /// Returns the model with weights in units of 2⁻¹⁸ and features of this format.
    ///
    /// # Errors
    /// [`InferenceError::Arithmetic`] for models of several layers, and for encoders.
    pub fn in_integers(&self, format: FeatureFormat) -> Result<IntegerModel<'_>, InferenceError> {
        let has_scores = !matches!(self.outputs(), Outputs::Representation);
        match self.task() {
            Task::Linear(_) | Task::Logistic(_) | Task::Softmax(_) if has_scores => {
                let model = self;
                Ok(IntegerModel { model, format })
            }
            _ => Err(InferenceError::Arithmetic),
        }
    }
}

impl<'a> IntegerModel<'a> {
    /// Returns the model in floating point.
    #[must_use]
    pub const fn model(&self) -> &'a TrainedModel {
        self.model
    }

    /// Returns the format of features.
    #[must_use]
    pub const fn format(&self) -> FeatureFormat {
        self.format
    }

    /// Returns weights and biases in units of 2⁻¹⁸, rounded to nearest and saturated.
    ///
    /// # Errors
    /// [`InferenceError::NoPrediction`] for a hidden layer alone, and
    /// [`InferenceError::NotFinite`].
    pub fn weights(&self) -> Result<Vec<i32>, InferenceError> {
        let parameters = self.model.finite_parameters()?;
        Ok(parameters.iter().map(|w| round_weight(*w).0).collect())
    }

    /// Whether a weight or a bias is beyond the range of integers, to which [`Self::weights`] clips
    /// it.
    #[must_use]
    pub fn saturates(&self) -> bool {
        let parameters = self.model.finite_parameters().unwrap_or_default();
        parameters.iter().any(|w| round_weight(*w).1)
    }

    /// Returns classes with probabilities, or values in their own unit, of samples whose features
    /// are first rounded to the format.
    ///
    /// # Errors
    /// [`InferenceError`] if samples and model do not fit.
    pub fn predictions(
        &self,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError> {
        match self.format.is_wide() {
            false => self.of_features::<i8>(samples),
            true => self.of_features::<i16>(samples),
        }
    }

    fn of_features<X: Feature>(
        &self,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError> {
        match self.model.task() {
            Task::Linear(model) => self.of_model::<_, X>(*model, samples),
            Task::Logistic(model) => self.of_model::<_, X>(*model, samples),
            Task::Softmax(model) => self.of_model::<_, X>(*model, samples),
            Task::Encoder(_) | Task::Sequential(_) => Err(InferenceError::Arithmetic),
        }
    }

    fn of_model<M, X>(
        &self,
        model: M,
        samples: DatasetView<'_>,
    ) -> Result<IntegerPredictions, InferenceError>
    where
        M: FixedPointModel<Target: Into<f64>>,
        X: Feature,
        FixedPoint<M, X>: Predictor<Feature = X, Score = i32, Prediction = M::Target>,
    {
        let scale = self.format.scale();
        let words = self.weights()?.into_iter();
        let words: Vec<f32> = words.map(|w| f32::from_bits(w.cast_unsigned())).collect();
        let predictor = FixedPoint::<M, X>::new(model, scale);
        let current = CurrentModel::new(0, &predictor, &words)?;
        let mut scores = vec![0; self.model.task().output_count()];
        let mut found = IntegerPredictions {
            predictions: Vec::with_capacity(samples.len()),
            ..IntegerPredictions::default()
        };
        let mut row = Vec::new();
        for index in 0..samples.len() {
            row.clear();
            for x in samples.features(index) {
                let (feature, is_saturated) = round_feature::<X>(*x, scale);
                found.saturated += u64::from(is_saturated);
                row.push(feature);
            }
            let prediction: f64 = current.predict(&row, &mut [], &mut scores)?.into();
            found.scores.extend(scores.iter().map(|s| *s as f32 / ONE));
            current.probabilities_in_place(&mut scores);
            found.predictions.push(self.prediction(prediction, &scores));
        }
        Ok(found)
    }

    /// Returns a class with probabilities in units of 2⁻¹⁶, or a scaled value.
    fn prediction(&self, found: f64, probabilities: &[i32]) -> Prediction {
        let share = |units: i32| units as f32 / ONE;
        match (self.model.outputs(), probabilities) {
            (Outputs::Value(scale), _) => Prediction::Value(scale.undo(found as f32)),
            (Outputs::Logit(_), [second]) => Prediction::Class {
                class: found as usize,
                probabilities: vec![share(ONE as i32 - second), share(*second)],
            },
            (_, all) => Prediction::Class {
                class: found as usize,
                probabilities: all.iter().copied().map(share).collect(),
            },
        }
    }
}
