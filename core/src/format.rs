//! Number formats of integer arithmetic (integers times public powers of two): binary places and
//! limits of weights, scores, targets and features, and rounding.
//!
//! Conversions from and to `f32` work on bit patterns, so that a program without floating point can
//! read a model and settings in `f32`.

use crate::lanes::unroll;
use crate::params::ParamError;

/// A weight is an integer times 2⁻¹⁸.
pub const WEIGHT_FRACTION: u32 = 18;

/// Largest magnitude of a weight: 8 − 2⁻¹⁸. Eight products with `i8` features fit 32 bits.
pub const MAX_WEIGHT: i32 = (1 << 21) - 1;

/// A score is rounded to multiples of 2⁻¹⁶.
pub const SCORE_FRACTION: u32 = 16;

/// A value to predict is an integer times 2⁻¹², of magnitude at most 1,024.
pub const TARGET_FRACTION: u32 = 12;

const MAX_TARGET: i32 = (1 << 22) - 1;

/// Parts of the bit pattern of an `f32`.
const SIGN: u32 = 0x8000_0000;
const SIGNIFICAND: u32 = 0x007f_ffff;
const HIDDEN: u32 = 0x0080_0000;
/// Biased exponent of an integer significand: 127 + 23.
const INTEGER_EXPONENT: i32 = 150;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i8 {}
    impl Sealed for i16 {}
}

/// Type of stored features: `i8` or `i16`.
pub trait Feature: Copy + Default + sealed::Sealed + 'static {
    /// Binary logarithm of the largest magnitude.
    const BITS: u32;

    /// Returns the integer.
    fn get(self) -> i32;

    /// Converts an integer, saturated.
    fn saturated(value: i32) -> Self;

    /// Returns Σ WX of eight weights and features of this type, exact: |W| ≤ [`MAX_WEIGHT`].
    fn dot_of_block(weights: &[i32; 8], features: &[i32; 8]) -> i64;

    /// Like [`Self::dot_of_block`], from stored features.
    fn dot_of_stored(weights: &[i32; 8], features: &[Self; 8]) -> i64;
}

impl Feature for i8 {
    const BITS: u32 = 7;

    #[inline(always)]
    fn get(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn saturated(value: i32) -> Self {
        value.clamp(Self::MIN.into(), Self::MAX.into()) as Self
    }

    /// Uses 32 bits: 8 · (2²¹ − 1) · 2⁷ = 2³¹ − 2¹⁰.
    #[inline(always)]
    fn dot_of_block(weights: &[i32; 8], features: &[i32; 8]) -> i64 {
        let products = weights.iter().zip(features).map(|(w, x)| w * x);
        products.sum::<i32>().into()
    }

    #[inline(always)]
    fn dot_of_stored(weights: &[i32; 8], features: &[Self; 8]) -> i64 {
        // Unrolled, because a counter would take a third of the instructions on a Cortex-M0.
        let mut sum = 0;
        unroll!(i < 8, {
            sum += weights[i] * i32::from(features[i]);
        });
        sum.into()
    }
}

impl Feature for i16 {
    const BITS: u32 = 15;

