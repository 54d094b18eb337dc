//! Mechanisms: the noise that a round adds to a sum of updates, scores, moments, answers or
//! matrices, its sensitivity, and the equivalence of discrete and real-valued noise.

use serde::{Deserialize, Serialize};

use crate::adjacency::Adjacency;
use crate::correlated::{Participation, fine_steps};
use crate::distributed::MIN_NOISE_STEPS;
use crate::params::{NoiseMultiplier, Sensitivity};

/// Std, in grid steps, of the randomised rounding from a real-valued Gaussian to the discrete one:
/// see [`Mechanism::continuous_multiplier`].
pub const ROUNDING_STD: f64 = 3.0;

/// The noise on the sum of the cohort's updates in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A real-valued Gaussian of std z · L on the sum of updates of norm at most L.
    Gaussian {
        /// z, the noise std over the clip norm.
        noise_multiplier: NoiseMultiplier,
    },
    /// The exact discrete Gaussian on the grid L · 2^-b, on integer updates of norm at most 2^b.
    DiscreteGaussian {
        /// z, the noise std over the clip norm.
        noise_multiplier: NoiseMultiplier,
        /// b: the grid is `clip_norm * 2^-grid_bits`.
        grid_bits: u8,
    },
    /// A Gaussian on the mean of positive semi-definite matrices, each of Frobenius norm at most L
    /// (FedSC's correlation matrices, with L = μ/|D|). Two such terms have a non-negative inner
    /// product, so replacing one moves the mean by √2 · L, not by 2L.
    CorrelationMatrix {
        /// z, relative to μ/|D|.
        noise_multiplier: NoiseMultiplier,
    },
    /// The exact discrete Gaussian on the sum over devices of the moments of their features, each a
    /// vector of norm at most 1 on the grid 2^-b. The scale of the features is computed from it.
    Moments {
        /// z, the noise std over the largest norm of one device's vector.
        noise_multiplier: NoiseMultiplier,
        /// b: the grid is `2^-grid_bits`.
        grid_bits: u8,
    },
    /// The exact discrete Gaussian on the sum over devices of one number each, from -1 to 1 on the
    /// grid 2^-b: the quality of a trial's model ([`selection`](crate::selection)).
    Score {
        /// z, the noise std over the largest number of one device.
        noise_multiplier: NoiseMultiplier,
        /// b: the grid is `2^-grid_bits`.
        grid_bits: u8,
    },
    /// The exact discrete Gaussian on the sum over devices of their answers to a question, each a
    /// vector of norm at most 1 on the grid 2^-b.
    Answer {
        /// z, the noise std over the largest norm of one device's answer.
        noise_multiplier: NoiseMultiplier,
        /// b: the grid is `2^-grid_bits`.
        grid_bits: u8,
        /// The index of the question in a run, from 0.
        question: u8,
    },
    /// Exact discrete Gaussians on combinations of the sums of several rounds, on a grid 256 times
    /// finer than that of the updates: [`correlated`](crate::correlated). All rounds of one run are
    /// one release, with the full sensitivity from the first round on.
    Correlated {
        /// z, the noise std over the sensitivity times the clip norm.
        noise_multiplier: NoiseMultiplier,
        /// b: updates are multiples of `clip_norm * 2^-grid_bits`.
        grid_bits: u8,
        /// s: the norm by which one device moves all releases of a run, in clip norms.
        sensitivity: Sensitivity,
        /// The rounds of the run, and the rounds in which one device may take part.
        participation: Participation,
    },
}

impl Mechanism {
    /// Returns z, as configured.
    #[must_use]
    pub const fn noise_multiplier(&self) -> NoiseMultiplier {
        match *self {
            Self::Gaussian { noise_multiplier }
            | Self::DiscreteGaussian {
                noise_multiplier, ..
            }
            | Self::CorrelationMatrix { noise_multiplier }
            | Self::Moments {
                noise_multiplier, ..
            }
            | Self::Score {
                noise_multiplier, ..
            }
            | Self::Answer {
                noise_multiplier, ..
            }
            | Self::Correlated {
                noise_multiplier, ..
            } => noise_multiplier,
        }
    }

