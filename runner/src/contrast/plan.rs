//! Learning without labels in an experiment, settled before the run.

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;
use smolfed_simd::Network;

use super::variations::Variations;
use crate::config::{AlphaName, ExchangeTime};

/// How an encoder is learned without labels.
#[derive(Clone, Debug)]
pub struct ContrastPlan {
    /// The encoder.
    pub network: Network,
    /// How views differ from their sample.
    pub variations: Variations,
    /// V: a sample has 2V views.
    pub pairs: usize,
    /// μ, where representations are clipped in training: where matrices get noise (papers.md F7).
    pub norm_bound: Option<f32>,
    /// Whether one device holds all samples.
    pub is_central: bool,
    /// What devices share beside the encoder; `None` for federated averaging.
    pub sharing: Option<Sharing>,
    /// Neighbours that vote in the evaluation.
    pub neighbours: usize,
    /// Samples of a device whose labels its own head learns from.
    pub labels: usize,
}

/// How devices share correlation matrices.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// α from then on; before, it is 1.
    pub alpha: AlphaName,
    /// The first round with matrices: of all devices.
    pub from: u32,
    /// From then on, the cohort of every so many rounds sends them.
    pub every: u32,
    /// When a device sends its matrix.
    pub exchange: ExchangeTime,
    /// Most matrices of one device.
    pub max_releases: u32,
    /// Samples of the device that has most.
    pub most_samples: u32,
    /// The grid of μ, on which matrices are summed.
    pub grid: Grid,
    /// What a device adds to the sum over its samples, in steps of the grid.
    pub noise: Option<DiscreteGaussian>,
    /// Its std, in steps; 0 without noise.
    pub noise_std: f64,
}

impl Sharing {
    /// Whether matrices are sent in this round.
    #[must_use]
    pub const fn is_in(&self, round: u32) -> bool {
        round >= self.from && (round - self.from).is_multiple_of(self.every)
    }

    /// Rounds with matrices among the first `rounds`.
    #[must_use]
    pub const fn count(&self, rounds: u32) -> u32 {
        rounds.saturating_sub(self.from).div_ceil(self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::params::ClipNorm;

    #[test]
    fn rounds_with_matrices_are_counted() {
        let mut sharing = Sharing {
            alpha: AlphaName::Decay,
            from: 2,
            every: 3,
            exchange: ExchangeTime::BeforeTraining,
            max_releases: 1,
            most_samples: 1,
            grid: Grid::new(ClipNorm::new(1.0).unwrap(), 20).unwrap(),
            noise: None,
            noise_std: 0.0,
        };
        for (from, every) in [(0, 1), (2, 3), (5, 1), (3, 10)] {
            (sharing.from, sharing.every) = (from, every);
            for rounds in 0..20 {
                let found = (0..rounds).filter(|round| sharing.is_in(*round)).count();
                assert_eq!(
                    found,
                    sharing.count(rounds) as usize,
                    "{from} {every} {rounds}"
                );
            }
        }
    }
}
