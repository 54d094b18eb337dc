//! Exposures grouped into kinds of rounds, the pairs of distributions that represent them, and the
//! errors for events without a privacy loss distribution.

use std::sync::Arc;

use crate::event::{Exposure, Users};
use crate::gdp;
use crate::log_space::{ln_1p_exp, ln_expm1};
use crate::params::Delta;

use super::composed::Bound;
use super::epsilon::PldEpsilon;
use super::mixture::Mixture;
use super::pair::Pair;

/// Relative error of closed forms.
pub(super) const ROUNDING: f64 = 1e-12;

/// The reason why there is no privacy loss distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PldError {
    /// An event has a cohort of fixed size.
    #[error(
        "uniform sampling has no known worst pair that composes with itself (Lebeda, Regehr, \
         Kamath, Steinke 2024); use `uniform-profile`"
    )]
    Uniform,
    /// An event under replace-one has a Poisson sample.
    #[error("Poisson sampling is accounted under add-remove, the profile under replace-one")]
    Poisson,
    /// A user with several devices is replaced by another.
    #[error("no pair of distributions is known for users with several devices under replace-one")]
    Users,
    /// Something is released without noise.
    #[error("something was released without noise")]
    Unprotected,
    /// The lattice is too fine, or there are too many rounds for the digits of an f64.
    #[error("the numbers are out of the range in which its errors are bounded")]
    OutOfRange,
}

/// The pair that represents sampled rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Remove,
    Add,
    Replace,
    Profile,
}

/// The difference between the two federations, and the sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// Poisson samples, a device added or removed.
    AddRemove,
    /// The same rounds, a device replaced by another.
    ReplaceOne,
    /// Uniform samples, a device replaced by another.
    Uniform,
}

impl Relation {
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::AddRemove => &[Direction::Remove, Direction::Add],
            Self::ReplaceOne => &[Direction::Replace],
            Self::Uniform => &[Direction::Profile],
        }
    }

    /// Returns the direction whose losses two federations attain.
    pub const fn attained(self) -> Direction {
        match self {
            Self::AddRemove | Self::Uniform => Direction::Remove,
            Self::ReplaceOne => Direction::Replace,
        }
    }
}

/// Exposures, grouped by equal rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kinds {
    pub relation: Relation,
    /// 1/ν² of all Gaussian releases together, which count as one release.
    pub mu_squared: f64,
    pub sampled: Vec<SampledRounds>,
}

/// Rounds of one sampled Gaussian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampledRounds {
    pub rate: f64,
    /// Noise std over the sensitivity of one device.
    pub noise: f64,
    pub count: u64,
    /// The user's devices, if there are several.
    pub users: Option<Users>,
}

impl Kinds {
    /// Groups exposures as given by events: under replace-one, the exposures of Gaussians are still
    /// those of add-remove.
    pub fn new(exposures: &[Exposure], relation: Relation) -> Result<Self, PldError> {
        let mut kinds = Self {
            relation,
            mu_squared: 0.0,
            sampled: Vec::new(),
        };
        for exposure in exposures.iter().filter(|exposure| exposure.count() > 0) {
            if exposure.is_unprotected() {
                return Err(PldError::Unprotected);
            }
            let noise = exposure.noise_to_sensitivity();
            let is_uniform = relation == Relation::Uniform;
            let (rate, count, users) = match *exposure {
                Exposure::Gaussian { count, .. } => (1.0, count, None),
                Exposure::Poisson { .. } | Exposure::PoissonUsers { .. } if is_uniform => {
                    return Err(PldError::Poisson);
                }
                Exposure::Uniform { .. } | Exposure::UniformUsers { .. } if !is_uniform => {
                    return Err(PldError::Uniform);
                }
                Exposure::PoissonUsers { .. } if relation == Relation::ReplaceOne => {
                    return Err(PldError::Users);
                }
                Exposure::Poisson {
                    sampling_rate,
                    count,
                    ..
                }
                | Exposure::Uniform {
                    sampling_rate,
                    count,
                    ..
                } => (sampling_rate, count, None),
                Exposure::PoissonUsers { users, count, .. }
                | Exposure::UniformUsers { users, count, .. } => (0.0, count, Some(users)),
            };
            kinds.add(SampledRounds {
                rate,
                noise,
                count,
                users,
            });
        }
        Ok(kinds)
    }

