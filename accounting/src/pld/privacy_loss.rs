//! The composed privacy loss of a run as a value: upper bounds on δ for every ε, and on ε for every
//! δ.

use crate::event::Exposure;
use crate::gdp;
use crate::params::Delta;

use super::bracket::{Aim, PRECISION};
use super::composed::{Bound, Composed};
use super::kinds::{Kinds, PldError, Relation};

/// The composed privacy loss of a run: δ for every ε, and vice versa.
#[derive(Debug, Clone)]
pub struct PrivacyLoss {
    /// For each direction, bounds that are sharp around different losses. All of them hold.
    directions: Vec<Vec<Composed>>,
    /// μ of a run without sampling, which is one Gaussian release.
    gaussian: Option<f64>,
}

impl PrivacyLoss {
    /// Composes `exposures`, sharply from δ of about one half down to `delta`.
    ///
    /// Uniform sampling is represented by the pair of its profile, see
    /// [`uniform_profile`](crate::uniform_profile). Cost: about three times
    /// [`pld_epsilon`](crate::pld::pld_epsilon).
    ///
    /// # Errors
    /// [`PldError`] for Poisson and uniform exposures together, for releases without noise, and
    /// outside the range in which errors are bounded.
    pub fn compose(exposures: &[Exposure], delta: Delta) -> Result<Self, PldError> {
        let relation = if exposures.iter().any(Exposure::is_uniform) {
            Relation::Uniform
        } else {
            Relation::AddRemove
        };
        let kinds = Kinds::new(exposures, relation)?;
        if kinds.sampled.is_empty() {
            return Ok(Self {
                directions: Vec::new(),
                gaussian: Some(kinds.mu()),
            });
        }
        let mut directions = Vec::new();
        let mut aim = Aim::new(PRECISION);
        for &direction in relation.directions() {
            let tail = kinds.composition(direction, Bound::Upper, delta.get(), aim);
            let tilt = tail.layout.tilt.at;
            let mut windows: Vec<Composed> = tail.compose(Bound::Upper).into_iter().collect();
            for share in [0.5, 0.2, 0.0] {
                aim.tilt = Some(share * tilt);
                let composition = kinds.composition(direction, Bound::Upper, delta.get(), aim);
                windows.extend(composition.compose(Bound::Upper));
            }
            if windows.is_empty() {
                return Err(PldError::OutOfRange);
            }
            directions.push(windows);
            aim.tilt = Some(tilt);
            aim.max_spacing = tail.layout.spacing;
        }
        Ok(Self {
            directions,
            gaussian: None,
        })
    }

    /// Returns an upper bound on δ(ε), for `epsilon` at least 0. It is exact without sampling.
    #[must_use]
    pub fn delta(&self, epsilon: f64) -> f64 {
        if let Some(mu) = self.gaussian {
            let ln_delta = gdp::ln_delta(epsilon, mu) + gdp::ln_delta_error(epsilon, mu);
            return ln_delta.exp().min(1.0);
        }
        let best = |windows: &Vec<Composed>| {
            let deltas = windows.iter().map(|window| window.delta(epsilon));
            deltas.fold(1.0, f64::min)
        };
        self.directions.iter().map(best).fold(0.0, f64::max)
    }

    /// Returns an upper bound on the ε at `delta`. Infinite if there is none.
    #[must_use]
    pub fn epsilon(&self, delta: Delta) -> f64 {
        if let Some(mu) = self.gaussian {
            return gdp::epsilon(mu, delta);
        }
        let best = |windows: &Vec<Composed>| {
            let epsilons = windows.iter().map(|window| window.epsilon(delta.get()));
            epsilons.fold(f64::INFINITY, f64::min)
        };
        self.directions.iter().map(best).fold(0.0, f64::max)
    }
}
