//! Privacy loss distributions: ε and δ of composed rounds to a fraction of a percent, proved.
//!
//! The privacy loss of one output x is L = ln(P(x)/Q(x)), P and Q its distributions on two
//! neighbouring federations; δ(ε) = E_P[(1 - e^(ε - L))₊]. The losses of rounds add, so the
//! distribution of their sum gives δ(ε) of a whole run without the slack of Rényi orders.
//!
//! **Why the figures are bounds.**
//! 1. *Dominating pairs.* Against an adaptive adversary the composition of pairs, each of which
//!    dominates its round for all neighbours and all histories, dominates the run (Zhu, Dong, Wang
//!    2022, arXiv:2106.08567, Theorem 10). For a Poisson-sampled Gaussian, the pairs are those of
//!    removing and of adding a device (their Theorem 11); a run removes, or adds, the same device
//!    in all rounds, so each direction is composed with itself and the larger ε holds. Gaussians
//!    without sampling compose to one Gaussian (Dong, Roth, Su 2022, Corollary 2).
//! 2. *Lattices* above and below each pair: `pld/lattice.rs`, connecting the dots.
//! 3. *Fourier transforms*, with aliasing and rounding errors bounded and added:
//!    `pld/compose.rs`.
//! 4. Where too many points or rounds are asked for, there is no figure, rather than a wrong one.
//!
//! The lower bound is that of the direction "removed", which some device attains (an update of
//! norm L against zeros), so it is a lower bound on the true ε of the mechanism.
//!
//! Under replace-one (a device's data replaced by other data) a Poisson-sampled round has a pair of its
//! own: `pld/pair.rs`.
//!
//! One sampled round alone has a closed form: `δ(ε) = τ·δ_Gauss(ε')` with
//! `e^ε = 1 + τ(e^ε' - 1)` (Balle, Barthe, Gaboardi 2018, arXiv:1807.01647, Theorem 8; removing a
//! device attains it).
//!
//! Uniform sampling is refused. Its worst pair is not known to be worst when composed with itself,
//! and for some mechanisms it is not (Lebeda, Regehr, Kamath, Steinke 2024, arXiv:2405.20769);
//! [`uniform_profile`](super::uniform_profile) has a bound that does compose.

mod compose;
mod lattice;
mod pair;
mod privacy_loss;
mod sketch;

pub use privacy_loss::PrivacyLoss;

use super::event::Exposure;
use super::gdp;
use super::params::Delta;
use compose::{Bound, Composed, compose};
use lattice::{downward, upward};
use pair::Pair;
use sketch::{Layout, Sketch};

/// Width of the bracket, relative to ε, with which the lattice is laid out.
const PRECISION: f64 = 3e-4;
/// A bracket wider than this is tried again on finer lattices.
const WIDEST: f64 = 5e-3;
/// How often it is tried again, each time with half the spacing.
const REFINEMENTS: u32 = 3;
/// Mass at infinite loss, as a share of δ, over all rounds.
const INFINITE_SHARE: f64 = 1e-6;
/// Mass raised to the lowest lattice point, over all rounds.
const LOWEST_MASS: f64 = 1e-10;
/// What closed forms may be off by, relative.
const ROUNDING: f64 = 1e-12;
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

/// A bracket of the true ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PldEpsilon {
    /// An upper bound on the true ε.
    pub epsilon: f64,
    /// A lower bound on it.
    pub epsilon_low: f64,
}

/// Which pair stands for sampled rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Remove,
    Add,
    Replace,
    Profile,
}

/// Which two federations are told apart, by which sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Poisson samples, a device added or removed.
    AddRemove,
    /// The same rounds, a device replaced by another.
    ReplaceOne,
    /// Uniform samples, a device replaced by another.
    Uniform,
}

impl Relation {
    const fn directions(self) -> &'static [Direction] {
        match self {
            Self::AddRemove => &[Direction::Remove, Direction::Add],
            Self::ReplaceOne => &[Direction::Replace],
            Self::Uniform => &[Direction::Profile],
        }
    }

    /// The direction whose losses two federations attain.
    const fn attained(self) -> Direction {
        match self {
            Self::AddRemove | Self::Uniform => Direction::Remove,
            Self::ReplaceOne => Direction::Replace,
        }
    }
}

