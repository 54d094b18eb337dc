//! The standard normal distribution, exact in its far tails.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Below this argument `erfc` itself is exact enough; above it the continued fraction converges.
const FRACTION_FROM: f64 = 3.0;
/// Terms of the continued fraction; at 3 it reaches 1e-16 with these.
const FRACTION_TERMS: u32 = 60;

/// Φ(x).
pub(crate) fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// ln Φ(x), finite for every finite x.
pub(crate) fn ln_cdf(x: f64) -> f64 {
    if x < -4.0 {
        ln_density(x) + mills_ratio(-x).ln()
    } else {
        cdf(x).ln()
    }
}

/// ln φ(x), φ the density.
pub(crate) fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * PI).ln()
}

/// Φ(-x) / φ(x) = √(π/2) · e^(x²/2) · erfc(x/√2), for x ≥ -30.
///
/// Source of the fraction: Abramowitz and Stegun, 26.2.14: 1/(x + 1/(x + 2/(x + 3/(x + ...)))).
pub(crate) fn mills_ratio(x: f64) -> f64 {
    if x < FRACTION_FROM {
        return (PI / 2.0).sqrt() * (0.5 * x * x).exp() * libm::erfc(x * FRAC_1_SQRT_2);
    }
    let mut tail = x;
    for term in (1..=FRACTION_TERMS).rev() {
        tail = x + f64::from(term) / tail;
    }
    1.0 / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_meets_the_error_function() {
        for x in [3.0f64, 3.5, 5.0, 8.0, 20.0] {
            let direct = (PI / 2.0).sqrt() * (0.5 * x * x).exp() * libm::erfc(x * FRAC_1_SQRT_2);
            assert!((mills_ratio(x) / direct - 1.0).abs() < 4e-14, "{x}");
        }
    }

    #[test]
    fn far_tails_have_a_logarithm() {
        // Leading terms of the asymptotic series.
        let x = 1e3f64;
        let expected = ln_density(x) - x.ln() + (-1.0 / (x * x)).ln_1p();
        assert!((ln_cdf(-x) / expected - 1.0).abs() < 1e-12);
        assert!((ln_cdf(-4.0) - ln_cdf(-4.0 - 1e-12)).abs() < 1e-10);
        assert!(ln_cdf(40.0).abs() < 1e-300);
    }
}
