//! What ε and δ mean for an attacker who tests "took part" against "did not".
//!
//! Under (ε, δ) every test with false-alarm rate a misses at least
//! `f(a) = max(0, 1 - δ - e^ε a, e^-ε (1 - δ - a))`.
//! Source: Wasserman, Zhou 2010 (arXiv:0811.2501); Dong, Roth, Su 2022, Proposition 3.

use super::params::Delta;

/// The trade-off curve of one (ε, δ): the least miss rate for each false-alarm rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TradeOff {
    epsilon: f64,
    delta: f64,
}

impl TradeOff {
    /// The curve of (`epsilon`, `delta`); `epsilon` at least 0, infinity allowed.
    #[must_use]
    pub const fn new(epsilon: f64, delta: Delta) -> Self {
        Self {
            epsilon,
            delta: delta.get(),
        }
    }

    /// The least miss rate (type II error) of any test with this false-alarm rate (type I error).
    #[must_use]
    pub fn miss_rate(&self, false_alarm_rate: f64) -> f64 {
        if self.epsilon.is_infinite() {
            return 0.0;
        }
        let steep = 1.0 - self.delta - self.epsilon.exp() * false_alarm_rate;
        let flat = (-self.epsilon).exp() * (1.0 - self.delta - false_alarm_rate);
        steep.max(flat).clamp(0.0, 1.0)
    }

    /// The largest hit rate of any test with this false-alarm rate.
    #[must_use]
    pub fn hit_rate(&self, false_alarm_rate: f64) -> f64 {
        1.0 - self.miss_rate(false_alarm_rate)
    }

    /// The largest difference of hit rate and false-alarm rate: `(e^ε - 1 + 2δ) / (e^ε + 1)`.
    #[must_use]
    pub fn advantage(&self) -> f64 {
        // Written in e^-ε, which cannot overflow.
        let shrink = (-self.epsilon).exp();
        ((1.0 - shrink + 2.0 * self.delta * shrink) / (1.0 + shrink)).min(1.0)
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
}
