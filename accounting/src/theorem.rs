//! Theorems 1 and 2 of DP-Fed-LS: the noise for a target ε in closed form, as published.
//!
//! With λ in (0, 1), α = 1 + ln(1/δ) / ((1 - λ) ε), x = (noise std / sensitivity)²:
//! `noise std ≥ τ L √(c T α / (λ ε))`, provided that
//! `x ≥ x₀` and `α - 1 ≤ (2/3) x ln(1 / (τ α (1 + x)))`.
//! Theorem 1 (uniform sampling): c = 14, sensitivity 2L, x₀ = 2/3 (Lemma 2).
//! Theorem 2 (Poisson sampling): c = 2, sensitivity L, x₀ = 5/9 (Lemma 3).
//! Source: Liang et al. 2020 (arXiv:2005.00218), Section 4 and Appendices A, B.
//!
//! **Planning aids, not certificates.** Theorem 1 inserts a real α into a bound proved for
//! integers. Eq. 21 in the proof of Lemma 3 is false for noise multipliers above 1.497 (the lemma
//! itself held in 2 320 numerical checks). Certify the resulting noise with the `rdp` accountant,
//! which finds it 1.3 to 1.8 times larger than needed.

use crate::params::{Delta, Epsilon, NoiseMultiplier, SamplingRate};

/// Points of the first search over λ: the feasible interval can be a few percent wide.
const LAMBDA_POINTS: u32 = 100_000;
/// Points of the second search, around the best point of the first.
const REFINED_POINTS: u32 = 2_000;
/// Halvings if the side condition on α determines the noise.
const BISECTIONS: u32 = 60;

/// One of the two theorems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theorem {
    /// Theorem 1: uniform sampling, replace-one.
    One,
    /// Theorem 2: Poisson sampling, add-remove.
    Two,
}

/// The orders α that the search may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orders {
    /// Any real α, as the paper does.
    Real,
    /// Integers, where the bound under Theorem 1 is proved.
    Integer,
}

/// The setting of one theorem: all quantities except ε and the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheoremSetting {
    /// The theorem.
    pub theorem: Theorem,
    /// τ, the sampling rate.
    pub sampling_rate: SamplingRate,
    /// T, the number of rounds.
    pub rounds: u64,
    /// δ of the guarantee.
    pub delta: Delta,
}

/// The noise required by a theorem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheoremNoise {
    /// The smallest noise multiplier z = ν / L.
    pub noise_multiplier: NoiseMultiplier,
    /// The corresponding λ.
    pub lambda: f64,
    /// The corresponding Rényi order α.
    pub order: f64,
}

/// No λ satisfies the side conditions with any noise.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "infeasible: no lambda satisfies the side conditions of {name} for epsilon = {epsilon} over \
     {rounds} rounds at sampling rate {sampling_rate} and delta = {delta:e}; \
     use the `rdp` accountant"
)]
pub struct Infeasible {
    /// The theorem's name as an accountant.
    pub name: &'static str,
    /// The target ε.
    pub epsilon: f64,
    /// T, the number of rounds.
    pub rounds: u64,
    /// τ, the sampling rate.
    pub sampling_rate: f64,
    /// δ of the guarantee.
    pub delta: f64,
}

impl Theorem {
    /// Returns the name as an accountant.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "theorem-1",
            Self::Two => "theorem-2",
        }
    }

    /// Returns c of the closed form.
    const fn constant(self) -> f64 {
        match self {
            Self::One => 14.0,
            Self::Two => 2.0,
        }
    }

    /// Returns the sensitivity of the sum in clip norms.
    const fn sensitivity(self) -> f64 {
        match self {
            Self::One => 2.0,
            Self::Two => 1.0,
        }
    }

    /// Returns x₀, the smallest noise variance over sensitivity squared.
    const fn min_variance(self) -> f64 {
        match self {
            Self::One => 2.0 / 3.0,
            Self::Two => 5.0 / 9.0,
        }
    }
}

impl TheoremSetting {
    /// Returns the smallest noise for which the theorem guarantees `target`.
    ///
    /// More noise than the closed form requires is considered if only it satisfies the side
    /// conditions.
    ///
    /// # Errors
    /// [`Infeasible`] if no λ satisfies the side conditions with any noise.
    pub fn min_noise(&self, target: Epsilon, orders: Orders) -> Result<TheoremNoise, Infeasible> {
        let best = match orders {
            Orders::Real => self.search_lambda(target.get()),
            Orders::Integer => self.search_integer_orders(target.get()),
        };
        let found = best.and_then(|candidate| {
            let noise = self.theorem.sensitivity() * candidate.variance.sqrt();
            Some(TheoremNoise {
                noise_multiplier: NoiseMultiplier::new(noise).ok()?,
                lambda: candidate.lambda,
                order: candidate.order,
            })
        });
        found.ok_or(Infeasible {
            name: self.theorem.name(),
            epsilon: target.get(),
            rounds: self.rounds,
            sampling_rate: self.sampling_rate.get(),
            delta: self.delta.get(),
        })
    }

