//! Gaussian differential privacy: exact for the Gaussian mechanism, a limit for sampled ones.
//!
//! A mechanism is μ-GDP if an attack on it is at least as hard as distinguishing N(0, 1) from N(μ,
//! 1): `δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)`. Gaussian releases with noise over sensitivity
//! ν_i compose exactly to `μ = √(Σ 1/ν_i²)`. Source: Dong, Roth, Su 2022 (arXiv:1905.02383),
//! Corollaries 1 and 2. The curve itself is Balle, Wang 2018 (arXiv:1805.06530), Theorem 8.
//!
//! For sampled rounds a central limit theorem gives the limit μ of the composition. **It is an
//! approximation, never a bound**: it is more often below the true ε than not, down to a quarter of
//! it for small rates and little noise.

use crate::normal;
use crate::params::Delta;

/// Halvings of the search for ε. 200 exhaust the digits of an f64 from any bracket.
const BISECTIONS: u32 = 200;

/// The error of ln δ, besides the rounding of its arguments.
const LN_DELTA_ERROR: f64 = 1e-13;

/// Returns ln δ(ε) of μ-GDP. -infinity for μ = 0.
#[must_use]
pub fn ln_delta(epsilon: f64, mu: f64) -> f64 {
    if mu <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let upper = -epsilon / mu + mu / 2.0;
    let lower = upper - mu;
    // e^ε φ(lower) = φ(upper), so δ is φ(upper) times a difference of Mills ratios. The direct form
    // would cancel for a small μ.
    if upper < -1.0 || mu < 0.5 {
        return normal::ln_density(upper) + normal::mills_gap(-upper, mu).ln();
    }
    let first = normal::ln_cdf(upper);
    let second = epsilon + normal::ln_cdf(lower);
    first + (-(second - first).exp()).ln_1p()
}

/// Returns a bound on the error of [`ln_delta`] and of its arguments, each of which may be off by
/// some ulps: ln δ moves by at most (a² + 2) times a relative change of μ, and by (1 + |a|) times a
/// change of a = μ/2 - ε/μ, itself a difference.
pub(crate) fn ln_delta_error(epsilon: f64, mu: f64) -> f64 {
    let upper = -epsilon / mu + mu / 2.0;
    let size = upper * upper + (1.0 + upper.abs()) * (epsilon / mu + mu);
    LN_DELTA_ERROR + 8.0 * f64::EPSILON * size
}

/// Returns the ε of μ-GDP at `delta`, never below the true one and above it by at most 10⁻¹² (ε +
/// μ). 0 if ε = 0 holds.
#[must_use]
pub fn epsilon(mu: f64, delta: Delta) -> f64 {
    let target = delta.get().ln();
    let holds = |epsilon: f64| {
        let error = ln_delta_error(epsilon, mu) + 2.0 * f64::EPSILON * target.abs();
        ln_delta(epsilon, mu) + error <= target
    };
    crossing(mu, holds).1
}

/// Returns a lower bound on the ε of μ-GDP at `delta`, as close as [`epsilon`].
#[must_use]
pub fn epsilon_low(mu: f64, delta: Delta) -> f64 {
    let target = delta.get().ln();
    let may_hold = |epsilon: f64| {
        let error = ln_delta_error(epsilon, mu) + 2.0 * f64::EPSILON * target.abs();
        ln_delta(epsilon, mu) - error <= target
    };
    crossing(mu, may_hold).0
}

