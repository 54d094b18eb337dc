use proptest::prelude::*;

use super::*;
use crate::event::Mechanism;

fn event(sampling: Sampling, noise_multiplier: f64, count: u64) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(noise_multiplier).unwrap();
    PrivacyEvent::new(Mechanism::Gaussian { noise_multiplier }, sampling, count)
}

fn poisson(rate: f64) -> Sampling {
    Sampling::poisson(2000, SamplingRate::new(rate).unwrap()).unwrap()
}

fn problem(
    accountant: Accountant,
    event: PrivacyEvent,
    target: f64,
) -> CalibrationProblem<'static> {
    let target = Epsilon::new(target).unwrap();
    let delta = Delta::new(2000f64.powf(-1.1)).unwrap();
    CalibrationProblem {
        accountant,
        event,
        spent: &[],
        target,
        delta,
    }
}

/// The smallest noise by accountant for the MNIST settings, from the golden rows.
#[test]
fn noise_agrees_with_the_golden_rows() {
    use crate::golden::{self, number};
    for row in golden::rows("accounting_seeds.json", "seed003.theorem1_theorem2") {
        let device_count = number(&row, "N") as u32;
        let is_uniform = row["sampling"] == "uniform";
        let sampling = if is_uniform {
            Sampling::uniform(device_count, device_count / 20).unwrap()
        } else {
            Sampling::poisson(device_count, SamplingRate::new(0.05).unwrap()).unwrap()
        };
        let keys = if is_uniform {
            ["z_thm9_classic_replace_one", "z_thm9_improved_replace_one"]
        } else {
            ["z_rdp_classic", "z_rdp_improved"]
        };
        for (key, accountant) in keys
            .into_iter()
            .zip([Accountant::RdpClassic, Accountant::Rdp])
        {
            let problem = CalibrationProblem {
                accountant,
                event: event(sampling, 1.0, number(&row, "T") as u64),
                spent: &[],
                target: Epsilon::new(number(&row, "eps")).unwrap(),
                delta: Delta::new(number(&row, "delta")).unwrap(),
            };
            let found = problem.noise_multiplier().unwrap().value.get();
            let expected = number(&row, key);
            // The golden Poisson column overstates fractional orders, so ours may be less.
            let slack = if is_uniform { 1e-6 } else { 5e-3 };
            assert!(found >= expected * (1.0 - slack), "{key} of {row}: {found}");
            assert!(found <= expected * (1.0 + 2e-4), "{key} of {row}: {found}");
        }
    }
}

#[test]
fn no_privacy_needs_no_noise() {
    let problem = problem(
        Accountant::Rdp,
        event(poisson(0.05), 1.0, 100),
        f64::INFINITY,
    );
    assert!(problem.noise_multiplier().unwrap().value.get() <= 0.0);
}

#[test]
fn an_infeasible_theorem_says_so() {
    let problem = problem(Accountant::Theorem2, event(poisson(0.05), 1.0, 200), 2.56);
    let error = problem.noise_multiplier().unwrap_err().to_string();
    assert!(error.starts_with("infeasible"), "{error}");
}

#[test]
fn a_theorem_gives_the_noise_of_its_own_search() {
    let uniform = Sampling::uniform(1000, 50).unwrap();
    let mut problem = problem(Accountant::Theorem1, event(uniform, 1.0, 30), 6.0);
    problem.delta = Delta::new(1000f64.powf(-1.1)).unwrap();
    let found = problem.noise_multiplier().unwrap();
    assert!((0.3 * found.value.get() - 0.808).abs() < 5e-4, "{found:?}");
    assert!(found.estimate.epsilon <= 6.0 * (1.0 + 1e-9), "{found:?}");
}

/// A theorem is for one kind of sampling without earlier events. In other cases the accountant
/// itself gives the reason for the refusal.
#[test]
fn a_theorem_is_not_searched_where_it_does_not_hold() {
    let uniform = event(Sampling::uniform(1000, 50).unwrap(), 1.0, 30);
    let poisson = event(poisson(0.05), 1.0, 30);
    let setting = |accountant, event| problem(accountant, event, 6.0).theorem();
    let one = setting(Accountant::Theorem1, uniform).unwrap();
    assert_eq!((one.theorem, one.rounds), (Theorem::One, 30));
    let two = setting(Accountant::Theorem2, poisson).unwrap();
    assert_eq!(two.theorem, Theorem::Two);
    assert!(setting(Accountant::Theorem1, poisson).is_none());
    assert!(setting(Accountant::Theorem2, uniform).is_none());
    assert!(setting(Accountant::Rdp, uniform).is_none());
    let spent = [uniform];
    let after = CalibrationProblem {
        spent: &spent,
        ..problem(Accountant::Theorem1, uniform, 6.0)
    };
    assert!(after.theorem().is_none());
}

#[test]
fn the_noise_of_trials_hits_the_target_from_below() {
    let trials = Trials::poisson(10.0).unwrap();
    let of = |target| problem(Accountant::Pld, event(poisson(0.05), 1.0, 100), target);
    let found = of(4.0).noise_multiplier_of_trials(trials).unwrap();
    let epsilon = found.estimate.epsilon;
    assert!(
        (4.0 * (1.0 - 2.0 * TOLERANCE)..=4.0).contains(&epsilon),
        "{epsilon}"
    );
    let error = of(1e-9).noise_multiplier_of_trials(trials).unwrap_err();
    assert!(error.to_string().contains("of the trials"), "{error}");
}

