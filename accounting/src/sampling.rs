//! Sampling schemes, which decide the devices (cohort) of a round: uniform, Poisson, full,
//! unsampled or block-cyclic, with their sampling rates.

use serde::{Deserialize, Serialize};

use crate::adjacency::Adjacency;
use crate::params::{ParamError, SamplingRate};

/// The sampling of the devices of a round. Its constructors check the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "RawSampling")]
pub enum Sampling {
    /// A fresh cohort of fixed size in each round, drawn without replacement.
    #[non_exhaustive]
    Uniform {
        /// N, the number of devices. Public.
        device_count: u32,
        /// S, the number of devices in each round.
        cohort_size: u32,
    },
    /// Each device joins each round with the same probability, independently.
    #[non_exhaustive]
    Poisson {
        /// N, the number of devices.
        device_count: u32,
        /// τ, the probability of joining.
        sampling_rate: SamplingRate,
    },
    /// Every device takes part in every round.
    #[non_exhaustive]
    Full {
        /// N, the number of devices.
        device_count: u32,
    },
    /// Devices take part when they are available. No randomness is claimed, so nothing amplifies. A
    /// device only limits the number of its participations.
    #[non_exhaustive]
    Unsampled {
        /// N, the number of devices.
        device_count: u32,
        /// The largest number of rounds of one run in which one device takes part.
        max_participations: u32,
    },
    /// The devices are split into parts, which take turns: each device of part t modulo their
    /// number joins round t with the same probability, independently. The parts may be public, but
    /// must not depend on the devices' data.
    #[non_exhaustive]
    BlockCyclic {
        /// N, the number of devices.
        device_count: u32,
        /// b, the number of parts.
        parts: u32,
        /// τ, the probability of joining a round of the device's own part.
        sampling_rate: SamplingRate,
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
    BlockCyclic {
        device_count: u32,
        parts: u32,
        sampling_rate: SamplingRate,
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
            RawSampling::BlockCyclic {
                device_count,
                parts,
                sampling_rate,
            } => Self::block_cyclic(device_count, parts, sampling_rate),
        }
    }
}

impl Sampling {
    /// Creates cohorts of `cohort_size` out of `device_count` devices, without replacement.
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

    /// Creates cohorts that each device joins with probability `sampling_rate`.
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

    /// Creates rounds with all devices.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] for a federation without devices.
    pub fn full(device_count: u32) -> Result<Self, ParamError> {
        Self::some_devices(device_count)?;
        Ok(Self::Full { device_count })
    }

    /// Creates a scheme of devices that join when available, each in at most `max_participations`
    /// rounds.
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

    /// Creates cohorts from `parts` parts, which take turns. Each device of the round's part joins
    /// with probability `sampling_rate`.
    ///
    /// # Errors
    /// [`ParamError::Parts`] unless `1 <= parts <= device_count`.
    pub const fn block_cyclic(
        device_count: u32,
        parts: u32,
        sampling_rate: SamplingRate,
    ) -> Result<Self, ParamError> {
        if parts == 0 || parts > device_count {
            return Err(ParamError::Parts {
                parts,
                device_count,
            });
        }
        Ok(Self::BlockCyclic {
            device_count,
            parts,
            sampling_rate,
        })
    }

    fn some_devices(device_count: u32) -> Result<(), ParamError> {
        if device_count == 0 {
            Err(ParamError::NoDevices)
        } else {
            Ok(())
        }
    }

    /// Returns N, the number of devices.
    #[must_use]
    pub const fn device_count(&self) -> u32 {
        match *self {
            Self::Uniform { device_count, .. }
            | Self::Poisson { device_count, .. }
            | Self::Full { device_count }
            | Self::Unsampled { device_count, .. }
            | Self::BlockCyclic { device_count, .. } => device_count,
        }
    }

    /// Returns τ, the probability that one device is in a round, or in a round of its part. `None`
    /// for `unsampled`, which claims none.
    #[must_use]
    pub fn sampling_rate(&self) -> Option<f64> {
        match *self {
            Self::Uniform {
                device_count,
                cohort_size,
            } => Some(f64::from(cohort_size) / f64::from(device_count)),
            Self::Poisson { sampling_rate, .. } | Self::BlockCyclic { sampling_rate, .. } => {
                Some(sampling_rate.get())
            }
            Self::Full { .. } => Some(1.0),
            Self::Unsampled { .. } => None,
        }
    }

    /// Returns the number of devices in a round, on average over the rounds. All of them for
    /// `unsampled`.
    #[must_use]
    pub fn expected_cohort(&self) -> f64 {
        let candidates = match *self {
            Self::BlockCyclic {
                device_count,
                parts,
                ..
            } => f64::from(device_count) / f64::from(parts),
            _ => f64::from(self.device_count()),
        };
        candidates * self.sampling_rate().unwrap_or(1.0)
    }

    /// Returns the largest number of rounds among `count` successive ones in which one device can
    /// be.
    #[must_use]
    pub fn max_rounds_of_one(&self, count: u64) -> u64 {
        match *self {
            Self::Unsampled {
                max_participations, ..
            } => count.min(u64::from(max_participations)),
            Self::BlockCyclic { parts, .. } => count.div_ceil(u64::from(parts)),
            Self::Uniform { .. } | Self::Poisson { .. } | Self::Full { .. } => count,
        }
    }

    /// Returns the relation under which this scheme is accounted. A cohort of fixed size needs a
    /// public N and replaces a device by another. The other schemes zero it out.
    #[must_use]
    pub const fn adjacency(&self) -> Adjacency {
        match self {
            Self::Uniform { .. } => Adjacency::ReplaceOne,
            Self::Poisson { .. }
            | Self::Full { .. }
            | Self::Unsampled { .. }
            | Self::BlockCyclic { .. } => Adjacency::AddRemove,
        }
    }

    /// Returns the name on the command line: `uniform`, `poisson`, `full`, `unsampled` or
    /// `block-cyclic`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Uniform { .. } => "uniform",
            Self::Poisson { .. } => "poisson",
            Self::Full { .. } => "full",
            Self::Unsampled { .. } => "unsampled",
            Self::BlockCyclic { .. } => "block-cyclic",
        }
    }
}
