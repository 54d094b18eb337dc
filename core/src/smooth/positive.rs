//! Positive numbers in `f64` arithmetic, implemented with integers.
//!
//! The constants of a recursion are computed in `f64`, which most microcontrollers only have in the
//! compiler's library: four kilobytes, because each operation is optimised for speed and covers
//! every case. Here they are needed a few times a round, and zero, infinity, NaN and numbers at the
//! ends of the range do not occur. Rounding is as in IEEE 754, to nearest with ties to even, so the
//! results equal `f64` to the last bit.

use crate::integer::{divide, product};

/// Stored bits of the significand.
const WRITTEN: u32 = f64::MANTISSA_DIGITS - 1;

/// Bits below the significand if its first bit is the 64th.
const SPARE: u32 = u64::BITS - f64::MANTISSA_DIGITS;

/// Bias of the stored exponent.
const BIAS: i32 = 1_023;

/// Bit pattern of a positive normal `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positive(u64);

impl Positive {
    /// Creates a positive normal number.
    pub(super) const fn new(number: f64) -> Self {
        Self(number.to_bits())
    }

    /// Converts an `f32` above 0, exactly.
    pub(super) const fn from_f32(number: f32) -> Self {
        let pattern = number.to_bits();
        let written = (pattern & 0x007f_ffff) as u64;
        match (pattern >> 23) as i32 {
            0 => Self::rounded(written, 1 - 127 - 23),
            exponent => Self::rounded(written | 0x0080_0000, exponent - 127 - 23),
        }
    }

    /// Returns `significand · 2^exponent`, rounded. Bits below the significant ones may be replaced
    /// by one sticky bit.
    #[inline(never)]
    const fn rounded(significand: u64, exponent: i32) -> Self {
        let zeros = significand.leading_zeros();
        let first_is_top = significand << zeros;
        let half = 1 << (SPARE - 1);
        let is_odd = first_is_top >> SPARE & 1;
        // Adds less than half a unit, or half a unit to an odd number, so that ties go to even.
        let (sum, carry) = first_is_top.overflowing_add(half - 1 + is_odd);
        // An overflow is the next power of two, whose stored bits are zeros.
        let written = sum << 1 >> (SPARE + 1);
        let exponent = exponent + (u64::BITS - 1 - zeros) as i32 + carry as i32;
        Self((((exponent + BIAS) as u64) << WRITTEN) + if carry { 0 } else { written })
    }

    /// Returns the significand as an integer of 53 bits, and the exponent of its last bit.
    const fn parts(self) -> (u64, i32) {
        let hidden = 1 << WRITTEN;
        let exponent = (self.0 >> WRITTEN) as i32 - BIAS - WRITTEN as i32;
        (self.0 & (hidden - 1) | hidden, exponent)
    }

    #[inline(never)]
    pub(super) const fn plus(self, other: Self) -> Self {
        // Positive numbers have the order of their bit patterns.
        let (larger, smaller) = if self.0 > other.0 {
            (self, other)
        } else {
            (other, self)
        };
        let ((a, exponent), (b, below)) = (larger.parts(), smaller.parts());
        // One bit above for the sum, ten below.
        let (a, b) = (a << 10, b << 10);
        let distance = (exponent - below) as u32;
        let b = if distance < 63 {
            b >> distance | (b << (63 - distance) << 1 != 0) as u64
        } else {
            1
        };
        Self::rounded(a + b, exponent - 10)
    }

    #[inline(never)]
    pub(super) const fn times(self, other: Self) -> Self {
        let ((a, a_exponent), (b, b_exponent)) = (self.parts(), other.parts());
        let product = product(a << SPARE, b << SPARE);
        let significand = (product >> 64) as u64 | (product as u64 != 0) as u64;
        Self::rounded(significand, a_exponent + b_exponent + 64 - 2 * SPARE as i32)
    }

    #[inline(never)]
    pub(super) const fn over(self, other: Self) -> Self {
        let ((a, a_exponent), (b, b_exponent)) = (self.parts(), other.parts());
        let (quotient, rest) = divide(a, 60, b);
        Self::rounded(quotient | (rest != 0) as u64, a_exponent - b_exponent - 60)
    }