    #[inline(always)]
    fn get(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn saturated(value: i32) -> Self {
        value.clamp(Self::MIN.into(), Self::MAX.into()) as Self
    }

    /// Uses two halves of 32 bits, W = 2¹⁰ H + L with 0 ≤ L < 2¹⁰ and |H| ≤ 2¹¹: the sums are at
    /// most 8 · 2¹¹ · 2¹⁵ = 2²⁹ and 8 · 2¹⁰ · 2¹⁵ = 2²⁸.
    #[inline(always)]
    fn dot_of_block(weights: &[i32; 8], features: &[i32; 8]) -> i64 {
        let (mut high, mut low) = (0, 0);
        for (w, x) in weights.iter().zip(features) {
            high += (w >> 10) * x;
            low += (w & 0x3ff) * x;
        }
        (i64::from(high) << 10) + i64::from(low)
    }

    #[inline(always)]
    fn dot_of_stored(weights: &[i32; 8], features: &[Self; 8]) -> i64 {
        Self::dot_of_block(weights, &features.map(i32::from))
    }
}

/// F: a feature is its integer times 2^−F. It is public and must not depend on private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FeatureScale(u8);

impl FeatureScale {
    /// Checks F, from 0 to 15, and at most 7 for `i8`: the bias needs a feature of value 1.
    ///
    /// # Errors
    /// [`ParamError::TooLarge`] for larger values.
    pub const fn new<X: Feature>(fraction: u8) -> Result<Self, ParamError> {
        if fraction as u32 > X::BITS {
            return Err(ParamError::TooLarge);
        }
        Ok(Self(fraction))
    }

    /// F.
    pub const fn fraction(self) -> u32 {
        self.0 as u32
    }

    /// Returns the number that a feature stands for, exactly.
    #[must_use]
    pub fn value(self, feature: i32) -> f32 {
        value(feature.unsigned_abs().into(), self.fraction(), feature < 0)
    }
}

/// Format of a device's features: type and scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "crate::serial::RawFormat",
        into = "crate::serial::RawFormat"
    )
)]
pub struct FeatureFormat {
    is_wide: bool,
    scale: FeatureScale,
}

impl FeatureFormat {
    /// Creates the format of `i16` features if `is_wide`, else `i8`, with F binary places.
    ///
    /// # Errors
    /// As [`FeatureScale::new`].
    pub const fn new(is_wide: bool, fraction: u8) -> Result<Self, ParamError> {
        let scale = if is_wide {
            FeatureScale::new::<i16>(fraction)
        } else {
            FeatureScale::new::<i8>(fraction)
        };
        match scale {
            Ok(scale) => Ok(Self { is_wide, scale }),
            Err(error) => Err(error),
        }
    }

    /// Returns the format of features of this type.
    pub const fn of<X: Feature>(scale: FeatureScale) -> Self {
        let is_wide = X::BITS > <i8 as Feature>::BITS;
        Self { is_wide, scale }
    }

    /// Returns whether features are `i16`.
    pub const fn is_wide(self) -> bool {
        self.is_wide
    }

    /// Returns the scale.
    pub const fn scale(self) -> FeatureScale {
        self.scale
    }

    /// Returns the lowest and the highest feature, exactly. All features beyond saturate to them.
    #[must_use]
    pub fn range(self) -> (f32, f32) {
        let (lowest, highest): (i32, i32) = if self.is_wide {
            (i16::MIN.into(), i16::MAX.into())
        } else {
            (i8::MIN.into(), i8::MAX.into())
        };
        (self.scale.value(lowest), self.scale.value(highest))
    }
}

/// Rounds `x` to the nearest multiple of 2^−fraction, half away from zero. Returns its integer, of
/// magnitude at most `max`, and whether it saturated. NaN also saturates.
///
/// There are no branches, so that it vectorises. `max` must be below 2²²: a significand shifted by
/// at most one place exceeds that.
#[inline(always)]
fn round(x: f32, fraction: u32, max: i32) -> (i32, bool) {
    const { assert!(HIDDEN >> 1 == 1 << 22) };
    let pattern = x.to_bits();
    let significand = (pattern & SIGNIFICAND) | HIDDEN;
    let exponent = ((pattern & !SIGN) >> 23) as i32;
    // x = significand · 2^(exponent − 150). With more than 31 places everything is rounded to 0, as
    // are subnormal numbers.
    let places = (INTEGER_EXPONENT - fraction as i32 - exponent).clamp(1, 31);
    // Below 2²⁴ + 2³⁰.
    let magnitude = ((significand + (1 << (places - 1))) >> places) as i32;
    let kept = magnitude.min(max);
    let sign = pattern.cast_signed() >> 31;
    ((kept ^ sign) - sign, magnitude > max)
}

