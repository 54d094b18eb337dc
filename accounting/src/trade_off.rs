//! The meaning of ε and δ for an attacker who tests "took part" against "did not".
//!
//! A single (ε, δ) is weaker than the whole profile δ(ε) of a run: each of its points bounds every
//! test, so all of them do together.
//!
//! Under (ε, δ) every test with false-positive rate a has a false-negative rate of at least
//! `f(a) = max(0, 1 - δ - e^ε a, e^-ε (1 - δ - a))`.
//! Sources: Wasserman, Zhou 2010 (arXiv:0811.2501), and Dong, Roth, Su 2022, Proposition 3.

use crate::accountant::Estimate;
use crate::event::{Exposure, PrivacyEvent};
use crate::params::Delta;
use crate::pld::PrivacyLoss;

/// Values of ε at which the profile of a run is read.
const TANGENTS: u32 = 200;

/// A trade-off curve: the smallest false-negative rate for each false-positive rate, given one or
/// several (ε, δ) guarantees that all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    guarantees: Vec<Guarantee>,
}

/// One (ε, δ) guarantee.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Guarantee {
    epsilon: f64,
    delta: f64,
}

impl TradeOff {
    /// Creates the curve of one (`epsilon`, `delta`). `epsilon` is at least 0, and may be infinite.
    #[must_use]
    pub fn new(epsilon: f64, delta: Delta) -> Self {
        Self {
            guarantees: vec![Guarantee {
                epsilon,
                delta: delta.get(),
            }],
        }
    }

    /// Creates the curve of a proved estimate for `events`: from their whole privacy loss if it can
    /// be composed, otherwise from the estimate alone.
    ///
    /// The upper envelope of valid curves is valid. Source: Dong, Roth, Su 2022, Proposition 6.
    #[must_use]
    pub fn of_events(estimate: &Estimate, events: &[PrivacyEvent]) -> Self {
        let mut curve = Self::new(estimate.epsilon, estimate.delta);
        if !estimate.is_upper_bound() || !estimate.epsilon.is_finite() {
            return curve;
        }
        let events = PrivacyEvent::about_same_users(events);
        let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
        if let Ok(loss) = PrivacyLoss::compose(&exposures, estimate.delta) {
            let step = estimate.epsilon / f64::from(TANGENTS);
            let epsilons = (0..=TANGENTS).map(|index| step * f64::from(index));
            curve.guarantees.extend(epsilons.map(|epsilon| Guarantee {
                epsilon,
                delta: loss.delta(epsilon),
            }));
        }
        curve
    }

    /// Returns the smallest false-negative rate (type II error) of any test with this
    /// false-positive rate (type I error).
    #[must_use]
    pub fn false_negative_rate(&self, false_positive_rate: f64) -> f64 {
        let line = |&Guarantee { epsilon, delta }: &Guarantee| {
            if epsilon.is_infinite() {
                return 0.0;
            }
            let steep = 1.0 - delta - epsilon.exp() * false_positive_rate;
            let flat = (-epsilon).exp() * (1.0 - delta - false_positive_rate);
            steep.max(flat).clamp(0.0, 1.0)
        };
        self.guarantees.iter().map(line).fold(0.0, f64::max)
    }

    /// Returns the largest true-positive rate (power) of any test with this false-positive rate.
    #[must_use]
    pub fn true_positive_rate(&self, false_positive_rate: f64) -> f64 {
        1.0 - self.false_negative_rate(false_positive_rate)
    }

    /// Returns the largest advantage of any test, true-positive minus false-positive rate: the
    /// minimum of `(e^ε - 1 + 2δ) / (e^ε + 1)`.
    #[must_use]
    pub fn advantage(&self) -> f64 {
        // Written in e^-ε, which cannot overflow.
        let gap = |&Guarantee { epsilon, delta }: &Guarantee| {
            let shrink = (-epsilon).exp();
            (1.0 - shrink + 2.0 * delta * shrink) / (1.0 + shrink)
        };
        self.guarantees.iter().map(gap).fold(1.0, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(epsilon: f64, delta: f64) -> TradeOff {
        TradeOff::new(epsilon, Delta::new(delta).unwrap())
    }

    #[test]
    fn no_budget_leaves_guessing() {
        let curve = curve(0.0, 1e-9);
        assert!(curve.advantage() < 2e-9);
        assert!((curve.true_positive_rate(0.01) - 0.01).abs() < 2e-9);
    }

    #[test]
    fn an_infinite_epsilon_leaves_nothing() {
        let curve = curve(f64::INFINITY, 1e-9);
        assert!((curve.advantage() - 1.0).abs() < 1e-15);
        assert!((curve.true_positive_rate(0.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_advantage_is_the_widest_gap_of_the_curve() {
        for (epsilon, delta) in [(0.1, 1e-5), (1.0, 0.01), (8.0, 1e-5)] {
            let curve = curve(epsilon, delta);
            let widest = (0..=100_000)
                .map(|index| f64::from(index) / 1e5)
                .map(|rate| curve.true_positive_rate(rate) - rate)
                .fold(0.0, f64::max);
            assert!(widest <= curve.advantage() + 1e-12);
            assert!(widest >= curve.advantage() - 1e-4, "{epsilon}: {widest}");
        }
    }

    /// The whole profile is sharper than one point of it, and agrees with the exact curve of the
    /// Gaussian, `Φ(Φ⁻¹(1 - a) - μ)`.
    #[test]
    fn a_whole_profile_is_sharper_than_one_point() {
        use crate::accountant::Accountant;
        use crate::event::{Mechanism, Sampling};
        use crate::params::NoiseMultiplier;
        let mechanism = Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(1.0).unwrap(),
        };
        let event = PrivacyEvent::new(mechanism, Sampling::full(10).unwrap(), 1);
        let delta = Delta::new(1e-5).unwrap();
        let estimate = Accountant::Pld.epsilon(&[event], delta).unwrap();
        let curve = TradeOff::of_events(&estimate, &[event]);
        let point = TradeOff::new(estimate.epsilon, delta);
        // Φ(1/2) - Φ(-1/2), and Φ(Φ⁻¹(0.01) + 1).
        assert!((curve.advantage() - 0.382_924_9).abs() < 1e-6);
        assert!(point.advantage() > 0.9);
        let rate = curve.true_positive_rate(0.01);
        assert!((0.092_3..0.092_5).contains(&rate), "{rate}");
    }
}
