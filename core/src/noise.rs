//! Exact discrete Gaussian noise: integers x with probability proportional to exp(-x² / (2σ²)).
//!
//! The sampler uses integers only and rounds nothing. Given uniform words, every probability is
//! exactly that of the formula, so the privacy proof for the discrete Gaussian holds for this code,
//! and attacks on floating-point noise do not apply.
//!
//! **How.** Canonne, Kamath, Steinke 2020 (arXiv:2004.00010) draw a discrete Laplace value, made of
//! exp(-rational) coins, and accept it with an exp(-rational) coin. Here the proposal lies closer
//! to the Gaussian, and a value takes 3.2 random words on average instead of about 10. With
//! s = ⌈σ/8⌉:
//!
//! 1. Draw a strip k >= 0 with probability proportional to exp(-k²/128) (`strip.rs`), a sign, and
//!    an offset 0 <= j < s, uniform. The magnitude is m = k·s + j. "Minus zero" is drawn again.
//! 2. Accept with probability e^-γ, γ = m²/(2σ²) - k²/128, by their Algorithm 1 (`coin.rs`),
//!    otherwise go back to 1. Since s >= σ/8 and m >= k·s, γ is not negative.
//!
//! *Proof.* Every integer x has one sign, k and j. A pass returns x with probability
//! ½ · c·exp(-k²/128) · 1/s · exp(-γ) = (c/2s)·exp(-x²/(2σ²)), c the constant of the strips. All
//! factors but the last are the same for each x. ∎ The tests compare the result with exact
//! probabilities and with Algorithms 1 to 3 as printed.
//!
//! **Values.** The law is the discrete Gaussian given |x| < 1024·s, at least 128σ. No generator can
//! show the difference (below e^-8191), but it bounds the noise, see [`MAGNITUDE_LIMIT`]. A value
//! depends on the words of `next_u32` alone, so it is the same on every machine.
//! `tests/vectors/discrete_gaussian.json` pins it.
//!
//! **Limits.** The noise is only as secret as its random words. Anyone who knows the seed can
//! subtract the noise, and anyone who sees two sums with noise from the same stream position can
//! subtract one from the other. Use a stream once, and a root of real entropy outside simulation
//! ([`Root::from_secret`](crate::stream::Root::from_secret)). The sampler is not constant-time: its
//! duration depends on strips and rejections, hence on the magnitude of the noise. That matters if
//! an adversary can time single values on the same machine (a shared host, a probe on the board). A
//! server that sees when a message arrives learns at most the duration of a whole vector. The
//! duration never depends on the values to which noise is added.

use rand_core::CryptoRng;

mod acceptance;
mod coin;
mod sigma;
mod strip;

#[cfg(test)]
mod tests;

use crate::{integer::divide, params::NoiseMultiplier};
use acceptance::Acceptance;
pub use sigma::{DENOMINATOR_LIMIT, NUMERATOR_LIMIT, NoiseError, Sigma};
use strip::{STRIP_LIMIT, STRIPS_PER_SIGMA, Strips};

/// Upper bound on the magnitude of values, never reached: 1024 strips of at most 2^49 + 1 integers
/// stay below 2^60.
pub const MAGNITUDE_LIMIT: i64 = 1 << 60;

/// Largest σ for [`DiscreteGaussian::add_to_i32`]: 2^31 is then 64 σ away.
pub const I32_SIGMA_LIMIT: u64 = 1 << 25;

/// Random bits that select a strip. The 32nd bit of the word is the sign.
const STRIP_BITS: u32 = 31;

/// Units of strip 0, just below 2^31 / Σ exp(-k²/128), so that one word in 30,000 selects nothing.
static STRIPS: Strips<STRIP_BITS> = Strips::new(204_000_000);