/// Returns the feature nearest to `x`, and whether it saturated.
#[inline(always)]
pub fn round_feature<X: Feature>(x: f32, scale: FeatureScale) -> (X, bool) {
    let (integer, is_beyond) = round(x, scale.fraction(), 1 << X::BITS);
    let feature = X::saturated(integer);
    (feature, is_beyond || feature.get() != integer)
}

/// Returns the weight nearest to `x`, and whether it saturated.
#[inline(always)]
pub fn round_weight(x: f32) -> (i32, bool) {
    round(x, WEIGHT_FRACTION, MAX_WEIGHT)
}

/// Returns the target value nearest to `x`, and whether it saturated.
#[inline(always)]
pub fn round_target(x: f32) -> (i32, bool) {
    round(x, TARGET_FRACTION, MAX_TARGET)
}

/// Converts a weight, or a difference of two, to `f32`, exactly for magnitudes below 2²⁴.
#[inline(always)]
pub fn value_of_weight(weight: i32) -> f32 {
    value(weight.unsigned_abs().into(), WEIGHT_FRACTION, weight < 0)
}

/// Returns whether an integer is a valid weight.
#[inline(always)]
pub(crate) const fn is_weight(integer: i32) -> bool {
    integer.unsigned_abs() <= MAX_WEIGHT.unsigned_abs()
}

/// Applies [`value_of_weight`] to an integer stored in the bits of an `f32`.
#[inline(always)]
pub(crate) fn value_in_place(place: &mut f32) {
    *place = value_of_weight(place.to_bits().cast_signed());
}

/// Returns an integer times 2^−fraction, rounded towards zero to `f32`.
#[inline(always)]
pub(super) fn value(magnitude: u64, fraction: u32, is_negative: bool) -> f32 {
    if magnitude == 0 {
        return 0.0;
    }
    let zeros = magnitude.leading_zeros();
    // The highest digit is at 63 − zeros. It becomes the hidden bit, at 23, and is dropped.
    let digits = ((magnitude << zeros) >> 40) as u32 & SIGNIFICAND;
    let exponent = 127 + 63 - zeros - fraction;
    let sign = if is_negative { SIGN } else { 0 };
    f32::from_bits(sign | exponent << 23 | digits)
}

