use super::*;
use crate::accountant::Accountant;
use crate::event::{Mechanism, Sampling};
use crate::params::NoiseMultiplier;

fn selection(trials: Trials, z: f64) -> Selection {
    let noise_multiplier = NoiseMultiplier::new(z).unwrap();
    let mechanism = Mechanism::Gaussian { noise_multiplier };
    let trial = PrivacyEvent::new(mechanism, Sampling::full(10).unwrap(), 1);
    Selection {
        trials,
        trial: vec![trial],
    }
}

fn distributions() -> Vec<Trials> {
    let some = [
        (1.0, 0.1),
        (0.0, 0.05),
        (-0.5, 0.01),
        (2.0, 0.3),
        (1.0, 1e-3),
    ];
    let some = some.map(|(shape, rate)| Trials::negative_binomial(shape, rate).unwrap());
    let poisson = [1.0, 10.0, 100.0].map(|mean| Trials::poisson(mean).unwrap());
    some.into_iter().chain(poisson).collect()
}

/// Returns E[x^K], which determines the distribution of the best trial.
fn generating(trials: &Trials, x: f64) -> f64 {
    match *trials {
        Trials::Poisson { mean } => (mean * (x - 1.0)).exp(),
        Trials::NegativeBinomial { shape, rate } => {
            let ln = (-(1.0 - rate) * x).ln_1p();
            if shape.abs() < 1e-12 {
                ln / rate.ln()
            } else {
                (-shape * ln).exp_m1() / (-shape * rate.ln()).exp_m1()
            }
        }
    }
}

/// The mean is the slope of the generating function at 1.
#[test]
fn means_agree_with_the_generating_functions() {
    for trials in distributions() {
        let step = 1e-7;
        let slope = (generating(&trials, 1.0) - generating(&trials, 1.0 - step)) / step;
        assert!(
            (slope / trials.mean() - 1.0).abs() < 1e-3,
            "{trials:?} {slope}"
        );
        assert!((generating(&trials, 1.0) - 1.0).abs() < 1e-12);
    }
    let geometric = Trials::negative_binomial(1.0, 0.1).unwrap();
    assert!((geometric.mean() - 10.0).abs() < 1e-12);
}

/// The exact Rényi divergence of the selected output, with trials N(0, z²) or N(1, z²) and the
/// largest (or the smallest) output as the best: never above the bound, in either direction.
#[test]
fn the_exact_divergence_of_a_selection_is_below_the_bound() {
    for trials in distributions() {
        for z in [1.0, 4.0, 20.0] {
            let bound = selection(trials, z);
            for order in [1.5, 2.0, 5.0, 16.0] {
                for sign in [1.0, -1.0] {
                    let found = exact(&trials, z, order, sign);
                    assert!(
                        found <= bound.rdp(order),
                        "{trials:?} {z} {order} {sign} {found}"
                    );
                }
            }
        }
    }
}

fn exact(trials: &Trials, z: f64, order: f64, sign: f64) -> f64 {
    let cells = 4_000;
    let edge = |index: i32| -12.0 * z + 24.0 * z * f64::from(index) / f64::from(cells);
    // Masses of the best output, by cells: its distribution function at each edge is E[F^K].
    let masses = |mean: f64| -> Vec<f64> {
        let best = |index| generating(trials, crate::normal::cdf((edge(index) - mean) / z));
        (0..cells)
            .map(|index| best(index + 1) - best(index))
            .collect()
    };
    let sum: f64 = masses(sign)
        .iter()
        .zip(masses(0.0))
        .filter(|(p, q)| **p > 1e-14 && *q > 1e-14)
        .map(|(p, q)| q * (p / q).powf(order))
        .sum();
    sum.ln() / (order - 1.0)
}

/// Without a second order's slack (b → ∞), trials of pure ε-DP cost (2 + η) ε: the 3 ε of Liu and
/// Talwar 2019 for the geometric distribution. Here ρ(b) = b/(2z²) is not bounded, so the optimum
/// is inside: `ρ'(α) ≥ ρ(α) + (1 + η)(√(2 ln(1/γ))/z - 1/(2z²)) + ln E[K]/(α-1)`, where b is real.
#[test]
fn the_bound_is_that_of_the_theorem() {
    let (shape, rate, z) = (1.0, 0.01, 10.0);
    let found = selection(Trials::negative_binomial(shape, rate).unwrap(), z);
    for order in [2.0, 8.0, 32.0] {
        let own = order / (2.0 * z * z);
        let second = (2.0 * -f64::ln(rate)).sqrt() / z - 0.5 / (z * z);
        let least = own + (1.0 + shape) * second + -f64::ln(rate) / (order - 1.0);
        let rdp = found.rdp(order);
        assert!(rdp >= least && rdp <= 1.02 * least, "{order} {rdp} {least}");
    }
    // More trials cost more, and more than one.
    let delta = Delta::new(1e-6).unwrap();
    let of = |mean| selection(Trials::poisson(mean).unwrap(), 10.0);
    let one = Accountant::Rdp.epsilon(&of(1.0).trial, delta).unwrap();
    let [ten, hundred] = [10.0, 100.0].map(|mean| of(mean).epsilon(delta).unwrap());
    assert!(
        one.epsilon < ten && ten < hundred,
        "{one:?} {ten} {hundred}"
    );
}

#[test]
fn numbers_of_trials_that_cannot_be_are_refused() {
    for (shape, rate) in [
        (-1.0, 0.5),
        (f64::NAN, 0.5),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, f64::NAN),
    ] {
        assert!(Trials::negative_binomial(shape, rate).is_err());
    }
    assert!(Trials::poisson(0.5).is_err() && Trials::poisson(f64::INFINITY).is_err());
}

#[test]
fn nothing_is_claimed_where_numbers_that_are_never_drawn_count() {
    let of = |z: f64, delta: f64| {
        let selection = selection(Trials::poisson(10.0).unwrap(), z);
        let estimate = selection.estimate(Delta::new(delta).unwrap());
        estimate.unwrap().epsilon
    };
    assert!(of(10.0, 1e-99).is_finite());
    assert!(of(10.0, 1e-101).is_infinite());
    assert!(of(0.01, 1e-6).is_infinite());
}
