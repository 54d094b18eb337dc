//! The differences between kinds of models: types of features, targets and scores, and the scores,
//! class and probabilities of the current model.

use smolfed_core::{
    personal::store::NoStore,
    predict::{CurrentModel, Predictor},
    provision,
    samples::{SampleRows, SampleTarget},
    session::{Session, Trainable},
};

use crate::{
    client::{Feature, Features, Link, Scores, Target},
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
    type Feature: Feature + crate::memory::Zeros;
    type Target: SampleTarget + provision::Target + crate::memory::Zeros;
    type Score: Copy + Default + 'static;

    /// From scores to probabilities.
    const LINK: Link;

    /// The model of a configuration.
    fn model(sizes: Sizes) -> Result<Self::Model, sf_status>;

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
    /// Writes the scores of a sample. Returns the most likely class, or 0 for a value.
    pub(crate) fn predict(
        &self,
        features: Features<'_>,
        scores: Scores<'_>,
    ) -> Result<u16, sf_status> {
        let (Some(features), Some(scores)) = (K::Feature::features(features), K::scores(scores))
        else {
            return Err(sf_status::SF_TYPE);
        };
        self.0.scores(features, &mut [], scores)?;
        Ok(K::class(self.0.prediction(scores)))
    }
}