    fn add(&mut self, added: SampledRounds) {
        let SampledRounds {
            rate,
            noise,
            count,
            users,
        } = added;
        if rate >= 1.0 {
            // Replacing a device moves the sum by twice its update.
            let sensitivity = match self.relation {
                Relation::ReplaceOne => 2.0,
                Relation::AddRemove | Relation::Uniform => 1.0,
            };
            self.mu_squared += count as f64 * (sensitivity / noise).powi(2);
            return;
        }
        let is_same = |rounds: &SampledRounds| {
            rounds.users == users
                && rounds.rate.to_bits() == rate.to_bits()
                && rounds.noise.to_bits() == noise.to_bits()
        };
        match self.sampled.iter_mut().find(|rounds| is_same(rounds)) {
            Some(rounds) => rounds.count = rounds.count.saturating_add(count),
            None => self.sampled.push(added),
        }
    }

    /// Returns the sensitivity over noise std of all Gaussian releases together.
    pub fn mu(&self) -> f64 {
        // Rounded up, since it is an upper bound on the loss.
        self.mu_squared.sqrt() * (1.0 + ROUNDING)
    }

    /// Returns the number of rounds to be composed, where all Gaussian releases count as one.
    pub fn rounds(&self) -> f64 {
        let sampled: f64 = self.sampled.iter().map(|rounds| rounds.count as f64).sum();
        sampled + f64::from(u8::from(self.mu_squared > 0.0))
    }

    /// Returns the dominating pairs of `direction`, each with its number of rounds. If rare events
    /// of a pair are merged, the error is on the side of `bound`.
    pub fn pairs(&self, direction: Direction, bound: Bound) -> Vec<(Pair, u64)> {
        let pair = |rounds: &SampledRounds| {
            let SampledRounds { rate, noise, .. } = *rounds;
            if let Some(users) = rounds.users {
                let mixture = Arc::new(Mixture::new(&users, noise, bound == Bound::Upper));
                return match direction {
                    Direction::Add => Pair::AddUser(mixture),
                    Direction::Profile => Pair::ProfileUser(mixture),
                    // Under replace-one, users are refused.
                    Direction::Remove | Direction::Replace => Pair::RemoveUser(mixture),
                };
            }
            match direction {
                Direction::Remove => Pair::Remove { rate, noise },
                Direction::Add => Pair::Add { rate, noise },
                Direction::Replace => Pair::Replace { rate, noise },
                Direction::Profile => Pair::Profile { rate, noise },
            }
        };
        let sampled = self.sampled.iter();
        let mut pairs: Vec<(Pair, u64)> =
            sampled.map(|rounds| (pair(rounds), rounds.count)).collect();
        if self.mu_squared > 0.0 {
            pairs.push((Pair::Gaussian { mu: self.mu() }, 1));
        }
        pairs
    }

    /// Returns ε if a closed form is known.
    pub fn exact(&self, delta: Delta) -> Option<PldEpsilon> {
        match self.sampled.as_slice() {
            [] => Some(PldEpsilon {
                epsilon: gdp::epsilon(self.mu(), delta),
                epsilon_low: gdp::epsilon_low(self.mu_squared.sqrt(), delta),
            }),
            &[
                SampledRounds {
                    rate,
                    noise,
                    count: 1,
                    users: None,
                },
            ] if self.mu_squared <= 0.0 && self.relation != Relation::ReplaceOne => {
                let Ok(inner) = Delta::new(delta.get() / rate) else {
                    return Some(PldEpsilon {
                        epsilon: 0.0,
                        epsilon_low: 0.0,
                    });
                };
                let mu = 1.0 / noise;
                Some(PldEpsilon {
                    epsilon: amplified(rate, gdp::epsilon(mu, inner)) * (1.0 + ROUNDING),
                    epsilon_low: amplified(rate, gdp::epsilon_low(mu, inner)) * (1.0 - ROUNDING),
                })
            }
            _ => None,
        }
    }
}

/// Returns ln(1 + τ(e^ε - 1)), without overflow for a large ε or cancellation for a small τ.
fn amplified(rate: f64, epsilon: f64) -> f64 {
    if epsilon > 30.0 {
        ln_1p_exp(rate.ln() + ln_expm1(epsilon))
    } else {
        (rate * epsilon.exp_m1()).ln_1p()
    }
}
