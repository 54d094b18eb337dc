//! Users with several devices, against `tests/vectors/accounting_mixtures.json`.

use proptest::prelude::*;

use super::*;
use crate::event::{Exposure, Mechanism, Sampling, TrustModel};
use crate::golden::{number, rows};
use crate::params::{NoiseMultiplier, SamplingRate};
use crate::pld::{pld_epsilon, replace_one_epsilon};
use crate::rdp::{Conversion, rdp_epsilon};

const FILE: &str = "accounting_mixtures.json";

fn event(sampling: Sampling, z: f64, count: u64, devices: u32) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(z).unwrap();
    let event = PrivacyEvent::new(Mechanism::Gaussian { noise_multiplier }, sampling, count);
    event.with_devices_per_user(devices).unwrap()
}

fn poisson(rate: f64, z: f64, count: u64, devices: u32) -> PrivacyEvent {
    let rate = SamplingRate::new(rate).unwrap();
    event(Sampling::poisson(1000, rate).unwrap(), z, count, devices)
}

fn ask(accountant: Accountant, event: PrivacyEvent, at: f64) -> Estimate {
    accountant
        .epsilon(&[event], Delta::new(at).unwrap())
        .unwrap()
}

/// One and two rounds, both directions, against high-precision values.
#[test]
fn users_under_poisson_sampling_agree_with_all_golden_rows() {
    for row in rows(FILE, "users_poisson") {
        let [k, tau, z, at, count] = ["k", "tau", "z", "delta", "T"].map(|key| number(&row, key));
        let truth = number(&row, "eps_remove").max(number(&row, "eps_add"));
        let event = poisson(tau, z, count as u64, k as u32);
        let found = ask(Accountant::Pld, event, at);
        assert!(found.epsilon >= truth * (1.0 - 1e-12), "{row}: {found:?}");
        assert!(found.epsilon <= 1.003 * truth + 1e-9, "{row}: {found:?}");
        let low = found.epsilon_low.unwrap();
        assert!(
            low <= truth * (1.0 + 1e-12) && low >= 0.99 * truth,
            "{row}: {found:?}"
        );
        let renyi = ask(Accountant::Rdp, event, at).epsilon;
        assert!(renyi >= truth, "{row}: {renyi}");
    }
}

#[test]
fn users_of_uniform_cohorts_agree_with_all_golden_rows() {
    for row in rows(FILE, "users_uniform") {
        let [n, k, s, nu, at] = ["N", "k", "S", "nu", "delta"].map(|key| number(&row, key));
        let [attained, profile] = ["eps_attained", "eps_profile"].map(|key| number(&row, key));
        let sampling = Sampling::uniform(n as u32, s as u32).unwrap();
        let found = ask(
            Accountant::UniformProfile,
            event(sampling, 2.0 * nu, 1, k as u32),
            at,
        );
        assert!(found.epsilon >= profile * (1.0 - 1e-9), "{row}: {found:?}");
        assert!(found.epsilon <= 1.003 * profile + 1e-9, "{row}: {found:?}");
        let low = found.epsilon_low.unwrap();
        assert!(
            low <= attained * (1.0 + 1e-9) && low >= 0.99 * attained,
            "{row}: {found:?}"
        );
    }
}

/// One device uses the path without users, and the mixture of one device agrees.
#[test]
fn one_device_per_user_is_a_device() {
    let at = Delta::new(1e-6).unwrap();
    let one = poisson(0.05, 1.0, 200, 1);
    assert!(matches!(one.exposure(), Exposure::Poisson { .. }));
    let text = serde_json::to_string(&one).unwrap();
    assert!(!text.contains("devices_per_user"), "{text}");
    assert_eq!(serde_json::from_str::<PrivacyEvent>(&text).unwrap(), one);
    let users = Exposure::PoissonUsers {
        users: crate::event::Users::Poisson {
            devices: 1,
            rate: 0.05,
        },
        noise_to_sensitivity: 1.0,
        count: 200,
    };
    let mixture = pld_epsilon(&[users], at).unwrap();
    let direct = pld_epsilon(&[one.exposure()], at).unwrap();
    assert!(
        (mixture.epsilon / direct.epsilon - 1.0).abs() < 1e-4,
        "{mixture:?} {direct:?}"
    );
    let of = |exposure| rdp_epsilon(&[exposure], at, Conversion::Improved).epsilon;
    assert!((of(users) / of(one.exposure()) - 1.0).abs() < 1e-9);
    let sampling = Sampling::uniform(1000, 50).unwrap();
    let uniform = event(sampling, 2.0, 100, 1);
    let users = Exposure::UniformUsers {
        users: crate::event::Users::Uniform {
            devices: 1,
            device_count: 1000,
            cohort_size: 50,
        },
        noise_to_sensitivity: 1.0,
        count: 100,
    };
    let mixture = crate::uniform_profile::uniform_profile_epsilon(&[users], at).unwrap();
    let direct = ask(Accountant::UniformProfile, uniform, 1e-6);
    assert!(
        (mixture.epsilon / direct.epsilon - 1.0).abs() < 1e-3,
        "{mixture:?} {direct:?}"
    );
}

