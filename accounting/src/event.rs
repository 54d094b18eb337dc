//! Privacy events: a [`PrivacyEvent`] describes the mechanism, the sampling of devices, the trust
//! model, the unit of protection, and the number of rounds. It is independent of the accountant. A
//! simulator draws its cohorts from the event's own [`Sampling`], so the sampler and the accounting
//! cannot disagree.
//!
//! "Device" is the sampled unit: read "record" or "user" if that is the unit.
//!
//! Accountants see only the event's [`Exposure`]: the noise over the sensitivity, the sampling that
//! amplifies (if any does against this adversary) and the number of rounds.

mod mechanism;
mod users;

pub use crate::adjacency::Adjacency;
pub use crate::sampling::Sampling;
pub use mechanism::{Mechanism, ROUNDING_STD};
pub use users::Users;

use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::correlated::{Participation, Strategy};
use crate::distributed::Parties;
use crate::params::{NoiseMultiplier, ParamError, Sensitivity};

/// The unit of the guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// All data of one device.
    Device,
    /// One example of one device. This is weaker, as a device holds many.
    Example,
}

/// The trusted parties, or the adversaries against whom the guarantee holds. As text: `central`,
/// `local`, `distributed`, or `distributed=3/2` for 3 helpers, where any 2 of the helpers and the
/// coordinator may collude.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustModel {
    /// The server sees the updates and the cohorts, adds the noise, and keeps both secret.
    #[default]
    Central,
    /// Each device adds all of its own noise. The server sees each noisy update and its sender. The
    /// noise multiplier is that of one device's upload.
    Local,
    /// Devices mask their updates. The server and its helpers, who remove the masks from the sum,
    /// each add noise, and all of them see the cohort. The noise multiplier is that of all parties
    /// outside any coalition together ([`distributed`](crate::distributed)).
    Distributed(Parties),
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
            None if text == "distributed" => Ok(Self::Distributed(Parties::PAIR)),
            Some(("distributed", parties)) => parties.parse().map(Self::Distributed),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for TrustModel {
    /// Writes the text form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Central => f.write_str("central"),
            Self::Local => f.write_str("local"),
            Self::Distributed(parties) => write!(f, "distributed{parties}"),
        }
    }
}

/// `count` rounds of one mechanism under one sampling scheme: the unit of composition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyEvent {
    /// The mechanism of a release.
    pub mechanism: Mechanism,
    /// The sampling of devices.
    pub sampling: Sampling,
    /// The trust model.
    pub trust: TrustModel,
    /// The unit of protection.
    pub unit: PrivacyUnit,
    /// The number of rounds of this kind. `max_participations` bounds the participations within
    /// these rounds, so the rounds of one run belong in one event.
    pub count: u64,
    /// The number of releases of a participating device in a round, composed like rounds: 1, or the
    /// number of local steps if each is released. 0 if nothing leaves a device.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub releases: u32,
    /// k: a user has at most k devices, and all of them together are protected. It is not a
    /// property of the release, but of the question about it: see
    /// [`with_devices_per_user`](Self::with_devices_per_user).
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub devices_per_user: NonZeroU32,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_one(releases: &u32) -> bool {
    *releases == 1
}

const fn single() -> NonZeroU32 {
    NonZeroU32::MIN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_single(devices: &NonZeroU32) -> bool {
    devices.get() == 1
}

/// The exposure of one unit in an event, as needed by an accountant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Exposure {
    /// A Gaussian release on the unit in each of `count` rounds.
    Gaussian {
        /// Noise std over sensitivity.
        noise_to_sensitivity: f64,
        /// Number of releases of the unit: the rounds in which it may take part, times the releases
        /// in each.
        count: u64,
    },
    /// A Gaussian on a Poisson sample. The adversary does not know the sample. Add-remove.
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
    /// A Gaussian on a Poisson sample of devices, with several devices per user. Add-remove.
    PoissonUsers {
        /// The user's devices, each of which is drawn separately.
        users: Users,
        /// Noise std over the sensitivity of one device.
        noise_to_sensitivity: f64,
        /// Number of rounds.
        count: u64,
    },
    /// A Gaussian on a sample of devices of fixed size, with several devices per user. Replace-one.
    UniformUsers {
        /// The user's devices.
        users: Users,
        /// Noise std over the sensitivity of one device (2L).
        noise_to_sensitivity: f64,
        /// Number of rounds.
        count: u64,
    },
}

impl PrivacyEvent {
    /// Creates `count` rounds of `mechanism` that protect a device, with a trusted server and one
    /// release per round. Set the public fields for anything else.
    #[must_use]
    pub const fn new(mechanism: Mechanism, sampling: Sampling, count: u64) -> Self {
        Self {
            mechanism,
            sampling,
            trust: TrustModel::Central,
            unit: PrivacyUnit::Device,
            count,
            releases: 1,
            devices_per_user: NonZeroU32::MIN,
        }
    }

