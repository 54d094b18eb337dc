use super::*;
use crate::correlated::Family;
use crate::params::SamplingRate;

fn event(sampling: Sampling, trust: TrustModel) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(2.0).unwrap();
    let mechanism = Mechanism::Gaussian { noise_multiplier };
    PrivacyEvent {
        trust,
        ..PrivacyEvent::new(mechanism, sampling, 100)
    }
}

fn rate(value: f64) -> SamplingRate {
    SamplingRate::new(value).unwrap()
}

#[test]
fn a_uniform_cohort_is_replace_one_with_twice_the_sensitivity() {
    let event = event(Sampling::uniform(1000, 50).unwrap(), TrustModel::Central);
    assert_eq!(event.adjacency(), Adjacency::ReplaceOne);
    assert_eq!(
        event.exposure(),
        Exposure::Uniform {
            sampling_rate: 0.05,
            noise_to_sensitivity: 1.0,
            count: 100
        }
    );
}

#[test]
fn a_poisson_cohort_is_add_remove() {
    let event = event(
        Sampling::poisson(1000, rate(0.05)).unwrap(),
        TrustModel::Central,
    );
    assert_eq!(event.adjacency(), Adjacency::AddRemove);
    assert_eq!(
        event.exposure(),
        Exposure::Poisson {
            sampling_rate: 0.05,
            noise_to_sensitivity: 2.0,
            count: 100
        }
    );
}

#[test]
fn a_server_that_knows_the_cohort_gets_no_amplification() {
    let poisson = Sampling::poisson(1000, rate(0.05)).unwrap();
    assert_eq!(
        event(poisson, TrustModel::Local).exposure(),
        Exposure::Gaussian {
            noise_to_sensitivity: 2.0,
            count: 100
        }
    );
    let trust = TrustModel::Distributed(Parties::PAIR);
    assert_eq!(
        event(poisson, trust).exposure(),
        Exposure::Gaussian {
            noise_to_sensitivity: 2.0,
            count: 100
        }
    );
}

#[test]
fn an_unsampled_device_pays_for_its_participations_only() {
    let unsampled = Sampling::unsampled(10, 7).unwrap();
    let event = event(unsampled, TrustModel::Central);
    assert_eq!(event.exposure().count(), 7);
    assert_eq!(event.with_count(3).exposure().count(), 3);
}

#[test]
fn a_cohort_of_everyone_is_full_participation() {
    let all = event(Sampling::uniform(10, 10).unwrap(), TrustModel::Central);
    assert!(matches!(all.exposure(), Exposure::Gaussian { .. }));
    let all = event(
        Sampling::poisson(10, rate(1.0)).unwrap(),
        TrustModel::Central,
    );
    assert!(matches!(all.exposure(), Exposure::Gaussian { .. }));
}

#[test]
fn impossible_cohorts_are_refused() {
    assert!(Sampling::uniform(10, 11).is_err());
    assert!(Sampling::uniform(10, 0).is_err());
    assert!(Sampling::full(0).is_err());
    assert!(Sampling::poisson(0, rate(0.5)).is_err());
    assert!(Sampling::unsampled(0, 1).is_err());
    assert!(Sampling::unsampled(1, 0).is_err());
}

#[test]
fn files_pass_the_same_checks_as_code() {
    let good = r#"{"uniform":{"device_count":10,"cohort_size":3}}"#;
    let sampling: Sampling = serde_json::from_str(good).unwrap();
    assert_eq!(sampling, Sampling::uniform(10, 3).unwrap());
    assert_eq!(serde_json::to_string(&sampling).unwrap(), good);
    let bad = r#"{"uniform":{"device_count":10,"cohort_size":30}}"#;
    assert!(serde_json::from_str::<Sampling>(bad).is_err());
}

#[test]
fn the_grid_costs_next_to_nothing() {
    let noise_multiplier = NoiseMultiplier::new(0.7).unwrap();
    let on_grid = |grid_bits| Mechanism::DiscreteGaussian {
        noise_multiplier,
        grid_bits,
    };
    let fine = on_grid(20).continuous_multiplier();
    assert!(fine < 0.7 && fine > 0.7 * (1.0 - 1e-10));
    // Noise narrower than the randomised rounding is not a rounding of a real Gaussian.
    assert!(on_grid(2).continuous_multiplier() <= 0.0);
}

