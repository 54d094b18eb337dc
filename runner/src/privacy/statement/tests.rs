use super::*;
use smolfed_accounting::event::Mechanism;
use smolfed_accounting::params::{HonestFraction, NoiseMultiplier, SamplingRate};

fn event(sampling: Sampling, noise_multiplier: f64) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(noise_multiplier).unwrap();
    PrivacyEvent {
        mechanism: Mechanism::DiscreteGaussian {
            noise_multiplier,
            grid_bits: 20,
        },
        sampling,
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: 100,
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    }
}

fn poisson() -> Sampling {
    Sampling::poisson(1000, SamplingRate::new(0.05).unwrap()).unwrap()
}

fn state(event: PrivacyEvent, delta: f64) -> PrivacyStatement {
    let estimate = Accountant::Rdp
        .epsilon(&[event], Delta::new(delta).unwrap())
        .unwrap();
    PrivacyStatement::new(&estimate, &[event], Some(ClipNorm::new(0.3).unwrap())).unwrap()
}

#[test]
fn the_statement_has_every_key_of_the_contract() {
    let json = serde_json::to_value(state(event(poisson(), 1.0), 1e-4)).unwrap();
    for key in [
        "epsilon",
        "delta",
        "accountant",
        "is_upper_bound",
        "noise_multiplier",
        "noise_std",
        "clip_norm",
        "adjacency",
        "sampling",
        "sampling_rate",
        "rounds",
        "unit",
        "trust",
    ] {
        assert!(!json[key].is_null(), "{key} of {json}");
    }
    assert_eq!(json["adjacency"], "add-remove");
    assert_eq!(json["trust"], "central");
    assert!((json["noise_std"].as_f64().unwrap() - 0.3).abs() < 1e-12);
}

#[test]
fn the_statement_survives_a_file() {
    for statement in [
        state(event(poisson(), 1.0), 1e-4),
        state(event(poisson(), 0.0), 1e-4),
    ] {
        let text = serde_json::to_string(&statement).unwrap();
        assert_eq!(
            serde_json::from_str::<PrivacyStatement>(&text).unwrap(),
            statement
        );
    }
}

#[test]
fn a_dangerous_delta_is_called_so() {
    assert!(
        state(event(poisson(), 1.0), 1e-2)
            .in_words()
            .contains("not below 1/N")
    );
    assert!(
        !state(event(poisson(), 1.0), 1e-4)
            .in_words()
            .contains("not below 1/N")
    );
}

#[test]
fn words_name_what_each_scheme_assumes() {
    let words = state(event(poisson(), 1.0), 1e-4).in_words();
    assert!(words.contains("whether one device took part") && words.contains("in secret"));
    let uniform = Sampling::uniform(1000, 50).unwrap();
    let words = state(event(uniform, 2.0), 1e-4).in_words();
    assert!(
        words.contains("two given versions of one device's data"),
        "{words}"
    );
    let unsampled = Sampling::unsampled(1000, 7).unwrap();
    let words = state(event(unsampled, 20.0), 1e-4).in_words();
    assert!(words.contains("more than 7 of 100 rounds"), "{words}");
    let honest = HonestFraction::new(0.8).unwrap();
    let shares = PrivacyEvent {
        trust: TrustModel::Distributed { honest },
        ..event(poisson(), 50.0)
    };
    assert!(state(shares, 1e-4).in_words().contains("at least 80 %"));
    let local = PrivacyEvent {
        trust: TrustModel::Local,
        ..event(poisson(), 50.0)
    };
    assert!(
        state(local, 1e-4)
            .in_words()
            .contains("sampling does not amplify privacy")
    );
}

#[test]
fn no_noise_is_stated_as_no_guarantee() {
    let words = state(event(poisson(), 0.0), 1e-4).in_words();
    assert!(
        words.contains("No finite epsilon") && words.contains("with certainty"),
        "{words}"
    );
}

#[test]
fn a_limit_is_stated_as_no_guarantee() {
    let event = event(poisson(), 1.0);
    let estimate = Accountant::Gdp
        .epsilon(&[event], Delta::new(1e-4).unwrap())
        .unwrap();
    let statement = PrivacyStatement::new(&estimate, &[event], None).unwrap();
    assert!(statement.in_words().contains("NOT a guarantee"));
    assert!(!statement.is_upper_bound && statement.noise_std.is_none());
}

#[test]
fn nothing_is_stated_about_no_event() {
    let estimate = Accountant::Rdp
        .epsilon(&[], Delta::new(1e-4).unwrap())
        .unwrap();
    assert!(PrivacyStatement::new(&estimate, &[], None).is_none());
}
