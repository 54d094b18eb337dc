//! A strategy of correlated noise: the transformation of the sums of rounds before noise is added,
//! its sensitivity, its cost, and the errors of the estimated prefix sums.

use super::blt::Blt;
use super::error::CorrelatedError;
use super::family::Family;
use super::optimise::{Objective, banded};
use super::participation::Participation;
use super::sensitivity::{COEFFICIENT_UNIT, Sensitivity};
use super::series::Series;
use super::toeplitz::{Toeplitz, square_root};
use super::tree::Tree;
use crate::params::{NoiseMultiplier, ParamError, SamplingRate};
use crate::sampling::Sampling;

/// The largest magnitude of an exact sum to which discrete Gaussian noise of at most 2⁶⁰ can be
/// added in an `i64`.
pub const SUM_LIMIT: u64 = (7 << 60) - 1;

/// The release of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrategyKind {
    /// One vector: Σ m_j X_{t-j} plus noise.
    Toeplitz(Toeplitz),
    /// The nodes of a binary tree that the round completes: the sum of each, times 256, plus noise.
    Tree(Tree),
}

/// A mechanism of correlated noise for the rounds of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Strategy {
    participation: Participation,
    /// τ of block-cyclic sampling, if devices are drawn in this way.
    sampling_rate: Option<SamplingRate>,
    kind: StrategyKind,
    sensitivity: Sensitivity,
    /// err_t, for noise of variance 1 on each release.
    errors: Vec<f64>,
}

impl Strategy {
    /// Creates the strategy of a family. Coefficients are first rounded to multiples of 1/256, and
    /// the sensitivity and errors are computed from the rounded ones.
    ///
    /// * Cost: O(n log n), for the banded-optimal families times the steps of an optimiser: 5 ms at
    ///   n = 2,052, 0.6 s at n = 100,000 (`benches/correlated.rs`).
    ///
    /// # Errors
    /// None for a checked `participation`.
    pub fn plan(family: Family, participation: Participation) -> Result<Self, CorrelatedError> {
        let rounds = participation.rounds();
        let bands = participation.separation() as usize;
        let series = Series::new(rounds as usize);
        let c = match family {
            Family::Tree => return Ok(Self::tree(participation)),
            Family::Identity => vec![1.0],
            Family::SquareRoot => square_root(rounds as usize),
            Family::SquareRootBanded => square_root(bands),
            Family::BandedOptimalMean => banded(participation, Objective::Mean, &series),
            Family::BandedOptimalMax => banded(participation, Objective::Max, &series),
        };
        let toeplitz = Toeplitz::rounded(&c, rounds)?;
        Ok(Self::toeplitz(participation, toeplitz, &series))
    }

    /// Creates the strategy of integer coefficients m_0, m_1, .. in units of 1/256, with m_0 = 256.
    ///
    /// # Errors
    /// [`CorrelatedError::FirstCoefficient`] or [`CorrelatedError::LargeCoefficient`].
    pub fn from_coefficients(
        participation: Participation,
        coefficients: Vec<i64>,
    ) -> Result<Self, CorrelatedError> {
        let rounds = participation.rounds();
        let toeplitz = Toeplitz::new(coefficients, rounds)?;
        let series = Series::new(rounds as usize);
        Ok(Self::toeplitz(participation, toeplitz, &series))
    }

    /// Creates the strategy of buffered linear Toeplitz coefficients, rounded to multiples of
    /// 1/256.
    ///
    /// # Errors
    /// None for checked parameters.
    pub fn from_blt(participation: Participation, blt: &Blt) -> Result<Self, CorrelatedError> {
        let rounds = participation.rounds();
        let toeplitz = Toeplitz::rounded(&blt.coefficients(rounds as usize), rounds)?;
        let series = Series::new(rounds as usize);
        Ok(Self::toeplitz(participation, toeplitz, &series))
    }

    fn toeplitz(participation: Participation, toeplitz: Toeplitz, series: &Series) -> Self {
        Self {
            participation,
            sampling_rate: None,
            sensitivity: toeplitz.sensitivity(participation),
            errors: toeplitz.errors(series),
            kind: StrategyKind::Toeplitz(toeplitz),
        }
    }

    fn tree(participation: Participation) -> Self {
        let tree = Tree::new(participation.rounds());
        Self {
            participation,
            sampling_rate: None,
            sensitivity: tree.sensitivity(participation),
            errors: tree.errors(),
            kind: StrategyKind::Tree(tree),
        }
    }

    /// Returns the strategy with block-cyclic sampling: b parts of the population take turns, and
    /// each device of the round's part is drawn with probability `sampling_rate`, in secret
    /// ([`Sampling::BlockCyclic`]). A device still takes part at most once in b rounds. The
    /// sensitivity is that of one participation: each is a separate release, which the draw hides
    /// ([`correlated`](crate::correlated)).
    ///
    /// # Errors
    /// [`CorrelatedError::NotBanded`] for more than b bands, or a tree: releases of two
    /// participations would overlap.
    pub fn block_cyclic(self, sampling_rate: SamplingRate) -> Result<Self, CorrelatedError> {
        let separation = self.participation.separation();
        let sensitivity = match &self.kind {
            StrategyKind::Toeplitz(toeplitz)
                if toeplitz.coefficients().len() <= separation as usize =>
            {
                toeplitz.sensitivity(self.participation.of_one_block())
            }
            StrategyKind::Toeplitz(_) | StrategyKind::Tree(_) => {
                return Err(CorrelatedError::NotBanded {
                    separation,
                    banded: Family::banded_names(),
                });
            }
        };
        Ok(Self {
            sampling_rate: Some(sampling_rate),
            sensitivity,
            ..self
        })
    }

