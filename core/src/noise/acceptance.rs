//! Acceptance of a proposal: a coin of probability e^-γ, exact, yet mostly in 32 bits.
//!
//! The proposal is the integer m = k·s + offset in the strip k, and γ = m²/(2σ²) - k²/128 is a
//! ratio of integers of up to 128 bits. It is only compared with random words, so two bounds from
//! 32-bit multiplications suffice. About one word in ten million falls between them, and then the
//! ratio itself decides.

use rand_core::CryptoRng;

use super::coin;
use super::sigma::Sigma;
use super::strip::{STRIP_COUNT, STRIPS_PER_SIGMA};
use crate::integer::{divide, product};

/// σ, the width of the strips, and the constants of the bounds on γ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acceptance {
    pub(super) sigma: Sigma,
    /// s, the number of integers in a strip: σ/8 rounded up.
    pub(super) width: u64,
    /// 8s/σ - 1, the excess width of each strip, in units of 2^-32 of a strip, at most 1.
    excess_per_strip: u64,
    /// 8/σ, the share of one integer in a strip, in units of 2^-64.
    share_per_integer: u64,
}

impl Acceptance {
    /// Creates the acceptance for a σ whose numerator is at most 2^52 and denominator at most 2^48.
    pub(super) const fn new(sigma: Sigma) -> Self {
        let (numerator, denominator) = sigma.ratio();
        // σ/8 = numerator/parts: an integer is `parts` parts if σ/8 is `numerator` of them.
        let parts = denominator * STRIPS_PER_SIGMA as u64;
        let (whole, rest) = divide(numerator, 0, parts);
        let width = whole + (rest > 0) as u64;
        let excess_parts = width * parts - numerator;
        let excess_per_strip = if excess_parts >= numerator {
            1 << 32
        } else {
            divide(excess_parts, 32, numerator).0
        };
        // With one integer in a strip the offset is 0, and its share is irrelevant.
        let share_per_integer = if width == 1 {
            0
        } else {
            divide(parts, 64, numerator).0
        };
        Self {
            sigma,
            width,
            excess_per_strip,
            share_per_integer,
        }
    }

    /// Returns the bound on the error of [`Self::gamma_min`].
    const fn slack(&self) -> u32 {
        72 + (self.width >> 32) as u32
    }

    /// Returns true with probability e^-γ, γ = m²/(2σ²) - k²/128 for k = `strip` and m = k·s +
    /// `offset`.
    #[inline]
    pub(super) fn accept<R: CryptoRng>(&self, strip: u32, offset: u64, rng: &mut R) -> bool {
        let Some(min) = self.gamma_min(strip, offset) else {
            return self.accept_far(strip, offset, rng);
        };
        coin::exp_minus(rng, |rng| {
            let word = rng.next_u32();
            if word < min {
                true
            } else if word > min + self.slack() {
                false
            } else {
                self.is_below(word, strip, offset, rng)
            }
        })
    }

    /// Throws the coin of probability γ in exact arithmetic, with `word` as its first word.
    #[cold]
    #[inline(never)]
    fn is_below<R: CryptoRng>(&self, word: u32, strip: u32, offset: u64, rng: &mut R) -> bool {
        let (numerator, denominator) = self.gamma(strip, offset);
        coin::rational_from(word, numerator, denominator, rng)
    }

    /// Returns a lower bound on 2^32·γ, short by less than `slack`, or `None` if γ may reach 1.
    ///
    /// With φ = 8m/σ - k >= 0, γ = φ (φ + 2k) / 128. For φ < 1 and k < 64, 2^32·φ exceeds `phi` by
    /// less than δ = 66 + s/2^32: k·excess loses less than k, offset·share less than offset/2^32
    /// and the shift less than 1. Then 2^25·(φ + 2k), below 127/128 · 2^32, exceeds `phi_2k` by
    /// less than 1 + δ/128, and 2^32·γ exceeds the result by less than
    /// 127/128 · δ + (1 + δ/128) + 1 = δ + 2 < `slack`.
    #[inline]
    fn gamma_min(&self, strip: u32, offset: u64) -> Option<u32> {
        let phi =
            u64::from(strip) * self.excess_per_strip + ((offset * self.share_per_integer) >> 32);
        let phi = u32::try_from(phi).ok().filter(|_| strip < STRIP_COUNT)?;
        let phi_2k = (strip << 26) + (phi >> 7);
        // 2^32·φ times 2^25·(φ + 2k), over 128, which is 2^64·γ. γ stays below 1 - 2^-7 + 2^-24.
        Some(((u64::from(phi) * u64::from(phi_2k)) >> 32) as u32)
    }

    /// [`Self::accept`] in exact arithmetic for every γ: e^-γ is a product of coins e^-1 and one
    /// coin for the rest.
    #[inline(never)]
    fn accept_far<R: CryptoRng>(&self, strip: u32, offset: u64, rng: &mut R) -> bool {
        let (mut numerator, denominator) = self.gamma(strip, offset);
        while numerator >= denominator {
            if !coin::exp_minus_one(rng) {
                return false;
            }
            numerator -= denominator;
        }
        coin::exp_minus(rng, |rng| coin::rational(numerator, denominator, rng))
    }