#[test]
fn replacing_a_correlation_matrix_moves_the_mean_by_root_two() {
    let noise_multiplier = NoiseMultiplier::new(1.0).unwrap();
    let matrix = Mechanism::CorrelationMatrix { noise_multiplier };
    let sensitivity = matrix.sensitivity(Adjacency::ReplaceOne);
    assert!((sensitivity - std::f64::consts::SQRT_2).abs() < 1e-15);
}

#[test]
fn trust_models_are_read_from_text() {
    let read = |text: &str| text.parse::<TrustModel>();
    assert_eq!(read("central"), Ok(TrustModel::Central));
    assert_eq!(read("local"), Ok(TrustModel::Local));
    let distributed = |helpers, colluding| {
        let parties = Parties::new(helpers, colluding);
        parties.map(TrustModel::Distributed)
    };
    assert_eq!(read("distributed"), distributed(1, 1));
    assert_eq!(read("distributed=3"), distributed(3, 3));
    assert_eq!(read("distributed=3/2"), distributed(3, 2));
    for text in ["", "nobody", "distributed=", "distributed=x", "local=1"] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("write `central`, `local`"), "{error}");
    }
    for text in [
        "central",
        "local",
        "distributed",
        "distributed=3",
        "distributed=3/2",
    ] {
        assert_eq!(read(text).unwrap().to_string(), text);
    }
    let error = read("distributed=2/3").unwrap_err().to_string();
    assert!(error.contains("2 helpers, and 3 parties"), "{error}");
}

#[test]
fn the_last_places_of_a_noise_multiplier_make_no_other_event() {
    let sampling = Sampling::poisson(1000, rate(0.05)).unwrap();
    let one = event(sampling, TrustModel::Central);
    let with = |z| one.with_noise_multiplier(NoiseMultiplier::new(z).unwrap());
    assert!(one.is_nearly(&one) && one.is_nearly(&with(2.0 + 1e-10)));
    assert!(!one.is_nearly(&with(2.0 + 1e-8)) && !one.is_nearly(&with(0.0)));
    assert!(!one.is_nearly(&one.with_count(99)));
    let other = event(Sampling::full(1000).unwrap(), TrustModel::Central);
    assert!(!one.is_nearly(&other));
}

/// Returns six rounds, 2 apart, 3 participations of a device, with noise multiplier 2.
fn correlated() -> (Strategy, PrivacyEvent) {
    let participation = Participation::new(6, 2, 3).unwrap();
    let strategy = Strategy::plan(Family::SquareRoot, participation).unwrap();
    let noise_multiplier = NoiseMultiplier::new(2.0).unwrap();
    let event = PrivacyEvent::correlated(&strategy, noise_multiplier, 20, 10).unwrap();
    (strategy, event)
}

#[test]
fn correlated_noise_is_one_gaussian_for_all_rounds() {
    let (_, event) = correlated();
    let noise = |event: &PrivacyEvent| event.exposure().noise_to_sensitivity();
    assert_eq!((event.count, event.exposure().count()), (6, 1));
    assert!((noise(&event) / 2.0 - 1.0).abs() < 1e-12 && noise(&event) <= 2.0);
    // For any round at which a run stops. More rounds are further runs.
    for (rounds, runs) in [(0, 0), (1, 1), (5, 1), (7, 2), (12, 2)] {
        assert_eq!(event.with_count(rounds).exposure().count(), runs);
    }
    let three = event.with_devices_per_user(3).unwrap();
    assert!((noise(&three) * 3.0 / noise(&event) - 1.0).abs() < 1e-12);
    assert_eq!(three.exposure().count(), 1);
    assert_eq!(event.adjacency(), Adjacency::AddRemove);
}

/// z is relative to the sensitivity, and the noise on a release is relative to the clip norm.
#[test]
fn correlated_noise_is_as_large_as_its_sensitivity_asks() {
    let (strategy, correlated) = correlated();
    let expected = 2.0 * strategy.sensitivity();
    assert!(expected > 2.5);
    assert_eq!(correlated.mechanism.release_multiplier(), expected);
    assert!(correlated.is_one_release());
    let independent = event(Sampling::unsampled(10, 3).unwrap(), TrustModel::Central);
    assert_eq!(independent.mechanism.release_multiplier(), 2.0);
    assert!(!independent.is_one_release());
}

