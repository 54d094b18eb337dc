use proptest::prelude::*;

use super::kinds::SampledRounds;
use super::*;
use crate::gdp;
use crate::golden::{self, number};
use crate::rdp::{Conversion, rdp_epsilon};

fn poisson(rate: f64, noise: f64, count: u64) -> Exposure {
    Exposure::Poisson {
        sampling_rate: rate,
        noise_to_sensitivity: noise,
        count,
    }
}

fn gaussian(noise: f64, count: u64) -> Exposure {
    Exposure::Gaussian {
        noise_to_sensitivity: noise,
        count,
    }
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn ask(exposures: &[Exposure], at: f64) -> PldEpsilon {
    pld_epsilon(exposures, delta(at)).unwrap()
}

/// All 150 rows: the 75 composed ones within a tenth of a percent, one step and full participation
/// to nine digits.
#[test]
fn golden_rows_agree() {
    let mut composed = 0;
    for row in golden::rows("accounting_epsilon.json", "poisson_eps") {
        let [q, z, rounds] = ["q", "z", "T"].map(|key| number(&row, key));
        let found = ask(&[poisson(q, z, rounds as u64)], number(&row, "delta"));
        if let Some(tight) = row["eps_tight_upper"].as_f64() {
            composed += 1;
            assert!(found.epsilon >= tight - 1e-4, "{row} {found:?}");
            assert!(found.epsilon <= tight * 1.0015, "{row} {found:?}");
            assert!(found.epsilon_low <= tight, "{row} {found:?}");
            assert!(
                found.epsilon_low >= found.epsilon * 0.995,
                "{row} {found:?}"
            );
            continue;
        }
        let exact = row["eps_exact_one_step"]
            .as_f64()
            .or(row["eps_exact_gdp"].as_f64());
        let Some(exact) = exact else {
            assert!(found.epsilon <= number(&row, "eps_improved"), "{row}");
            assert!(
                found.epsilon_low >= found.epsilon * 0.995,
                "{row} {found:?}"
            );
            continue;
        };
        assert!(
            (found.epsilon - exact).abs() <= 1e-9 * exact,
            "{row} {found:?}"
        );
        assert!(
            found.epsilon_low <= exact * (1.0 + 1e-10),
            "{row} {found:?}"
        );
    }
    assert_eq!(composed, 75);
}

#[test]
fn golden_rows_under_replace_one_agree() {
    let rows = golden::rows("accounting_epsilon.json", "poisson_replace_one_eps");
    assert_eq!(rows.len(), 50);
    for row in rows {
        let [q, z, rounds] = ["q", "z", "T"].map(|key| number(&row, key));
        let (exposure, at) = ([poisson(q, z, rounds as u64)], delta(number(&row, "delta")));
        let found = replace_one_epsilon(&exposure, at).unwrap();
        let tight = number(&row, "eps_tight_upper");
        assert!(found.epsilon >= tight - 1e-3, "{row} {found:?}");
        assert!(found.epsilon <= tight * 1.0015, "{row} {found:?}");
        assert!(found.epsilon_low <= tight, "{row} {found:?}");
        assert!(
            found.epsilon_low >= found.epsilon * 0.995,
            "{row} {found:?}"
        );
    }
}

/// Replacing a device costs no less than removing one, which is a replacement by a device without
/// an update. A rate close to 1 is full participation.
#[test]
fn replacing_a_device_has_known_limits() {
    for (rate, noise, rounds) in [(0.01, 0.7, 30), (0.2, 2.0, 100), (1e-6, 0.3, 1000)] {
        let exposure = [poisson(rate, noise, rounds)];
        let at = delta(1e-6);
        let replaced = replace_one_epsilon(&exposure, at).unwrap();
        let removed = pld_epsilon(&exposure, at).unwrap();
        assert!(replaced.epsilon >= removed.epsilon_low, "{exposure:?}");
    }
    for noise in [2.0, 30.0] {
        let (at, all) = (delta(1e-6), [poisson(1.0, noise, 20)]);
        let whole = replace_one_epsilon(&all, at).unwrap();
        let gaussian = replace_one_epsilon(&[gaussian(noise, 20)], at).unwrap();
        assert_eq!(whole, gaussian);
        let nearly = replace_one_epsilon(&[poisson(1.0 - 1e-9, noise, 20)], at).unwrap();
        assert!(
            (nearly.epsilon / whole.epsilon - 1.0).abs() < 2e-3,
            "{nearly:?} {whole:?}"
        );
    }
}

/// A composition with a closed form also goes through the lattices.
#[test]
fn the_bracket_holds_a_closed_form() {
    for (mu, at) in [
        (0.1, 1e-3),
        (0.5, 1e-6),
        (2.0, 1e-6),
        (2.0, 1e-18),
        (8.0, 1e-9),
    ] {
        let kinds = Kinds {
            relation: Relation::AddRemove,
            mu_squared: mu * mu,
            sampled: Vec::new(),
        };
        let exact = gdp::epsilon(mu, delta(at));
        let found = kinds.bracket_once(delta(at), 1e-4).unwrap();
        assert!(found.epsilon >= exact, "{mu} {at} {exact} {found:?}");
        assert!(
            found.epsilon <= exact * 1.001,
            "{mu} {at} {exact} {found:?}"
        );
        assert!(found.epsilon_low <= exact, "{mu} {at} {exact} {found:?}");
        assert!(
            found.epsilon_low >= exact * 0.995,
            "{mu} {at} {exact} {found:?}"
        );
    }
    // One sampled round, as two lattices.
    for (rate, noise) in [(0.05, 1.0), (0.5, 0.5), (0.01, 3.0)] {
        let kinds = Kinds {
            relation: Relation::AddRemove,
            mu_squared: 0.0,
            sampled: vec![SampledRounds {
                rate,
                noise,
                count: 1,
                users: None,
            }],
        };
        let exact = kinds.exact(delta(1e-5)).unwrap().epsilon;
        let found = kinds.bracket_once(delta(1e-5), 1e-4).unwrap();
        assert!(
            found.epsilon_low <= exact && exact <= found.epsilon,
            "{exact} {found:?}"
        );
        assert!(found.epsilon <= exact * 1.002, "{exact} {found:?}");
    }
}

#[test]
fn composition_is_of_counts_and_of_unlike_events() {
    let split = ask(&[poisson(0.05, 1.0, 400), poisson(0.05, 1.0, 600)], 1e-6);
    let whole = ask(&[poisson(0.05, 1.0, 1000)], 1e-6);
    assert_eq!(split, whole);
    // Nearly the same noise goes through two lattices.
    let unlike = ask(
        &[poisson(0.05, 1.0, 400), poisson(0.05, 1.0 + 1e-9, 600)],
        1e-6,
    );
    assert!(
        (unlike.epsilon / whole.epsilon - 1.0).abs() < 1e-6,
        "{unlike:?} {whole:?}"
    );
    let mixed = ask(
        &[poisson(0.05, 1.0, 400), gaussian(2.0, 1), gaussian(1.0, 2)],
        1e-6,
    );
    assert!(
        mixed.epsilon - mixed.epsilon_low < 0.005 * mixed.epsilon,
        "{mixed:?}"
    );
    assert!(mixed.epsilon > ask(&[gaussian(2.0 / 3.0, 1)], 1e-6).epsilon);
    let renyi = [poisson(0.05, 1.0, 400), gaussian(2.0 / 3.0, 1)];
    let renyi = rdp_epsilon(&renyi, delta(1e-6), Conversion::Improved).epsilon;
    assert!(mixed.epsilon < renyi, "{mixed:?} {renyi}");
}

#[test]
fn what_has_no_distribution_is_refused() {
    let uniform = Exposure::Uniform {
        sampling_rate: 0.1,
        noise_to_sensitivity: 1.0,
        count: 1,
    };
    assert_eq!(pld_epsilon(&[uniform], delta(1e-5)), Err(PldError::Uniform));
    assert_eq!(
        pld_epsilon(&[gaussian(0.0, 1)], delta(1e-5)),
        Err(PldError::Unprotected)
    );
    let mixed = PrivacyLoss::compose(&[uniform, poisson(0.1, 1.0, 1)], delta(1e-5));
    assert!(matches!(mixed, Err(PldError::Poisson)));
}

/// Little noise: the losses are two distant clusters, or one and an atom.
#[test]
fn far_heaps_of_losses_are_bracketed() {
    for (rate, noise, count) in [
        (1e-9, 0.05, 10_000_000),
        (0.5, 0.05, 1000),
        (0.01, 0.35, 30),
    ] {
        let found = ask(&[poisson(rate, noise, count)], 1e-6);
        assert!(
            found.epsilon_low >= 0.995 * found.epsilon,
            "{rate} {noise} {found:?}"
        );
    }
}

#[test]
fn corners_of_the_domain_are_bounds_or_refused() {
    for rate in [1e-9, 1e-4, 0.3, 0.999_999] {
        for noise in [0.05, 0.5, 30.0, 1e4] {
            for (count, at) in [(2, 1e-18), (2, 0.5), (1_000, 1e-6), (10_000, 1e-12)] {
                let exposure = [poisson(rate, noise, count)];
                let found = match pld_epsilon(&exposure, delta(at)) {
                    Ok(found) => found,
                    Err(error) => {
                        assert_eq!(error, PldError::OutOfRange, "{exposure:?}");
                        continue;
                    }
                };
                assert!(found.epsilon.is_finite(), "{exposure:?} {found:?}");
                assert!(found.epsilon_low >= 0.0, "{exposure:?} {found:?}");
                assert!(found.epsilon_low <= found.epsilon, "{exposure:?} {found:?}");
                let renyi = rdp_epsilon(&exposure, delta(at), Conversion::Improved).epsilon;
                assert!(found.epsilon_low <= renyi, "{exposure:?} {found:?} {renyi}");
            }
        }
    }
}

#[test]
fn the_profile_of_a_run_agrees_with_its_epsilon() {
    let exposure = [poisson(0.05, 1.0, 1000)];
    let loss = PrivacyLoss::compose(&exposure, delta(1e-8)).unwrap();
    for at in [1e-8, 1e-6, 1e-3, 0.1] {
        let found = loss.epsilon(delta(at));
        let expected = ask(&exposure, at);
        assert!(found >= expected.epsilon_low, "{at} {found} {expected:?}");
        assert!(
            found <= expected.epsilon * 1.003,
            "{at} {found} {expected:?}"
        );
        assert!((loss.delta(found) / at - 1.0).abs() < 1e-6, "{at}");
    }
}

/// A sampled run close to a Gaussian, to test the bulk of its curve.
#[test]
fn the_bulk_of_a_sampled_curve_is_sharp() {
    let loss = PrivacyLoss::compose(&[poisson(0.999_999, 10.0, 100)], delta(1e-6)).unwrap();
    for epsilon in [0.0, 0.3, 1.0, 2.0, 4.0] {
        let exact = gdp::ln_delta(epsilon, 1.0).exp();
        let found = loss.delta(epsilon);
        assert!(found >= exact * (1.0 - 1e-4), "{epsilon} {exact} {found}");
        assert!(found <= exact * 1.01 + 1e-9, "{epsilon} {exact} {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// More noise, fewer rounds, a lower rate and a larger delta never cost more, and the Rényi
    /// bound is never less.
    #[test]
    fn epsilon_is_monotone(
        rate in 1e-3f64..0.9, noise in 0.5f64..10.0, count in 2u64..1000, more in 1.05f64..2.0,
    ) {
        let base = ask(&[poisson(rate, noise, count)], 1e-5).epsilon;
        let slack = base * 1.003 + 1e-12;
        prop_assert!(ask(&[poisson(rate, noise * more, count)], 1e-5).epsilon <= slack);
        prop_assert!(ask(&[poisson(rate / more, noise, count)], 1e-5).epsilon <= slack);
        prop_assert!(ask(&[poisson(rate, noise, count.div_ceil(2))], 1e-5).epsilon <= slack);
        prop_assert!(ask(&[poisson(rate, noise, count)], 1e-5 * more).epsilon <= slack);
        let renyi = [poisson(rate, noise, count)];
        let renyi = rdp_epsilon(&renyi, delta(1e-5), Conversion::Improved).epsilon;
        prop_assert!(base <= renyi * 1.001, "{} {}", base, renyi);
    }
}