#[test]
fn a_spent_budget_leaves_no_noise_to_find() {
    let spent = [event(poisson(0.05), 0.5, 1000)];
    let problem = CalibrationProblem {
        spent: &spent,
        ..problem(Accountant::Rdp, event(poisson(0.05), 1.0, 10), 1.0)
    };
    let error = problem.noise_multiplier().unwrap_err().to_string();
    assert!(
        error.starts_with("no noise multiplier keeps epsilon"),
        "{error}"
    );
    let error = problem.rounds().unwrap_err().to_string();
    assert!(error.contains("even one round"), "{error}");
    let error = problem.cohort().unwrap_err().to_string();
    assert!(error.contains("even a cohort of one"), "{error}");
}

#[test]
fn one_more_round_would_pass_the_target() {
    let event = event(poisson(0.05), 1.0, 1);
    let problem = problem(Accountant::Rdp, event, 4.0);
    let rounds = problem.rounds().unwrap();
    assert!(rounds.estimate.epsilon <= 4.0);
    assert!(problem.epsilon(event.with_count(rounds.value + 1)) > 4.0);
}

#[test]
fn one_more_device_would_pass_the_target() {
    for sampling in [poisson(0.05), Sampling::uniform(2000, 100).unwrap()] {
        let problem = problem(Accountant::Rdp, event(sampling, 2.0, 100), 4.0);
        let found = problem.cohort().unwrap();
        assert!(found.estimate.epsilon <= 4.0);
        let rate = found.value.sampling_rate().unwrap();
        let size = (rate * 2000.0).round();
        let larger = match sampling {
            Sampling::Poisson { .. } => poisson((size + 1.0) / 2000.0),
            _ => Sampling::uniform(2000, size as u32 + 1).unwrap(),
        };
        assert!(problem.epsilon(event(larger, 2.0, 100)) > 4.0);
    }
    let problem = problem(
        Accountant::Rdp,
        event(Sampling::full(10).unwrap(), 2.0, 1),
        4.0,
    );
    assert!(matches!(
        problem.cohort(),
        Err(CalibrationError::NoCohort { .. })
    ));
}

#[test]
fn the_tight_accountants_hit_the_target_from_below_with_less_noise() {
    let uniform = Sampling::uniform(2000, 100).unwrap();
    for (accountant, sampling, rounds, target) in [
        (Accountant::Pld, poisson(0.05), 1000, 8.0),
        (Accountant::Pld, poisson(0.01), 50, 0.3),
        // Out of reach of the Rényi bound.
        (Accountant::Pld, poisson(0.001), 20, 0.01),
        (Accountant::Pld, Sampling::full(2000).unwrap(), 30, 2.0),
        (Accountant::UniformProfile, uniform, 200, 5.0),
    ] {
        let problem = problem(accountant, event(sampling, 1.0, rounds), target);
        let found = problem.noise_multiplier().unwrap();
        assert!(found.estimate.epsilon <= target, "{found:?}");
        assert!(
            found.estimate.epsilon >= target * (1.0 - TOLERANCE),
            "{found:?}"
        );
        let rough = CalibrationProblem {
            accountant: Accountant::Rdp,
            ..problem
        };
        if let Ok(rough) = rough.noise_multiplier() {
            assert!(found.value.get() < rough.value.get(), "{found:?} {rough:?}");
        }
    }
}

#[test]
fn one_more_round_would_pass_the_target_of_a_tight_accountant() {
    let event = event(poisson(0.05), 1.0, 1);
    let problem = problem(Accountant::Pld, event, 4.0);
    let rounds = problem.rounds().unwrap();
    assert!(rounds.estimate.epsilon <= 4.0);
    assert!(problem.epsilon(event.with_count(rounds.value + 1)) > 4.0);
    let rough = CalibrationProblem {
        accountant: Accountant::Rdp,
        ..problem
    };
    assert!(rounds.value > rough.rounds().unwrap().value);
}

#[test]
fn the_largest_integer_is_found_from_any_start() {
    for limit in [1u64, 2, 3, 17, 1000, 123_456] {
        let gap = |n: u64| (n as f64).ln() - (limit as f64 + 0.5).ln();
        for first in [1, limit.div_ceil(2), limit] {
            assert_eq!(largest(first, 1_000_000, gap), Some(limit));
            assert_eq!(largest(first, limit, gap), Some(limit));
        }
        assert_eq!(largest(limit + 1, 1_000_000, gap), None);
        // A gap with only two values.
        let step = |n: u64| {
            if n <= limit {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        };
        assert_eq!(largest(1, 1_000_000, step), Some(limit));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Never above the target, and below it by at most the tolerance.
    #[test]
    fn noise_hits_the_target_from_below(
        rate in 1e-4f64..1.0, rounds in 1u64..100_000, target in 0.05f64..50.0, uniform: bool,
    ) {
        let sampling = if uniform {
            Sampling::uniform(2000, (rate * 2000.0).ceil() as u32).unwrap()
        } else {
            poisson(rate)
        };
        let problem = problem(Accountant::Rdp, event(sampling, 1.0, rounds), target);
        let found = problem.noise_multiplier();
        // Orders end at 512 (256), which costs at least ln(1/δ)/511: small targets are out of
        // reach.
        let Ok(found) = found else { return Err(TestCaseError::reject("out of reach")) };
        prop_assert!(found.estimate.epsilon <= target);
        let is_min_noise = found.value.get() <= MIN_NOISE;
        prop_assert!(found.estimate.epsilon >= target * (1.0 - TOLERANCE) || is_min_noise);
    }
}
