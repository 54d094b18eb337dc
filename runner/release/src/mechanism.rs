//! How noise is added to what is released. A mechanism is one file and one variant here.

mod independent;

use smolfed_core::noise::{DiscreteGaussian, NoiseError};
use smolfed_core::stream::{Purpose, Root};

pub(crate) use independent::add_noise;

/// The sampler of a std in grid steps and its std, which is rounded up.
///
/// # Errors
/// [`NoiseError`] if the grid cannot carry it.
pub fn sampler_of_std(std: f64) -> Result<(DiscreteGaussian, f64), NoiseError> {
    /// The std is a multiple of this part of a step.
    const DENOMINATOR: u64 = 1 << 10;
    let numerator = (std * DENOMINATOR as f64).ceil();
    let sampler = DiscreteGaussian::new(numerator as u64, DENOMINATOR)?;
    Ok((sampler, numerator / DENOMINATOR as f64))
}

/// How noise is added to what is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// No noise: for runs that promise nothing, and where nothing is released.
    None,
    /// Fresh discrete Gaussian noise in every round, in steps of the grid.
    Independent(DiscreteGaussian),
    /// Fresh discrete Gaussian noise on a combination of the sums of several rounds, in steps of
    /// the finer grid of that: [`History::combine`](crate::History::combine).
    Correlated(DiscreteGaussian),
}

impl Mechanism {
    /// The sampler of one release, if there is noise.
    #[must_use]
    pub const fn sampler(&self) -> Option<&DiscreteGaussian> {
        match self {
            Self::None => None,
            Self::Independent(sampler) | Self::Correlated(sampler) => Some(sampler),
        }
    }

    /// Adds the server's noise of round `number` to an exact sum.
    pub(crate) fn cover(&self, sum: &mut [i64], root: &Root, purpose: Purpose, number: u32) {
        match self {
            Self::None => {}
            Self::Independent(sampler) | Self::Correlated(sampler) => {
                add_noise(sum, sampler, root, purpose, number);
            }
        }
    }
}
