use proptest::prelude::*;

use super::*;
use crate::accountant::Accountant;
use crate::event::{Mechanism, Sampling};
use crate::params::{NoiseMultiplier, SamplingRate};

fn event(sampling: Sampling, z: f64, count: u64) -> PrivacyEvent {
    let noise_multiplier = NoiseMultiplier::new(z).unwrap();
    PrivacyEvent::new(Mechanism::Gaussian { noise_multiplier }, sampling, count)
}

fn poisson(rate: f64, z: f64, count: u64) -> PrivacyEvent {
    let rate = SamplingRate::new(rate).unwrap();
    event(Sampling::poisson(1000, rate).unwrap(), z, count)
}

fn delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

/// The filter has the cost of the Rényi bound at one order. An odometer costs ln 16 more in
/// ln(1/δ), and has the classic conversion.
#[test]
fn figures_are_those_of_the_formulas() {
    let full = event(Sampling::full(10).unwrap(), 5.0, 4);
    let filter = RenyiFilter::of_plan(&[full], delta()).unwrap();
    assert!((filter.budget() / (4.0 * filter.order() / 50.0) - 1.0).abs() < 1e-9);
    let rdp = Accountant::Rdp.epsilon(&[full], delta()).unwrap().epsilon;
    assert!((filter.epsilon() / rdp - 1.0).abs() < 1e-9);
    let odometer = Odometer::read(&[full], delta()).unwrap();
    let expected = 4.0 * odometer.order / 50.0 + (16e5f64).ln() / (odometer.order - 1.0);
    assert!(
        (odometer.epsilon / expected - 1.0).abs() < 1e-9,
        "{odometer:?}"
    );
    assert!(Odometer::read(&[], delta()).unwrap().epsilon <= 0.0);
    let bare = event(Sampling::full(10).unwrap(), 0.0, 1);
    assert!(
        Odometer::read(&[bare], delta())
            .unwrap()
            .epsilon
            .is_infinite()
    );
}

#[test]
fn a_filter_refuses_what_it_cannot_add() {
    let mut filter = RenyiFilter::of_plan(&[poisson(0.05, 1.0, 10)], delta()).unwrap();
    filter.charge(&poisson(0.05, 1.0, 4)).unwrap();
    let uniform = event(Sampling::uniform(100, 10).unwrap(), 1.0, 1);
    assert!(matches!(
        filter.charge(&uniform),
        Err(FilterError::Accounting(_))
    ));
    let users = poisson(0.05, 1.0, 1).with_devices_per_user(2).unwrap();
    assert!(matches!(
        filter.charge(&users),
        Err(FilterError::Accounting(_))
    ));
    let much = poisson(0.05, 1.0, 7);
    let error = filter.charge(&much).unwrap_err();
    assert!(matches!(error, FilterError::OverBudget { .. }), "{error}");
    assert!(!filter.admits(&much).unwrap());
    filter.charge(&poisson(0.05, 1.0, 6)).unwrap();
    let bare = poisson(0.05, 0.0, 1);
    assert!(filter.charge(&bare).is_err());
}

#[test]
fn a_target_below_all_orders_is_refused() {
    let tiny = (Epsilon::new(1e-3).unwrap(), Delta::new(1e-9).unwrap());
    let error = RenyiFilter::for_epsilon(tiny.0, tiny.1, &poisson(0.05, 1.0, 1)).unwrap_err();
    assert!(matches!(error, FilterError::OutOfReach { .. }), "{error}");
}

/// Tests an adversary who stops as soon as the loss is large against the odometer: of 20,000 runs
/// of Gaussian releases with a fixed seed, at most a share δ exceeds it. The probability that a
/// valid odometer fails this test is below 1e-6: P(Binomial(20000, 0.01) > 280) < 3e-8.
#[test]
fn the_loss_stays_below_the_odometer_at_all_rounds_at_once() {
    let (delta, runs) = (Delta::new(0.01).unwrap(), 20_000);
    let noises = [3.0, 2.0, 6.0];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut passed = 0;
    for _ in 0..runs {
        let (mut loss, mut inverse_variance) = (0.0, 0.0);
        for round in 0..12 {
            // The noise of a round depends on the loss so far.
            let noise = noises[if loss > 1.0 { 1 } else { 2 * (round % 2) }];
            let normal = (-2.0 * (1.0 - uniform()).ln()).sqrt()
                * (2.0 * std::f64::consts::PI * uniform()).cos();
            loss += normal / noise + 0.5 / (noise * noise);
            inverse_variance += 1.0 / (noise * noise);
            let release = event(
                Sampling::full(2).unwrap(),
                1.0 / f64::sqrt(inverse_variance),
                1,
            );
            if loss > Odometer::read(&[release], delta).unwrap().epsilon {
                passed += 1;
                break;
            }
        }
    }
    assert!(passed <= 280, "{passed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// For any requests, the filter admits at most its budget, and its ε is at least the ε of the
    /// Rényi accountant for the admitted events.
    #[test]
    fn a_filter_never_admits_more_than_its_budget(
        target in 0.5f64..10.0,
        rounds in proptest::collection::vec((1e-3f64..0.9, 0.5f64..20.0, 1u64..200), 1..20),
    ) {
        let target = Epsilon::new(target).unwrap();
        let typical = poisson(0.05, 1.0, 1);
        let mut filter = RenyiFilter::for_epsilon(target, delta(), &typical).unwrap();
        let stated = filter.epsilon();
        prop_assert!(stated <= target.get());
        let mut admitted = Vec::new();
        for (rate, z, count) in rounds {
            let round = poisson(rate, z, count);
            if filter.charge(&round).is_ok() {
                admitted.push(round);
            }
            prop_assert!(filter.spent() <= filter.budget());
        }
        let spent = composed_rdp(&exposures(&admitted), filter.order());
        prop_assert!(spent <= filter.budget() * (1.0 + 1e-9));
        let rdp = Accountant::Rdp.epsilon(&admitted, delta()).unwrap().epsilon;
        prop_assert!(rdp <= stated * (1.0 + 1e-9) + 1e-12, "{} {}", rdp, stated);
    }

    /// At the end of a fixed schedule filter and odometer cost at least the PLD bound, and the
    /// odometer never decreases.
    #[test]
    fn adaptive_figures_are_at_least_those_of_the_fixed_schedule(
        rate in 1e-3f64..0.5, z in 0.7f64..5.0, count in 2u64..500,
    ) {
        let plan = poisson(rate, z, count);
        let pld = Accountant::Pld.epsilon(&[plan], delta()).unwrap().epsilon;
        let filter = RenyiFilter::of_plan(&[plan], delta()).unwrap();
        prop_assert!(filter.admits(&plan).unwrap());
        prop_assert!(filter.epsilon() >= pld, "{} {}", filter.epsilon(), pld);
        let odometer = Odometer::read(&[plan], delta()).unwrap().epsilon;
        let earlier = Odometer::read(&[plan.with_count(count / 2)], delta()).unwrap().epsilon;
        prop_assert!(odometer >= filter.epsilon() && odometer >= earlier);
    }
}
