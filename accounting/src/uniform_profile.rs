//! Uniform sampling without replacement, replace-one: the profile of the sampled Gaussian,
//! composed.
//!
//! **One round.** For a mechanism with substitution profile δ_M, run on a uniform cohort of share
//! γ, `δ(ε) ≤ γ·δ_M(ln(1 + (e^ε - 1)/γ))` for ε ≥ 0, for every two federations that differ in one
//! device (Balle, Barthe, Gaboardi 2018, arXiv:1807.01647, Theorem 9). Here δ_M is the Gaussian's,
//! with noise std ν over the sensitivity 2L.
//!
//! **A dominating pair.** With t = e^ε let h(t) be that bound for t ≥ 1. As replacing is symmetric,
//! it bounds the divergence in both directions, and H_t(P‖Q) = 1 - t + t·H_{1/t}(Q‖P), so below 1
//! `h(t) = 1 - t + t·h(1/t)` is a bound. h is convex: above 1 as a convex function of a linear
//! function, below as a perspective of one, and at 1 its slopes are in order, as
//! `2Φ(-1/(2ν))(1 - γ) ≤ 1 - γ`. With h(0) = 1, decreasing, and h(t) ≥ max(0, 1 - t), it is the
//! profile of a pair of distributions (Zhu, Dong, Wang 2022, arXiv:2106.08567, Section 3), which
//! dominates the round. Above loss 0 the pair is (1-γ)·N(0, ν²) + γ·N(1, ν²) against N(0, ν²),
//! below it is its mirror image, and the rest of the mass, `(1 - γ)(1 - 2Φ(-1/(2ν)))`, is an atom
//! at 0.
//!
//! **Composition.** The bound holds for every two neighbours and, round by round, for every past,
//! since each round draws a fresh cohort and δ_M does not depend on the devices' computations. So
//! the pair dominates each round of an adaptive run, and its powers dominate the run (their Theorem
//! 10). The pair of the worst federations of one round lacks this property: the worst federations
//! depend on ε, so the power of one pair need not be above that of another (Lebeda, Regehr, Kamath,
//! Steinke 2024, arXiv:2405.20769).
//!
//! **Tightness.** The federations "one device at +L, all others at -L" and "all at -L" attain the ε
//! of Poisson sampling at noise multiplier ν, add-remove, which is returned as the lower bound. The
//! bracket is 1 to about 40 percent wide, and wider after more rounds: docs/accounting.md.
//!
//! **Users with several devices.** Of a user's k devices, X are in a cohort, P(X = c) = h(c), and
//! all of them are replaced. With cohorts drawn in the same way except for the user, let P_c and
//! Q_c be the outputs given X = c on the two federations: P_0 = Q_0. P_c is within 2cL of Q_c, and
//! of P_0 as well, if c other devices replace the user's: each pair is the same mixture of
//! Gaussians at most that far apart. For t = e^ε ≥ 1 and any v_c ≥ 0 that sum to t - 1,
//! `P - tQ = Σ_{c≥1} (h(c) P_c - t h(c) Q_c - v_c h(0) P_0)`, so by joint convexity
//! `δ(ε) ≤ Σ h(c) δ_c(ln s_c)` with `s_c = t + v_c h(0)/h(c)` and δ_c the Gaussian's profile at
//! sensitivity c. At the smallest bound the derivatives of all terms are equal: there is one output
//! a with s_c = e^(μ_c a - μ_c²/2), μ_c = c/ν, except that s_c = t if this is below t. The bound is
//! jointly convex in t and v, so its minimum over v is convex in t. With
//! `h'(1+) = -h(0) Φ(-μ_1/2) - Σ h(c) Φ(-μ_c/2)` its slopes at 1 are in order. It is therefore the
//! profile of a pair, mirrored below 1 and composed as above. For k = 1 it is the bound above. If
//! no s_c is at its end, which is usual, it is the profile of the mixture of N(c, ν²) with weights
//! h(c), which one pair of federations attains in one round. It is implemented in `pld/mixture.rs`.
//!
//! The composition is the one of [`pld`](crate::pld), with the same arguments.

