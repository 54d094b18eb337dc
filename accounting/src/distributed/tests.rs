use proptest::prelude::*;

use super::*;
use crate::accountant::Accountant;
use crate::correlated::{Family, Participation, Strategy};
use crate::event::{Mechanism, PrivacyEvent, Sampling, TrustModel};
use crate::gdp;
use crate::params::{Delta, SamplingRate};

fn multiplier(z: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(z).unwrap()
}

#[test]
fn parties_are_read_as_they_are_written() {
    let read = |text: &str| text.parse::<Parties>();
    for (text, helpers, colluding) in [("1", 1, 1), ("3", 3, 3), ("3/2", 3, 2), ("8/1", 8, 1)] {
        let parties = Parties::new(helpers, colluding).unwrap();
        assert_eq!(read(text), Ok(parties));
        let written = parties.to_string();
        let again = written.strip_prefix('=').map_or(Ok(Parties::PAIR), read);
        assert_eq!(again, Ok(parties), "{written}");
    }
    for text in ["", "0", "9", "3/0", "3/4", "2/", "x", "1.5"] {
        assert!(read(text).is_err(), "{text}");
    }
    let json = serde_json::to_string(&Parties::PAIR).unwrap();
    assert_eq!(json, r#"{"helpers":1,"colluding":1}"#);
    let wrong = serde_json::from_str::<Parties>(r#"{"helpers":1,"colluding":2}"#);
    assert!(wrong.is_err());
}

proptest! {
    /// In squares: honest parties together always have at least the total, and all parties at most
    /// the claim against outsiders.
    #[test]
    fn noise_adds_up(z in 0.01f64..100.0, helpers in 1u8..=8, less in 0u8..8) {
        let colluding = helpers - less.min(helpers - 1);
        let parties = Parties::new(helpers, colluding).unwrap();
        let each = parties.of_each(multiplier(z)).get();
        let honest = f64::from(parties.honest()) * each * each;
        prop_assert!(honest >= z * z && honest <= z * z * (1.0 + 1e-14));
        let all = parties.of_all(multiplier(z)).get();
        prop_assert!(all * all <= f64::from(parties.count()) * each * each);
        prop_assert!(all >= each && (helpers > colluding || each == z));
    }
}

/// Compares the convolution of two discrete Gaussians with the one of the summed variance, on a
/// grid coarse enough to show the factor: it is within the bound, and close to it.
#[test]
fn the_sum_of_two_is_nearly_one() {
    let weights = |variance: f64| -> Vec<f64> {
        let weight = |x: i32| (-f64::from(x * x) / (2.0 * variance)).exp();
        let weights: Vec<f64> = (-60..=60).map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    };
    for sigma in [0.5f64, 0.6, 0.8, 1.0] {
        let (one, both) = (weights(sigma * sigma), weights(2.0 * sigma * sigma));
        let sum = |x: i32| -> f64 {
            let term = |y: i32| {
                let other = usize::try_from(x - y + 60).ok()?;
                Some(one[(y + 60) as usize] * one.get(other)?)
            };
            (-60..=60).filter_map(term).sum()
        };
        let ratio = |x: i32| (sum(x) / both[(x + 60) as usize]).ln().abs();
        let worst = (-6..=6).map(ratio).fold(0.0, f64::max);
        let bound = ln_of_term(2, sigma).exp() / 2.0;
        assert!(
            worst <= bound && worst > bound / 10.0,
            "{sigma}: {worst} {bound}"
        );
    }
}

#[test]
fn the_term_is_negligible_from_the_smallest_noise_on() {
    let least = f64::from(MIN_NOISE_STEPS);
    assert_eq!(ln_of_term(1, least), f64::NEG_INFINITY);
    assert!(ln_of_term(9, least) < -40_000.0);
    // 10^10 entries and 10^7 rounds.
    assert!(ln_of_term(9, least) + 1e17_f64.ln() < -17_000.0 * 10f64.ln());
}

/// Returns rounds of discrete noise on a grid of 20 bits.
fn event(z: f64, sampling: Sampling, parties: Parties, count: u64) -> PrivacyEvent {
    let mechanism = Mechanism::DiscreteGaussian {
        noise_multiplier: multiplier(z),
        grid_bits: 20,
    };
    PrivacyEvent {
        trust: TrustModel::Distributed(parties),
        ..PrivacyEvent::new(mechanism, sampling, count)
    }
}

fn epsilon(event: &PrivacyEvent) -> f64 {
    let delta = Delta::new(1e-5).unwrap();
    let estimate = Accountant::Pld.epsilon(&[*event], delta).unwrap();
    assert!(estimate.is_upper_bound());
    estimate.epsilon
}

fn poisson() -> Sampling {
    Sampling::poisson(1_000, SamplingRate::new(0.05).unwrap()).unwrap()
}

/// The parties know the cohorts: T rounds cost as much as one Gaussian release of μ = √T / z, in
/// closed form. Outsiders face √2 times the noise, and do not know the cohorts.
#[test]
fn a_party_pays_full_composition_and_an_outsider_does_not() {
    for (z, rounds) in [(4.0, 10), (8.0, 100), (20.0, 1_000)] {
        let event = event(z, poisson(), Parties::PAIR, rounds);
        let mu = (rounds as f64).sqrt() / z;
        let exact = gdp::epsilon(mu, Delta::new(1e-5).unwrap());
        let found = epsilon(&event);
        assert!(found >= exact && found <= exact * 1.001, "{found} {exact}");
        let outsiders = event.outsiders().unwrap();
        let z_of_all = outsiders.mechanism.noise_multiplier().get();
        assert!((z_of_all - z * 2f64.sqrt()).abs() < 1e-12 * z);
        assert_eq!(outsiders.trust, TrustModel::Central);
        assert_eq!(outsiders.sampling, event.sampling);
        assert!(epsilon(&outsiders) < 0.2 * found);
    }
    let central = PrivacyEvent {
        trust: TrustModel::Central,
        ..event(4.0, poisson(), Parties::PAIR, 10)
    };
    assert_eq!(central.outsiders(), None);
}

/// If the grid is too coarse for the sum of several noises, nothing is claimed against a coalition,
/// and only the noise of one party counts against outsiders. One honest party's noise is exact.
#[test]
fn a_coarse_grid_has_no_sum() {
    let on_grid = |grid_bits, colluding| {
        let mechanism = Mechanism::DiscreteGaussian {
            noise_multiplier: multiplier(1.0),
            grid_bits,
        };
        let parties = Parties::new(2, colluding).unwrap();
        PrivacyEvent {
            trust: TrustModel::Distributed(parties),
            ..PrivacyEvent::new(mechanism, Sampling::full(10).unwrap(), 1)
        }
    };
    assert!(on_grid(6, 1).exposure().is_unprotected());
    assert!(!on_grid(7, 1).exposure().is_unprotected());
    assert!(!on_grid(6, 2).exposure().is_unprotected());
    let seen = |event: PrivacyEvent| event.outsiders().unwrap().mechanism.noise_multiplier();
    assert_eq!(seen(on_grid(5, 2)).get(), 1.0);
    assert!(seen(on_grid(6, 2)).get() > 1.7);
}

/// Correlated noise: one release with μ = 1 / z for a party, and 1 / (z √2) for an outsider, who
/// knows the timetable as well. Parts that take turns do not hide a device from a party, so each
/// turn counts.
#[test]
fn correlated_noise_of_two_parties() {
    let participation = Participation::new(60, 6, 10).unwrap();
    let strategy = Strategy::plan(Family::BandedOptimalMean, participation).unwrap();
    let trust = TrustModel::Distributed(Parties::PAIR);
    let of = |strategy: &Strategy| {
        let event = PrivacyEvent::correlated(strategy, multiplier(2.0), 20, 600).unwrap();
        PrivacyEvent { trust, ..event }
    };
    let exact = |mu| gdp::epsilon(mu, Delta::new(1e-5).unwrap());
    let near = |found: f64, exact: f64| found >= exact && found <= exact * 1.001;
    let event = of(&strategy);
    assert!(near(epsilon(&event), exact(0.5)));
    assert!(near(
        epsilon(&event.outsiders().unwrap()),
        exact(0.5 / 2f64.sqrt())
    ));
    let drawn = strategy
        .block_cyclic(SamplingRate::new(0.2).unwrap())
        .unwrap();
    let event = of(&drawn);
    assert!(near(epsilon(&event), exact(10f64.sqrt() / 2.0)));
    assert!(epsilon(&event.outsiders().unwrap()) < 0.5 * epsilon(&event));
}

proptest! {
    /// With one honest party a coalition's figure is that of one noise, for any number of parties,
    /// and an outsider never learns more than a party.
    #[test]
    fn the_figure_depends_on_the_honest_noise_alone(
        z in 1.0f64..30.0, rounds in 1u64..200, helpers in 1u8..=8, colluding in 1u8..=8,
    ) {
        let parties = Parties::new(helpers, helpers).unwrap();
        let one = event(z, poisson(), parties, rounds);
        let pair = event(z, poisson(), Parties::PAIR, rounds);
        prop_assert_eq!(one.exposure(), pair.exposure());
        let parties = Parties::new(helpers, colluding.min(helpers)).unwrap();
        let event = event(z, Sampling::full(1_000).unwrap(), parties, rounds);
        prop_assert!(epsilon(&event.outsiders().unwrap()) <= epsilon(&event));
    }
}
