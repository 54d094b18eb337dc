//! Integers modulo 2^w, and the width w that a sum with its noise needs.
//!
//! With sums of magnitude at most A before noise of std σ, w is the least width with A + 12 (σ + 1)
//! <= 2^(w-1), as for updates with device noise ([`pack::width`](smolfed_core::wire::pack::width)).
//! A release wraps around with probability at most 2 e^-72 per entry, which spoils an entry of the
//! model and costs no privacy.

use smolfed_core::mask::MAX_WIDTH;

/// Number of noise standard deviations that fit.
const REACH: u128 = 12;

/// The integers modulo 2^w, w from 2 to [`MAX_WIDTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    width: u8,
}

/// The integers of a round do not fit into [`MAX_WIDTH`] bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its sums and their noise would need {width} bits an entry, but masks have at most {MAX_WIDTH}"
)]
pub struct TooWide {
    /// The required width.
    pub width: u32,
}

impl Ring {
    /// Returns the integers modulo 2^`width`. `None` if masks cannot have this width.
    #[must_use]
    pub const fn new(width: u8) -> Option<Self> {
        match width {
            2.. if width as u32 <= MAX_WIDTH => Some(Self { width }),
            _ => None,
        }
    }

    /// Returns the smallest ring for integers of magnitude `largest` with noise of std at most
    /// `noise_std`.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn holding(largest: u128, noise_std: u64) -> Result<Self, TooWide> {
        let reach = largest.saturating_add(REACH * (u128::from(noise_std) + 1));
        // 1 + ⌈log2 reach⌉, for reach >= 12.
        let width = 1 + (u128::BITS - (reach - 1).leading_zeros());
        let ring = u8::try_from(width).ok().and_then(Self::new);
        ring.ok_or(TooWide { width })
    }

    /// Returns w.
    #[must_use]
    pub const fn width(self) -> u8 {
        self.width
    }

    /// Returns the integer from 0 to 2^w - 1 that equals `x` modulo 2^w.
    #[inline]
    #[must_use]
    pub const fn reduce(self, x: i64) -> i64 {
        x & ((1 << self.width) - 1)
    }

    /// Returns the integer from -2^(w-1) to 2^(w-1) - 1 that equals `x` modulo 2^w.
    #[inline]
    #[must_use]
    pub const fn centre(self, x: i64) -> i64 {
        let unused = 64 - self.width;
        x.wrapping_shl(unused as u32).wrapping_shr(unused as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_integer_is_the_same_reduced_and_centred(width in 2u8..=57, x in any::<i64>()) {
            let ring = Ring::new(width).unwrap();
            let (modulus, half) = (1i128 << width, 1i64 << (width - 1));
            let (reduced, centred) = (ring.reduce(x), ring.centre(x));
            prop_assert!((0..2 * half).contains(&reduced) && (-half..half).contains(&centred));
            for y in [reduced, centred] {
                prop_assert_eq!((i128::from(x) - i128::from(y)).rem_euclid(modulus), 0);
            }
        }

        /// w is the least number with `A + 12 (σ + 1) <= 2^(w-1)`.
        #[test]
        fn the_width_is_the_least(largest in 0u64..1 << 50, noise_std in 0u64..1 << 40) {
            let ring = Ring::holding(largest.into(), noise_std).unwrap();
            let reach = u128::from(largest) + 12 * (u128::from(noise_std) + 1);
            let width = u32::from(ring.width());
            prop_assert!(reach <= 1 << (width - 1) && reach > 1 << (width - 2));
        }
    }

    /// A reach of 2^4 fits into five bits, and a larger one does not.
    #[test]
    fn a_width_holds_what_it_just_has_room_for() {
        let width = |largest| Ring::holding(largest, 0).map(Ring::width);
        assert_eq!((width(4), width(5)), (Ok(5), Ok(6)));
        assert_eq!(Ring::holding(4, 1).map(Ring::width), Ok(6));
    }

    /// The widths of one helper and z = 1: total std √2 · 2^8, and √2 · 2^20, rounded up.
    #[test]
    fn widths_of_the_reference_round() {
        let width = |devices: u128, bits: u32, noise_std| {
            let ring = Ring::holding(devices << bits, noise_std);
            ring.map(Ring::width)
        };
        assert_eq!(width(50, 8, 363), Ok(16));
        assert_eq!(width(1_000, 8, 363), Ok(19));
        assert_eq!(width(1_000, 20, 1_482_911), Ok(31));
        assert_eq!(width(1 << 20, 40, 1), Err(TooWide { width: 62 }));
        assert_eq!(Ring::new(58), None);
        assert_eq!(Ring::new(1), None);
    }
}
