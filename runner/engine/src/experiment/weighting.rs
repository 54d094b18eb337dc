//! The weight of an update, from the configuration.

use crate::check::{ExperimentError, contradiction};
use crate::config::Config;
use crate::method::contract::MethodProperties;
use crate::tables::cohort::{Denominator, Weighting};
use smolfed_data::federation::Federation;
use smolfed_release::Timing;

/// The number of samples at which the weight of an update stops growing; `None` for uniform
/// weights. Encoders that learn without labels are weighted by samples, as their loss is
/// (docs/papers.md, F5), unless there is a clip norm: then weights are uniform by default, and no
/// cap is needed.
pub(super) fn cap(
    config: &Config,
    federation: &Federation,
    properties: &MethodProperties,
) -> Result<Option<u32>, ExperimentError> {
    let (cohort, privacy) = (&config.cohort, &config.privacy);
    let by_samples = !properties.uses_labels && privacy.clip_norm.is_none();
    let default = match by_samples {
        true => Weighting::Samples,
        false => Weighting::Uniform,
    };
    let weighting = cohort.weighting.unwrap_or(default);
    let refuse = |second, advice| Err(contradiction("cohort.weighting", second, advice));
    if weighting == Weighting::Samples && cohort.denominator == Denominator::Realised {
        return refuse(
            "cohort.denominator",
            "weights by \"samples\" are divided by their expected sum, not by the number drawn",
        );
    }
    if weighting == Weighting::Samples && matches!(properties.timing, Timing::EachStep(_)) {
        return refuse(
            "personalise.noise",
            "the releases of the local steps cannot be weighted afterwards",
        );
    }
    if properties.has_one_participant {
        // One device has all samples.
        return Ok(None);
    }
    match (weighting, cohort.weight_cap) {
        (Weighting::Uniform, None) => Ok(None),
        (Weighting::Uniform, Some(_)) => {
            refuse("cohort.weight_cap", "a cap is for weights by \"samples\"")
        }
        (Weighting::Samples, Some(cap)) => Ok(Some(cap)),
        (Weighting::Samples, None) if privacy.clip_norm.is_some() => {
            Err(ExperimentError::Missing {
                key: "cohort.weight_cap",
                purpose: "the largest weight multiplies the influence of one device on the sum, \
                          and must not depend on the data: give the number of samples at which the \
                          weight stops growing",
            })
        }
        (Weighting::Samples, None) => Ok(federation.sample_counts().max()),
    }
}