use crate::event::Exposure;
use crate::params::Delta;
use crate::pld::{PldEpsilon, PldError, profile_epsilon};

/// Returns a bracket of ε at `delta` for Gaussian and uniformly sampled exposures under
/// replace-one.
///
/// Cost: milliseconds, as [`pld_epsilon`](crate::pld::pld_epsilon).
///
/// # Errors
/// [`PldError`] for Poisson exposures, for releases without noise, and outside the range in which
/// errors are bounded.
pub fn uniform_profile_epsilon(
    exposures: &[Exposure],
    delta: Delta,
) -> Result<PldEpsilon, PldError> {
    profile_epsilon(exposures, delta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{self, number};
    use crate::rdp::{Conversion, rdp_epsilon};

    fn uniform(rate: f64, noise: f64, count: u64) -> Exposure {
        Exposure::Uniform {
            sampling_rate: rate,
            noise_to_sensitivity: noise,
            count,
        }
    }

    /// All 240 rows: never below the attained ε, at the known bound if there is one, and never
    /// above Theorem 9.
    #[test]
    fn golden_rows_agree() {
        let mut bracketed = 0;
        for row in golden::rows("accounting_epsilon.json", "uniform_eps") {
            let [q, nu, rounds] = ["q", "nu", "T"].map(|key| number(&row, key));
            let exposure = [uniform(q, nu, rounds as u64)];
            let delta = Delta::new(number(&row, "delta")).unwrap();
            let Some(attained) = row["eps_attained"].as_f64() else {
                let found = uniform_profile_epsilon(&exposure, delta).unwrap();
                let renyi = rdp_epsilon(&exposure, delta, Conversion::Improved).epsilon;
                assert!(found.epsilon <= renyi, "{row} {found:?}");
                assert!(found.epsilon_low <= found.epsilon, "{row} {found:?}");
                continue;
            };
            bracketed += 1;
            let found = uniform_profile_epsilon(&exposure, delta).unwrap();
            assert!(found.epsilon >= attained - 1e-3, "{row} {found:?}");
            assert!(
                found.epsilon_low <= attained * (1.0 + 1e-5),
                "{row} {found:?}"
            );
            assert!(found.epsilon_low >= attained * 0.99, "{row} {found:?}");
            let known = number(&row, "eps_profile_upper");
            // The known bound is itself rounded up.
            assert!(
                (found.epsilon / known - 1.0).abs() < 5e-3,
                "{row} {found:?}"
            );
        }
        assert_eq!(bracketed, 42);
    }

    #[test]
    fn full_cohorts_compose_with_sampled_ones() {
        let delta = Delta::new(1e-5).unwrap();
        let sampled = uniform(0.1, 2.0, 100);
        let full = Exposure::Gaussian {
            noise_to_sensitivity: 5.0,
            count: 4,
        };
        let ask = |list: &[Exposure]| uniform_profile_epsilon(list, delta).unwrap().epsilon;
        let both = ask(&[sampled, full]);
        assert!(both > ask(&[sampled]).max(ask(&[full])));
        assert!(both < ask(&[sampled]) + ask(&[full]));
        let poisson = Exposure::Poisson {
            sampling_rate: 0.1,
            noise_to_sensitivity: 2.0,
            count: 1,
        };
        assert_eq!(
            uniform_profile_epsilon(&[poisson], delta),
            Err(PldError::Poisson)
        );
    }

    /// A larger cohort is worse, up to all devices, which is a Gaussian.
    #[test]
    fn a_cohort_of_nearly_all_costs_what_all_cost() {
        let delta = Delta::new(1e-5).unwrap();
        let nearly = uniform_profile_epsilon(&[uniform(0.9999, 2.0, 50)], delta).unwrap();
        let all = Exposure::Gaussian {
            noise_to_sensitivity: 2.0,
            count: 50,
        };
        let all = uniform_profile_epsilon(&[all], delta).unwrap();
        assert!(
            (nearly.epsilon / all.epsilon - 1.0).abs() < 2e-3,
            "{nearly:?} {all:?}"
        );
    }
}