/// Without sampling: k times the sensitivity of a sum, or k releases if each upload has separate
/// noise.
#[test]
fn unsampled_users_are_exact() {
    let at = Delta::new(1e-5).unwrap();
    let full = event(Sampling::full(100).unwrap(), 8.0, 10, 4);
    let found = Accountant::Pld.epsilon(&[full], at).unwrap();
    let expected = crate::gdp::epsilon(4.0 * 10f64.sqrt() / 8.0, at);
    assert!((found.epsilon / expected - 1.0).abs() < 1e-9);
    let unsampled = event(Sampling::unsampled(100, 10).unwrap(), 8.0, 50, 4);
    let found = Accountant::Gdp.epsilon(&[unsampled], at).unwrap();
    assert!((found.epsilon / expected - 1.0).abs() < 1e-9);
    let local = PrivacyEvent {
        trust: TrustModel::Local,
        ..poisson(0.05, 8.0, 10, 4)
    };
    let found = Accountant::Pld.epsilon(&[local], at).unwrap();
    let expected = crate::gdp::epsilon(40f64.sqrt() / 8.0, at);
    assert!((found.epsilon / expected - 1.0).abs() < 1e-9);
}

/// k times the sensitivity at rate τ is not a bound: with little noise it is visible that some of
/// the k devices is drawn, which is k times as likely.
#[test]
fn more_sensitivity_at_the_same_rate_is_no_bound() {
    let at = Delta::new(0.015).unwrap();
    let found = Accountant::Pld
        .epsilon(&[poisson(0.01, 0.2, 1, 4)], at)
        .unwrap();
    let naive = Exposure::Poisson {
        sampling_rate: 0.01,
        noise_to_sensitivity: 0.05,
        count: 1,
    };
    let naive = pld_epsilon(&[naive], at).unwrap();
    assert!(naive.epsilon <= 0.0, "{naive:?}");
    assert!(found.epsilon_low.unwrap() > 5.0, "{found:?}");
}

#[test]
fn accountants_without_a_rule_refuse_users_by_name() {
    let at = Delta::new(1e-5).unwrap();
    for sampling in [
        Sampling::poisson(1000, SamplingRate::new(0.05).unwrap()).unwrap(),
        Sampling::uniform(1000, 50).unwrap(),
    ] {
        let users = event(sampling, 4.0, 10, 3);
        for accountant in Accountant::ALL {
            match accountant.epsilon(&[users], at) {
                Ok(found) => assert!(found.is_upper_bound(), "{accountant}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(accountant.name()), "{text}");
                }
            }
        }
        let bounds = [
            Accountant::tightest_for(&[users]),
            Accountant::Rdp,
            Accountant::RdpClassic,
        ];
        let figures = bounds.map(|accountant| accountant.epsilon(&[users], at).unwrap().epsilon);
        assert!(
            figures[0] < figures[1] && figures[1] <= figures[2],
            "{figures:?}"
        );
    }
    let users = poisson(0.05, 4.0, 10, 3).exposure();
    assert!(replace_one_epsilon(&[users], at).is_err());
}

#[test]
fn impossible_users_are_refused() {
    let one = poisson(0.05, 4.0, 10, 1);
    for devices in [0, 1001] {
        let error = one.with_devices_per_user(devices).unwrap_err().to_string();
        assert!(
            error.contains(&format!("is {devices}: it must be from 1 to")),
            "{error}"
        );
    }
    let example = PrivacyEvent {
        unit: crate::event::PrivacyUnit::Example,
        ..one
    };
    assert!(example.with_devices_per_user(2).is_err());
    let mut value = serde_json::to_value(poisson(0.05, 4.0, 10, 3)).unwrap();
    assert_eq!(value["devices_per_user"], 3);
    value["devices_per_user"] = 0.into();
    assert!(serde_json::from_value::<PrivacyEvent>(value).is_err());
}

/// Events about users with fewer devices count as if about users with the most.
#[test]
fn the_largest_number_of_devices_per_user_counts_in_every_event() {
    let at = Delta::new(1e-5).unwrap();
    let of = |events: &[PrivacyEvent]| Accountant::Pld.epsilon(events, at).unwrap().epsilon;
    let mixed = of(&[poisson(0.05, 2.0, 10, 1), poisson(0.05, 2.0, 10, 3)]);
    assert_eq!(mixed, of(&[poisson(0.05, 2.0, 20, 3)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// More devices never cost less, and certain participation of all never costs less than
    /// sampling.
    #[test]
    fn epsilon_grows_with_the_devices_of_a_user(
        rate in 1e-3f64..0.5, z in 0.7f64..8.0, count in 1u64..50, devices in 1u32..6,
    ) {
        let fewer = ask(Accountant::Pld, poisson(rate, z, count, devices), 1e-6).epsilon;
        let more = ask(Accountant::Pld, poisson(rate, z, count, devices + 1), 1e-6).epsilon;
        prop_assert!(fewer <= more * 1.004 + 1e-9, "{} {}", fewer, more);
        let sampling = Sampling::full(1000).unwrap();
        let all = ask(Accountant::Pld, event(sampling, z, count, devices), 1e-6).epsilon;
        prop_assert!(fewer <= all * 1.001, "{} {}", fewer, all);
        let sampling = Sampling::uniform(1000, (rate * 1000.0) as u32).unwrap();
        let of = |k| ask(Accountant::UniformProfile, event(sampling, z, count, k), 1e-6).epsilon;
        prop_assert!(of(devices) <= of(devices + 1) * 1.004 + 1e-9);
    }
}