#[test]
fn correlated_noise_promises_nothing_it_does_not_cover() {
    let (_, event) = correlated();
    let unsampled = |k| Sampling::unsampled(10, k).unwrap();
    assert!(!event.exposure().is_unprotected());
    let fewer = PrivacyEvent {
        sampling: unsampled(2),
        ..event
    };
    assert!(!fewer.exposure().is_unprotected());
    for wrong in [
        PrivacyEvent {
            trust: TrustModel::Local,
            ..event
        },
        PrivacyEvent {
            unit: PrivacyUnit::Example,
            ..event
        },
        PrivacyEvent {
            sampling: unsampled(4),
            ..event
        },
        PrivacyEvent {
            sampling: Sampling::full(10).unwrap(),
            ..event
        },
        PrivacyEvent {
            sampling: Sampling::poisson(10, rate(0.1)).unwrap(),
            ..event
        },
        PrivacyEvent {
            sampling: Sampling::uniform(10, 1).unwrap(),
            ..event
        },
    ] {
        assert!(wrong.exposure().is_unprotected(), "{wrong:?}");
    }
}

#[test]
fn every_accountant_of_gaussians_counts_correlated_noise_once() {
    use crate::accountant::Accountant;
    use crate::pld::replace_one_epsilon;
    let (_, event) = correlated();
    let delta = crate::params::Delta::new(1e-5).unwrap();
    let exact = crate::gdp::epsilon(0.5, delta);
    for accountant in [
        Accountant::AnalyticGaussian,
        Accountant::Gdp,
        Accountant::Pld,
    ] {
        let found = accountant.epsilon(&[event], delta).unwrap();
        assert!((found.epsilon / exact - 1.0).abs() < 1e-3, "{found:?}");
        assert!(found.is_upper_bound() && found.epsilon >= exact * (1.0 - 1e-12));
    }
    let rdp = Accountant::Rdp.epsilon(&[event], delta).unwrap();
    assert!(rdp.epsilon >= exact && rdp.epsilon < 1.2 * exact);
    // Replacing a device's data moves the releases twice as far.
    let replaced = replace_one_epsilon(&[event.exposure()], delta).unwrap();
    let expected = crate::gdp::epsilon(1.0, delta);
    assert!((replaced.epsilon / expected - 1.0).abs() < 1e-3);
    // Runs compose as several Gaussians.
    let two = Accountant::Gdp.epsilon(&[event, event], delta).unwrap();
    let expected = crate::gdp::epsilon(0.5 * f64::sqrt(2.0), delta);
    assert!((two.epsilon / expected - 1.0).abs() < 1e-9);
}

/// The discrete noise is on a grid 256 times finer, of z s 2^g 256 steps.
#[test]
fn the_reserve_for_discrete_noise_is_that_of_the_finer_grid() {
    let (strategy, event) = correlated();
    let noise_multiplier = NoiseMultiplier::new(0.25).unwrap();
    let Mechanism::Correlated {
        sensitivity,
        participation,
        ..
    } = event.mechanism
    else {
        panic!("{event:?}");
    };
    let coarse = Mechanism::Correlated {
        noise_multiplier,
        grid_bits: 0,
        sensitivity,
        participation,
    };
    let steps = 0.25 * strategy.sensitivity() * 256.0;
    assert!((strategy.noise_steps(noise_multiplier, 0) / steps - 1.0).abs() < 1e-12);
    let expected = 0.25 * (1.0 - (ROUNDING_STD / steps).powi(2)).sqrt();
    assert!((coarse.continuous_multiplier() / expected - 1.0).abs() < 1e-12);
    let none = coarse.with_noise_multiplier(NoiseMultiplier::new(0.001).unwrap());
    assert!(none.continuous_multiplier() <= 0.0);
}

#[test]
fn correlated_noise_keeps_its_form_through_a_ledger() {
    let (_, event) = correlated();
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<PrivacyEvent>(&text).unwrap(), event);
    let bad = text.replace("\"separation\":2", "\"separation\":7");
    assert!(bad != text && serde_json::from_str::<PrivacyEvent>(&bad).is_err());
    // The format of earlier versions.
    let old = r#"{"mechanism":{"discrete-gaussian":{"noise_multiplier":2.0,"grid_bits":20}},"#
        .to_owned()
        + r#""sampling":{"unsampled":{"device_count":10,"max_participations":3}},"#
        + r#""trust":"central","unit":"device","count":6}"#;
    let read: PrivacyEvent = serde_json::from_str(&old).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), old);
}

