//! Bitwise division and square roots of 64-bit integers, square roots of 32-bit integers, and
//! products of several integers.
//!
//! A processor without 64-bit division uses the compiler's library, which is optimised for speed
//! and takes nearly a kilobyte for each kind. This crate needs these operations a few times a
//! round, so one short loop for each serves the grid, the noise and the smoothing.

/// Returns the lowest 64 bits of `⌊numerator · 2^shift / denominator⌋`, and the remainder.
///
/// The denominator must be at most 2⁶³. 0 gives meaningless numbers.
#[inline(never)]
pub(crate) const fn divide(numerator: u64, shift: u32, denominator: u64) -> (u64, u64) {
    let (mut quotient, mut remainder) = (0, 0);
    let mut left = u64::BITS + shift;
    let mut digits = numerator;
    while left > 0 {
        // The remainder is below the denominator, so it fits when doubled.
        remainder = remainder << 1 | digits >> 63;
        digits <<= 1;
        quotient <<= 1;
        if remainder >= denominator {
            remainder -= denominator;
            quotient |= 1;
        }
        left -= 1;
    }
    (quotient, remainder)
}

/// Returns the product of two integers. Not inlined, because its code is longer than a call.
#[inline(never)]
pub(crate) const fn product(a: u64, b: u64) -> u128 {
    a as u128 * b as u128
}

/// Returns a product that must fit. Not inlined, because its code is longer than a call.
#[inline(never)]
pub(crate) const fn times(number: u128, factor: u32) -> u128 {
    number * factor as u128
}

/// Computes `⌊√square⌋`, one digit of two bits at a time, in the integer type of `square`.
macro_rules! root_of {
    ($square:expr, $word:ty) => {{
        let (mut root, mut remainder): ($word, $word) = (0, $square);
        // The highest power of four that can be in it.
        let mut power: $word =
            1 << (<$word>::BITS - 2 - (remainder.leading_zeros() & (<$word>::BITS - 2)));
        while power > 0 {
            let trial = root + power;
            root >>= 1;
            if remainder >= trial {
                remainder -= trial;
                root += power;
            }
            power >>= 2;
        }
        root
    }};
}

/// Returns `⌊√square⌋`.
#[inline(never)]
pub(crate) const fn square_root(square: u64) -> u64 {
    root_of!(square, u64)
}

/// Returns `⌊√square⌋` in 32 bits. With 64 bits, processors without long registers take four times
/// as long.
#[inline(always)]
pub(crate) const fn short_square_root(square: u32) -> u32 {
    // The Cortex-M0 has no instruction for divisions, nor one to compare and exchange. RV32IMC
    // lacks only the latter. Its division takes so long that both ways take the same time.
    if cfg!(target_has_atomic = "32") {
        root_by_heron(square)
    } else {
        root_by_digits(square)
    }
}

const fn root_by_digits(square: u32) -> u32 {
    root_of!(square, u32)
}

/// Computes `⌊√square⌋` by two divisions, in a third of the instructions.
const fn root_by_heron(square: u32) -> u32 {
    if square == 0 {
        return 0;
    }
    let places = square.leading_zeros() / 2;
    // At least 2³⁰ and below 2³². The root has 16 bits, of which the last `places` are cut off.
    let square = square << (2 * places);
    // The line differs from the root by at most 6 %, the first step of Heron's method by at most
    // 0.2 %, and the second one by less than a tenth of a unit. No step is below the root, so its
    // integer part is the result or 1 too large.
    let share = square >> 16;
    let mut root = 24_371 + share / 2 + share / 8;
    root = (root + square / root) / 2;
    root = (root + square / root) / 2;
    root -= (root * root > square) as u32;
    root >> places
}

/// An integer of 384 bits, the lowest 64 bits first.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(crate) struct Wide([u64; 6]);

impl Wide {
    pub(crate) const ONE: Self = Self([1, 0, 0, 0, 0, 0]);

    /// Multiplies the integer in place by the squares of these factors. The result must fit.
    #[inline(never)]
    pub(crate) fn multiply_by_squares(&mut self, factors: &[u64]) {
        for factor in factors.iter().chain(factors) {
            let mut carry = 0;
            for digit in &mut self.0 {
                // (2⁶⁴ − 1)² + 2⁶⁴ − 1 is below 2¹²⁸.
                let wide = product(*digit, *factor) + u128::from(carry);
                (*digit, carry) = (wide as u64, (wide >> 64) as u64);
            }
        }
    }

