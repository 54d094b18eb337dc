//! Normalisation of the sums of an image's cells: each feature is the scaled root of the share of
//! its sum, in `f32` or in integers.

use crate::format::{Feature, FeatureScale};
use crate::integer::{divide, short_square_root};

/// Adds to a sum stored in the bits of an `f32`. Sums are below 2³⁰, where no bit pattern is NaN.
#[inline(always)]
pub(super) const fn add_in_place(sum: &mut f32, number: u32) {
    *sum = f32::from_bits(sum.to_bits() + number);
}

/// Replaces each sum c by √(c / S) · √n / 2. Quotient, root and product are each rounded once.
pub(super) fn roots_in_place(features: &mut [f32]) {
    let total: u32 = features.iter().map(|x| x.to_bits()).sum();
    if total == 0 {
        return;
    }
    // Sums beyond 2²⁴ are rounded first.
    let (total, count) = (total as f32, features.len() as f32);
    let half_root = libm::sqrtf(count) / 2.0;
    for x in features {
        *x = libm::sqrtf(x.to_bits() as f32 / total) * half_root;
    }
}

/// Writes the features times 2^F, rounded half away from zero and saturated, and returns the number
/// of saturated ones.
///
/// Twice a feature is the root of c · q with q = n · 4^F / S, which one division gives. The number
/// of binary places of q gives the product up to 63 bits. q is rounded up, so that halves stay
/// halves. The result is the nearest integer as long as c · S is below 2 to the number of places:
/// 30 for `i16` with F = 12, and 42 for `i8` with F = 6, for 392 features. Beyond, a number below a
/// half by less than a share of 2⁻³¹ may be rounded up.
pub(super) fn quantise<X: Feature>(sums: &[u32], scale: FeatureScale, features: &mut [X]) -> usize {
    // Below 2²³ features, and F is at most 15: 53 bits.
    let numerator = (features.len() as u64) << (2 * scale.fraction());
    let places = numerator.leading_zeros().saturating_sub(1);
    let total: u32 = sums.iter().sum();
    let (factor, rest) = match total {
        0 => (0, 0),
        _ => divide(numerator, places, total.into()),
    };
    let factor = factor + u64::from(rest > 0);
    let max = X::saturated(i32::MAX).get().unsigned_abs();
    let mut saturated = 0;
    for (feature, sum) in features.iter_mut().zip(sums) {
        if *sum == 0 {
            *feature = X::default();
            continue;
        }
        let square = (u64::from(*sum) * factor) >> places;
        let root = match u32::try_from(square) {
            // One root for each feature.
            Ok(square) => short_square_root(square).div_ceil(2),
            Err(_) => u32::MAX,
        };
        saturated += usize::from(root > max);
        *feature = X::saturated(root.min(max).cast_signed());
    }
    saturated
}
