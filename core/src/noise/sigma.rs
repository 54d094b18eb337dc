//! σ of the noise as a ratio of integers, as in messages and files, with its limits, and the errors
//! for values outside these limits.

use core::num::NonZeroU64;

/// Largest numerator of σ, and so the largest σ: 2^52.
pub const NUMERATOR_LIMIT: u64 = 1 << 52;

/// Largest denominator of σ: 2^48.
pub const DENOMINATOR_LIMIT: u64 = 1 << 48;

/// Error in the parameters of a [`DiscreteGaussian`](super::DiscreteGaussian).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NoiseError {
    /// σ = 0: no noise and no privacy, which must be stated elsewhere.
    ZeroSigma,
    /// The denominator of σ is 0.
    ZeroDenominator,
    /// The numerator of σ is above [`NUMERATOR_LIMIT`].
    NumeratorTooLarge,
    /// The denominator of σ is above [`DENOMINATOR_LIMIT`].
    DenominatorTooLarge,
    /// σ is above [`I32_SIGMA_LIMIT`](super::I32_SIGMA_LIMIT), too wide for 32-bit sums.
    TooWideForI32,
}

impl core::fmt::Display for NoiseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::ZeroSigma => "sigma is 0, but noise needs a sigma above 0",
            Self::ZeroDenominator => "the denominator of sigma is 0",
            Self::NumeratorTooLarge => "the numerator of sigma is above 2^52",
            Self::DenominatorTooLarge => "the denominator of sigma is above 2^48",
            Self::TooWideForI32 => "sigma is above 2^25, too wide for noise in 32 bits",
        })
    }
}

impl core::error::Error for NoiseError {}

/// σ of a [`DiscreteGaussian`](super::DiscreteGaussian), within its limits. It takes 16 bytes, and
/// the noise itself 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sigma {
    numerator: NonZeroU64,
    denominator: NonZeroU64,
}

impl Sigma {
    /// Creates σ = `numerator / denominator`.
    ///
    /// # Errors
    /// [`NoiseError::ZeroDenominator`], [`NoiseError::ZeroSigma`],
    /// [`NoiseError::NumeratorTooLarge`], [`NoiseError::DenominatorTooLarge`].
    pub const fn new(numerator: u64, denominator: u64) -> Result<Self, NoiseError> {
        let Some(denominator) = NonZeroU64::new(denominator) else {
            return Err(NoiseError::ZeroDenominator);
        };
        let Some(numerator) = NonZeroU64::new(numerator) else {
            return Err(NoiseError::ZeroSigma);
        };
        if numerator.get() > NUMERATOR_LIMIT {
            return Err(NoiseError::NumeratorTooLarge);
        }
        if denominator.get() > DENOMINATOR_LIMIT {
            return Err(NoiseError::DenominatorTooLarge);
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }

    /// Returns the numerator and the denominator.
    pub const fn ratio(self) -> (u64, u64) {
        (self.numerator.get(), self.denominator.get())
    }
}
