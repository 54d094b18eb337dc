//! Privacy events: a [`PrivacyEvent`] says which mechanism was applied, how devices were sampled,
//! who is trusted, what is protected, and how often. It does not say how that is accounted for: an
//! accountant does. A simulator draws its cohorts from the event's own [`Sampling`], so that the
//! sampler and the accounting cannot disagree.
//!
//! "Device" is the unit that is sampled: read "record" or "user" where that is the unit.
//!
//! What the accountants see is the event's [`Exposure`]: the noise over the sensitivity, the
//! sampling that amplifies (if any does against this adversary) and the number of rounds.

mod adjacency;
mod mechanism;
mod sampling;

pub use adjacency::Adjacency;
pub use mechanism::{Mechanism, ROUNDING_STD};
pub use sampling::Sampling;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::params::{HonestFraction, NoiseMultiplier, ParamError};

/// What one unit of the guarantee is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// Everything that one device holds.
    Device,
    /// One example of one device; weaker, as a device holds many.
    Example,
}

/// Who is trusted with what, that is, against whom the guarantee holds. As text: `central`, `local`
/// or `distributed=0.9`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustModel {
    /// The server sees the updates and the cohorts, adds the noise, and keeps both to itself.
    #[default]
    Central,
    /// Each device adds all of its own noise; the server sees each noisy update and who sent it.
    /// The noise multiplier is that of one device's upload.
    Local,
    /// Each device adds a share of the noise and the server sees the masked sum and the cohort.
    Distributed {
        /// The part of the noise variance that the guarantee counts on.
        honest: HonestFraction,
    },
}

impl FromStr for TrustModel {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let refused = || ParamError::TrustText {
            text: text.to_owned(),
        };
        match text.split_once('=') {
            None if text == "central" => Ok(Self::Central),
            None if text == "local" => Ok(Self::Local),
            Some(("distributed", fraction)) => {
                let fraction = fraction.parse().map_err(|_| refused())?;
                let honest = HonestFraction::new(fraction)?;
                Ok(Self::Distributed { honest })
            }
            _ => Err(refused()),
        }
    }
}

/// `count` rounds of one mechanism under one sampling scheme: the unit of composition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyEvent {
    /// What was added to the sum.
    pub mechanism: Mechanism,
    /// How devices are sampled.
    pub sampling: Sampling,
    /// Who is trusted.
    pub trust: TrustModel,
    /// What is protected.
    pub unit: PrivacyUnit,
    /// How many rounds of this kind there were. `max_participations` bounds the participations
    /// within these rounds, so the rounds of one run belong in one event.
    pub count: u64,
    /// How often a device that takes part in a round releases something in it, composed like
    /// rounds: 1, or the local steps where each of them is released; 0 if nothing leaves a device.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub releases: u32,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_one(releases: &u32) -> bool {
    *releases == 1
}

/// What one unit is exposed to in an event, as an accountant needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exposure {
    /// A Gaussian that sees the unit in each of `count` rounds.
    Gaussian {
        /// Noise std over sensitivity.
        noise_to_sensitivity: f64,
        /// Releases of the unit: rounds in which it may take part, times the releases of each.
        count: u64,
    },
    /// A Gaussian on a Poisson sample; the adversary does not know the sample. Add-remove.
    Poisson {
        /// τ, below 1.
        sampling_rate: f64,
        /// Noise std over sensitivity.
        noise_to_sensitivity: f64,
        /// Number of rounds.
        count: u64,
    },
    /// A Gaussian on a sample of fixed size without replacement, unknown to the adversary.
    /// Replace-one.
    Uniform {
        /// τ = S / N, below 1.
        sampling_rate: f64,
        /// Noise std over sensitivity (2L: half the noise multiplier).
        noise_to_sensitivity: f64,
        /// Number of rounds.
        count: u64,
    },
}

impl PrivacyEvent {
    /// `count` rounds of `mechanism` that protect a device, with a trusted server and one release a
    /// round; set the public fields for anything else.
    #[must_use]
    pub const fn new(mechanism: Mechanism, sampling: Sampling, count: u64) -> Self {
        Self {
            mechanism,
            sampling,
            trust: TrustModel::Central,
            unit: PrivacyUnit::Device,
            count,
            releases: 1,
        }
    }

