//! The sampler draws the law it promises: against exact probabilities, the reference and moments.

extern crate std;
use std::vec;
use std::vec::Vec;

use super::reference;
use super::statistics::{FAR, assert_frequency, assert_law, assert_same_law, stream};
use crate::noise::DiscreteGaussian;

/// Counts the draws of each integer in -reach..=reach. The two ends also count values beyond.
fn histogram(reach: i64, draws: u32, mut draw: impl FnMut() -> i64) -> Vec<u64> {
    let mut counts = vec![0; 2 * reach as usize + 1];
    for _ in 0..draws {
        counts[(draw().clamp(-reach, reach) + reach) as usize] += 1;
    }
    counts
}

/// exp(-x²/2σ²) / Σ exp(-y²/2σ²) for x in -reach..=reach.
fn probabilities(sigma: f64, reach: i64) -> Vec<f64> {
    let weight = |x: i64| (-0.5 * (x as f64 / sigma).powi(2)).exp();
    let total: f64 = (-40 * reach..=40 * reach).map(weight).sum();
    (-reach..=reach).map(|x| weight(x) / total).collect()
}

/// False alarm 3e-7: six chi-square tests.
#[test]
fn small_sigmas_have_the_exact_probabilities() {
    let cases = [
        (1, 2, 1),
        (1, 1, 2),
        (37, 10, 3),
        (8, 1, 4),
        (817, 100, 5),
        (40, 1, 6),
    ];
    for (numerator, denominator, test) in cases {
        let sigma = numerator as f64 / denominator as f64;
        let reach = (6.0 * sigma).ceil() as i64;
        let noise = DiscreteGaussian::new(numerator, denominator).unwrap();
        let mut rng = stream(test);
        let counts = histogram(reach, 400_000, || noise.sample(&mut rng));
        assert_law(&counts, &probabilities(sigma, reach));
    }
}

#[test]
fn a_thousandth_of_sigma_is_always_zero() {
    let noise = DiscreteGaussian::new(1, 1000).unwrap();
    let mut rng = stream(10);
    assert!((0..2_000).all(|_| noise.sample(&mut rng) == 0));
}

/// False alarm 2e-7: four chi-square tests.
#[test]
fn sampler_and_reference_draw_the_same_law() {
    let cases = [
        (3, 4, 1, 20),
        (5, 2, 1, 21),
        (100, 3, 1, 22),
        (1000, 1, 20, 23),
    ];
    for (numerator, denominator, bin, test) in cases {
        let reach = 5 * (numerator / denominator + 1) as i64 / bin;
        let noise = DiscreteGaussian::new(numerator, denominator).unwrap();
        let mut rng = stream(test);
        let ours = histogram(reach, 100_000, || noise.sample(&mut rng).div_euclid(bin));
        let theirs = histogram(reach, 100_000, || {
            reference::discrete_gaussian(numerator, denominator, &mut rng).div_euclid(bin)
        });
        assert_same_law(&ours, &theirs);
    }
}

/// The reference itself: false alarm 2e-7.
#[test]
fn reference_has_the_exact_probabilities() {
    let mut rng = stream(30);
    let counts = histogram(22, 100_000, || {
        reference::discrete_gaussian(37, 10, &mut rng)
    });
    assert_law(&counts, &probabilities(3.7, 22));
    let successes = (0..100_000)
        .filter(|_| reference::bernoulli_exp(7, 3, &mut rng))
        .count();
    assert_frequency(successes as u64, 100_000, (-7.0_f64 / 3.0).exp());
}

/// A wide sigma against the continuous law, from which it differs by less than 1e-12 here:
/// moments, tails and signs. False alarm 7e-7: nine comparisons.
#[test]
fn wide_sigma_has_the_moments_tails_and_signs_of_a_gaussian() {
    let draws = 2_000_000_u32;
    let noise = DiscreteGaussian::new(11 << 20, 10).unwrap();
    let sigma = 1.1 * f64::from(1 << 20);
    let mut rng = stream(40);
    let mut sums = [0.0; 4];
    let mut beyond = [0_u64; 4];
    let mut negative = 0;
    for _ in 0..draws {
        let value = noise.sample(&mut rng);
        let x = value as f64 / sigma;
        for (power, sum) in (1..).zip(&mut sums) {
            *sum += x.powi(power);
        }
        for (limit, count) in (1..).zip(&mut beyond) {
            *count += u64::from(x.abs() > f64::from(limit));
        }
        negative += u64::from(value < 0);
    }
    // Mean and standard deviation of x, x², x³ and x⁴ for a standard Gaussian x.
    let moments = [
        (0.0, 1.0),
        (1.0, 2.0_f64.sqrt()),
        (0.0, 15.0_f64.sqrt()),
        (3.0, 96.0_f64.sqrt()),
    ];
    for (sum, (mean, deviation)) in sums.iter().zip(moments) {
        let error = (sum / f64::from(draws) - mean) / (deviation / f64::from(draws).sqrt());
        assert!(
            error.abs() < FAR,
            "a moment near {mean} is {error} standard errors off"
        );
    }
    // erfc(i/√2).
    let tails = [
        0.317_310_507_863,
        0.045_500_263_896,
        0.002_699_796_063,
        0.000_063_342_484,
    ];
    for (count, tail) in beyond.iter().zip(tails) {
        assert_frequency(*count, u64::from(draws), tail);
    }
    assert_frequency(negative, u64::from(draws), 0.5);
}

/// Digits below sigma are uniform. A mismatch of strip and offset would show here. False alarm
/// 4e-8.
#[test]
fn low_digits_of_a_wide_sigma_are_uniform() {
    let noise = DiscreteGaussian::new(1_000_003, 1).unwrap();
    let mut rng = stream(41);
    let mut counts = [0; 1000];
    for _ in 0..1_000_000 {
        counts[noise.sample(&mut rng).rem_euclid(1000) as usize] += 1;
    }
    assert_law(&counts, &[0.001; 1000]);
}
