//! Noise of several parties, a coordinator and m helpers: the maximum number of helpers, and the
//! noise multiplier of each party. No coalition of t parties sees more than a sum with the noise of
//! the others.
//!
//! Each of the m + 1 parties adds exact discrete Gaussian noise of multiplier z / √(m + 1 − t). A
//! coalition of t knows its own noise and subtracts it. The noise of the m + 1 − t others is left,
//! of multiplier z or more. An *outsider*, who sees only the release, faces all of it:
//! z √((m + 1) / (m + 1 − t)).
//!
//! **Parties know who takes part**, so sampling does not amplify against them. Outsiders do not
//! ([`PrivacyEvent::outsiders`](crate::PrivacyEvent::outsiders)).
//!
//! **With one honest party** (t = m, the default) the figure against coalitions is that of one
//! discrete Gaussian, and does not depend on m.
//!
//! **A sum of n >= 2 discrete Gaussians** of std σ steps is nearly a discrete Gaussian. With θ the
//! sum over the integers of exp(-x²/(2σ²)), Poisson's formula says that a shift of the integers by
//! any real number changes θ by a factor between 1 and (1 − 2q) / (1 + 2q),
//! q = Σ_{n>=1} e^(-2π²σ²n²). The probability of x as the sum of two discrete Gaussians of
//! variances s² and σ² is the probability of x under the one of variance s² + σ², times such a θ of
//! variance s²σ²/(s² + σ²), of which only the shift depends on x: completing the square gives
//! exp(-x²/(2(s² + σ²))) Σ_y exp(-(y − cx)²/(2 s²σ²/(s² + σ²))). So every probability is off by a
//! factor of at most e^(±5 e^(-2π² s²σ²/(s²+σ²))): this is the convolution theorem of Kairouz, Liu,
//! Steinke 2021 (arXiv:2102.06387). Party by party, s² = kσ², the logarithms add up to
//! 5 Σ_{k<n} e^(-2π²σ²k/(k+1)) per entry, and ε moves by at most twice that. From
//! σ = [`MIN_NOISE_STEPS`] on this is below e^-40,000 ([`ln_of_term`]): less than 10^-17,000 in ε
//! for 10¹⁰ parameters and 10⁷ rounds. Noise on a coarser grid is refused.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::params::{NoiseMultiplier, ParamError};

/// The largest number of helpers.
pub const MAX_HELPERS: u8 = 8;

/// The smallest std of one party's noise, in steps of the grid, for which a sum of several counts
/// as one discrete Gaussian.
pub const MIN_NOISE_STEPS: u32 = 64;

/// Larger than the rounding errors of a square root and a product.
const MARGIN: f64 = 4.0 * f64::EPSILON;

/// A coordinator and its helpers, and the number of them that may collude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawParties", into = "RawParties")]
pub struct Parties {
    helpers: u8,
    colluding: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParties {
    helpers: u8,
    colluding: u8,
}

impl TryFrom<RawParties> for Parties {
    type Error = ParamError;

    fn try_from(raw: RawParties) -> Result<Self, ParamError> {
        Self::new(raw.helpers, raw.colluding)
    }
}

impl From<Parties> for RawParties {
    fn from(Parties { helpers, colluding }: Parties) -> Self {
        Self { helpers, colluding }
    }
}

impl Parties {
    /// A coordinator and one helper that do not collude: the guarantee holds against each.
    pub const PAIR: Self = Self {
        helpers: 1,
        colluding: 1,
    };

    /// Creates a coordinator and m helpers. Any t of the parties may collude.
    ///
    /// # Errors
    /// [`ParamError::Parties`] unless 1 <= t <= m <= [`MAX_HELPERS`].
    pub const fn new(helpers: u8, colluding: u8) -> Result<Self, ParamError> {
        match helpers <= MAX_HELPERS && colluding >= 1 && colluding <= helpers {
            true => Ok(Self { helpers, colluding }),
            false => Err(ParamError::Parties { helpers, colluding }),
        }
    }

    /// Returns m.
    #[must_use]
    pub const fn helpers(self) -> u8 {
        self.helpers
    }

    /// Returns t.
    #[must_use]
    pub const fn colluding(self) -> u8 {
        self.colluding
    }

    /// Returns m + 1: the number of parties that add noise.
    #[must_use]
    pub fn count(self) -> u32 {
        u32::from(self.helpers) + 1
    }

    /// Returns m + 1 − t: the number of parties whose noise a coalition does not know.
    #[must_use]
    pub fn honest(self) -> u32 {
        self.count() - u32::from(self.colluding)
    }

    /// Returns the noise multiplier of each party, if honest ones together have at least `total`.
    #[must_use]
    pub fn of_each(self, total: NoiseMultiplier) -> NoiseMultiplier {
        match self.honest() {
            1 => total,
            honest => scaled(total, (1.0 + MARGIN) / f64::from(honest).sqrt()),
        }
    }

    /// Returns the noise multiplier of all parties together, if honest ones have `total`, rounded
    /// down.
    #[must_use]
    pub fn of_all(self, total: NoiseMultiplier) -> NoiseMultiplier {
        let ratio = f64::from(self.count()) / f64::from(self.honest());
        scaled(total, ratio.sqrt() * (1.0 - MARGIN))
    }
}

fn scaled(multiplier: NoiseMultiplier, factor: f64) -> NoiseMultiplier {
    // It is at most three times as large. On overflow it stays unchanged.
    NoiseMultiplier::new(multiplier.get() * factor).unwrap_or(multiplier)
}

impl fmt::Display for Parties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.helpers, self.colluding) {
            (1, 1) => Ok(()),
            (helpers, colluding) if helpers == colluding => write!(f, "={helpers}"),
            (helpers, colluding) => write!(f, "={helpers}/{colluding}"),
        }
    }
}

impl FromStr for Parties {
    type Err = ParamError;

    /// Parses `M` or `M/T`. All helpers may collude if T is missing.
    fn from_str(text: &str) -> Result<Self, ParamError> {
        let (helpers, colluding) = text.split_once('/').unwrap_or((text, text));
        let number = |text: &str| {
            let refused = |_| ParamError::TrustText {
                text: format!("distributed={text}"),
            };
            text.parse::<u8>().map_err(refused)
        };
        Self::new(number(helpers)?, number(colluding)?)
    }
}

/// Returns the natural logarithm of the largest error in ε, for each entry and release, if a sum of
/// `count` discrete Gaussians of std `noise_steps` counts as one: 10 Σ_{k<count} e^(-2π²σ²k/(k+1)).
/// -∞ for one.
#[must_use]
pub fn ln_of_term(count: u32, noise_steps: f64) -> f64 {
    let exponent = |k: u32| {
        let k = f64::from(k);
        -2.0 * PI * PI * noise_steps * noise_steps * k / (k + 1.0)
    };
    // The exponents fall with k: the first is the largest, and there are count − 1.
    match count {
        0 | 1 => f64::NEG_INFINITY,
        count => (10.0 * f64::from(count - 1)).ln() + exponent(1),
    }
}

#[cfg(test)]
mod tests;
