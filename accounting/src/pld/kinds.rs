//! Exposures sorted into kinds of rounds, and the pairs of distributions that stand for them.

use crate::event::Exposure;
use crate::gdp;
use crate::params::Delta;

use super::pair::Pair;

/// What closed forms may be off by, relative.
pub(super) const ROUNDING: f64 = 1e-12;

/// Why there is no privacy loss distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PldError {
    /// A cohort of fixed size.
    #[error(
        "uniform sampling has no known worst pair that composes with itself (Lebeda, Regehr, \
         Kamath, Steinke 2024); use `uniform-profile`"
    )]
    Uniform,
    /// A Poisson sample among events under replace-one.
    #[error("Poisson sampling is accounted under add-remove, the profile under replace-one")]
    Poisson,
    /// Something was released without noise.
    #[error("something was released without noise")]
    Unprotected,
    /// Too fine a lattice, or too many rounds for the digits of an f64.
    #[error("the numbers are out of the range in which its errors are bounded")]
    OutOfRange,
}

/// Which pair stands for sampled rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Remove,
    Add,
    Replace,
    Profile,
}

/// Which two federations are told apart, by which sampling.
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

    /// The direction whose losses two federations attain.
    pub const fn attained(self) -> Direction {
        match self {
            Self::AddRemove | Self::Uniform => Direction::Remove,
            Self::ReplaceOne => Direction::Replace,
        }
    }
}

/// Exposures, with like rounds together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kinds {
    pub relation: Relation,
    /// 1/ν² of all Gaussian releases together: they are one release.
    pub mu_squared: f64,
    pub sampled: Vec<SampledRounds>,
}

/// Rounds of one sampled Gaussian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampledRounds {
    pub rate: f64,
    /// Noise std over sensitivity.
    pub noise: f64,
    pub count: u64,
}

impl Kinds {
    /// Takes exposures as events give them: under replace-one, a Gaussian's are still those of
    /// add-remove.
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
            match *exposure {
                Exposure::Gaussian { count, .. } => {
                    kinds.add(1.0, noise, count);
                }
                Exposure::Poisson { .. } if relation == Relation::Uniform => {
                    return Err(PldError::Poisson);
                }
                Exposure::Uniform { .. } if relation != Relation::Uniform => {
                    return Err(PldError::Uniform);
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
                } => kinds.add(sampling_rate, noise, count),
            }
        }
        Ok(kinds)
    }

    fn add(&mut self, rate: f64, noise: f64, count: u64) {
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
            rounds.rate.to_bits() == rate.to_bits() && rounds.noise.to_bits() == noise.to_bits()
        };
        match self.sampled.iter_mut().find(|rounds| is_same(rounds)) {
            Some(rounds) => rounds.count = rounds.count.saturating_add(count),
            None => self.sampled.push(SampledRounds { rate, noise, count }),
        }
    }

    /// Sensitivity over noise std of all Gaussian releases together.
    pub fn mu(&self) -> f64 {
        // Rounded up, as it is an upper bound on the loss.
        self.mu_squared.sqrt() * (1.0 + ROUNDING)
    }

    /// Rounds to be composed, as the Gaussian releases count for one.
    pub fn rounds(&self) -> f64 {
        let sampled: f64 = self.sampled.iter().map(|rounds| rounds.count as f64).sum();
        sampled + f64::from(u8::from(self.mu_squared > 0.0))
    }

    /// The dominating pairs of `direction`, each with its number of rounds.
    pub fn pairs(&self, direction: Direction) -> Vec<(Pair, u64)> {
        let mut pairs: Vec<(Pair, u64)> = self
            .sampled
            .iter()
            .map(|&SampledRounds { rate, noise, count }| {
                let pair = match direction {
                    Direction::Remove => Pair::Remove { rate, noise },
                    Direction::Add => Pair::Add { rate, noise },
                    Direction::Replace => Pair::Replace { rate, noise },
                    Direction::Profile => Pair::Profile { rate, noise },
                };
                (pair, count)
            })
            .collect();
        if self.mu_squared > 0.0 {
            pairs.push((Pair::Gaussian { mu: self.mu() }, 1));
        }
        pairs
    }

    /// ε where a closed form is known.
    pub fn exact(&self, delta: Delta) -> Option<f64> {
        match self.sampled.as_slice() {
            [] => Some(gdp::epsilon(self.mu(), delta)),
            &[
                SampledRounds {
                    rate,
                    noise,
                    count: 1,
                },
            ] if self.mu_squared <= 0.0 && self.relation != Relation::ReplaceOne => {
                let Ok(inner) = Delta::new(delta.get() / rate) else {
                    return Some(0.0);
                };
                let base = gdp::epsilon(1.0 / noise, inner);
                Some(if base > 30.0 {
                    base + rate.ln() + ((1.0 - rate) / rate * (-base).exp()).ln_1p()
                } else {
                    (rate * base.exp_m1()).ln_1p()
                })
            }
            _ => None,
        }
    }
}