    /// The relation under which this event is accounted: that of the sampling; for examples in
    /// correlation matrices always replace-one, as they are divided by a number of examples that is
    /// public.
    #[must_use]
    pub const fn adjacency(&self) -> Adjacency {
        match self.unit {
            PrivacyUnit::Example if self.is_matrix() => Adjacency::ReplaceOne,
            PrivacyUnit::Example | PrivacyUnit::Device => self.sampling.adjacency(),
        }
    }

    /// Whether correlation matrices are released, and no updates.
    #[must_use]
    pub const fn is_matrix(&self) -> bool {
        matches!(self.mechanism, Mechanism::CorrelationMatrix { .. })
    }

    /// Whether the moments of features are released, and no updates.
    #[must_use]
    pub const fn is_moments(&self) -> bool {
        matches!(self.mechanism, Mechanism::Moments { .. })
    }

    /// The same event for another number of rounds.
    #[must_use]
    pub const fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// The same event with another amount of noise.
    #[must_use]
    pub const fn with_noise_multiplier(self, noise_multiplier: NoiseMultiplier) -> Self {
        Self {
            mechanism: self.mechanism.with_noise_multiplier(noise_multiplier),
            ..self
        }
    }

    /// What one unit is exposed to.
    ///
    /// Sampling amplifies only against those who do not learn the cohort. The server of the local
    /// and the distributed model learns it, so there each round counts in full. Of distributed
    /// noise only the honest part counts: with a fraction h of the variance, std ν√h. Whoever gets
    /// a device's correlation matrix knows that the device takes part.
    #[must_use]
    pub fn exposure(&self) -> Exposure {
        let sensitivity = self.mechanism.sensitivity(self.adjacency());
        let honest = match self.trust {
            TrustModel::Central | TrustModel::Local => 1.0,
            TrustModel::Distributed { honest } => honest.get(),
        };
        let noise_to_sensitivity =
            self.mechanism.continuous_multiplier() * honest.sqrt() / sensitivity;
        let hides_cohort = matches!(self.trust, TrustModel::Central) && !self.is_matrix();
        let count = match self.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => self.count.min(u64::from(max_participations)),
            _ => self.count,
        };
        let count = count.saturating_mul(u64::from(self.releases));
        match (self.sampling, self.sampling.sampling_rate()) {
            (Sampling::Poisson { .. }, Some(sampling_rate))
                if hides_cohort && sampling_rate < 1.0 =>
            {
                Exposure::Poisson {
                    sampling_rate,
                    noise_to_sensitivity,
                    count,
                }
            }
            (Sampling::Uniform { .. }, Some(sampling_rate))
                if hides_cohort && sampling_rate < 1.0 =>
            {
                Exposure::Uniform {
                    sampling_rate,
                    noise_to_sensitivity,
                    count,
                }
            }
            _ => Exposure::Gaussian {
                noise_to_sensitivity,
                count,
            },
        }
    }
}

impl Exposure {
    /// Noise std over sensitivity.
    #[must_use]
    pub const fn noise_to_sensitivity(&self) -> f64 {
        match *self {
            Self::Gaussian {
                noise_to_sensitivity,
                ..
            }
            | Self::Poisson {
                noise_to_sensitivity,
                ..
            }
            | Self::Uniform {
                noise_to_sensitivity,
                ..
            } => noise_to_sensitivity,
        }
    }

    /// Whether something was released without any noise: then no finite ε holds.
    #[must_use]
    pub fn is_unprotected(&self) -> bool {
        let is_noisy = self.noise_to_sensitivity() > 0.0;
        self.count() > 0 && !is_noisy
    }

    /// Number of rounds, or of releases without sampling.
    #[must_use]
    pub const fn count(&self) -> u64 {
        match *self {
            Self::Gaussian { count, .. }
            | Self::Poisson { count, .. }
            | Self::Uniform { count, .. } => count,
        }
    }
}

#[cfg(test)]
mod tests;