/// The discrete Gaussian N_Z(0, σ²) with σ a ratio of integers, in units of the integer grid.
///
/// σ is the parameter of the law. Its standard deviation is never above σ, and within 1e-30 of it
/// from σ = 2 on. The privacy bounds (zCDP, RDP) are the same as for the continuous Gaussian with
/// standard deviation σ.
///
/// ```
/// use smolfed_core::{DiscreteGaussian, NoiseMultiplier};
///
/// # use std::error::Error;
/// # fn example(mut generator: impl rand_core::CryptoRng) -> Result<(), Box<dyn Error>> {
/// // A sum in steps of clip_norm / 2^20, and a generator whose words nobody else sees.
/// let mut sum = [1_500_000_i64, -20, 0];
/// let noise = DiscreteGaussian::from_multiplier(NoiseMultiplier::new(1.1)?, 20)?;
/// noise.add_to(&mut sum, &mut generator);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscreteGaussian {
    acceptance: Acceptance,
    /// 2^32 mod s, below which [`Self::offset`] refuses a product. 0 if s is above 2^32.
    biased_products: u32,
}

impl DiscreteGaussian {
    /// Creates the discrete Gaussian with σ = `numerator / denominator`.
    ///
    /// * Units: integer steps. For updates on the grid `clip_norm · 2^-b`, the noise std divided by
    ///   that step: noise_multiplier · 2^b.
    /// * Cost: a few divisions. `const`, so that firmware can compute it at compile time.
    /// * Limits: the numerator is at most 2^52 and the denominator at most 2^48, so that the exact
    ///   comparisons fit in 128 bits. From σ = 16 on a value costs the same for each σ. Below 8 the
    ///   number of passes grows as 1/σ, to at most 21.
    /// * Equal ratios are equal laws and give the same values from the same stream.
    ///
    /// # Errors
    /// [`NoiseError::ZeroDenominator`], [`NoiseError::ZeroSigma`],
    /// [`NoiseError::NumeratorTooLarge`], [`NoiseError::DenominatorTooLarge`].
    pub const fn new(numerator: u64, denominator: u64) -> Result<Self, NoiseError> {
        match Sigma::new(numerator, denominator) {
            Ok(sigma) => Ok(Self::of(sigma)),
            Err(error) => Err(error),
        }
    }

    /// Creates the discrete Gaussian with a checked σ.
    #[inline(never)]
    pub const fn of(sigma: Sigma) -> Self {
        let acceptance = Acceptance::new(sigma);
        let biased_products = if acceptance.width >> 32 == 0 {
            divide(1, 32, acceptance.width).1 as u32
        } else {
            0
        };
        Self {
            acceptance,
            biased_products,
        }
    }

    /// Creates the noise for updates on the grid `clip_norm · 2^-grid_bits` with the given noise
    /// multiplier z: σ = z · 2^grid_bits.
    ///
    /// The noise is never less than requested: a σ of more than 52 significant bits is rounded up.
    ///
    /// # Errors
    /// [`NoiseError::ZeroSigma`] if the multiplier is 0, [`NoiseError::NumeratorTooLarge`] if σ is
    /// above 2^52.
    pub const fn from_multiplier(
        multiplier: NoiseMultiplier,
        grid_bits: u32,
    ) -> Result<Self, NoiseError> {
        let multiplier = multiplier.units();
        if multiplier == 0 {
            return Err(NoiseError::ZeroSigma);
        }
        let zeros = multiplier.trailing_zeros();
        let mut significand = multiplier >> zeros;
        // σ = significand · 2^(positive - 32).
        let mut positive = grid_bits.saturating_add(zeros);
        while significand > NUMERATOR_LIMIT {
            significand = significand.div_ceil(2);
            positive = positive.saturating_add(1);
        }
        match positive.checked_sub(32) {
            None => Self::new(significand, 1 << (32 - positive)),
            Some(shift) if shift <= significand.leading_zeros() => {
                Self::new(significand << shift, 1)
            }
            Some(_) => Err(NoiseError::NumeratorTooLarge),
        }
    }

    /// Returns σ.
    pub const fn sigma(&self) -> Sigma {
        self.acceptance.sigma
    }

    /// Draws one value, below [`MAGNITUDE_LIMIT`] in magnitude.
    ///
    /// Cost: 3.2 words of the generator on average for a wide σ, at most 3.4 from σ = 100 on, one
    /// more if a strip is wider than 2^32 integers.
    pub fn sample<R: CryptoRng>(&self, rng: &mut R) -> i64 {
        loop {
            if let Some(value) = self.attempt(rng) {
                return value;
            }
        }
    }

