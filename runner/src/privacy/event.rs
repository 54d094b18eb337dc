//! What really happened: one [`PrivacyEvent`] says which mechanism looked at the devices, how they
//! were sampled, who is trusted and how often. It is a value apart from how it is counted (an
//! accountant), and its [`Sampling`] is the very value that draws the cohorts, so that the
//! sampler and the accounting cannot disagree.
//!
//! What the accountants see is the event's [`Exposure`]: the noise over the sensitivity, the
//! sampling that amplifies (if any does against this adversary) and the number of rounds.

use serde::{Deserialize, Serialize};

use super::params::{HonestFraction, NoiseMultiplier, ParamError, SamplingRate};

/// Which two federations an adversary tries to tell apart. Epsilons under different relations are
/// not comparable and are never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One device takes part or not (its update is replaced by zero). Sensitivity of the sum: L.
    AddRemove,
    /// One device's data are replaced by any other data. Sensitivity of the sum: 2L.
    ReplaceOne,
}

/// What one unit of the guarantee is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// Everything that one device holds.
    Device,
    /// One example of one device; weaker, as a device holds many.
    Example,
}

/// Who is trusted with what, that is, against whom the guarantee holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustModel {
    /// The server sees the updates and the cohorts, adds the noise, and keeps both to itself.
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

/// How devices come to take part in a round. Use the constructors: they check the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "RawSampling")]
pub enum Sampling {
    /// A cohort of fixed size, drawn without replacement, afresh each round.
    #[non_exhaustive]
    Uniform {
        /// N, the devices there are. Public.
        device_count: u32,
        /// S, the devices of each round.
        cohort_size: u32,
    },
    /// Each device joins each round with the same probability, independently.
    #[non_exhaustive]
    Poisson {
        /// N, the devices there are.
        device_count: u32,
        /// τ, the probability of joining.
        sampling_rate: SamplingRate,
    },
    /// Every device takes part in every round.
    #[non_exhaustive]
    Full {
        /// N, the devices there are.
        device_count: u32,
    },
    /// Devices come when they can. No randomness is claimed and none amplifies; a device only
    /// keeps count of how often it took part.
    #[non_exhaustive]
    Unsampled {
        /// N, the devices there are.
        device_count: u32,
        /// The largest number of rounds of one run in which one device takes part.
        max_participations: u32,
    },
}

/// [`Sampling`] before its numbers are checked against each other.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum RawSampling {
    Uniform {
        device_count: u32,
        cohort_size: u32,
    },
    Poisson {
        device_count: u32,
        sampling_rate: SamplingRate,
    },
    Full {
        device_count: u32,
    },
    Unsampled {
        device_count: u32,
        max_participations: u32,
    },
}

impl TryFrom<RawSampling> for Sampling {
    type Error = ParamError;
    fn try_from(raw: RawSampling) -> Result<Self, ParamError> {
        match raw {
            RawSampling::Uniform {
                device_count,
                cohort_size,
            } => Self::uniform(device_count, cohort_size),
            RawSampling::Poisson {
                device_count,
                sampling_rate,
            } => Self::poisson(device_count, sampling_rate),
            RawSampling::Full { device_count } => Self::full(device_count),
            RawSampling::Unsampled {
                device_count,
                max_participations,
            } => Self::unsampled(device_count, max_participations),
        }
    }
}

impl Sampling {
    /// Cohorts of `cohort_size` out of `device_count` devices, without replacement.
    ///
    /// # Errors
    /// [`ParamError::CohortSize`] unless `1 <= cohort_size <= device_count`.
    pub fn uniform(device_count: u32, cohort_size: u32) -> Result<Self, ParamError> {
        if cohort_size == 0 || cohort_size > device_count {
            return Err(ParamError::CohortSize {
                cohort_size,
                device_count,
            });
        }
        Ok(Self::Uniform {
            device_count,
            cohort_size,
        })
    }

    /// Cohorts that each device joins with probability `sampling_rate`.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] for a federation without devices.
    pub fn poisson(device_count: u32, sampling_rate: SamplingRate) -> Result<Self, ParamError> {
        Self::some_devices(device_count)?;
        Ok(Self::Poisson {
            device_count,
            sampling_rate,
        })
    }