/// Exposures, with the like ones together.
#[derive(Debug, Clone, PartialEq)]
struct Kinds {
    relation: Relation,
    /// 1/ν² of all Gaussian releases together: they are one release.
    mu_squared: f64,
    /// Rate, noise over sensitivity, rounds.
    sampled: Vec<(f64, f64, u64)>,
}

impl Kinds {
    /// Exposures as events give them: under replace-one, a Gaussian's are still those of add-remove.
    fn new(exposures: &[Exposure], relation: Relation) -> Result<Self, PldError> {
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
        let is_same = |kind: &(f64, f64, u64)| {
            kind.0.to_bits() == rate.to_bits() && kind.1.to_bits() == noise.to_bits()
        };
        match self.sampled.iter_mut().find(|kind| is_same(kind)) {
            Some(kind) => kind.2 = kind.2.saturating_add(count),
            None => self.sampled.push((rate, noise, count)),
        }
    }

    fn mu(&self) -> f64 {
        // Rounded up, as it is an upper bound on the loss.
        self.mu_squared.sqrt() * (1.0 + ROUNDING)
    }

    fn rounds(&self) -> f64 {
        let sampled: f64 = self.sampled.iter().map(|kind| kind.2 as f64).sum();
        sampled + f64::from(u8::from(self.mu_squared > 0.0))
    }

