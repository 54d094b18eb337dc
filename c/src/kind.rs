//! The differences between kinds of models.

use smolfed_core::{
    personal::store::NoStore,
    predict::Predictor,
    provision,
    samples::{Reading, SampleRows, SampleTarget},
    session::{Session, Trainable},
};

use crate::{
    client::{Features, Scores, Target},
    config::sf_config,
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
    fn model(config: &sf_config) -> Result<Self::Model, sf_status>;

    /// Features of this type.
    fn features(features: Features<'_>) -> Option<&[Self::Feature]>;

    /// Scores of this type.
    fn scores(scores: Scores<'_>) -> Option<&mut [Self::Score]>;

    /// A target of this type.
    fn target(target: Target) -> Option<Self::Target>;

    /// The class of a prediction, or 0 for a value.
    fn class(prediction: Self::Target) -> u16;
}