    /// All devices in every round.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] for a federation without devices.
    pub fn full(device_count: u32) -> Result<Self, ParamError> {
        Self::some_devices(device_count)?;
        Ok(Self::Full { device_count })
    }

    /// Devices that come when they can, each in at most `max_participations` rounds.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] or [`ParamError::NoParticipations`] if a number is 0.
    pub fn unsampled(device_count: u32, max_participations: u32) -> Result<Self, ParamError> {
        Self::some_devices(device_count)?;
        if max_participations == 0 {
            return Err(ParamError::NoParticipations);
        }
        Ok(Self::Unsampled {
            device_count,
            max_participations,
        })
    }

    fn some_devices(device_count: u32) -> Result<(), ParamError> {
        if device_count == 0 {
            Err(ParamError::NoDevices)
        } else {
            Ok(())
        }
    }

    /// N.
    #[must_use]
    pub const fn device_count(&self) -> u32 {
        match *self {
            Self::Uniform { device_count, .. }
            | Self::Poisson { device_count, .. }
            | Self::Full { device_count }
            | Self::Unsampled { device_count, .. } => device_count,
        }
    }

    /// τ: the chance of one device to be in a round; none is claimed for `unsampled`.
    #[must_use]
    pub fn sampling_rate(&self) -> Option<f64> {
        match *self {
            Self::Uniform {
                device_count,
                cohort_size,
            } => Some(f64::from(cohort_size) / f64::from(device_count)),
            Self::Poisson { sampling_rate, .. } => Some(sampling_rate.get()),
            Self::Full { .. } => Some(1.0),
            Self::Unsampled { .. } => None,
        }
    }

    /// The relation under which this scheme is accounted: a cohort of fixed size needs a public N
    /// and replaces a device by another; the other schemes zero it out.
    #[must_use]
    pub const fn adjacency(&self) -> Adjacency {
        match self {
            Self::Uniform { .. } => Adjacency::ReplaceOne,
            Self::Poisson { .. } | Self::Full { .. } | Self::Unsampled { .. } => {
                Adjacency::AddRemove
            }
        }
    }

    /// The word of the command line: `uniform`, `poisson`, `full` or `unsampled`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Uniform { .. } => "uniform",
            Self::Poisson { .. } => "poisson",
            Self::Full { .. } => "full",
            Self::Unsampled { .. } => "unsampled",
        }
    }
}

/// What is added to the sum of the cohort's updates in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A real-valued Gaussian of std z · L on the sum of updates of norm at most L.
    Gaussian {
        /// z.
        noise_multiplier: NoiseMultiplier,
    },
    /// The exact discrete Gaussian on the grid L · 2^-b, on integer updates of norm at most 2^b.
    DiscreteGaussian {
        /// z.
        noise_multiplier: NoiseMultiplier,
        /// b: the grid is `clip_norm * 2^-grid_bits`.
        grid_bits: u8,
    },
    /// A Gaussian on the mean of rank-one positive matrices, each of Frobenius norm at most L
    /// (FedSC's correlation matrices, with L = μ/|D|). Two such terms have a non-negative inner
    /// product, so replacing one moves the mean by √2 · L, not by 2L.
    CorrelationMatrix {
        /// z, relative to μ/|D|.
        noise_multiplier: NoiseMultiplier,
    },
}

impl Mechanism {
    /// z, as configured.
    #[must_use]
    pub const fn noise_multiplier(&self) -> NoiseMultiplier {
        match *self {
            Self::Gaussian { noise_multiplier }
            | Self::DiscreteGaussian {
                noise_multiplier, ..
            }
            | Self::CorrelationMatrix { noise_multiplier } => noise_multiplier,
        }
    }

    /// The same mechanism with another amount of noise, as calibration tries them.
    #[must_use]
    pub const fn with_noise_multiplier(self, noise_multiplier: NoiseMultiplier) -> Self {
        match self {
            Self::Gaussian { .. } => Self::Gaussian { noise_multiplier },
            Self::DiscreteGaussian { grid_bits, .. } => Self::DiscreteGaussian {
                noise_multiplier,
                grid_bits,
            },
            Self::CorrelationMatrix { .. } => Self::CorrelationMatrix { noise_multiplier },
        }
    }

