//! The closed forms of PMTL, DPFedMTL and FedSC, under their own names, sound or not.
//!
//! They take a noise multiplier z (noise std over the clip norm, on the sum) and return ε. The
//! accountants with the same names state which of them are bounds.

use crate::gdp;
use crate::params::Delta;

/// Returns ε by PMTL's Theorem 1 for full participation: `ε = 4 √(T ln(1/δ)) / z`.
///
/// Two errors of the proof cancel (a factor 4 in Lemma 2, γ instead of the replace-one 2γ in Eq.
/// 25), so it is sound under replace-one, and 1.9 to 3.8 times too noisy, if ε ≤ 2 ln(1/δ), a
/// condition missing from the paper. `None` above.
/// Source: Hu, Wu, Smith 2023 (arXiv:2108.12978), Theorem 1 and Eq. 27, with z = m σ / γ.
#[must_use]
pub fn pmtl_theorem_1(noise_multiplier: f64, rounds: f64, delta: Delta) -> Option<f64> {
    let ln_inverse_delta = -delta.get().ln();
    let epsilon = 4.0 * (rounds * ln_inverse_delta).sqrt() / noise_multiplier;
    (epsilon <= 2.0 * ln_inverse_delta).then_some(epsilon)
}

/// Returns μ of DPFedMTL's Theorem 4.2 as printed: `p √T √(T (e^(1/z²) - 1))`, which counts √T
/// twice.
///
/// Source: Wu, Chen, Wang 2020 (arXiv:2011.07179), Theorem 4.2. The correct limit is
/// [`gdp::poisson_limit_mu`].
#[must_use]
pub fn dpfedmtl_mu_as_printed(sampling_rate: f64, noise_multiplier: f64, rounds: f64) -> f64 {
    rounds.sqrt() * gdp::poisson_limit_mu(sampling_rate, noise_multiplier, rounds)
}

/// Returns ε by FedSC's Proposition 6.6: `ε = T s²/(2z²) + √(2 T ln(1/δ)) s/z`, s the sensitivity
/// in units of μ/|D|: 1 as printed, √2 for replace-one.
///
/// Source: Jing et al. 2024 (arXiv:2405.03949), Proposition 6.6, with z = σ |D| / μ. It is the
/// classic Rényi conversion at its best real order, so with s = √2 it is an upper bound.
#[must_use]
pub fn fedsc_prop_6_6(sensitivity: f64, noise_multiplier: f64, rounds: f64, delta: Delta) -> f64 {
    let ratio = sensitivity / noise_multiplier;
    0.5 * rounds * ratio * ratio + (-2.0 * rounds * delta.get().ln()).sqrt() * ratio
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{self, number};

    const FILE: &str = "accounting_seeds.json";

    #[test]
    fn pmtl_noise_agrees_with_all_golden_rows() {
        for row in golden::rows(FILE, "seed000_pmtl.theorem1_q_eq_m") {
            let delta = Delta::new(number(&row, "delta")).unwrap();
            let multiplier =
                number(&row, "m") * number(&row, "sigma_theorem1") / number(&row, "gamma");
            let found = pmtl_theorem_1(multiplier, number(&row, "T"), delta);
            let expected = number(&row, "eps");
            if row["valid_eps_le_2_log_m"] == false {
                assert!(found.is_none(), "{row}: {found:?}");
                continue;
            }
            assert!(
                (found.unwrap() / expected - 1.0).abs() < 1e-9,
                "{row}: {found:?}"
            );
            // The true cost of that noise under replace-one.
            let spent = gdp::epsilon(2.0 * number(&row, "T").sqrt() / multiplier, delta);
            let golden = number(&row, "eps_actually_spent_by_sigma_theorem1");
            assert!((spent / golden - 1.0).abs() < 1e-8, "{row}: {spent}");
            assert!(spent < expected);
        }
    }

    #[test]
    fn pmtl_promises_nothing_beyond_its_range() {
        assert!(pmtl_theorem_1(1.0, 100.0, Delta::new(1e-5).unwrap()).is_none());
    }

    #[test]
    fn dpfedmtl_agrees_with_all_golden_rows() {
        for row in golden::rows(FILE, "seed004_dpfedmtl") {
            let [p, sigma, rounds, correct, printed] = [
                "p",
                "sigma",
                "T",
                "mu_clt_correct_nominal_sigma",
                "mu_as_printed_theorem42",
            ]
            .map(|key| number(&row, key));
            let found = gdp::poisson_limit_mu(p, sigma, rounds);
            assert!((found / correct - 1.0).abs() < 1e-9, "{row}: {found}");
            let found = dpfedmtl_mu_as_printed(p, sigma, rounds);
            assert!((found / printed - 1.0).abs() < 1e-9, "{row}: {found}");
        }
    }

    #[test]
    fn fedsc_agrees_with_all_golden_rows() {
        for row in golden::rows(FILE, "seed002_fedsc_table6") {
            let delta = Delta::new(number(&row, "delta")).unwrap();
            let multiplier = number(&row, "sigma") * number(&row, "n") / number(&row, "mu");
            let rounds = number(&row, "rounds");
            for (sensitivity, key) in [
                (1.0, "prop66_eps"),
                (std::f64::consts::SQRT_2, "prop66_eps_replace_one_sqrt2"),
            ] {
                let found = fedsc_prop_6_6(sensitivity, multiplier, rounds, delta);
                assert!(
                    (found / number(&row, key) - 1.0).abs() < 1e-9,
                    "{row}: {found}"
                );
            }
        }
    }
}
