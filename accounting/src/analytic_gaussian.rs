//! The smallest Gaussian noise for one release, exactly.
//!
//! σ is the root of `Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) = δ` (sensitivity 1). The textbook formula
//! √(2 ln(1.25/δ))/ε needs ε < 1 and wastes noise even there.
//! Source: Balle, Wang 2018 (arXiv:1805.06530), Theorem 8 and Algorithm 1.

use crate::gdp;
use crate::params::{Delta, Epsilon};

/// Halvings of the bracket, enough for every digit of an f64.
const BISECTIONS: u32 = 120;

/// Returns the smallest noise std over sensitivity for which one Gaussian release is (ε, δ)-DP,
/// rounded up. Zero for an infinite ε.
#[must_use]
pub fn noise_to_sensitivity(epsilon: Epsilon, delta: Delta) -> f64 {
    if epsilon.get().is_infinite() {
        return 0.0;
    }
    let target = delta.get().ln();
    let holds = |noise: f64| {
        let (epsilon, mu) = (epsilon.get(), 1.0 / noise);
        gdp::ln_delta(epsilon, mu) + gdp::ln_delta_error(epsilon, mu) <= target
    };
    let (mut low, mut high) = (1.0_f64, 1.0_f64);
    while !holds(high) {
        high *= 2.0;
    }
    while holds(low) {
        low *= 0.5;
    }
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if high - low <= 1e-14 * high {
            break;
        }
        if holds(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn noise_agrees_with_all_golden_rows() {
        for row in golden::rows("accounting_gdp.json", "analytic_sigma") {
            let epsilon = Epsilon::new(golden::number(&row, "eps")).unwrap();
            let delta = Delta::new(golden::number(&row, "delta")).unwrap();
            let found = noise_to_sensitivity(epsilon, delta);
            let expected = golden::number(&row, "sigma");
            assert!((found / expected - 1.0).abs() < 1e-9, "{row}: {found}");
        }
    }

    #[test]
    fn no_privacy_needs_no_noise() {
        let noise = noise_to_sensitivity(
            Epsilon::new(f64::INFINITY).unwrap(),
            Delta::new(1e-5).unwrap(),
        );
        assert!(noise <= 0.0);
    }
}