    /// Returns the bound on the participation of devices.
    #[must_use]
    pub const fn participation(&self) -> Participation {
        self.participation
    }

    /// Returns τ of block-cyclic sampling. `None` without an assumption on who takes part.
    #[must_use]
    pub const fn sampling_rate(&self) -> Option<SamplingRate> {
        self.sampling_rate
    }

    /// Returns the sampling scheme of the devices of a federation.
    ///
    /// # Errors
    /// [`ParamError::NoDevices`] without devices. [`ParamError::Parts`] with fewer devices than
    /// parts.
    pub fn sampling(&self, device_count: u32) -> Result<Sampling, ParamError> {
        match self.sampling_rate {
            None => Sampling::unsampled(device_count, self.participation.participations()),
            Some(rate) => {
                Sampling::block_cyclic(device_count, self.participation.separation(), rate)
            }
        }
    }

    /// Returns the release of a round.
    #[must_use]
    pub const fn kind(&self) -> &StrategyKind {
        &self.kind
    }

    /// Returns the number of vectors that round `round` releases, each with separate noise.
    #[must_use]
    pub const fn releases(&self, round: u32) -> u32 {
        match &self.kind {
            StrategyKind::Toeplitz(_) => 1,
            StrategyKind::Tree(tree) => tree.completed(round),
        }
    }

    /// Returns s: the largest L2 norm by which one device moves all releases of the run together,
    /// in clip norms, rounded up. With block-cyclic sampling, by one participation.
    #[must_use]
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity.norm()
    }

    /// Returns s² in units of 1/256², exactly.
    #[must_use]
    pub const fn sensitivity_squared(&self) -> u128 {
        self.sensitivity.squared
    }

    /// Returns whether some device attains the sensitivity. Otherwise it is an upper bound.
    #[must_use]
    pub const fn is_sensitivity_exact(&self) -> bool {
        self.sensitivity.is_exact
    }

    /// Returns the standard deviation of the noise in the estimated sum of rounds 0 to t, for every
    /// t, in clip norms and for noise multiplier 1: s √err_t.
    #[must_use]
    pub fn prefix_stds(&self) -> Vec<f64> {
        let sensitivity = self.sensitivity();
        let errors = self.errors.iter();
        errors.map(|error| sensitivity * error.sqrt()).collect()
    }

    /// Returns the root of the mean variance of all prefix sums, for noise multiplier 1.
    #[must_use]
    pub fn rmse(&self) -> f64 {
        let mean = self.errors.iter().sum::<f64>() / self.errors.len() as f64;
        self.sensitivity() * mean.sqrt()
    }

    /// Returns the largest standard deviation of a prefix sum, for noise multiplier 1.
    #[must_use]
    pub fn max_error(&self) -> f64 {
        let largest = self.errors.iter().copied().fold(0.0, f64::max);
        self.sensitivity() * largest.sqrt()
    }

    /// Returns the noise multiplier of independent noise in every round with the same
    /// [`rmse`](Self::rmse), for comparison: its prefix sums have a mean variance of (n + 1) / 2.
    ///
    /// # Errors
    /// [`ParamError::OutOfRange`] if it is not finite.
    pub fn independent_multiplier(
        &self,
        noise_multiplier: NoiseMultiplier,
    ) -> Result<NoiseMultiplier, ParamError> {
        let mean = (f64::from(self.participation.rounds()) + 1.0) / 2.0;
        NoiseMultiplier::new(noise_multiplier.get() * self.rmse() / mean.sqrt())
    }

    /// Returns the standard deviation of the noise on each release, in steps of the finer grid (the
    /// clip norm times 2^-grid_bits / 256): z s 2^grid_bits 256.
    #[must_use]
    pub fn noise_steps(&self, noise_multiplier: NoiseMultiplier, grid_bits: u8) -> f64 {
        fine_steps(noise_multiplier.get() * self.sensitivity(), grid_bits)
    }

    /// Returns the number of exact sums of past rounds that the server keeps, including the current
    /// round. They are private.
    #[must_use]
    pub fn kept_sums(&self) -> usize {
        match &self.kind {
            StrategyKind::Toeplitz(toeplitz) => toeplitz.coefficients().len(),
            StrategyKind::Tree(tree) => tree.heights() as usize,
        }
    }

    /// Returns the largest factor between an entry of a round's sum and of a release, before noise:
    /// Σ |m_j| or, for the tree, 256 times the rounds of its largest node.
    #[must_use]
    pub fn weight(&self) -> i64 {
        match &self.kind {
            StrategyKind::Toeplitz(toeplitz) => toeplitz.weight(),
            StrategyKind::Tree(tree) => tree.weight(),
        }
    }

    /// Returns the largest cohort whose releases fit into an `i64` with updates of `grid_bits`
    /// bits.
    #[must_use]
    pub fn max_cohort(&self, grid_bits: u8) -> u64 {
        let weight = self.weight().unsigned_abs();
        (SUM_LIMIT / weight)
            .checked_shr(u32::from(grid_bits))
            .unwrap_or(0)
    }

    /// Returns the largest number of grid bits with which the releases of a cohort fit into an
    /// `i64`. `None` if the cohort is too large for any.
    #[must_use]
    pub fn max_grid_bits(&self, cohort: u64) -> Option<u8> {
        (0..=u8::MAX)
            .take_while(|bits| self.max_cohort(*bits) >= cohort)
            .last()
    }
}

/// Converts a length in clip norms to steps of the grid of correlated noise.
pub(crate) fn fine_steps(clip_norms: f64, grid_bits: u8) -> f64 {
    clip_norms * f64::from(grid_bits).exp2() * COEFFICIENT_UNIT as f64
}
