//! The lower and upper bound of ε (bracket) of composed rounds, from lattices designed for one δ:
//! the width above which it is computed again, and the number of refinements.

use crate::params::Delta;

use super::compose::compose;
use super::composed::{Bound, Composed};
use super::epsilon::PldEpsilon;
use super::graded::Graded;
use super::kinds::{Direction, Kinds, PldError, ROUNDING, Relation};
use super::lattice::{downward, upward};
use super::pair::Pair;
use super::sketch::{Layout, Sketch};
use super::tilt::MAX_POINTS;

/// Width of the bracket, relative to ε, for which the lattice is designed.
pub(super) const PRECISION: f64 = 3e-4;
/// A wider bracket is computed again on finer lattices.
const MAX_WIDTH: f64 = 5e-3;
/// Number of repetitions, each with half the spacing.
const REFINEMENTS: u32 = 3;
/// A wider bracket is also computed on a graded lattice.
const WIDE: f64 = 0.02;
/// The corresponding width if the profile alone makes the bracket wide.
const WIDE_PROFILE: f64 = 0.5;
/// Mass at infinite loss, as a share of δ, over all rounds.
const INFINITE_SHARE: f64 = 1e-6;
/// Mass raised to the lowest lattice point, over all rounds.
const LOWEST_MASS: f64 = 1e-10;

impl Kinds {
    /// Returns the composition for `direction`, with a lattice designed for `aim`.
    pub fn composition(
        &self,
        direction: Direction,
        bound: Bound,
        delta: f64,
        aim: Aim,
    ) -> Composition {
        let above = INFINITE_SHARE * delta / self.rounds();
        let below = LOWEST_MASS / self.rounds();
        let pairs = self.pairs(direction, bound);
        let sketch = Sketch::new(&pairs, below, above);
        let tilt = aim.tilt.unwrap_or_else(|| sketch.tail_tilt(delta));
        let layout = sketch.layout(tilt, delta, aim.precision, aim.max_spacing);
        Composition {
            pairs,
            below,
            above,
            layout,
        }
    }

    /// Returns the bracket of ε at `delta`, on finer lattices until it is narrow enough.
    pub fn bracket(&self, delta: Delta) -> Result<PldEpsilon, PldError> {
        if let Some(exact) = self.exact(delta) {
            return Ok(exact);
        }
        let by_transform = self.bracket_by_transform(delta);
        // The bracket of a profile is wide for other reasons than the lattice.
        let wide = match self.relation {
            Relation::Uniform => WIDE_PROFILE,
            Relation::AddRemove | Relation::ReplaceOne => WIDE,
        };
        let is_narrow = |found: &PldEpsilon| found.width() <= wide * found.epsilon;
        match by_transform {
            Ok(found) if is_narrow(&found) => Ok(found),
            found => match self.bracket_graded(delta) {
                Some(graded) => Ok(found.map_or(graded, |found| found.and(&graded))),
                None => found,
            },
        }
    }

    /// Returns the bracket on lattices with cells that grow with the loss, for few rounds and a
    /// tiny δ.
    pub fn bracket_graded(&self, delta: Delta) -> Option<PldEpsilon> {
        let delta = delta.get();
        let above = INFINITE_SHARE * delta / self.rounds();
        let below = LOWEST_MASS / self.rounds();
        let mut epsilon = 0.0_f64;
        for &direction in self.relation.directions() {
            let pairs = self.pairs(direction, Bound::Upper);
            let lattice = Graded::new(&pairs, delta, below, above)?;
            epsilon = epsilon.max(lattice.upper() * (1.0 + ROUNDING));
        }
        let attained = self.pairs(self.relation.attained(), Bound::Lower);
        let lattice = Graded::new(&attained, delta, below, above)?;
        let epsilon_low = lattice.lower() * (1.0 - ROUNDING);
        epsilon.is_finite().then_some(PldEpsilon {
            epsilon,
            epsilon_low: epsilon_low.min(epsilon),
        })
    }

    fn bracket_by_transform(&self, delta: Delta) -> Result<PldEpsilon, PldError> {
        let mut precision = PRECISION;
        let mut best = self.bracket_once(delta, precision)?;
        let refinements = match self.relation {
            Relation::Uniform => 0,
            Relation::AddRemove | Relation::ReplaceOne => REFINEMENTS,
        };
        for _ in 0..refinements {
            let width = best.width();
            if width <= MAX_WIDTH * best.epsilon {
                break;
            }
            precision *= 0.25;
            let Ok(finer) = self.bracket_once(delta, precision) else {
                break;
            };
            best.epsilon = best.epsilon.min(finer.epsilon);
            best.epsilon_low = best.epsilon_low.max(finer.epsilon_low);
            if best.width() > 0.5 * width {
                // The digits of an f64, or the number of points, are exhausted.
                break;
            }
        }
        Ok(best)
    }

    pub fn bracket_once(&self, delta: Delta, precision: f64) -> Result<PldEpsilon, PldError> {
        let epsilon = self.upper(delta, precision)?;
        let attained = self.relation.attained();
        let below = self.composition(attained, Bound::Lower, delta.get(), Aim::new(precision));
        let epsilon_low = below
            .compose(Bound::Lower)
            .map_or(0.0, |below| below.epsilon(delta.get()) * (1.0 - ROUNDING));
        Ok(PldEpsilon {
            epsilon,
            epsilon_low: epsilon_low.max(0.0).min(epsilon),
        })
    }

    /// Returns the largest of the upper bounds of all directions.
    pub fn upper(&self, delta: Delta, precision: f64) -> Result<f64, PldError> {
        let mut aim = Aim::new(precision);
        let mut epsilon = 0.0_f64;
        for &direction in self.relation.directions() {
            let composition = self.composition(direction, Bound::Upper, delta.get(), aim);
            let composed = composition
                .compose(Bound::Upper)
                .ok_or(PldError::OutOfRange)?;
            epsilon = epsilon.max(composed.epsilon(delta.get()) * (1.0 + ROUNDING));
            // Adding a device costs less than removing it. The same losses are sufficient to show
            // that.
            aim.tilt = Some(composition.layout.tilt.at);
            aim.max_spacing = composition.layout.spacing;
        }
        if epsilon.is_finite() {
            Ok(epsilon)
        } else {
            Err(PldError::OutOfRange)
        }
    }
}

/// The design parameters of a lattice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// The tilt. If `None`, it is chosen for δ.
    pub tilt: Option<f64>,
    /// Width of the bracket, relative to ε.
    precision: f64,
    /// The largest spacing.
    pub max_spacing: f64,
}

impl Aim {
    pub const fn new(precision: f64) -> Self {
        Self {
            tilt: None,
            precision,
            max_spacing: f64::INFINITY,
        }
    }
}

/// Pairs, with the parameters of their lattices and composition.
pub(super) struct Composition {
    pairs: Vec<(Pair, u64)>,
    below: f64,
    above: f64,
    pub layout: Layout,
}

impl Composition {
    /// Composes the pairs. `None` if that would need too many points, or more digits than an f64
    /// has.
    pub fn compose(&self, bound: Bound) -> Option<Composed> {
        let spacing = self.layout.spacing;
        let is_spacing = spacing > 0.0 && spacing.is_finite();
        if !is_spacing {
            return None;
        }
        let mut lattices = Vec::with_capacity(self.pairs.len());
        for (pair, count) in &self.pairs {
            let (low, high) = pair.range(self.below, self.above);
            let fits = (high - low) / spacing < MAX_POINTS as f64;
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