    fn pairs(&self, direction: Direction) -> Vec<(Pair, u64)> {
        let mut pairs: Vec<(Pair, u64)> = self
            .sampled
            .iter()
            .map(|&(rate, noise, count)| {
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
    fn exact(&self, delta: Delta) -> Option<f64> {
        match self.sampled.as_slice() {
            [] => Some(gdp::epsilon(self.mu(), delta)),
            &[(rate, noise, 1)]
                if self.mu_squared <= 0.0 && self.relation != Relation::ReplaceOne =>
            {
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

    /// A lattice is laid out for `direction`, about `tilt` or about `delta`.
    fn plan(&self, direction: Direction, delta: f64, aim: Aim) -> Plan {
        let above = INFINITE_SHARE * delta / self.rounds();
        let below = LOWEST_MASS / self.rounds();
        let pairs = self.pairs(direction);
        let sketch = Sketch::new(&pairs, below, above);
        let tilt = aim.tilt.unwrap_or_else(|| sketch.tail_tilt(delta));
        let layout = sketch.layout(tilt, delta, aim.precision, aim.widest);
        Plan {
            pairs,
            below,
            above,
            layout,
        }
    }

    fn bracket(&self, delta: Delta) -> Result<PldEpsilon, PldError> {
        if let Some(epsilon) = self.exact(delta) {
            // ∂ε/∂μ at one δ is at most ε/μ + μ/2 + 1, of which μ was rounded up.
            let mu = self.mu();
            let rounded = 10.0 * ROUNDING * (epsilon + mu + mu * mu);
            return Ok(PldEpsilon {
                epsilon: epsilon * (1.0 + ROUNDING),
                epsilon_low: (epsilon - rounded).max(0.0),
            });
        }
        let mut precision = PRECISION;
        let mut best = self.bracket_once(delta, precision)?;
        // The bracket of a profile is wide for other reasons than the lattice.
        let refinements = match self.relation {
            Relation::Uniform => 0,
            Relation::AddRemove | Relation::ReplaceOne => REFINEMENTS,
        };
        for _ in 0..refinements {
            let width = best.width();
            if width <= WIDEST * best.epsilon {
                break;
            }
            precision *= 0.25;
            let Ok(finer) = self.bracket_once(delta, precision) else {
                break;
            };
            best.epsilon = best.epsilon.min(finer.epsilon);
            best.epsilon_low = best.epsilon_low.max(finer.epsilon_low);
            if best.width() > 0.5 * width {
                // The digits of an f64, or the number of points, allow no more.
                break;
            }
        }
        Ok(best)
    }

    fn bracket_once(&self, delta: Delta, precision: f64) -> Result<PldEpsilon, PldError> {
        let epsilon = self.upper(delta, precision)?;
        let attained = self.relation.attained();
        let below = self.plan(attained, delta.get(), Aim::new(precision));
        let epsilon_low = below
            .compose(Bound::Lower)
            .map_or(0.0, |below| below.epsilon(delta.get()) * (1.0 - ROUNDING));
        Ok(PldEpsilon {
            epsilon,
            epsilon_low: epsilon_low.max(0.0).min(epsilon),
        })
    }

    /// The largest of the upper bounds of all directions.
    fn upper(&self, delta: Delta, precision: f64) -> Result<f64, PldError> {
        let mut aim = Aim::new(precision);
        let mut epsilon = 0.0_f64;
        for &direction in self.relation.directions() {
            let plan = self.plan(direction, delta.get(), aim);
            let composed = plan.compose(Bound::Upper).ok_or(PldError::OutOfRange)?;
            epsilon = epsilon.max(composed.epsilon(delta.get()) * (1.0 + ROUNDING));
            // Adding a device costs less than removing it; about the same losses that is seen well.
            aim.tilt = Some(plan.layout.tilt.at);
            aim.widest = plan.layout.spacing;
        }
        if epsilon.is_finite() {
            Ok(epsilon)
        } else {
            Err(PldError::OutOfRange)
        }
    }
}

/// What a lattice is laid out for.
#[derive(Debug, Clone, Copy)]
struct Aim {
    /// Where the weight is put; about δ if None.
    tilt: Option<f64>,
    /// Width of the bracket, relative to ε.
    precision: f64,
    /// The largest spacing.
    widest: f64,
}

impl Aim {
    const fn new(precision: f64) -> Self {
        Self {
            tilt: None,
            precision,
            widest: f64::INFINITY,
        }
    }
}

/// Pairs, and the numbers with which they are put on a lattice and composed.
struct Plan {
    pairs: Vec<(Pair, u64)>,
    below: f64,
    above: f64,
    layout: Layout,
}

impl Plan {
    /// None if that would need too many points, or more digits than there are.
    fn compose(&self, bound: Bound) -> Option<Composed> {
        let spacing = self.layout.spacing;
        let is_spacing = spacing > 0.0 && spacing.is_finite();
        if !is_spacing {
            return None;
        }
        let mut lattices = Vec::with_capacity(self.pairs.len());
        for (pair, count) in &self.pairs {
            let (low, high) = pair.range(self.below, self.above);
            let fits = (high - low) / spacing < compose::MOST_POINTS as f64;
            if !fits {
                return None;
            }
            let lattice = match bound {
                Bound::Upper => upward(pair, spacing, self.below, self.above),
                Bound::Lower => downward(pair, spacing, self.below, self.above),
            };
            lattices.push((lattice, *count));
        }
        compose(&lattices, &self.layout.tilt, bound)
    }
}

impl PldEpsilon {
    fn width(&self) -> f64 {
        self.epsilon - self.epsilon_low
    }
}

/// The ε at `delta` of Gaussian and Poisson-sampled exposures, bracketed.
///
/// Cost: milliseconds; grows with about the square root of the number of rounds.
///
/// # Errors
/// [`PldError`] for uniform exposures, for releases without noise, and outside the range in which
/// errors are bounded.
pub fn pld_epsilon(exposures: &[Exposure], delta: Delta) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::AddRemove)?.bracket(delta)
}

/// What the same exposures cost if the two federations differ in the data of one device instead of
/// its presence: to set Poisson sampling beside uniform sampling, which has no other relation.
///
/// # Errors
/// As [`pld_epsilon`].
pub fn replace_one_epsilon(exposures: &[Exposure], delta: Delta) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::ReplaceOne)?.bracket(delta)
}

/// The same for Gaussian and uniformly sampled exposures, by the symmetric pair of the profile. The
/// lower bound is what one pair of federations attains.
pub(super) fn profile_epsilon(
    exposures: &[Exposure],
    delta: Delta,
) -> Result<PldEpsilon, PldError> {
    Kinds::new(exposures, Relation::Uniform)?.bracket(delta)
}

/// The first upper bound that [`pld_epsilon`] or [`profile_epsilon`] finds, in half of the time: for
/// searches, since the bound that they report is never above it.
pub(super) fn upper_epsilon(
    exposures: &[Exposure],
    delta: Delta,
    with_uniform: bool,
) -> Result<f64, PldError> {
    let relation = if with_uniform {
        Relation::Uniform
    } else {
        Relation::AddRemove
    };
    let kinds = Kinds::new(exposures, relation)?;
    if let Some(epsilon) = kinds.exact(delta) {
        return Ok(epsilon * (1.0 + ROUNDING));
    }
    kinds.upper(delta, PRECISION)
}

#[cfg(test)]
mod tests;
