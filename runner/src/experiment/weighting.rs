//! Weights by the number of samples.
//!
//! An update of a device with n samples counts `min(n, cap) / cap`. The largest weight is 1, so that the
//! sensitivity of the sum is that of uniform weights and noise is charged for the largest weight; what
//! the others send is noised as if it weighed as much. The cap must be chosen without the data.

use super::{ExperimentError, at_least_one};
use crate::config::{Config, Method, NoiseTime, Weighting};
use crate::data::federation::Federation;

/// The weighting that is in force. Encoders that are learned without labels are weighed by samples, as their
/// loss is (papers.md F5), unless a clip norm asks for noise: then by none, and no cap is needed.
pub(super) fn of_config(config: &Config) -> Weighting {
    let by_samples = config.method.is_contrastive() && config.privacy.clip_norm.is_none();
    let default = match by_samples {
        true => Weighting::Samples,
        false => Weighting::Uniform,
    };
    config.cohort.weighting.unwrap_or(default)
}

/// The cap; `None` for uniform weights.
pub(super) fn cap(
    config: &Config,
    federation: &Federation,
) -> Result<Option<u32>, ExperimentError> {
    let (cohort, privacy) = (&config.cohort, &config.privacy);
    let is_each_step =
        config.method == Method::Dpfedmtl && config.personalise.noise == Some(NoiseTime::EachStep);
    let weighting = of_config(config);
    if weighting == Weighting::Samples && is_each_step {
        return Err(ExperimentError::Contradiction {
            first: "cohort.weighting",
            second: "personalise.noise",
            advice: "what is released in each step cannot be weighed afterwards",
        });
    }
    if config.method == Method::CentralSc {
        // One device has all samples.
        return Ok(None);
    }
    match (weighting, cohort.weight_cap) {
        (Weighting::Uniform, None) => Ok(None),
        (Weighting::Uniform, Some(_)) => Err(ExperimentError::Contradiction {
            first: "cohort.weighting",
            second: "cohort.weight_cap",
            advice: "a cap is for weights by \"samples\"",
        }),
        (Weighting::Samples, Some(cap)) => {
            at_least_one("cohort.weight_cap", cap)?;
            Ok(Some(cap))
        }
        (Weighting::Samples, None) if privacy.clip_norm.is_some() => {
            Err(ExperimentError::Missing {
                key: "cohort.weight_cap",
                purpose: "the largest weight multiplies what a device can do to the sum, and must not be \
                      read from the data: give the number of samples from which on a device counts no \
                      more",
            })
        }
        (Weighting::Samples, None) => Ok(Some(most_samples(federation))),
    }
}

/// Samples of the device that has most.
pub(super) fn most_samples(federation: &Federation) -> u32 {
    let counts = (0..federation.device_count()).map(|device| count(federation, device));
    counts.max().unwrap_or(0)
}

/// The mean weight of a device.
pub(super) fn mean(cap: u32, federation: &Federation) -> f64 {
    let devices = federation.device_count();
    let weight = |device| f64::from(of(cap, count(federation, device)));
    (0..devices).map(weight).sum::<f64>() / f64::from(devices)
}

/// The weight of a device with so many samples.
pub(crate) fn of(cap: u32, samples: u32) -> f32 {
    samples.min(cap) as f32 / cap as f32
}

fn count(federation: &Federation, device: u32) -> u32 {
    u32::try_from(federation.sample_count(device)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_above_one() {
        assert_eq!(
            [0, 5, 10, 1000].map(|samples| of(10, samples)),
            [0.0, 0.5, 1.0, 1.0]
        );
    }
}