/// Splits a positive `f32` into significand and exponent, significand · 2^exponent. 0 · 1 for zero.
#[inline(always)]
pub(super) const fn parts(x: f32) -> (u32, i32) {
    let pattern = x.to_bits() & !SIGN;
    match pattern >> 23 {
        0 => (pattern, 1 - INTEGER_EXPONENT),
        exponent => (
            pattern & SIGNIFICAND | HIDDEN,
            exponent as i32 - INTEGER_EXPONENT,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The features nearest to very large numbers.
    #[test]
    fn the_range_of_a_format_ends_where_features_saturate() {
        fn ends<X: Feature>(scale: FeatureScale) -> (f32, f32) {
            let of = |x: f32| scale.value(round_feature::<X>(x, scale).0.get());
            (of(-1e9), of(1e9))
        }
        for fraction in 0..=15 {
            let wide = FeatureFormat::new(true, fraction).unwrap();
            assert_eq!(wide.range(), ends::<i16>(wide.scale()));
            if let Ok(narrow) = FeatureFormat::new(false, fraction) {
                assert_eq!(narrow.range(), ends::<i8>(narrow.scale()));
            }
        }
        let default = FeatureFormat::new(false, 6).unwrap();
        assert_eq!(default.range(), (-2.0, 127.0 / 64.0));
    }

    proptest! {
        #[test]
        fn rounding_is_to_the_nearest_integer(bits in any::<u32>(), fraction in 0_u32..=18) {
            let x = f32::from_bits(bits);
            let exact = (f64::from(x) * f64::from(1_u32 << fraction)).round();
            let (found, is_saturated) = round(x, fraction, MAX_WEIGHT);
            if x.is_nan() {
                prop_assert!(is_saturated);
            } else {
                let max = f64::from(MAX_WEIGHT);
                prop_assert_eq!(f64::from(found), exact.clamp(-max, max), "{}", x);
                prop_assert_eq!(is_saturated, exact.abs() > max);
            }
        }

        #[test]
        fn near_numbers_are_rounded_as_f64_rounds(x in -300.0_f32..300.0, fraction in 0_u8..=7) {
            let scale = FeatureScale::new::<i8>(fraction).unwrap();
            let exact = (f64::from(x) * f64::from(1_u32 << fraction)).round();
            let (found, is_saturated) = round_feature::<i8>(x, scale);
            prop_assert_eq!(f64::from(found), exact.clamp(-128.0, 127.0));
            prop_assert_eq!(is_saturated, !(-128.0..=127.0).contains(&exact));
        }

        /// Weights and differences of weights survive the conversion.
        #[test]
        fn weights_are_exact_in_f32(weight in -(1_i32 << 24)..1 << 24) {
            let x = value_of_weight(weight);
            prop_assert_eq!(f64::from(x), f64::from(weight) / f64::from(1 << WEIGHT_FRACTION));
            let (back, is_saturated) = round_weight(x);
            prop_assert_eq!(back, weight.clamp(-MAX_WEIGHT, MAX_WEIGHT));
            prop_assert_eq!(is_saturated, weight.abs() > MAX_WEIGHT);
        }

        #[test]
        fn parts_are_those_of_the_number(x in prop_oneof![0.0_f32..1e-38, 1e-3_f32..1e9]) {
            let (significand, exponent) = parts(x);
            prop_assert_eq!(f64::from(significand) * 2f64.powi(exponent), f64::from(x));
        }

        #[test]
        fn blocks_are_exact(
            weights in proptest::array::uniform8(-MAX_WEIGHT..=MAX_WEIGHT),
            narrow in proptest::array::uniform8(any::<i8>()),
            wide in proptest::array::uniform8(any::<i16>()),
        ) {
            let exact = |x: &[i32; 8]| -> i64 {
                let pairs = weights.iter().zip(x);
                pairs.map(|(w, x)| i64::from(*w) * i64::from(*x)).sum()
            };
            let (narrow, wide) = (narrow.map(i32::from), wide.map(i32::from));
            prop_assert_eq!(i8::dot_of_block(&weights, &narrow), exact(&narrow));
            prop_assert_eq!(i16::dot_of_block(&weights, &wide), exact(&wide));
        }
    }

    /// Debug builds would panic on an overflow.
    #[test]
    fn the_largest_blocks_fit() {
        for weight in [MAX_WEIGHT, -MAX_WEIGHT] {
            let narrow = i8::dot_of_block(&[weight; 8], &[i8::MIN.into(); 8]);
            assert_eq!(narrow, -i64::from(weight) * 1_024);
            let wide = i16::dot_of_block(&[weight; 8], &[i16::MIN.into(); 8]);
            assert_eq!(wide, -i64::from(weight) * (8 << 15));
        }
    }

    #[test]
    fn the_bias_has_a_feature_of_one() {
        assert!(FeatureScale::new::<i8>(7).is_ok() && FeatureScale::new::<i16>(15).is_ok());
        assert_eq!(FeatureScale::new::<i8>(8), Err(ParamError::TooLarge));
        assert_eq!(FeatureScale::new::<i16>(16), Err(ParamError::TooLarge));
    }

    #[test]
    fn norms_are_rounded_towards_zero() {
        assert_eq!(value(0, 18, false), 0.0);
        assert_eq!(value(1 << 40, 18, false), (1_u32 << 22) as f32);
        let x = value((1 << 24) + 1, 0, true);
        assert_eq!(x.to_bits(), (-16_777_216.0_f32).to_bits());
    }
}
