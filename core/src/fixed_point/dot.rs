//! Scores of a sample in integers, without overflow: `s = Wx + b`, rounded and saturated.
//!
//! Integer sums without overflow do not depend on the order, so vectors of any width give the same
//! bits.

use crate::format::{Feature, FeatureScale, SCORE_FRACTION, WEIGHT_FRACTION};

/// Returns Σ WX, exact: |W| ≤ [`MAX_WEIGHT`](super::MAX_WEIGHT) and |X| ≤ 2^BITS, so below 2⁵² for
/// 2¹⁶ features. Uses blocks of eight products, whose sums fit 32 bits.
///
/// A separate function on boards, so that the compiler does not unroll a row of known length into
/// code that spills registers.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
fn dot<X: Feature>(weights: &[i32], features: &[i32]) -> i64 {
    let (weights, last_weights) = of_any_length(weights).as_chunks::<8>();
    let (features, last_features) = features.as_chunks::<8>();
    let mut sum = 0;
    for (weights, features) in weights.iter().zip(features) {
        sum += X::dot_of_block(weights, features);
    }
    sum + one_by_one(last_weights, last_features)
}

/// Returns the same slice, and hides its length from the compiler on RISC-V, which would unroll the
/// whole row, load it at once, and spill registers.
#[inline(always)]
pub(super) fn of_any_length(slice: &[i32]) -> &[i32] {
    if cfg!(target_arch = "riscv32") {
        core::hint::black_box(slice)
    } else {
        slice
    }
}

/// Returns the sum of products in 64 bits.
#[inline(always)]
fn one_by_one(weights: &[i32], features: &[i32]) -> i64 {
    let products = weights.iter().zip(features);
    products.fold(0, |sum, (w, x)| sum + i64::from(*w) * i64::from(*x))
}

/// Computes the scores of a sample, rounded to 2^−[`SCORE_FRACTION`], and returns the number of
/// saturated ones.
#[inline(always)]
pub(super) fn scores<X: Feature>(
    weights: &[i32],
    biases: &[i32],
    features: &[i32],
    scale: FeatureScale,
    scores: &mut [i32],
) -> u32 {
    let places = WEIGHT_FRACTION + scale.fraction() - SCORE_FRACTION;
    let rows = weights.chunks_exact(features.len().max(1));
    let mut saturated = 0;
    for ((score, row), bias) in scores.iter_mut().zip(rows).zip(biases) {
        let exact = dot::<X>(row, features) + of_bias::<X>(*bias, scale, 1 << (places - 1));
        let is_saturated;
        (*score, is_saturated) = shift(exact, places);
        saturated += u32::from(is_saturated);
    }
    saturated
}

/// Like [`scores`], from stored features, with the same bits. Widens features on reading, so it
/// needs no row of integers.
///
/// A separate function on boards, for the same reason as [`dot`].
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
pub(super) fn scores_of_features<X: Feature>(
    weights: &[i32],
    biases: &[i32],
    features: &[X],
    scale: FeatureScale,
    scores: &mut [i32],
) {
    let places = WEIGHT_FRACTION + scale.fraction() - SCORE_FRACTION;
    let rows = weights.chunks_exact(features.len().max(1));
    for ((score, row), bias) in scores.iter_mut().zip(rows).zip(biases) {
        let (weights, last_weights) = row.as_chunks::<8>();
        let (blocks, last) = features.as_chunks::<8>();
        let mut sum = of_bias::<X>(*bias, scale, 1 << (places - 1));
        for (weights, block) in weights.iter().zip(blocks) {
            sum += X::dot_of_stored(weights, block);
        }
        for (w, x) in last_weights.iter().zip(last) {
            sum += i64::from(*w) * i64::from(x.get());
        }
        *score = shift(sum, places).0;
    }
}

/// Returns the bias times its feature, 1, plus half a unit of the score: at most 2²¹ · 2⁷ + 2⁸ for
/// `i8`.
#[inline(always)]
fn of_bias<X: Feature>(bias: i32, scale: FeatureScale, half: i32) -> i64 {
    if X::BITS <= <i8 as Feature>::BITS {
        ((bias << scale.fraction()) + half).into()
    } else {
        (i64::from(bias) << scale.fraction()) + i64::from(half)
    }
}

/// Returns ⌊sum / 2^places⌋ for 1 to 31 places, saturated, and whether it saturated. Avoids a shift
/// of 64 bits, which is a function call on the smallest processors.
#[inline(always)]
const fn shift(sum: i64, places: u32) -> (i32, bool) {
    let (high, low) = ((sum >> 32) as i32, sum as u32);
    // All dropped digits equal the sign.
    if high >> (places - 1) == high >> 31 {
        (high << (32 - places) | (low >> places) as i32, false)
    } else {
        (i32::MAX ^ (high >> 31), true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_WEIGHT;
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::vec::Vec;

    proptest! {
        /// Any number of features.
        #[test]
        fn sums_are_exact(pairs in vec((-MAX_WEIGHT..=MAX_WEIGHT, any::<i16>()), 0..300)) {
            let (weights, wide): (Vec<i32>, Vec<i16>) = pairs.into_iter().unzip();
            let narrow: Vec<i32> = wide.iter().map(|x| i32::from(x >> 8)).collect();
            let wide: Vec<i32> = wide.into_iter().map(i32::from).collect();
            prop_assert_eq!(dot::<i16>(&weights, &wide), one_by_one(&weights, &wide));
            prop_assert_eq!(dot::<i8>(&weights, &narrow), one_by_one(&weights, &narrow));
        }
    }

    proptest! {
        #[test]
        fn shifts_saturate(sum in any::<i64>(), spare in 0_u32..64, places in 1_u32..32) {
            let sum = sum >> spare;
            let exact = sum >> places;
            let kept = exact.clamp(i32::MIN.into(), i32::MAX.into());
            let (found, is_saturated) = shift(sum, places);
            prop_assert_eq!((i64::from(found), is_saturated), (kept, kept != exact));
        }
    }

    /// Debug builds would panic on an overflow.
    #[test]
    fn the_largest_sums_fit() {
        let weights = [-MAX_WEIGHT; 70_000];
        let expected = (i64::from(MAX_WEIGHT) * 70_000) << 7;
        assert_eq!(dot::<i8>(&weights, &[-128; 70_000]), expected);
        assert_eq!(dot::<i16>(&weights, &[-32_768; 70_000]), expected << 8);
    }

    /// Eight times 127 times 4,096 features is beyond the largest score, 2¹⁵.
    #[test]
    fn a_score_saturates_and_does_not_wrap() {
        let scale = FeatureScale::new::<i8>(0).unwrap();
        for (weight, expected) in [(MAX_WEIGHT, i32::MAX), (-MAX_WEIGHT, i32::MIN)] {
            let weights = [weight; 4_096];
            let mut found = [0; 1];
            let saturated = scores::<i8>(&weights, &[0], &[127; 4_096], scale, &mut found);
            assert_eq!((found[0], saturated), (expected, 1));
        }
    }

    #[test]
    fn scores_are_rounded_and_have_their_bias() {
        let scale = FeatureScale::new::<i8>(1).unwrap();
        // (3 · 1/2 − 1 · 3/2 + 2) · 2⁻¹⁸: half a unit of 2⁻¹⁶ is rounded up.
        let mut found = [0; 2];
        let weights = ([3, -1, 2 << 18, 0], [2, 0]);
        scores::<i8>(&weights.0, &weights.1, &[1, 3], scale, &mut found);
        assert_eq!(found, [1, 1 << 16]);
    }
}