    /// Overwrites each of `values` with a fresh value, in order.
    pub fn fill<R: CryptoRng>(&self, values: &mut [i64], rng: &mut R) {
        for value in values {
            *value = self.sample(rng);
        }
    }

    /// Adds a fresh value to each of `values`, in order: noise on a sum of updates.
    ///
    /// Addition is modulo 2^64. It never wraps if each |value| is at most 2^62, as the noise stays
    /// below [`MAGNITUDE_LIMIT`], 2^60 (and 2^30 devices with entries of 2^32 sum up to 2^62). Even
    /// a sum that wraps is private, because the release is a function of the exact sum with noise.
    /// A check, in contrast, would answer a question about the sum without noise.
    pub fn add_to<R: CryptoRng>(&self, values: &mut [i64], rng: &mut R) {
        for value in values {
            *value = value.wrapping_add(self.sample(rng));
        }
    }

    /// Adds a fresh value to each entry of a device's quantised update, in order.
    ///
    /// Draws the same values as [`Self::add_to`]. Addition is modulo 2^32, which is equally
    /// private. Entries within ±2^30 stay 32 σ away from wrapping.
    ///
    /// # Errors
    /// [`NoiseError::TooWideForI32`] if σ is above [`I32_SIGMA_LIMIT`]. `values` is then unchanged.
    pub fn add_to_i32<R: CryptoRng>(
        &self,
        values: &mut [i32],
        rng: &mut R,
    ) -> Result<(), NoiseError> {
        if self.acceptance.width > I32_SIGMA_LIMIT / u64::from(STRIPS_PER_SIGMA) {
            return Err(NoiseError::TooWideForI32);
        }
        for value in values {
            // The low 32 bits, as arithmetic modulo 2^32 requires.
            *value = value.wrapping_add(self.sample(rng) as i32);
        }
        Ok(())
    }

    /// Runs one pass, and returns a value, or `None` if it was rejected.
    #[inline]
    fn attempt<R: CryptoRng>(&self, rng: &mut R) -> Option<i64> {
        let word = rng.next_u32();
        let negative = u64::from(word & 1);
        let strip = STRIPS.draw(word >> 1, rng)?;
        let offset = self.offset(rng);
        // Below 1024 · (2^49 + 1).
        let magnitude = u64::from(strip) * self.acceptance.width + offset;
        let is_minus_zero = negative > magnitude;
        if is_minus_zero || !self.acceptance.accept(strip, offset, rng) {
            return None;
        }
        // Negates without a branch, which no processor could predict: -m = !m + 1.
        let (magnitude, negative) = (magnitude as i64, negative as i64);
        Some((magnitude ^ -negative) + negative)
    }

    /// Draws a uniform integer below s.
    #[inline]
    fn offset<R: CryptoRng>(&self, rng: &mut R) -> u64 {
        match u32::try_from(self.acceptance.width) {
            Ok(1) => 0,
            // Lemire 2019, arXiv:1805.10941: each upper half of the 2^32 products occurs equally
            // often, once products with the 2^32 mod s smallest lower halves are refused.
            Ok(width) => loop {
                let product = u64::from(rng.next_u32()) * u64::from(width);
                if product as u32 >= self.biased_products {
                    return product >> 32;
                }
            },
            Err(_) => self.wide_offset(rng),
        }
    }

    /// [`Self::offset`] for s above 2^32. A separate function keeps its words off other stack
    /// frames.
    #[cold]
    #[inline(never)]
    fn wide_offset<R: CryptoRng>(&self, rng: &mut R) -> u64 {
        coin::below(u128::from(self.acceptance.width), rng) as u64
    }
}

// The largest number of the widest strips stays within the limit.
const _: () = assert!(
    (STRIP_LIMIT as u64) * (NUMERATOR_LIMIT / STRIPS_PER_SIGMA as u64 + 1)
        <= MAGNITUDE_LIMIT as u64
);