    /// L2 sensitivity of the sum, in clip norms.
    #[must_use]
    pub const fn sensitivity(&self, adjacency: Adjacency) -> f64 {
        match (self, adjacency) {
            (_, Adjacency::AddRemove) => 1.0,
            (Self::CorrelationMatrix { .. }, Adjacency::ReplaceOne) => std::f64::consts::SQRT_2,
            (_, Adjacency::ReplaceOne) => 2.0,
        }
    }

    /// The multiplier of a real-valued Gaussian of which this mechanism is a randomised rounding.
    ///
    /// The discrete Gaussian of std s (in grid steps) is, up to a factor 1 ± 4·exp(-2π²·3²) in
    /// every probability, a real Gaussian of std √(s² - 3²) rounded at random to the grid
    /// (Peikert 2010, "An Efficient and Parallel Gaussian Sampler for Lattices", Theorem 3.1, with
    /// the smoothing bound of the integers). Rounding commutes with integer shifts, so every bound
    /// for the real Gaussian of that std holds, whatever the sampling and composition; the factor
    /// adds less than 1e-58 to epsilon for 10¹⁰ parameters and 10⁷ rounds. `docs/accounting.md`
    /// has the argument in full.
    #[must_use]
    pub fn continuous_multiplier(&self) -> f64 {
        const ROUNDING_STD: f64 = 3.0;
        let multiplier = self.noise_multiplier().get();
        let Self::DiscreteGaussian { grid_bits, .. } = *self else {
            return multiplier;
        };
        let grid_steps = multiplier * f64::from(grid_bits).exp2();
        if grid_steps <= ROUNDING_STD {
            return 0.0;
        }
        let ratio = ROUNDING_STD / grid_steps;
        multiplier * (1.0 - ratio * ratio).sqrt()
    }
}

/// `count` rounds of one mechanism under one sampling scheme: the unit of composition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyEvent {
    /// What was added to the sum.
    pub mechanism: Mechanism,
    /// How devices came to take part.
    pub sampling: Sampling,
    /// Who is trusted.
    pub trust: TrustModel,
    /// What is protected.
    pub unit: PrivacyUnit,
    /// How many rounds of this kind there were. `max_participations` bounds the participations
    /// within these rounds, so the rounds of one run belong into one event.
    pub count: u64,
}

/// What one unit is exposed to in an event, as an accountant needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exposure {
    /// A Gaussian that sees the unit in each of `count` rounds.
    Gaussian {
        /// Noise std over sensitivity.
        noise_to_sensitivity: f64,
        /// Rounds in which the unit may take part.
        count: u64,
    },
    /// A Gaussian on a Poisson sample; the adversary does not know the sample. Add-remove.
    Poisson {
        /// τ, below 1.
        sampling_rate: f64,
        /// Noise std over sensitivity.
        noise_to_sensitivity: f64,
        /// Rounds.
        count: u64,
    },
    /// A Gaussian on a sample of fixed size without replacement, unknown to the adversary.
    /// Replace-one.
    Uniform {
        /// τ = S / N, below 1.
        sampling_rate: f64,
        /// Noise std over sensitivity (2L: half the noise multiplier).
        noise_to_sensitivity: f64,
        /// Rounds.
        count: u64,
    },
}

impl PrivacyEvent {
    /// The relation under which this event is accounted.
    #[must_use]
    pub const fn adjacency(&self) -> Adjacency {
        self.sampling.adjacency()
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
    /// noise only the honest part counts: with a fraction h of the variance, std ν√h.
    #[must_use]
    pub fn exposure(&self) -> Exposure {
        let sensitivity = self.mechanism.sensitivity(self.adjacency());
        let honest = match self.trust {
            TrustModel::Central | TrustModel::Local => 1.0,
            TrustModel::Distributed { honest } => honest.get(),
        };
        let noise_to_sensitivity =
            self.mechanism.continuous_multiplier() * honest.sqrt() / sensitivity;
        let hides_cohort = matches!(self.trust, TrustModel::Central);
        let count = match self.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => self.count.min(u64::from(max_participations)),
            _ => self.count,
        };
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

    /// Rounds.
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
