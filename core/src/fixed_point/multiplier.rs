//! Products of integers with a step size: 16 significant bits times a power of two, rounded once.

use crate::format::parts;
use crate::integer::divide;

/// A factor below 1/4: `mantissa · 2^−(16 + places)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Multiplier {
    /// 0, or 2¹⁴ to 2¹⁵.
    mantissa: i32,
    /// 1 to 31.
    places: u32,
}

impl Multiplier {
    /// Returns `a · b · 2^exponent / divisor`, rounded to 15 bits, with a relative error of at most
    /// 2⁻¹⁵. 0 below 2⁻³², and `None` from 1/4 on.
    ///
    /// `a` and `b` are finite and not negative, and the divisor from 1 to 2³².
    pub(super) fn new(a: f32, b: f32, exponent: i32, divisor: u32) -> Option<Self> {
        let ((a, a_exponent), (b, b_exponent)) = (parts(a), parts(b));
        let product = u64::from(a) * u64::from(b);
        if product == 0 {
            return Some(Self::ZERO);
        }
        // Uses 63 bits, so that the quotient has at least 31.
        let spare = product.leading_zeros() - 1;
        let quotient = divide(product << spare, 0, divisor.max(1).into()).0;
        let exponent = a_exponent + b_exponent + exponent - spare as i32;
        // Rounds to 15 bits by the sixteenth bit.
        let length = u64::BITS - quotient.leading_zeros();
        let mantissa = ((quotient >> (length - 16)) as i32 + 1) >> 1;
        // factor = mantissa · 2^(exponent + length − 15)
        match -(exponent + length as i32 - 15) - 16 {
            ..=0 => None,
            places @ 1..=31 => Some(Self {
                mantissa,
                places: places as u32,
            }),
            _ => Some(Self::ZERO),
        }
    }

    const ZERO: Self = Self {
        mantissa: 0,
        places: 1,
    };

    /// Returns whether every product is 0.
    pub(super) const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Returns the product, rounded to the nearest integer, halves up.
    ///
    /// Uses 32 bits. With value = 2¹⁶ H + L, 0 ≤ L < 2¹⁶, `H m + ⌊L m / 2¹⁶⌋` is ⌊value · m / 2¹⁶⌋,
    /// of magnitude at most 2³⁰, and with half a unit below 2³¹. Nested floors are one floor, so
    /// the result is the same as for the whole product.
    #[inline(always)]
    pub(super) fn apply(self, value: i32) -> i32 {
        let low = ((value as u32 & 0xffff) * self.mantissa as u32) >> 16;
        let product = (value >> 16) * self.mantissa + low as i32;
        (product + (1 << (self.places - 1))) >> self.places
    }
}

impl Multiplier {
    /// Applies [`Self::apply`] to each integer.
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(always))]
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        inline(never)
    )]
    pub(super) fn apply_to_each(self, values: &mut [i32]) {
        for value in values {
            *value = self.apply(*value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The value of the multiplier, and products with it.
        #[test]
        fn products_are_rounded_once(
            a in 1e-6_f32..1e3, b in 1e-3_f32..10.0, exponent in -40_i32..10,
            divisor in 1_u32..5_000, value in any::<i32>(),
        ) {
            let factor = f64::from(a) * f64::from(b) * 2f64.powi(exponent) / f64::from(divisor);
            let Some(multiplier) = Multiplier::new(a, b, exponent, divisor) else {
                prop_assert!(factor > 0.25 * (1.0 - 2f64.powi(-15)));
                return Ok(());
            };
            prop_assert!(factor < 0.25);
            let scale = 2f64.powi(-(16 + multiplier.places as i32));
            let kept = f64::from(multiplier.mantissa) * scale;
            if multiplier.is_zero() {
                prop_assert!(factor < 2f64.powi(-31));
            } else {
                prop_assert!((kept - factor).abs() <= factor * 2f64.powi(-15));
            }
            let wide = i64::from(value) * i64::from(multiplier.mantissa);
            let places = 16 + multiplier.places;
            let nearest = (wide + (1 << (places - 1))) >> places;
            prop_assert_eq!(i64::from(multiplier.apply(value)), nearest);
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(Multiplier::new(1.0, 0.0, 9, 1), Some(Multiplier::ZERO));
        assert_eq!(Multiplier::new(0.5, 0.5, 0, 1), None);
        assert_eq!(Multiplier::new(f32::MAX, f32::MAX, 0, 1), None);
        let tiny = f32::from_bits(1);
        assert_eq!(Multiplier::new(tiny, tiny, 0, 1), Some(Multiplier::ZERO));
        let eighth = Multiplier::new(1.0, 1.0, -3, 1).unwrap();
        let ends = (eighth.apply(i32::MAX), eighth.apply(i32::MIN));
        assert_eq!(ends, (1 << 28, -(1 << 28)));
        assert_eq!(eighth.apply(-4), 0, "a half is rounded up");
        assert_eq!(Multiplier::ZERO.apply(i32::MIN), 0);
    }
}