    /// Creates all rounds of a run with correlated noise of std z s L, z the noise multiplier, on
    /// updates of `grid_bits` bits, in a federation of `device_count` devices.
    ///
    /// The sampling is [`Sampling::Unsampled`], with the participations of `strategy`. There is no
    /// other assumption on who takes part. The run is one release: fewer rounds
    /// ([`with_count`](Self::with_count)) have the same cost, from the first on.
    ///
    /// A strategy with [`block_cyclic`](Strategy::block_cyclic) sampling has
    /// [`Sampling::BlockCyclic`], and the mechanism describes the release of b successive rounds,
    /// in which a device takes part at most once.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] for a federation without devices. [`ParamError::Parts`] for one
    /// with fewer devices than parts.
    pub fn correlated(
        strategy: &Strategy,
        noise_multiplier: NoiseMultiplier,
        grid_bits: u8,
        device_count: u32,
    ) -> Result<Self, ParamError> {
        let participation = strategy.participation();
        let mechanism = Mechanism::Correlated {
            noise_multiplier,
            grid_bits,
            sensitivity: Sensitivity::new(strategy.sensitivity())?,
            participation: match strategy.sampling_rate() {
                None => participation,
                Some(_) => participation.of_one_block(),
            },
        };
        let sampling = strategy.sampling(device_count)?;
        let rounds = u64::from(participation.rounds());
        Ok(Self::new(mechanism, sampling, rounds))
    }

    /// Returns the event for users with up to `devices` devices each.
    ///
    /// # Errors
    /// [`ParamError::DevicesPerUser`] unless `devices` is from 1 to the device count.
    /// [`ParamError::UsersOfExamples`] for more than one device if an example is protected,
    /// [`ParamError::UsersOfParts`] with block-cyclic sampling.
    pub fn with_devices_per_user(self, devices: u32) -> Result<Self, ParamError> {
        let device_count = self.sampling.device_count();
        let refused = || ParamError::DevicesPerUser {
            devices,
            device_count,
        };
        let devices_per_user = NonZeroU32::new(devices).ok_or_else(refused)?;
        if devices > device_count {
            return Err(refused());
        }
        if self.unit == PrivacyUnit::Example && devices > 1 {
            return Err(ParamError::UsersOfExamples { devices });
        }
        if matches!(self.sampling, Sampling::BlockCyclic { .. }) && devices > 1 {
            return Err(ParamError::UsersOfParts { devices });
        }
        Ok(Self {
            devices_per_user,
            ..self
        })
    }

    /// Returns the events with the largest number of devices per user in all of them. A bound for
    /// these users also holds for users with fewer devices.
    #[must_use]
    pub fn about_same_users(events: &[Self]) -> Vec<Self> {
        let most = events.iter().map(|event| event.devices_per_user).max();
        let devices_per_user = most.unwrap_or(NonZeroU32::MIN);
        let raise = |event: &Self| Self {
            devices_per_user,
            ..*event
        };
        events.iter().map(raise).collect()
    }

    /// Returns the largest k of the events, which applies to a guarantee about all of them. `None`
    /// for 1.
    #[must_use]
    pub fn max_devices_per_user(events: &[Self]) -> Option<u32> {
        let devices = events.iter().map(|event| event.devices_per_user.get());
        devices.max().filter(|devices| *devices > 1)
    }

    /// Returns k, at most the number of devices.
    fn devices_of_a_user(&self) -> u32 {
        self.devices_per_user
            .get()
            .min(self.sampling.device_count())
    }

    /// Returns the relation under which this event is accounted: the relation of the sampling,
    /// except that examples in correlation matrices always have replace-one, as the matrices are
    /// divided by a public number of examples.
    #[must_use]
    pub const fn adjacency(&self) -> Adjacency {
        match self.unit {
            PrivacyUnit::Example if self.is_matrix() => Adjacency::ReplaceOne,
            PrivacyUnit::Example | PrivacyUnit::Device => self.sampling.adjacency(),
        }
    }

    /// Returns whether the event releases correlation matrices instead of updates.
    #[must_use]
    pub const fn is_matrix(&self) -> bool {
        matches!(self.mechanism, Mechanism::CorrelationMatrix { .. })
    }

    /// Returns whether the event releases the moments of features instead of updates.
    #[must_use]
    pub const fn is_moments(&self) -> bool {
        matches!(self.mechanism, Mechanism::Moments { .. })
    }

    /// Returns whether the event releases the score of a trial instead of updates.
    #[must_use]
    pub const fn is_score(&self) -> bool {
        matches!(self.mechanism, Mechanism::Score { .. })
    }

