//! The differences between kinds of models: types of features, targets and scores, and the scores,
//! class and probabilities of the current model.

use smolfed_core::{
    model::ModelError,
    personal::store::NoStore,
    predict::{CurrentModel, Predictor},
    provision,
    samples::{Reading, SampleRows, SampleTarget},
    session::{Session, Trainable},
};

use crate::{
    client::{Features, Scores, Target},
    config::Sizes,
    flash::Flash,
    random::Random,
    secrets::Secrets,
    status::sf_status,
};

/// The session of a device of a kind.
pub(crate) type SessionOf<K> =
    Session<'static, <K as Kind>::Model, Flash, Random, NoStore, Secrets>;

/// The samples of a device of a kind.
pub(crate) type SamplesOf<K> = SampleRows<'static, <K as Kind>::Feature, <K as Kind>::Target>;

/// A kind of model.
pub(crate) trait Kind: 'static {
    type Model: Trainable<Target = Self::Target>
        + Predictor<Feature = Self::Feature, Score = Self::Score, Prediction = Self::Target>;
    type Feature: Reading + crate::memory::Zeros;
    type Target: SampleTarget + provision::Target + crate::memory::Zeros;
    type Score: Copy + Default + 'static;

    /// The model of a configuration.
    fn model(sizes: Sizes) -> Result<Self::Model, sf_status>;

    /// Features of this type.
    fn features(features: Features<'_>) -> Option<&[Self::Feature]>;

    /// Scores of this type.
    fn scores(scores: Scores<'_>) -> Option<&mut [Self::Score]>;

    /// A target of this type.
    fn target(target: Target) -> Option<Self::Target>;

    /// The class of a prediction, or 0 for a value.
    fn class(prediction: Self::Target) -> u16;
}

/// The current model of a device of a kind.
pub(crate) struct Current<'a, K: Kind>(pub(crate) CurrentModel<'a, K::Model>);

impl<K: Kind> Current<'_, K> {
    /// Writes the scores of a sample.
    pub(crate) fn scores(
        &self,
        features: Features<'_>,
        scores: Scores<'_>,
    ) -> Result<(), sf_status> {
        let features = K::features(features).ok_or(sf_status::SF_TYPE)?;
        self.with_scores(scores, |model, scores| {
            model.scores(features, &mut [], scores)
        })
    }

    /// Returns the most likely class by these scores, or 0 for a value.
    pub(crate) fn class(&self, scores: Scores<'_>) -> Result<u16, sf_status> {
        let mut class = 0;
        self.with_scores(scores, |model, scores| {
            class = K::class(model.prediction(scores));
            Ok(())
        })?;
        Ok(class)
    }

    /// Turns scores into probabilities.
    pub(crate) fn probabilities(&self, scores: Scores<'_>) -> Result<(), sf_status> {
        self.with_scores(scores, |model, scores| {
            model.probabilities_in_place(scores);
            Ok(())
        })
    }

    /// Calls with scores of the model's type.
    fn with_scores(
        &self,
        scores: Scores<'_>,
        call: impl FnOnce(&CurrentModel<'_, K::Model>, &mut [K::Score]) -> Result<(), ModelError>,
    ) -> Result<(), sf_status> {
        let scores = K::scores(scores).ok_or(sf_status::SF_TYPE)?;
        Ok(call(&self.0, scores)?)
    }
}
