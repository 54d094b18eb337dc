//! Private selection (tuning of hyperparameters): the cost of the best of a random number of
//! private trials.
//!
//! Tuning runs K trials on the same devices and releases only the best one, including its score. If
//! K is random and stays secret, this costs little more than one trial, for any number of trials:
//! Papernot, Steinke 2022 (arXiv:2110.03620). The selection criterion must be part of a trial's
//! release or computed from public data. The number of trials and the others' results are not
//! released.
//!
//! * **Theorem 2**, K truncated negative binomial with parameters η > -1 and γ in (0, 1), so at
//!   least 1: for a trial of Rényi divergence ρ, and any order b > 1,
//!   `ρ'(α) = ρ(α) + (1 + η)(1 - 1/b) ρ(b) + (1 + η) ln(1/γ) / b + ln E[K] / (α - 1)`.
//!   η = 1 is the geometric distribution, η = 0 the logarithmic one.
//! * **Theorem 6**, K Poisson with mean μ, perhaps 0: if a trial is (ε̂, δ̂)-DP with
//!   `e^ε̂ ≤ 1 + 1/(α - 1)`, then `ρ'(α) = ρ(α) + μ δ̂ + ln(μ) / (α - 1)`.
//!
//! ```
//! use smolfed_accounting::selection::{Selection, Trials};
//! use smolfed_accounting::{Delta, Mechanism, NoiseMultiplier, PrivacyEvent, Sampling};
//!
//! let mechanism = Mechanism::Gaussian { noise_multiplier: NoiseMultiplier::new(20.0)? };
//! let trial = PrivacyEvent::new(mechanism, Sampling::full(1000)?, 10);
//! let trials = Trials::negative_binomial(0.0, 0.05)?;
//! assert!((trials.mean() - 6.34).abs() < 0.01);
//! let epsilon = Selection { trials, trial: vec![trial] }.epsilon(Delta::new(1e-6)?)?;
//! assert!(epsilon > 0.8 && epsilon < 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod number;

use crate::accountant::{Accountant, AccountingError, Estimate, EstimateKind, same_guarantee};
use crate::event::{Exposure, PrivacyEvent};
use crate::params::{Delta, ParamError};
use crate::rdp::{Conversion, composed_rdp};

/// The orders α, and the orders of the second divergence of Theorem 2.
const ORDERS: [f64; 28] = [
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0,
    24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 512.0,
];

/// Increase of ε due to rounding in the drawn number of trials ([`Trials::draw`]).
const DRAW_SLACK: f64 = 1e-6;
/// The smallest δ and the largest ε for this bound: numbers that are never drawn add to δ.
const DRAW_MIN_DELTA: f64 = 1e-100;
const DRAW_MAX_EPSILON: f64 = 400.0;

/// The distribution of the number of trials. Its constructors check the numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trials {
    /// At least one trial.
    #[non_exhaustive]
    NegativeBinomial {
        /// η, above -1.
        shape: f64,
        /// γ, in (0, 1): the smaller, the more trials.
        rate: f64,
    },
    /// Possibly no trial: a value that does not depend on the data is then released.
    #[non_exhaustive]
    Poisson {
        /// μ, at least 1.
        mean: f64,
    },
}

impl Trials {
    /// Creates the truncated negative binomial distribution of K.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] unless `shape` is finite and above -1 and `rate` in (0, 1).
    pub fn negative_binomial(shape: f64, rate: f64) -> Result<Self, ParamError> {
        let refused = |name, value, range| Err(ParamError::OutOfRange { name, value, range });
        if !(shape > -1.0 && shape.is_finite()) {
            return refused(
                "shape of the number of trials",
                shape,
                "finite and above -1",
            );
        }
        if !(rate > 0.0 && rate < 1.0) {
            return refused("rate of the number of trials", rate, "above 0 and below 1");
        }
        Ok(Self::NegativeBinomial { shape, rate })
    }

    /// Creates the distribution with `mean` as the expected number of trials, to 12 digits.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] unless `shape` is finite and above -1, and `mean` is finite and
    /// far enough above 1 that there is a rate.
    pub fn negative_binomial_of_mean(shape: f64, mean: f64) -> Result<Self, ParamError> {
        let of = |ln_rate: f64| Self::negative_binomial(shape, ln_rate.exp());
        // The mean falls with the rate, and its logarithm is nearly linear.
        let (mut low, mut high) = (-60.0, -1e-9);
        if !(mean < of(low)?.mean() && mean > of(high)?.mean()) {
            return Err(ParamError::OutOfRange {
                name: "mean number of trials",
                value: mean,
                range: "finite and above 1",
            });
        }
        for _ in 0..64 {
            let middle = f64::midpoint(low, high);
            match of(middle)?.mean() > mean {
                true => low = middle,
                false => high = middle,
            }
        }
        of(high)
    }

    /// Creates the Poisson distribution of K.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] unless `mean` is finite and at least 1: with less, most
    /// selections would have no trial.
    pub fn poisson(mean: f64) -> Result<Self, ParamError> {
        if mean >= 1.0 && mean.is_finite() {
            return Ok(Self::Poisson { mean });
        }
        Err(ParamError::OutOfRange {
            name: "mean number of trials",
            value: mean,
            range: "finite and at least 1",
        })
    }