    /// Returns the square root, by Heron's method. Half of the exponent gives a first guess within
    /// 7 %, and every step squares its error.
    pub(super) const fn root(self) -> Self {
        let mut root = Self((self.0 + Self::new(1.0).0) / 2);
        let mut step = 0;
        while step < 5 {
            root = root.plus(self.over(root)).times(Self::new(0.5));
            step += 1;
        }
        root
    }

    /// Returns one minus the number, which is below 1.
    pub(super) const fn one_minus(self) -> Self {
        let (significand, exponent) = self.parts();
        // In units of 2^-53, the last bit of the result or one below it, so ties to even stay ties
        // to even.
        let units = nearest(significand, exponent + 53);
        Self::rounded((1 << 53) - units, -53)
    }

    /// Returns the nearest `f32`, for a number below 2^127.
    pub(super) const fn to_f32(self) -> f32 {
        let (significand, exponent) = self.parts();
        // Exponent of the last of 24 bits, or of all subnormal numbers.
        let last = exponent + 29;
        let last = if last > -149 { last } else { -149 };
        let units = nearest(significand, exponent - last) as u32;
        // 2^23 units are the smallest normal number: the bit adds one to the exponent.
        f32::from_bits((((last + 149) as u32) << 23) + units)
    }

    /// Rounds a number below 2^32 down to an integer.
    pub(super) const fn floor(self) -> u32 {
        let (significand, exponent) = self.parts();
        if exponent < -63 {
            0
        } else {
            (significand >> -exponent) as u32
        }
    }
}

/// Rounds `significand · 2^exponent`, for an exponent of at most 0, to the nearest integer, ties to
/// even.
const fn nearest(significand: u64, exponent: i32) -> u64 {
    match -exponent {
        0 => significand,
        // Less than half of one.
        places if places > 54 => 0,
        places => {
            let half = 1 << (places - 1);
            let whole = significand >> places;
            (significand + (half - 1) + (whole & 1)) >> places
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers from 2^-200 to 2^200, half of them with few bits.
    fn number() -> impl Strategy<Value = f64> {
        (any::<u64>(), -200_i32..200, 0_u32..53).prop_map(|(bits, exponent, few)| {
            let written = bits & ((1 << WRITTEN) - 1) & (u64::MAX << few);
            f64::from_bits(((exponent + BIAS) as u64) << WRITTEN | written)
        })
    }

    fn f64_of(number: Positive) -> f64 {
        f64::from_bits(number.0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn the_results_are_those_of_f64(a in number(), b in number(), near in -60_i32..60) {
            let significand = b.to_bits() & ((1 << WRITTEN) - 1);
            let same_exponent = f64::from_bits(significand | (a.to_bits() >> WRITTEN << WRITTEN));
            let near = same_exponent * 2_f64.powi(near);
            for (a, b) in [(a, b), (a, near), (near, a)] {
                let (x, y) = (Positive::new(a), Positive::new(b));
                prop_assert_eq!(f64_of(x.plus(y)), a + b);
                prop_assert_eq!(f64_of(x.times(y)), a * b);
                prop_assert_eq!(f64_of(x.over(y)), a / b);
            }
        }

        #[test]
        fn conversions_are_those_of_f64(a in number(), pattern in 1_u32..0x7f80_0000) {
            let x = f32::from_bits(pattern);
            prop_assert_eq!(f64_of(Positive::from_f32(x)), f64::from(x));
            let below_one = if a < 1.0 { a } else { 0.5 / a };
            prop_assert_eq!(f64_of(Positive::new(below_one).one_minus()), 1.0 - below_one);
            let small = if a < 1e30 { a } else { 1.0 / a };
            prop_assert_eq!(Positive::new(small).to_f32().to_bits(), (small as f32).to_bits());
            let countable = if a < 4e9 { a } else { 1.0 / a };
            prop_assert_eq!(Positive::new(countable).floor(), countable as u32);
        }
    }
}
