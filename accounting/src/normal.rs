//! The standard normal distribution, accurate in its far tails: its distribution function, density
//! and Mills ratio.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Below this argument, `erfc` itself is accurate enough. Above it, the continued fraction
/// converges.
const FRACTION_FROM: f64 = 3.0;
/// Terms of the continued fraction, which is accurate to 1e-16 at 3.
const FRACTION_TERMS: u32 = 60;

/// Nodes and weights of the eight-point Gauss-Legendre rule, one of each pair.
/// Source: Abramowitz and Stegun, Table 25.4.
const GAUSS_LEGENDRE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// Returns Φ(x).
pub(crate) fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns P(left < N(0,1) < right), accurate in both tails.
pub(crate) fn mass(left: f64, right: f64) -> f64 {
    if left > 0.0 {
        cdf(-left) - cdf(-right)
    } else {
        cdf(right) - cdf(left)
    }
}

/// Returns ln Φ(x), finite for every finite x.
pub(crate) fn ln_cdf(x: f64) -> f64 {
    if x < -4.0 {
        ln_density(x) + mills_ratio(-x).ln()
    } else {
        cdf(x).ln()
    }
}

/// Returns ln φ(x), φ the density.
pub(crate) fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * PI).ln()
}

/// Returns Φ(-x) / φ(x) = √(π/2) · e^(x²/2) · erfc(x/√2), for x ≥ -30.
///
/// Source of the fraction: Abramowitz and Stegun, 26.2.14: 1/(x + 1/(x + 2/(x + 3/(x + ...)))).
pub(crate) fn mills_ratio(x: f64) -> f64 {
    if x < FRACTION_FROM {
        return (PI / 2.0).sqrt() * (0.5 * x * x).exp() * libm::erfc(x * FRAC_1_SQRT_2);
    }
    1.0 / (x + fraction(x))
}

/// Returns 1/(x + 2/(x + 3/(x + ...))), the fraction below x.
fn fraction(x: f64) -> f64 {
    let mut tail = x;
    for term in (2..=FRACTION_TERMS).rev() {
        tail = x + f64::from(term) / tail;
    }
    1.0 / tail
}

/// Returns m(x) - m(x + step) for the Mills ratio m, x ≥ -1 and step > 0, accurate for any small
/// step.
///
/// As m' = x·m - 1, the difference is the integral of the positive 1 - t·m(t), by the eight-point
/// Gauss-Legendre rule. Beyond 3 the integrand is m(t) times the fraction below t.
pub(crate) fn mills_gap(x: f64, step: f64) -> f64 {
    if step > 0.5 * x.max(1.0) {
        return mills_ratio(x) - mills_ratio(x + step);
    }
    let slope = |t: f64| {
        let ratio = mills_ratio(t);
        if t < FRACTION_FROM {
            1.0 - t * ratio
        } else {
            ratio * fraction(t)
        }
    };
    let half = 0.5 * step;
    let pair = |&(node, weight): &(f64, f64)| {
        weight * (slope(x + half * (1.0 - node)) + slope(x + half * (1.0 + node)))
    };
    half * GAUSS_LEGENDRE.iter().map(pair).sum::<f64>()
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