/// Returns neighbouring ε such that `holds` is false at the first and true at the second. It must
/// be true from some ε on.
fn crossing(mu: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    if mu.is_infinite() {
        return (f64::INFINITY, f64::INFINITY);
    }
    if mu <= 0.0 || holds(0.0) {
        return (0.0, 0.0);
    }
    let mut high = mu.max(1e-6);
    while !holds(high) {
        high *= 2.0;
        if high.is_infinite() {
            return (0.0, high);
        }
    }
    let mut low = 0.0;
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 1e-13 * high {
            break;
        }
        if holds(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    (low, high)
}

/// Returns μ of the limit for Poisson sampling, add-remove: `q √(T (e^(1/z²) - 1))`.
///
/// Source: Bu, Dong, Long, Su 2020 (arXiv:1911.11607), Theorem 5. An approximation.
#[must_use]
pub fn poisson_limit_mu(sampling_rate: f64, noise_multiplier: f64, rounds: f64) -> f64 {
    let inverse_variance = 1.0 / (noise_multiplier * noise_multiplier);
    sampling_rate * (rounds * inverse_variance.exp_m1()).sqrt()
}

/// Returns μ of the limit for uniform sampling, replace-one, ν the noise std over the sensitivity:
/// `√2 γ √T √(e^(1/ν²) Φ(1.5/ν) + 3 Φ(-0.5/ν) - 2)`.
///
/// Source: Dong, Roth, Su 2022, Corollary 4 (with the sampling operator C_p). An approximation.
#[must_use]
pub fn uniform_limit_mu(sampling_rate: f64, noise_to_sensitivity: f64, rounds: f64) -> f64 {
    let inverse = 1.0 / noise_to_sensitivity;
    // e^a Φ(1.5/ν) + 3Φ(-0.5/ν) - 2, written as a sum of small parts: Φ(-x) = 1 - Φ(x).
    let a = inverse * inverse;
    let variance = a.exp_m1() * normal::cdf(1.5 * inverse) + (normal::cdf(1.5 * inverse) - 0.5)
        - 3.0 * (normal::cdf(0.5 * inverse) - 0.5);
    sampling_rate * (2.0 * rounds * variance.max(0.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    const FILE: &str = "accounting_gdp.json";

    /// Returns ln of a decimal number that may be far below the smallest f64.
    fn ln_decimal(text: &str) -> f64 {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        mantissa.parse::<f64>().unwrap().ln()
            + exponent.parse::<f64>().unwrap() * std::f64::consts::LN_10
    }

    #[test]
    fn delta_agrees_with_all_golden_rows() {
        for row in golden::rows(FILE, "delta_of_eps_mu") {
            let expected = ln_decimal(row["delta"].as_str().unwrap());
            let found = ln_delta(golden::number(&row, "eps"), golden::number(&row, "mu"));
            // A relative error of 1e-9 in delta is an absolute error of 1e-9 in its logarithm.
            let tolerance = 1e-9f64.max(1e-14 * expected.abs());
            assert!(
                (found - expected).abs() <= tolerance,
                "{row}: {found} {expected}"
            );
        }
    }

    #[test]
    fn epsilon_agrees_with_all_golden_rows() {
        for row in golden::rows(FILE, "eps_of_delta_mu") {
            let expected = golden::number(&row, "eps");
            let delta = Delta::new(golden::number(&row, "delta")).unwrap();
            let found = epsilon(golden::number(&row, "mu"), delta);
            assert!(
                (found - expected).abs() <= 1e-9 * expected,
                "{row}: {found}"
            );
        }
    }

    #[test]
    fn limits_agree_with_all_golden_rows() {
        for row in golden::rows(FILE, "clt") {
            let [q, z, rounds, poisson, uniform] =
                ["q", "z", "T", "mu_poisson", "mu_uniform_nu_equals_z"]
                    .map(|key| golden::number(&row, key));
            let found = poisson_limit_mu(q, z, rounds);
            assert!((found / poisson - 1.0).abs() < 1e-9, "{row}: {found}");
            let found = uniform_limit_mu(q, z, rounds);
            assert!((found / uniform - 1.0).abs() < 1e-9, "{row}: {found}");
        }
    }

    #[test]
    fn exact_epsilon_of_full_participation_agrees() {
        for row in golden::rows("accounting_epsilon.json", "poisson_eps") {
            let Some(expected) = row["eps_exact_gdp"].as_f64() else {
                continue;
            };
            let [z, rounds] = ["z", "T"].map(|key| golden::number(&row, key));
            let delta = Delta::new(golden::number(&row, "delta")).unwrap();
            let found = epsilon(rounds.sqrt() / z, delta);
            assert!((found / expected - 1.0).abs() < 1e-9, "{row}: {found}");
        }
    }
}
