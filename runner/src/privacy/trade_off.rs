//! What ε and δ mean for an attacker who tests "took part" against "did not".
//!
//! A single (ε, δ) says less than the whole profile δ(ε) of a run: each of its points bounds every
//! test, so all of them do together.
//!
//! Under (ε, δ) every test with false-alarm rate a misses at least
//! `f(a) = max(0, 1 - δ - e^ε a, e^-ε (1 - δ - a))`.
//! Source: Wasserman, Zhou 2010 (arXiv:0811.2501); Dong, Roth, Su 2022, Proposition 3.

use super::accountant::Estimate;
use super::event::{Exposure, PrivacyEvent};
use super::params::Delta;
use super::pld::PrivacyLoss;

/// Values of ε at which the profile of a run is read.
const TANGENTS: u32 = 200;

/// The trade-off curve of some (ε, δ), all of which hold: the least miss rate for each false-alarm
/// rate.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    points: Vec<(f64, f64)>,
}

impl TradeOff {
    /// The curve of one (`epsilon`, `delta`); `epsilon` at least 0, infinity allowed.
    #[must_use]
    pub fn new(epsilon: f64, delta: Delta) -> Self {
        Self {
            points: vec![(epsilon, delta.get())],
        }
    }

    /// The curve of a proved estimate for `events`: that of their whole privacy loss where it can be
    /// composed, and that of the estimate alone elsewhere.
    ///
    /// The upper envelope of valid curves is valid. Source: Dong, Roth, Su 2022, Proposition 6.
    #[must_use]
    pub fn of_events(estimate: &Estimate, events: &[PrivacyEvent]) -> Self {
        let mut curve = Self::new(estimate.epsilon, estimate.delta);
        if !estimate.is_upper_bound() || !estimate.epsilon.is_finite() {
            return curve;
        }
        let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
        if let Ok(loss) = PrivacyLoss::compose(&exposures, estimate.delta) {
            let step = estimate.epsilon / f64::from(TANGENTS);
            let epsilons = (0..=TANGENTS).map(|index| step * f64::from(index));
            curve
                .points
                .extend(epsilons.map(|epsilon| (epsilon, loss.delta(epsilon))));
        }
        curve
    }

    /// The least miss rate (type II error) of any test with this false-alarm rate (type I error).
    #[must_use]
    pub fn miss_rate(&self, false_alarm_rate: f64) -> f64 {
        let line = |&(epsilon, delta): &(f64, f64)| {
            if epsilon.is_infinite() {
                return 0.0;
            }
            let steep = 1.0 - delta - epsilon.exp() * false_alarm_rate;
            let flat = (-epsilon).exp() * (1.0 - delta - false_alarm_rate);
            steep.max(flat).clamp(0.0, 1.0)
        };
        self.points.iter().map(line).fold(0.0, f64::max)
    }

    /// The largest hit rate of any test with this false-alarm rate.
    #[must_use]
    pub fn hit_rate(&self, false_alarm_rate: f64) -> f64 {
        1.0 - self.miss_rate(false_alarm_rate)
    }

    /// The largest difference of hit rate and false-alarm rate: the least of
    /// `(e^ε - 1 + 2δ) / (e^ε + 1)`.
    #[must_use]
    pub fn advantage(&self) -> f64 {
        // Written in e^-ε, which cannot overflow.
        let gap = |&(epsilon, delta): &(f64, f64)| {
            let shrink = (-epsilon).exp();
            (1.0 - shrink + 2.0 * delta * shrink) / (1.0 + shrink)
        };
        self.points.iter().map(gap).fold(1.0, f64::min)
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
        assert!((curve.hit_rate(0.01) - 0.01).abs() < 2e-9);
    }

    #[test]
    fn an_infinite_epsilon_leaves_nothing() {
        let curve = curve(f64::INFINITY, 1e-9);
        assert!((curve.advantage() - 1.0).abs() < 1e-15);
        assert!((curve.hit_rate(0.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_advantage_is_the_widest_gap_of_the_curve() {
        for (epsilon, delta) in [(0.1, 1e-5), (1.0, 0.01), (8.0, 1e-5)] {
            let curve = curve(epsilon, delta);
            let widest = (0..=100_000)
                .map(|index| f64::from(index) / 1e5)
                .map(|rate| curve.hit_rate(rate) - rate)
                .fold(0.0, f64::max);
            assert!(widest <= curve.advantage() + 1e-12);
            assert!(widest >= curve.advantage() - 1e-4, "{epsilon}: {widest}");
        }
    }

    /// The whole profile says more than one point of it, and what it says is that of the exact
    /// curve of the Gaussian, `Φ(Φ⁻¹(1 - a) - μ)`.
    #[test]
    fn a_whole_profile_is_sharper_than_one_point() {
        use crate::privacy::accountant::Accountant;
        use crate::privacy::event::{Mechanism, PrivacyUnit, Sampling, TrustModel};
        use crate::privacy::params::NoiseMultiplier;
        let event = PrivacyEvent {
            mechanism: Mechanism::Gaussian {
                noise_multiplier: NoiseMultiplier::new(1.0).unwrap(),
            },
            sampling: Sampling::full(10).unwrap(),
            trust: TrustModel::Central,
            unit: PrivacyUnit::Device,
            count: 1,
            releases: 1,
        };
        let delta = Delta::new(1e-5).unwrap();
        let estimate = Accountant::Pld.epsilon(&[event], delta).unwrap();
        let curve = TradeOff::of_events(&estimate, &[event]);
        let point = TradeOff::new(estimate.epsilon, delta);
        // Φ(1/2) - Φ(-1/2), and Φ(Φ⁻¹(0.01) + 1).
        assert!((curve.advantage() - 0.382_924_9).abs() < 1e-6);
        assert!(point.advantage() > 0.9);
        let hit_rate = curve.hit_rate(0.01);
        assert!((0.092_3..0.092_5).contains(&hit_rate), "{hit_rate}");
    }
}
