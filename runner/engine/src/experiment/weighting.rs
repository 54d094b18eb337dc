//! The weight of an update, from the configuration.

use crate::check::ExperimentError;
use crate::combinations::{Setting, Settings};
use crate::config::Config;
use crate::method::contract::MethodProperties;
use crate::tables::cohort::Weighting;
use smolfed_data::federation::Federation;

/// How updates are weighted; `None` if one device has all samples. Encoders that learn without
/// labels are weighted by samples, as their loss is (docs/papers.md, F5), unless there is a clip
/// norm: then weights are uniform by default, and no cap is needed.
fn weighting(config: &Config, properties: &MethodProperties) -> Option<Weighting> {
    let by_samples = !properties.uses_labels && config.privacy.clip_norm.is_none();
    let default = match by_samples {
        true => Weighting::Samples,
        false => Weighting::Uniform,
    };
    let weighting = config.cohort.weighting.unwrap_or(default);
    (!properties.has_one_participant).then_some(weighting)
}

/// What the weights declare ([`crate::combinations`]).
pub(super) fn settings(config: &Config, properties: &MethodProperties) -> Settings {
    let weighting = weighting(config, properties);
    Settings::of([
        (Setting::BySamples, weighting == Some(Weighting::Samples)),
        (
            Setting::UniformWeights,
            weighting == Some(Weighting::Uniform),
        ),
    ])
}

/// The number of samples at which the weight of an update stops growing; `None` for uniform
/// weights.
pub(super) fn cap(
    config: &Config,
    federation: &Federation,
    properties: &MethodProperties,
) -> Result<Option<u32>, ExperimentError> {
    match (weighting(config, properties), config.cohort.weight_cap) {
        (None | Some(Weighting::Uniform), _) => Ok(None),
        (Some(Weighting::Samples), Some(cap)) => Ok(Some(cap)),
        (Some(Weighting::Samples), None) if config.privacy.clip_norm.is_some() => {
            Err(ExperimentError::Missing {
                key: "cohort.weight_cap",
                purpose: "the largest weight multiplies the influence of one device on the sum, \
                          and must not depend on the data: give the number of samples at which the \
                          weight stops growing",
            })
        }
        (Some(Weighting::Samples), None) => Ok(federation.sample_counts().max()),
    }
}
