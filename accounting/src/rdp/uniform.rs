//! Rényi divergence of rounds with uniform sampling without replacement, replace-one, at integer
//! orders.
//!
//! With γ = sampling_rate and ε(j) = j / (2ν²), ν the noise std over the sensitivity 2L:
//! `ρ(α) = 1/(α-1) · ln(1 + γ² C(α,2) m + 2 Σ_{j=3..α} γ^j C(α,j) e^((j-1)ε(j)))`, where
//! `m = min{4(e^ε(2) - 1), 2 e^ε(2)}`.
//! The minima of the theorem that contain ε(∞) vanish, as it is infinite for the Gaussian. Source:
//! Wang, Balle, Kasiviswanathan 2019 (arXiv:1808.00087), Theorem 9. For large noise the divergence
//! without sampling is smaller, and is used.

use std::f64::consts::LN_2;
use std::sync::LazyLock;

use super::gaussian::gaussian_rdp;
use crate::log_space::{ln_1p_exp, ln_expm1, ln_factorials, ln_sum_exp};

/// The largest order in use.
const MAX_ORDER: usize = 256;

static LN_FACTORIALS: LazyLock<Vec<f64>> = LazyLock::new(|| ln_factorials(MAX_ORDER));

/// Returns an upper bound on the Rényi divergence of one round, in nats, at the integer `order`:
/// the smaller of Theorem 9 and of the Gaussian without sampling, α / (2ν²).
///
/// Theorem 9 does not vanish as the noise grows: with γ = 0.2 its ε stays above 1 for δ = 1e-5,
/// with γ = 0.5 above 6. The other bound does, and holds for every γ. If cohorts are drawn in the
/// same way, with the successor of the replaced device at the same position, the two outputs are
/// the same mixture of pairs of Gaussians, each with means at most 2L apart. Rényi divergence is
/// quasi-convex in the pair (van Erven, Harremoës 2014, arXiv:1206.2459, Theorem 13), so the
/// divergence of the mixtures is at most the largest of the pairs.
///
/// * `sampling_rate`: γ = S/N in (0, 1).
/// * `noise_to_sensitivity`: ν, noise std over 2L.
/// * `order`: 2 to 256. The bound is infinite (no claim) outside.
#[must_use]
pub fn uniform_rdp(sampling_rate: f64, noise_to_sensitivity: f64, order: u32) -> f64 {
    let theorem_9 = uniform_rdp_theorem_9(sampling_rate, noise_to_sensitivity, order);
    if theorem_9.is_infinite() {
        return theorem_9;
    }
    theorem_9.min(gaussian_rdp(noise_to_sensitivity, f64::from(order)))
}

/// Returns the bound of Theorem 9 alone, as published. The arguments are those of [`uniform_rdp`].
#[must_use]
pub fn uniform_rdp_theorem_9(sampling_rate: f64, noise_to_sensitivity: f64, order: u32) -> f64 {
    let order = order as usize;
    let is_covered = (2..=MAX_ORDER).contains(&order) && noise_to_sensitivity > 0.0;
    if !is_covered {
        return f64::INFINITY;
    }
    let half_inverse_variance = 0.5 / (noise_to_sensitivity * noise_to_sensitivity);
    let ln_rate = sampling_rate.ln();
    let ln_choose = |j: usize| LN_FACTORIALS[order] - LN_FACTORIALS[j] - LN_FACTORIALS[order - j];
    let mut terms = Vec::with_capacity(order - 1);
    // j = 2: min{4(e^ε(2) - 1), 2 e^ε(2)}
    let epsilon_2 = 2.0 * half_inverse_variance;
    let second = (2.0 * LN_2 + ln_expm1(epsilon_2)).min(LN_2 + epsilon_2);
    terms.push(2.0 * ln_rate + ln_choose(2) + second);
    for j in 3..=order {
        let count = j as f64;
        // (j - 1) ε(j) = j (j - 1) / (2ν²)
        let exponent = (count - 1.0) * count * half_inverse_variance;
        terms.push(LN_2 + count * ln_rate + ln_choose(j) + exponent);
    }
    ln_1p_exp(ln_sum_exp(&terms)) / (order as f64 - 1.0)
}