#[test]
fn a_user_has_from_one_device_to_all_of_them() {
    let event = event(Sampling::full(3).unwrap(), TrustModel::Central);
    let with = |devices| event.with_devices_per_user(devices);
    assert_eq!(with(3).unwrap().devices_per_user.get(), 3);
    assert!(with(4).is_err() && with(0).is_err());
    let of_examples = PrivacyEvent {
        unit: PrivacyUnit::Example,
        ..event
    };
    assert!(of_examples.with_devices_per_user(1).is_ok());
    assert!(of_examples.with_devices_per_user(2).is_err());
    let most = |events: &[PrivacyEvent]| PrivacyEvent::max_devices_per_user(events);
    assert_eq!(most(&[event]), None);
    assert_eq!(most(&[event, with(2).unwrap()]), Some(2));
    assert_eq!(most(&[with(3).unwrap(), with(2).unwrap()]), Some(3));
}

#[test]
fn only_rounds_without_noise_are_unprotected() {
    let event = event(Sampling::full(3).unwrap(), TrustModel::Central);
    let bare = event.with_noise_multiplier(NoiseMultiplier::new(0.0).unwrap());
    assert!(bare.exposure().is_unprotected());
    assert!(!bare.with_count(0).exposure().is_unprotected());
    assert!(!event.exposure().is_unprotected());
}

/// The subject of an event follows from its mechanism alone. Examples in matrices are replaced.
#[test]
fn kinds_of_releases_are_told_apart() {
    let noise_multiplier = NoiseMultiplier::new(2.0).unwrap();
    let grid_bits = 20;
    let kinds = |mechanism| {
        let event = PrivacyEvent::new(mechanism, Sampling::full(3).unwrap(), 1);
        [
            event.is_matrix(),
            event.is_moments(),
            event.is_score(),
            event.is_answer(),
        ]
    };
    let matrix = Mechanism::CorrelationMatrix { noise_multiplier };
    assert_eq!(kinds(matrix), [true, false, false, false]);
    assert_eq!(
        kinds(Mechanism::Moments {
            noise_multiplier,
            grid_bits
        }),
        [false, true, false, false]
    );
    assert_eq!(
        kinds(Mechanism::Score {
            noise_multiplier,
            grid_bits
        }),
        [false, false, true, false]
    );
    let answer = |question| Mechanism::Answer {
        noise_multiplier,
        grid_bits,
        question,
    };
    assert_eq!(kinds(answer(0)), [false, false, false, true]);
    assert_eq!(kinds(Mechanism::Gaussian { noise_multiplier }), [false; 4]);
    // Several questions of one round are several releases.
    let kind = |mechanism| PrivacyEvent::new(mechanism, Sampling::full(3).unwrap(), 1).kind();
    assert_ne!(kind(answer(0)), kind(answer(1)));
    assert_eq!(kind(answer(1)), kind(answer(1)));
    let of_examples = |mechanism| PrivacyEvent {
        unit: PrivacyUnit::Example,
        ..PrivacyEvent::new(mechanism, Sampling::full(3).unwrap(), 1)
    };
    assert_eq!(of_examples(matrix).adjacency(), Adjacency::ReplaceOne);
    let update = of_examples(Mechanism::Gaussian { noise_multiplier });
    assert_eq!(update.adjacency(), Adjacency::AddRemove);
}

/// Default values are left out of a ledger, and all others are written.
#[test]
fn usual_values_are_left_out_of_files() {
    let event = event(Sampling::full(3).unwrap(), TrustModel::Central);
    let text = |event: &PrivacyEvent| serde_json::to_string(event).unwrap();
    assert!(!text(&event).contains("releases") && !text(&event).contains("devices_per_user"));
    let other = PrivacyEvent {
        releases: 4,
        ..event.with_devices_per_user(2).unwrap()
    };
    for event in [event, other] {
        let read: PrivacyEvent = serde_json::from_str(&text(&event)).unwrap();
        assert_eq!(read, event);
    }
}