    /// Returns whether the event releases answers to a question instead of updates.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self.mechanism, Mechanism::Answer { .. })
    }

    /// Returns whether the event is not a release of a model's training: moments, scores or
    /// answers.
    #[must_use]
    pub const fn is_beside_updates(&self) -> bool {
        self.is_moments() || self.is_score() || self.is_answer()
    }

    /// Returns a key that distinguishes the releases of one round.
    #[must_use]
    pub fn kind(&self) -> (PrivacyUnit, Discriminant<Mechanism>, u8) {
        let question = match self.mechanism {
            Mechanism::Answer { question, .. } => question,
            _ => 0,
        };
        (self.unit, discriminant(&self.mechanism), question)
    }

    /// Returns whether all rounds of the event are one release, with the same cost after the first
    /// round as after the last: correlated noise without sampling.
    #[must_use]
    pub const fn is_one_release(&self) -> bool {
        let is_correlated = matches!(self.mechanism, Mechanism::Correlated { .. });
        is_correlated && matches!(self.sampling, Sampling::Unsampled { .. })
    }

    /// Returns the event with another number of rounds.
    #[must_use]
    pub const fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// Returns the event with another amount of noise.
    #[must_use]
    pub const fn with_noise_multiplier(self, noise_multiplier: NoiseMultiplier) -> Self {
        Self {
            mechanism: self.mechanism.with_noise_multiplier(noise_multiplier),
            ..self
        }
    }

    /// Returns the event as seen by an outsider, who is not a party and sees only the releases: the
    /// noise of all parties, and cohorts that sampling may hide. `None` under another trust model.
    #[must_use]
    pub fn outsiders(&self) -> Option<Self> {
        let TrustModel::Distributed(parties) = self.trust else {
            return None;
        };
        let total = self.mechanism.noise_multiplier();
        let each = parties.of_each(total);
        // On a coarse grid, only the noise of one party counts, and the other noise only adds to
        // it.
        let seen = match self.mechanism.is_on_grid_of(each) {
            true => parties.of_all(total),
            false => each,
        };
        let event = self.with_noise_multiplier(seen);
        Some(Self {
            trust: TrustModel::Central,
            ..event
        })
    }

    /// Returns whether the noise is that of one discrete Gaussian, up to a negligible term. It is
    /// not for several noises on a coarse grid, for which nothing is claimed.
    fn is_one_gaussian(&self) -> bool {
        match self.trust {
            TrustModel::Distributed(parties) if parties.honest() > 1 => {
                let each = parties.of_each(self.mechanism.noise_multiplier());
                self.mechanism.is_on_grid_of(each)
            }
            _ => true,
        }
    }

    /// Returns whether both events are equal except for the last digits of the noise multiplier,
    /// which may differ between versions or machines.
    #[must_use]
    pub fn is_nearly(&self, other: &Self) -> bool {
        /// Relative to the noise multiplier.
        const PRECISION: f64 = 1e-9;
        let (a, b) = (
            self.mechanism.noise_multiplier(),
            other.mechanism.noise_multiplier(),
        );
        let is_near = (a.get() - b.get()).abs() <= PRECISION * b.get();
        is_near && self.with_noise_multiplier(b) == *other
    }

    /// Returns the exposure of one unit.
    ///
    /// Sampling amplifies only against adversaries who do not learn the cohort. The server of the
    /// local and the parties of the distributed model learn it, so each round counts in full there.
    /// [`outsiders`](Self::outsiders) is the event that others see. Anyone who receives a device's
    /// correlation matrix knows that the device takes part.
    ///
    /// A user with k devices: without sampling, all of them may be in a round, with k times the
    /// sensitivity. (A user's participations are at most k per round and k times those of a device,
    /// so their squares sum to at most k² times those of a device.) Under local trust each of the k
    /// uploads has separate noise: k times as many releases. If devices are drawn, see [`Users`].
    ///
    /// With correlated noise, all rounds of a run are one release, and k devices of a user, each
    /// with its own pattern, move it by at most k times the sensitivity, by the triangle
    /// inequality. With block-cyclic sampling every b rounds are one release: see
    /// [`correlated`](crate::correlated). There, the rounds of a user's devices in different parts
    /// overlap, and the draw hides none of them: for k > 1, sampling does not amplify.
    #[must_use]
    pub fn exposure(&self) -> Exposure {
        if let Mechanism::Correlated { participation, .. } = self.mechanism {
            return self.correlated_exposure(participation);
        }
        let sensitivity = self.mechanism.sensitivity(self.adjacency());
        let noise_to_sensitivity = match self.is_one_gaussian() {
            true => self.mechanism.continuous_multiplier() / sensitivity,
            false => 0.0,
        };
        let hides_cohort = matches!(self.trust, TrustModel::Central) && !self.is_matrix();
        let count = self.sampling.max_rounds_of_one(self.count);
        let count = count.saturating_mul(u64::from(self.releases));
        if hides_cohort && let Some(sampled) = self.sampled(noise_to_sensitivity, count) {
            return sampled;
        }
        let devices = self.devices_of_a_user();
        let has_own_noise = self.trust == TrustModel::Local || self.is_matrix();
        if has_own_noise {
            return Exposure::Gaussian {
                noise_to_sensitivity,
                count: count.saturating_mul(u64::from(devices)),
            };
        }
        Exposure::Gaussian {
            noise_to_sensitivity: noise_to_sensitivity / f64::from(devices),
            count,
        }
    }

    /// Returns the exposure in runs with correlated noise, or in the blocks of b rounds with
    /// block-cyclic sampling. It holds if sums are combined before noise is added, by a trusted
    /// server or under masks, and for devices that take part at most as often as the sensitivity
    /// assumes. Otherwise nothing is known.
    fn correlated_exposure(&self, participation: Participation) -> Exposure {
        let is_covered = match self.sampling {
            Sampling::Unsampled {
                max_participations, ..
            } => max_participations <= participation.participations(),
            // Once in b rounds, as the mechanism assumes.
            Sampling::BlockCyclic { parts, .. } => parts == participation.rounds(),
            Sampling::Uniform { .. } | Sampling::Poisson { .. } | Sampling::Full { .. } => false,
        };
        let is_combined = self.trust != TrustModel::Local && self.is_one_gaussian();
        let is_covered = is_covered && is_combined && self.unit == PrivacyUnit::Device;
        let sensitivity =
            self.mechanism.sensitivity(self.adjacency()) * f64::from(self.devices_of_a_user());
        let noise_to_sensitivity = match is_covered {
            true => self.mechanism.continuous_multiplier() / sensitivity,
            false => 0.0,
        };
        let runs = self.count.div_ceil(u64::from(participation.rounds()));
        let count = runs.saturating_mul(u64::from(self.releases));
        let sampled = self.sampled(noise_to_sensitivity, count);
        sampled
            .filter(|_| is_covered && self.trust == TrustModel::Central)
            .unwrap_or(Exposure::Gaussian {
                noise_to_sensitivity,
                count,
            })
    }

    /// Returns the exposure in rounds with sampling of devices. `None` without sampling.
    fn sampled(&self, noise_to_sensitivity: f64, count: u64) -> Option<Exposure> {
        let devices = self.devices_of_a_user();
        let sampling_rate = self.sampling.sampling_rate().filter(|rate| *rate < 1.0)?;
        match self.sampling {
            Sampling::Poisson { .. } | Sampling::BlockCyclic { .. } if devices == 1 => {
                Some(Exposure::Poisson {
                    sampling_rate,
                    noise_to_sensitivity,
                    count,
                })
            }
            Sampling::Uniform { .. } if devices == 1 => Some(Exposure::Uniform {
                sampling_rate,
                noise_to_sensitivity,
                count,
            }),
            Sampling::Poisson { .. } => Some(Exposure::PoissonUsers {
                users: Users::Poisson {
                    devices,
                    rate: sampling_rate,
                },
                noise_to_sensitivity,
                count,
            }),
            Sampling::Uniform {
                device_count,
                cohort_size,
            } => Some(Exposure::UniformUsers {
                users: Users::Uniform {
                    devices,
                    device_count,
                    cohort_size,
                },
                noise_to_sensitivity,
                count,
            }),
            Sampling::Full { .. } | Sampling::Unsampled { .. } | Sampling::BlockCyclic { .. } => {
                None
            }
        }
    }
}

impl Exposure {
    /// Returns the noise std over sensitivity.
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
            }
            | Self::PoissonUsers {
                noise_to_sensitivity,
                ..
            }
            | Self::UniformUsers {
                noise_to_sensitivity,
                ..
            } => noise_to_sensitivity,
        }
    }

    /// Returns whether a cohort of fixed size was drawn.
    #[must_use]
    pub const fn is_uniform(&self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::UniformUsers { .. })
    }

    /// Returns whether there is a release without any noise: no finite ε holds then.
    #[must_use]
    pub fn is_unprotected(&self) -> bool {
        let is_noisy = self.noise_to_sensitivity() > 0.0;
        self.count() > 0 && !is_noisy
    }

    /// Returns the number of rounds, or of releases without sampling.
    #[must_use]
    pub const fn count(&self) -> u64 {
        match *self {
            Self::Gaussian { count, .. }
            | Self::Poisson { count, .. }
            | Self::Uniform { count, .. }
            | Self::PoissonUsers { count, .. }
            | Self::UniformUsers { count, .. } => count,
        }
    }
}

#[cfg(test)]
mod tests;