    /// Returns the std of the noise on each release, in clip norms: z, times the sensitivity for
    /// correlated noise.
    #[must_use]
    pub const fn release_multiplier(&self) -> f64 {
        let multiplier = self.noise_multiplier().get();
        match *self {
            Self::Correlated { sensitivity, .. } => multiplier * sensitivity.get(),
            _ => multiplier,
        }
    }

    /// Returns the mechanism with another amount of noise, for calibration.
    #[must_use]
    pub const fn with_noise_multiplier(self, noise_multiplier: NoiseMultiplier) -> Self {
        match self {
            Self::Gaussian { .. } => Self::Gaussian { noise_multiplier },
            Self::DiscreteGaussian { grid_bits, .. } => Self::DiscreteGaussian {
                noise_multiplier,
                grid_bits,
            },
            Self::CorrelationMatrix { .. } => Self::CorrelationMatrix { noise_multiplier },
            Self::Moments { grid_bits, .. } => Self::Moments {
                noise_multiplier,
                grid_bits,
            },
            Self::Score { grid_bits, .. } => Self::Score {
                noise_multiplier,
                grid_bits,
            },
            Self::Answer {
                grid_bits,
                question,
                ..
            } => Self::Answer {
                noise_multiplier,
                grid_bits,
                question,
            },
            Self::Correlated {
                grid_bits,
                sensitivity,
                participation,
                ..
            } => Self::Correlated {
                noise_multiplier,
                grid_bits,
                sensitivity,
                participation,
            },
        }
    }

    /// Returns the L2 sensitivity in the unit of the noise multiplier: of the sum, in clip norms,
    /// or of all releases of a run with correlated noise, in units of its own sensitivity.
    #[must_use]
    pub const fn sensitivity(&self, adjacency: Adjacency) -> f64 {
        match (self, adjacency) {
            (_, Adjacency::AddRemove) => 1.0,
            (Self::CorrelationMatrix { .. }, Adjacency::ReplaceOne) => std::f64::consts::SQRT_2,
            (_, Adjacency::ReplaceOne) => 2.0,
        }
    }

    /// Returns the multiplier of a real-valued Gaussian whose randomised rounding is this
    /// mechanism.
    ///
    /// The discrete Gaussian of std s (in grid steps) is, up to a factor 1 ± 4·exp(-2π²·3²) in
    /// every probability, a real Gaussian of std √(s² - 3²) rounded at random to the grid (Peikert
    /// 2010, "An Efficient and Parallel Gaussian Sampler for Lattices", Theorem 3.1, with the
    /// smoothing bound of the integers). Rounding commutes with integer shifts, so every bound for
    /// the real Gaussian of that std holds, for any sampling and composition. The factor adds less
    /// than 1e-58 to epsilon for 10¹⁰ parameters and 10⁷ rounds.
    #[must_use]
    pub fn continuous_multiplier(&self) -> f64 {
        let multiplier = self.noise_multiplier().get();
        let Some(grid_steps) = self.noise_steps() else {
            return multiplier;
        };
        if grid_steps <= ROUNDING_STD {
            return 0.0;
        }
        let ratio = ROUNDING_STD / grid_steps;
        multiplier * (1.0 - ratio * ratio).sqrt()
    }

    /// Returns the std of the noise in steps of its grid. `None` for real-valued noise.
    #[must_use]
    pub fn noise_steps(&self) -> Option<f64> {
        let multiplier = self.noise_multiplier().get();
        match *self {
            Self::Gaussian { .. } | Self::CorrelationMatrix { .. } => None,
            Self::DiscreteGaussian { grid_bits, .. }
            | Self::Moments { grid_bits, .. }
            | Self::Score { grid_bits, .. }
            | Self::Answer { grid_bits, .. } => Some(multiplier * f64::from(grid_bits).exp2()),
            Self::Correlated {
                grid_bits,
                sensitivity,
                ..
            } => Some(fine_steps(multiplier * sensitivity.get(), grid_bits)),
        }
    }

    /// Returns whether the sum of several noises of multiplier `each` counts as one discrete
    /// Gaussian: the grid is fine enough for each, or there is no grid.
    pub(super) fn is_on_grid_of(&self, each: NoiseMultiplier) -> bool {
        let steps = self.with_noise_multiplier(each).noise_steps();
        steps.is_none_or(|steps| steps >= f64::from(MIN_NOISE_STEPS))
    }
}
