//! Division and square roots of 64-bit integers, bit by bit, and products of many of them.
//!
//! A processor without a division of 64 bits has it from the compiler's library, which is made to
//! be fast: nearly a kilobyte for each kind. Here they are needed a few times a round, so one short
//! loop of each serves the grid, the noise and the smoothing.

/// `⌊numerator · 2^shift / denominator⌋`, of which the lowest 64 bits, and the remainder.
///
/// For a denominator of at most 2⁶³; 0 gives meaningless numbers.
#[inline(never)]
pub(crate) const fn divide(numerator: u64, shift: u32, denominator: u64) -> (u64, u64) {
    let (mut quotient, mut remainder) = (0, 0);
    let mut left = u64::BITS + shift;
    let mut digits = numerator;
    while left > 0 {
        // The remainder is below the denominator: doubled, it fits.
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

/// `⌊√square⌋`.
#[inline(never)]
pub(crate) const fn square_root(square: u64) -> u64 {
    let (mut root, mut remainder) = (0, square);
    // The highest power of four that may be in it.
    let mut power = 1 << (62 - (square.leading_zeros() & 62));
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
}

/// An integer of 384 bits, the lowest 64 of them first.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Wide([u64; 6]);

impl Wide {
    /// The product of these factors, which must fit.
    #[inline(never)]
    pub(crate) fn product(factors: &[u64]) -> Self {
        let mut product = [1, 0, 0, 0, 0, 0];
        for factor in factors {
            let mut carry = 0;
            for digit in &mut product {
                // (2⁶⁴ − 1)² + 2⁶⁴ − 1 is below 2¹²⁸.
                let wide = u128::from(*digit) * u128::from(*factor) + u128::from(carry);
                (*digit, carry) = (wide as u64, (wide >> 64) as u64);
            }
        }
        Self(product)
    }

    /// The sum, which must fit.
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        let mut carry = false;
        for (digit, other) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = digit.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*digit, carry) = (sum, first || second);
        }
        self
    }

    /// Whether it is at most `limit`.
    pub(crate) fn is_at_most(&self, limit: &Self) -> bool {
        self.0.iter().rev().le(limit.0.iter().rev())
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
        }
    }

    proptest! {
        /// Numbers that also fit the compiler's, shifted by whole digits.
        #[test]
        fn wide_integers_are_those_of_the_compiler(
            a in any::<u64>(), b in any::<u64>(), c in any::<u64>(), d in any::<u64>(),
            digits in 0_usize..5,
        ) {
            let shift = [1 << 32; 8];
            let wide = |x: u64, y: u64| {
                Wide::product(&[&[x, y], &shift[..2 * digits.min(3)]].concat())
            };
            let (first, second) = (u128::from(a) * u128::from(b), u128::from(c) * u128::from(d));
            prop_assert_eq!(wide(a, b).is_at_most(&wide(c, d)), first <= second);
            // (a + c) b = a b + c b, with a carry into the next digit.
            let (sum, carry) = a.overflowing_add(c);
            let mut expected = wide(sum, b);
            if carry {
                expected = expected.plus(&Wide::product(&[
                    &[1 << 32, 1 << 32, b],
                    &shift[..2 * digits.min(3)],
                ].concat()));
            }
            prop_assert_eq!(wide(a, b).plus(&wide(c, b)), expected);
        }
    }

    #[test]
    fn the_widest_product_fits() {
        let largest = Wide::product(&[u64::MAX; 6]);
        assert!(largest.is_at_most(&Wide([u64::MAX; 6])));
        assert!(!Wide([u64::MAX; 6]).is_at_most(&largest));
        assert_eq!(largest.0[0], 1, "(2⁶⁴ − 1)⁶ modulo 2⁶⁴");
        assert_eq!(largest.0[5], u64::MAX - 5);
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
}
