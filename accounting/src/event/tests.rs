use super::*;
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
    let honest = HonestFraction::new(0.25).unwrap();
    assert_eq!(
        event(poisson, TrustModel::Distributed { honest }).exposure(),
        Exposure::Gaussian {
            noise_to_sensitivity: 1.0,
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
    // Noise narrower than the randomised rounding leaves nothing to build on.
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
    let honest = HonestFraction::new(0.9).unwrap();
    assert_eq!(
        read("distributed=0.9"),
        Ok(TrustModel::Distributed { honest })
    );
    for text in [
        "",
        "nobody",
        "distributed",
        "distributed=",
        "distributed=x",
        "local=1",
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("write `central`, `local`"), "{error}");
    }
    let error = read("distributed=1.5").unwrap_err().to_string();
    assert!(error.contains("honest fraction is 1.5"), "{error}");
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
