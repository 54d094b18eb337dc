//! Division and square roots of 64-bit integers, bit by bit.
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
