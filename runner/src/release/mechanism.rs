//! How noise is added to what is released. A mechanism is one file and one variant here.

pub mod correlated;
mod independent;

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::{Purpose, Root};

/// How noise is added to what is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// No noise: for runs that promise nothing, and where nothing is released.
    None,
    /// Fresh discrete Gaussian noise in every round, in steps of the grid.
    Independent(DiscreteGaussian),
    /// Fresh discrete Gaussian noise on a combination of the sums of several rounds, in steps of
    /// the finer grid of that: [`History::combine`](correlated::History::combine).
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
    pub(super) fn cover(&self, sum: &mut [i64], root: &Root, purpose: Purpose, number: u32) {
        match self {
            Self::None => {}
            Self::Independent(sampler) | Self::Correlated(sampler) => {
                independent::add_noise(sum, sampler, root, purpose, number);
            }
        }
    }
}