    /// Returns the smallest ε that the theorem guarantees for this noise or for less. `None` if its
    /// side conditions hold for neither.
    #[must_use]
    pub fn min_epsilon(&self, noise_multiplier: NoiseMultiplier) -> Option<f64> {
        let allowed = noise_multiplier.get() / self.theorem.sensitivity();
        let allowed = allowed * allowed;
        let smallest = self.theorem.min_variance();
        if allowed < smallest {
            return None;
        }
        // Less noise may satisfy the condition on α even if all of it does not.
        let points = REFINED_POINTS;
        let at =
            |index: u32| smallest * (allowed / smallest).powf(f64::from(index) / f64::from(points));
        (0..points)
            .map(at)
            .chain([allowed])
            .filter_map(|variance| self.epsilon_at(variance))
            .min_by(f64::total_cmp)
    }

    /// Returns ε at exactly this noise: `c τ² T α / (s² x) + ln(1/δ) / (α - 1)`, minimised over the
    /// orders that the side condition allows.
    fn epsilon_at(&self, variance: f64) -> Option<f64> {
        let largest = self.largest_order(variance)?;
        let slope = self.unit_variance() / variance;
        let ln_inverse_delta = -self.delta.get().ln();
        let order = (1.0 + (ln_inverse_delta / slope).sqrt()).min(largest);
        Some(slope * order + ln_inverse_delta / (order - 1.0))
    }

    /// Returns the largest α > 1 with α - 1 ≤ (2/3) x ln(1 / (τ α (1 + x))).
    fn largest_order(&self, variance: f64) -> Option<f64> {
        let mut low = 1.0;
        if self.slack(variance, low) <= 0.0 {
            return None;
        }
        let mut high = 2.0;
        while self.slack(variance, high) > 0.0 {
            high *= 2.0;
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if self.slack(variance, middle) >= 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low > 1.0).then_some(low)
    }

    /// Returns (2/3) x ln(1 / (τ α (1 + x))) - (α - 1): the side condition holds if this is ≥ 0.
    fn slack(&self, variance: f64, order: f64) -> f64 {
        let ln_room = -(self.sampling_rate.get() * order * (1.0 + variance)).ln();
        2.0 / 3.0 * variance * ln_room - (order - 1.0)
    }

    /// Returns c τ² T / s²: the variance over sensitivity squared at α = λ ε.
    fn unit_variance(&self) -> f64 {
        let rate = self.sampling_rate.get();
        let sensitivity = self.theorem.sensitivity();
        self.theorem.constant() * rate * rate * self.rounds as f64 / (sensitivity * sensitivity)
    }

    fn search_lambda(&self, epsilon: f64) -> Option<Candidate> {
        let points = LAMBDA_POINTS;
        let coarse = (1..points).map(|index| f64::from(index) / f64::from(points));
        let best = self.best_of(epsilon, coarse)?;
        let width = 1.0 / f64::from(points);
        let fine = (0..=REFINED_POINTS)
            .map(|index| {
                best.lambda + width * (2.0 * f64::from(index) / f64::from(REFINED_POINTS) - 1.0)
            })
            .filter(|lambda| *lambda > 0.0 && *lambda < 1.0);
        self.best_of(epsilon, fine)
    }

    fn search_integer_orders(&self, epsilon: f64) -> Option<Candidate> {
        // From (1 - λ) ε (α - 1) = ln(1/δ). λ > 0 bounds α from below, and λ < 1 always holds. Past
        // 512, the condition α - 1 ≤ (2/3) x ln(1/τ(1+x)) needs τ below e^-500.
        let lambdas = (2..=512)
            .map(|order| 1.0 + self.delta.get().ln() / (epsilon * (f64::from(order) - 1.0)));
        self.best_of(epsilon, lambdas.filter(|lambda| *lambda > 0.0))
    }

    fn best_of(&self, epsilon: f64, lambdas: impl Iterator<Item = f64>) -> Option<Candidate> {
        let mut best: Option<Candidate> = None;
        for lambda in lambdas {
            let order = 1.0 - self.delta.get().ln() / ((1.0 - lambda) * epsilon);
            let asked = self.unit_variance() * order / (lambda * epsilon);
            let least = asked.max(self.theorem.min_variance());
            if best.is_some_and(|best| least >= best.variance) {
                continue;
            }
            let Some(variance) = self.meet_side_condition(least, order) else {
                continue;
            };
            if best.is_none_or(|best| variance < best.variance) {
                best = Some(Candidate {
                    lambda,
                    order,
                    variance,
                });
            }
        }
        best
    }

    /// Returns the smallest x ≥ `least` at which the side condition holds for `order`.
    fn meet_side_condition(&self, least: f64, order: f64) -> Option<f64> {
        if self.slack(least, order) >= 0.0 {
            return Some(least);
        }
        // The slack is concave in x: find its peak, where ln(1/(τα(1+x))) = x/(1+x), then its
        // first zero below the peak.
        let rate_order = self.sampling_rate.get() * order;
        let falls = |x: f64| -(rate_order * (1.0 + x)).ln() < x / (1.0 + x);
        let mut peak_high = (1.0 / rate_order).max(least);
        if falls(least) {
            return None;
        }
        let mut peak_low = least;
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (peak_low + peak_high);
            if falls(middle) {
                peak_high = middle
            } else {
                peak_low = middle
            }
        }
        if self.slack(peak_low, order) < 0.0 {
            return None;
        }
        let (mut low, mut high) = (least, peak_low);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if self.slack(middle, order) >= 0.0 {
                high = middle
            } else {
                low = middle
            }
        }
        Some(high)
    }
}

/// One point of the search.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    lambda: f64,
    order: f64,
    /// x, noise variance over sensitivity squared.
    variance: f64,
}

#[cfg(test)]
mod tests;
