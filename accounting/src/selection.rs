//! Private selection: the cost of the best of a random number of trials, each of them private.
//!
//! Tuning runs K trials on the same devices and releases the best one alone, its score included.
//! If K is random and stays secret, that costs little more than one trial, however many there are:
//! Papernot, Steinke 2022 (arXiv:2110.03620). What selects must be part of what a trial releases or
//! be computed from public data; the number of trials and the others' results are not released.
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

use crate::accountant::{AccountingError, same_guarantee};
use crate::event::{Exposure, PrivacyEvent};
use crate::params::{Delta, ParamError};
use crate::rdp::{Conversion, composed_rdp};

/// The orders α, and those of the second divergence of Theorem 2.
const ORDERS: [f64; 28] = [
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0,
    24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 512.0,
];

/// The distribution of the number of trials. Made by its constructors, which check the numbers.
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
    /// Perhaps no trial: then something that does not depend on the data is released.
    #[non_exhaustive]
    Poisson {
        /// μ, at least 1.
        mean: f64,
    },
}

impl Trials {
    /// K of the truncated negative binomial distribution.
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

    /// K of the Poisson distribution.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] unless `mean` is finite and at least 1: with less, most
    /// selections would be of nothing.
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

    /// The expected number of trials, `E[K]`.
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
    /// How many trials there are.
    pub trials: Trials,
    /// What one trial releases, its score included.
    pub trial: Vec<PrivacyEvent>,
}

impl Selection {
    /// The Rényi divergence of order `order` of the selected result, an upper bound; infinite where
    /// a theorem makes no claim.
    #[must_use]
    pub fn rdp(&self, order: f64) -> f64 {
        let events = PrivacyEvent::about_same_users(&self.trial);
        let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
        let own = |order: f64| composed_rdp(&exposures, order);
        let of_number = self.trials.mean().ln() / (order - 1.0);
        match self.trials {
            Trials::NegativeBinomial { shape, rate } => {
                let second = |b: f64| (1.0 - 1.0 / b) * own(b) - rate.ln() / b;
                let least = ORDERS.into_iter().map(second).fold(f64::INFINITY, f64::min);
                own(order) + (1.0 + shape) * least + of_number
            }
            Trials::Poisson { mean } => {
                let epsilon = (1.0 / (order - 1.0)).ln_1p();
                let delta = |b: f64| delta_of_rdp(own(b), b, epsilon);
                let least = ORDERS.into_iter().map(delta).fold(1.0, f64::min);
                own(order) + mean * least + of_number
            }
        }
    }

    /// ε at `delta`, least over a fixed grid of orders.
    ///
    /// # Errors
    /// [`AccountingError`] for a trial of events whose guarantees cannot be added.
    pub fn epsilon(&self, delta: Delta) -> Result<f64, AccountingError> {
        same_guarantee(&self.trial)?;
        let of = |order: f64| Conversion::Improved.epsilon(self.rdp(order), order, delta);
        let least = ORDERS.into_iter().map(of).fold(f64::INFINITY, f64::min);
        Ok(least.max(0.0) * (1.0 + 1e-12))
    }
}

/// δ at `epsilon` of a Rényi divergence: `e^((α-1)(ρ-ε)) / (α-1) (1 - 1/α)^α`. Canonne, Kamath,
/// Steinke 2020 (arXiv:2004.00010), Proposition 12.
fn delta_of_rdp(rdp: f64, order: f64, epsilon: f64) -> f64 {
    let ln = (order - 1.0) * (rdp - epsilon) - (order - 1.0).ln() + order * (-1.0 / order).ln_1p();
    ln.exp()
}

#[cfg(test)]
mod tests;
