//! Tests of block-cyclic sampling: its cost, and the cases in which nothing is claimed.

use super::*;
use crate::accountant::Accountant;
use crate::event::{Exposure, Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use crate::params::{Delta, NoiseMultiplier, ParamError, SamplingRate};

fn participation(n: u32, b: u32, k: u32) -> Participation {
    Participation::new(n, b, k).unwrap()
}

fn block_cyclic(family: Family, p: Participation, rate: f64) -> Strategy {
    let strategy = Strategy::plan(family, p).unwrap();
    strategy
        .block_cyclic(SamplingRate::new(rate).unwrap())
        .unwrap()
}

#[test]
fn block_cyclic_sampling_takes_at_most_as_many_bands_as_parts() {
    let (p, rate) = (participation(30, 5, 6), SamplingRate::new(0.5).unwrap());
    for family in Family::ALL {
        let plain = Strategy::plan(family, p).unwrap();
        let sampled = plain.clone().block_cyclic(rate);
        if !family.is_banded() {
            let refused = CorrelatedError::NotBanded {
                separation: 5,
                banded: Family::banded_names(),
            };
            assert_eq!(sampled, Err(refused));
            continue;
        }
        let sampled = sampled.unwrap();
        assert_eq!(sampled.kind(), plain.kind(), "{family}");
        assert_eq!(sampled.participation(), p);
        // The sensitivity of one column: the last of the six participations is not truncated.
        assert_eq!(
            6 * sampled.sensitivity_squared(),
            plain.sensitivity_squared()
        );
        let ratio = plain.rmse() / sampled.rmse();
        assert!((ratio / f64::sqrt(6.0) - 1.0).abs() < 1e-12);
    }
    let six_bands = Strategy::from_coefficients(p, vec![256; 6]).unwrap();
    let error = six_bands.block_cyclic(rate).unwrap_err().to_string();
    assert!(
        error.contains("more than 5 rounds") && error.contains("identity, square-root-banded"),
        "{error}"
    );
}

/// Rate 1 means no sampling: noise of the same std has the same cost as accounted without sampling,
/// with the largest number of participations.
#[test]
fn block_cyclic_sampling_of_everybody_is_no_sampling() {
    let delta = Delta::new(1e-6).unwrap();
    for (n, b) in [(30, 5), (2052, 342), (7, 7), (20, 1)] {
        let p = participation(n, b, u32::MAX);
        for family in [Family::BandedOptimalMean, Family::SquareRootBanded] {
            let plain = Strategy::plan(family, p).unwrap();
            let sampled = block_cyclic(family, p, 1.0);
            let std = 2.5 * plain.sensitivity();
            let epsilon = |strategy: &Strategy| {
                let relative = NoiseMultiplier::new(std / strategy.sensitivity()).unwrap();
                let event = PrivacyEvent::correlated(strategy, relative, 20, 1_000).unwrap();
                [Accountant::Gdp, Accountant::Rdp]
                    .map(|accountant| accountant.epsilon(&[event], delta).unwrap().epsilon)
            };
            for (one, other) in epsilon(&plain).into_iter().zip(epsilon(&sampled)) {
                assert!((one / other - 1.0).abs() < 1e-9, "{n} {b}: {one} {other}");
            }
        }
    }
}

/// t rounds are ⌈t / b⌉ compositions at the rate of a part.
#[test]
fn rounds_of_block_cyclic_sampling_cost_one_composition_in_b() {
    let (delta, z) = (
        Delta::new(1e-5).unwrap(),
        NoiseMultiplier::new(1.3).unwrap(),
    );
    let strategy = block_cyclic(Family::BandedOptimalMean, participation(23, 5, 9), 0.2);
    let event = PrivacyEvent::correlated(&strategy, z, 20, 100).unwrap();
    assert_eq!(event.count, 23);
    assert_eq!(event.sampling.expected_cohort(), 4.0);
    assert!(!event.is_one_release());
    let poisson = Sampling::poisson(100, SamplingRate::new(0.2).unwrap()).unwrap();
    for (rounds, compositions) in [(0, 0), (1, 1), (5, 1), (6, 2), (20, 4), (23, 5)] {
        let found = Accountant::Pld.epsilon(&[event.with_count(rounds)], delta);
        let mechanism = Mechanism::Gaussian {
            noise_multiplier: z,
        };
        let expected = PrivacyEvent::new(mechanism, poisson, compositions);
        let expected = Accountant::Pld.epsilon(&[expected], delta).unwrap();
        let (found, expected) = (found.unwrap().epsilon, expected.epsilon);
        assert!(
            (found - expected).abs() <= 1e-6 * expected,
            "{rounds}: {found} {expected}"
        );
    }
    // Rounds counted separately, as in a ledger before they are merged, cost more.
    let apart = vec![event.with_count(1); 6];
    let apart = Accountant::Rdp.epsilon(&apart, delta).unwrap();
    let together = Accountant::Rdp.epsilon(&[event.with_count(6)], delta);
    assert!(apart.epsilon > together.unwrap().epsilon);
}

/// Nothing is claimed outside the assumptions of the argument.
#[test]
fn block_cyclic_sampling_counts_for_nothing_where_it_is_not_argued() {
    let z = NoiseMultiplier::new(2.0).unwrap();
    let p = participation(20, 5, 4);
    let strategy = block_cyclic(Family::SquareRootBanded, p, 0.1);
    let event = PrivacyEvent::correlated(&strategy, z, 20, 100).unwrap();
    let few = PrivacyEvent::correlated(&strategy, z, 20, 4).unwrap_err();
    let (parts, device_count) = (5, 4);
    assert_eq!(
        few,
        ParamError::Parts {
            parts,
            device_count
        }
    );
    let refused = event.with_devices_per_user(2).unwrap_err();
    assert_eq!(refused, ParamError::UsersOfParts { devices: 2 });
    // Next to an event about users with three devices: three times the sensitivity in every block.
    let users = PrivacyEvent {
        devices_per_user: std::num::NonZeroU32::new(3).unwrap(),
        ..event
    };
    let Exposure::Gaussian {
        noise_to_sensitivity,
        count: 4,
    } = users.exposure()
    else {
        panic!("{:?}", users.exposure());
    };
    assert!((noise_to_sensitivity * 1.5 - 1.0).abs() < 1e-9);
    let plain = Strategy::plan(Family::SquareRootBanded, p).unwrap();
    let of_run = PrivacyEvent::correlated(&plain, z, 20, 100).unwrap();
    let other_parts = Sampling::block_cyclic(100, 4, SamplingRate::new(0.1).unwrap()).unwrap();
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
            sampling: other_parts,
            ..event
        },
        // The sensitivity of a run differs from that of a block.
        PrivacyEvent {
            sampling: event.sampling,
            ..of_run
        },
        PrivacyEvent {
            sampling: of_run.sampling,
            ..event
        },
    ] {
        assert!(wrong.exposure().is_unprotected(), "{wrong:?}");
    }
}

#[test]
fn block_cyclic_sampling_keeps_its_form_through_a_ledger() {
    let strategy = block_cyclic(Family::Identity, participation(20, 5, 4), 0.25);
    let z = NoiseMultiplier::new(2.0).unwrap();
    let event = PrivacyEvent::correlated(&strategy, z, 20, 100).unwrap();
    let text = serde_json::to_string(&event).unwrap();
    let sampling = r#"{"block-cyclic":{"device_count":100,"parts":5,"sampling_rate":0.25}}"#;
    assert!(text.contains(sampling), "{text}");
    assert_eq!(serde_json::from_str::<PrivacyEvent>(&text).unwrap(), event);
    let bad = text.replace("\"parts\":5", "\"parts\":0");
    assert!(bad != text && serde_json::from_str::<PrivacyEvent>(&bad).is_err());
}
