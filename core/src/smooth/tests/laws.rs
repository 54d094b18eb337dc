//! The mathematics of smoothing, as properties of vectors on every path.

use std::vec;
use std::vec::Vec;

use proptest::{collection, prelude::*};

use super::*;

/// Short, segmented in one block, segmented in several blocks.
fn vectors() -> impl Strategy<Value = Vec<f32>> {
    let length = prop_oneof![4 => 0_usize..80, 1 => 1_000_usize..1_200, 1 => 16_300_usize..16_500];
    length.prop_flat_map(|d| collection::vec(-1e3_f32..1e3, d))
}

fn sigmas() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-6.0_f64..3.0).prop_map(|exponent| 10_f64.powf(exponent)),
        Just(1.0),
        Just(1e12)
    ]
}

fn sum(v: &[f32]) -> f64 {
    v.iter().map(|x| f64::from(*x)).sum()
}

fn norm(v: &[f32]) -> f64 {
    v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
}

fn max(v: &[f32]) -> f64 {
    v.iter().fold(0.0, |max, x| f64::from(x.abs()).max(max))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_sum_is_kept(v in vectors(), sigma in sigmas()) {
        let moved = sum(&smoothed(sigma, &v)) - sum(&v);
        prop_assert!(moved.abs() <= TOLERANCE * max(&v) * v.len() as f64, "{moved}");
    }

    #[test]
    fn the_norm_never_rises(v in vectors(), sigma in sigmas()) {
        let u = smoothed(sigma, &v);
        prop_assert!(norm(&u) <= norm(&v) * (1.0 + TOLERANCE));
        prop_assert!(max(&u) <= max(&v) * (1.0 + TOLERANCE));
    }

    #[test]
    fn without_sigma_every_bit_stays(v in vectors()) {
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&smoothed(0.0, &v)), bits(&v));
        prop_assert_eq!(bits(&smoothed(-0.0, &v)), bits(&v));
    }

    #[test]
    fn smoothing_is_linear(v in vectors(), sigma in sigmas(), factor in -4.0_f32..4.0) {
        let w: Vec<f32> = v.iter().rev().copied().collect();
        let mixed: Vec<f32> = v.iter().zip(&w).map(|(v, w)| v + factor * w).collect();
        let expected: Vec<f64> = smoothed(sigma, &v)
            .iter()
            .zip(smoothed(sigma, &w))
            .map(|(v, w)| f64::from(*v) + f64::from(factor) * f64::from(w))
            .collect();
        // Three results carry the tolerance, of sizes 1, |factor| and their sum.
        let scale = 2.0 * (1.0 + f64::from(factor.abs())) * max(&v).max(1e-30);
        for (u, e) in smoothed(sigma, &mixed).iter().zip(expected) {
            prop_assert!((f64::from(*u) - e).abs() <= TOLERANCE * scale);
        }
    }

    /// A cycle has no first element, but the paths do, which must not affect the result.
    #[test]
    fn a_turned_cycle_gives_the_turned_result(
        v in vectors(),
        sigma in sigmas(),
        turn in 0_usize..17_000,
    ) {
        let turn = turn % v.len().max(1);
        let mut turned = v.clone();
        turned.rotate_left(turn);
        let mut expected = smoothed(sigma, &v);
        expected.rotate_left(turn);
        let bound = TOLERANCE * max(&v);
        for (u, e) in smoothed(sigma, &turned).iter().zip(expected) {
            prop_assert!((f64::from(*u) - f64::from(e)).abs() <= bound);
        }
    }

    #[test]
    fn constants_stay_and_alternation_fades(
        half in 1_usize..2_500,
        x in -1e3_f32..1e3,
        sigma in sigmas(),
    ) {
        for u in smoothed(sigma, &vec![x; 2 * half]) {
            prop_assert!((u - x).abs() <= TOLERANCE as f32 * x.abs());
        }
        let faded = f64::from(x) / (1.0 + 4.0 * sigma);
        for pair in smoothed(sigma, &[x, -x].repeat(half)).chunks(2) {
            prop_assert!((f64::from(pair[0]) - faded).abs() <= TOLERANCE * f64::from(x.abs()));
            prop_assert!((f64::from(pair[1]) + faded).abs() <= TOLERANCE * f64::from(x.abs()));
        }
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    for sigma in [1e-6, 1.0, 256.0, 1e6, f64::from(f32::MAX)] {
        for d in [2, 100, 5_000] {
            for u in smoothed(sigma, &vec![f32::MAX * 0.9; d]) {
                assert!((u / f32::MAX - 0.9).abs() < 1e-5);
            }
        }
    }
}