    /// Returns γ as numerator and denominator: with σ = n/d and p = 8md - kn, γ = p (p + 2kn) /
    /// (128 n²).
    ///
    /// With k <= 2^10, n <= 2^52 and 8d <= 2^51: 8sd - n < 8d, so p < k·8d + n < 2^61 + 2^52 and
    /// p + 2kn < 2^62 + 2^63: all factors fit in 64 bits.
    #[cold]
    #[inline(never)]
    fn gamma(&self, strip: u32, offset: u64) -> (u128, u128) {
        let (n, denominator) = self.sigma.ratio();
        let parts = denominator * u64::from(STRIPS_PER_SIGMA);
        let excess = self.width * parts - n;
        let p = u64::from(strip) * excess + offset * parts;
        let numerator = product(p, p + 2 * u64::from(strip) * n);
        (numerator, product(n, u64::from(2 * STRIP_COUNT) * n))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::strip::STRIP_LIMIT;
    use super::super::tests::statistics::Script;
    use super::super::{DENOMINATOR_LIMIT, NUMERATOR_LIMIT};
    use super::*;

    /// With sigma = 8000, strip 0 and offset 500, γ = 1/512: exactly 2^23 units of 2^-32.
    #[test]
    fn a_word_between_the_bounds_is_decided_exactly() {
        let acceptance = Acceptance::new(Sigma::new(8000, 1).unwrap());
        assert_eq!(acceptance.gamma(0, 500), (4000 * 4000, 128 * 8000 * 8000));
        let min = acceptance.gamma_min(0, 500).unwrap();
        assert!(min < 1 << 23 && min + acceptance.slack() > 1 << 23);
        // A word of at least γ accepts at once (K = 1). One below leads to A_2, two coins γ and
        // 1/2: if it fails, K = 2 rejects. If it holds and A_3 fails, K = 3 accepts.
        let accepts = |words: &[u32]| {
            let mut rng = Script::new(words.iter().copied());
            (acceptance.accept(0, 500, &mut rng), rng.left())
        };
        assert_eq!(accepts(&[(1 << 23) + 1]), (true, 0));
        assert_eq!(accepts(&[1 << 23]), (true, 0));
        assert_eq!(accepts(&[(1 << 23) - 1, u32::MAX]), (false, 0));
        assert_eq!(accepts(&[(1 << 23) - 1, 0, 1 << 31]), (false, 0));
        assert_eq!(accepts(&[(1 << 23) - 1, 0, 0, u32::MAX]), (true, 0));
        // γ = 0, where the lower bound is exact: no word is below it.
        let mut zero = Script::new([0]);
        assert!(acceptance.accept(0, 0, &mut zero));
    }

    #[test]
    fn exact_arithmetic_is_left_out_for_wide_sigmas() {
        let acceptance = Acceptance::new(Sigma::new((1 << 20) + 1, 1).unwrap());
        let in_table = (0..STRIP_COUNT)
            .all(|strip| acceptance.gamma_min(strip, acceptance.width / 2).is_some());
        assert!(in_table && acceptance.gamma_min(STRIP_COUNT, 0).is_none());
    }

    /// Asserts that the bounds of `gamma_min`, if any, enclose γ.
    fn assert_enclosed(acceptance: &Acceptance, strip: u32, offset: u64) {
        let (mut remainder, denominator) = acceptance.gamma(strip, offset);
        if let Some(min) = acceptance.gamma_min(strip, offset) {
            assert!(remainder < denominator);
            let mut floor = 0_u64;
            for _ in 0..32 {
                remainder *= 2;
                floor = 2 * floor + u64::from(remainder >= denominator);
                remainder -= if remainder >= denominator {
                    denominator
                } else {
                    0
                };
            }
            let max = u64::from(min) + u64::from(acceptance.slack());
            assert!(u64::from(min) <= floor && floor < max);
        }
    }

    /// σ = 2^52 - 2047·2^30 + 1, where the share of an integer loses most: the last one of strip 63
    /// is 131,009 units of 2^-32 above the lower bound.
    #[test]
    fn bounds_enclose_gamma_in_the_widest_strips() {
        let acceptance =
            Acceptance::new(Sigma::new(NUMERATOR_LIMIT - (2047 << 30) + 1, 1).unwrap());
        assert_enclosed(&acceptance, STRIP_COUNT - 1, acceptance.width - 1);
    }

    proptest! {
        /// The bounds of `gamma_min` enclose γ for every sigma, strip and offset.
        #[test]
        fn bounds_enclose_gamma(
            (numerator_bits, denominator_bits) in (0_u32..=52, 0_u32..=48),
            (numerator, denominator) in (1_u64..=NUMERATOR_LIMIT, 1_u64..=DENOMINATOR_LIMIT),
            strip in 0..STRIP_LIMIT,
            position in any::<u64>(),
        ) {
            let numerator = (numerator >> numerator_bits).max(1);
            let denominator = (denominator >> denominator_bits).max(1);
            let acceptance = Acceptance::new(Sigma::new(numerator, denominator).unwrap());
            let strip = if position % 4 == 0 { strip } else { strip % 64 };
            let offset = ((u128::from(position) * u128::from(acceptance.width)) >> 64) as u64;
            assert_enclosed(&acceptance, strip, offset);
        }
    }
}