    /// Subtracts the product of the squares of these factors, which must fit. Returns whether the
    /// difference is at least 0. A negative difference is meaningless.
    #[inline(never)]
    pub(crate) fn subtract_squares(&mut self, factors: &[u64]) -> bool {
        let mut other = Self::ONE;
        other.multiply_by_squares(factors);
        self.subtract(&other)
    }

    /// Subtracts `other`, and returns whether the difference is at least 0. A negative difference
    /// is meaningless.
    fn subtract(&mut self, other: &Self) -> bool {
        let mut borrow = 0;
        for (digit, other) in self.0.iter_mut().zip(&other.0) {
            let difference = i128::from(*digit) - i128::from(*other) - borrow;
            *digit = difference as u64;
            borrow = i128::from(difference < 0);
        }
        borrow == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_are_those_of_the_compiler(
            numerator in any::<u64>(), denominator in 1_u64..=1 << 63,
            spare in 0_u32..64, shift in 0_u32..64,
        ) {
            let denominator = (denominator >> spare).max(1);
            let wide = u128::from(numerator) << shift;
            let (quotient, remainder) = divide(numerator, shift, denominator);
            prop_assert_eq!(quotient, (wide / u128::from(denominator)) as u64);
            prop_assert_eq!(u128::from(remainder), wide % u128::from(denominator));
        }

        #[test]
        fn roots_are_those_of_the_compiler(square in any::<u64>(), spare in 0_u32..64) {
            prop_assert_eq!(square_root(square >> spare), (square >> spare).isqrt());
            let square = (square >> spare) as u32;
            prop_assert_eq!(root_by_digits(square), square.isqrt());
            prop_assert_eq!(root_by_heron(square), square.isqrt());
        }
    }

    proptest! {
        /// Numbers that also fit the compiler's integers, shifted by whole digits.
        #[test]
        fn wide_integers_are_those_of_the_compiler(
            a in any::<u64>(), b in any::<u64>(), spares in any::<[u8; 2]>(), digits in 0_usize..5,
        ) {
            let [a, b] = [a >> (spares[0] % 64), b >> (spares[1] % 64)];
            let square = |x: u64| {
                let mut square = Wide::ONE;
                square.multiply_by_squares(&[&[x][..], &[1 << 32; 4][..digits]].concat());
                square
            };
            let by_compiler = |x: u64| u128::from(x) * u128::from(x);
            let in_place = |x: u128| {
                let mut wide = [0; 6];
                (wide[digits], wide[digits + 1]) = (x as u64, (x >> 64) as u64);
                Wide(wide)
            };
            prop_assert_eq!(square(a), in_place(by_compiler(a)));
            let difference = by_compiler(a).checked_sub(by_compiler(b));
            let mut found = square(a);
            let found = found.subtract(&square(b)).then_some(found);
            prop_assert_eq!(found, difference.map(in_place));
        }
    }

    #[test]
    fn the_widest_square_fits() {
        // (2⁶⁴ − 1)⁶ = 2³⁸⁴ − 6 · 2³²⁰ + 15 · 2²⁵⁶ − 20 · 2¹⁹² + 15 · 2¹²⁸ − 6 · 2⁶⁴ + 1.
        let mut largest = Wide::ONE;
        largest.multiply_by_squares(&[u64::MAX; 3]);
        let max = u64::MAX;
        assert_eq!(largest, Wide([1, max - 5, 14, max - 19, 14, max - 5]));
        let minus = |mut a: Wide, b| a.subtract(&b).then_some(a);
        assert!(minus(Wide([max; 6]), largest).is_some());
        assert!(minus(largest, Wide([max; 6])).is_none());
        assert_eq!(minus(largest, largest), Some(Wide([0; 6])));
    }

    #[test]
    fn roots_beside_squares_are_exact() {
        for root in [0_u64, 1, 2, 3, 1 << 16, (1 << 20) - 1, u64::from(u32::MAX)] {
            let square = root * root;
            assert_eq!(square_root(square), root);
            assert_eq!(square_root(square + 2 * root), root);
            assert_eq!(
                square_root(square.saturating_sub(1)),
                root.saturating_sub(1)
            );
        }
        assert_eq!(square_root(u64::MAX), u64::from(u32::MAX));
    }

    #[test]
    fn short_roots_beside_all_squares_are_exact() {
        for root in 0..=u32::from(u16::MAX) {
            for square in [root * root, root * root + 2 * root] {
                assert_eq!(root_by_digits(square), root, "{square}");
                assert_eq!(root_by_heron(square), root, "{square}");
            }
        }
    }
}