    /// Returns the number of the theorem that bounds the cost.
    #[must_use]
    pub const fn theorem(&self) -> u8 {
        match self {
            Self::NegativeBinomial { .. } => 2,
            Self::Poisson { .. } => 6,
        }
    }

    /// Returns the expected number of trials, `E[K]`.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Poisson { mean } => mean,
            // η(1 - γ) / (γ(1 - γ^η)), and its limit at η = 0.
            Self::NegativeBinomial { shape, rate } => {
                let power = -(shape * rate.ln()).exp_m1();
                let odds = (1.0 - rate) / rate;
                if power.abs() < 1e-12 {
                    odds / -rate.ln()
                } else {
                    odds * shape / power
                }
            }
        }
    }
}

/// The best of a random number of trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The distribution of the number of trials.
    pub trials: Trials,
    /// The releases of one trial, including its score.
    pub trial: Vec<PrivacyEvent>,
}

impl Selection {
    /// Returns the Rényi divergence of order `order` of the selected result, an upper bound.
    /// Infinite if a theorem makes no claim.
    #[must_use]
    pub fn rdp(&self, order: f64) -> f64 {
        let curve = Curve::new(self);
        curve.selected(order, curve.of_trial(order))
    }

    /// Returns the smallest ε at `delta` over a fixed grid of orders.
    ///
    /// # Errors
    /// [`AccountingError`] for a trial of events whose guarantees cannot be added.
    pub fn epsilon(&self, delta: Delta) -> Result<f64, AccountingError> {
        same_guarantee(&self.trial)?;
        let curve = Curve::new(self);
        let of = |(order, own): (f64, f64)| {
            Conversion::Improved.epsilon(curve.selected(order, own), order, delta)
        };
        let pairs = ORDERS.into_iter().zip(curve.at_orders);
        let least = pairs.map(of).fold(f64::INFINITY, f64::min);
        Ok(least.max(0.0) * (1.0 + 1e-12))
    }

    /// Returns ε as a proved bound by [`Accountant::Rdp`], if the number of trials is drawn by
    /// [`Trials::draw`] with a mean of at most 100 and a shape from 0 to 10. Infinite for ε above
    /// 400 and for δ below 10⁻¹⁰⁰.
    ///
    /// # Errors
    /// The errors of [`Self::epsilon`].
    pub fn estimate(&self, delta: Delta) -> Result<Estimate, AccountingError> {
        let epsilon = self.epsilon(delta)?;
        let is_covered = epsilon <= DRAW_MAX_EPSILON && delta.get() >= DRAW_MIN_DELTA;
        Ok(Estimate {
            epsilon: match is_covered {
                true => epsilon + DRAW_SLACK,
                false => f64::INFINITY,
            },
            delta,
            kind: EstimateKind::UpperBound,
            epsilon_low: None,
            accountant: Accountant::Rdp,
            notes: Vec::new(),
        })
    }
}

/// The divergences of one trial, computed once at each order of the grid.
struct Curve {
    trials: Trials,
    exposures: Vec<Exposure>,
    at_orders: [f64; ORDERS.len()],
}

impl Curve {
    fn new(selection: &Selection) -> Self {
        let events = PrivacyEvent::about_same_users(&selection.trial);
        let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
        Self {
            trials: selection.trials,
            at_orders: ORDERS.map(|order| composed_rdp(&exposures, order)),
            exposures,
        }
    }

    /// Returns ρ(α).
    fn of_trial(&self, order: f64) -> f64 {
        composed_rdp(&self.exposures, order)
    }

    /// Returns ρ'(α) for `own` = ρ(α).
    fn selected(&self, order: f64, own: f64) -> f64 {
        let of_number = self.trials.mean().ln() / (order - 1.0);
        let known = ORDERS.into_iter().zip(self.at_orders);
        match self.trials {
            Trials::NegativeBinomial { shape, rate } => {
                let second = |(b, rdp): (f64, f64)| (1.0 - 1.0 / b) * rdp - rate.ln() / b;
                let least = known.map(second).fold(f64::INFINITY, f64::min);
                own + (1.0 + shape) * least + of_number
            }
            Trials::Poisson { mean } => {
                let epsilon = (1.0 / (order - 1.0)).ln_1p();
                let delta = |(b, rdp): (f64, f64)| delta_of_rdp(rdp, b, epsilon);
                let least = known.map(delta).fold(1.0, f64::min);
                own + mean * least + of_number
            }
        }
    }
}

/// Returns δ at `epsilon` of a Rényi divergence: `e^((α-1)(ρ-ε)) / (α-1) (1 - 1/α)^α`. Canonne,
/// Kamath, Steinke 2020 (arXiv:2004.00010), Proposition 12.
fn delta_of_rdp(rdp: f64, order: f64, epsilon: f64) -> f64 {
    let ln = (order - 1.0) * (rdp - epsilon) - (order - 1.0).ln() + order * (-1.0 / order).ln_1p();
    ln.exp()
}

#[cfg(test)]
mod tests;
