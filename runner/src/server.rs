//! The server's side of a round: noise on the exact sum, then averaging, denoising and the step.
//!
//! Before [`add_noise`] everything is integer and private; after it everything is post-processing
//! and free, whatever it does.

mod denoise;

use rayon::prelude::*;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::LearningRate;
use smolfed_core::stream::{Purpose, Root, StreamId};

pub use denoise::Denoiser;

/// Coordinates that share one noise stream, so that large models draw noise on all threads.
const NOISE_BLOCK: usize = 4096;

/// Adds central noise to a sum: one exact discrete Gaussian a coordinate.
///
/// The noise of block b of 4,096 coordinates in round t comes from the server's stream
/// (ServerNoise, t, b); no stream serves twice.
pub fn add_noise(sum: &mut [i64], noise: &DiscreteGaussian, root: &Root, round: u32) {
    sum.par_chunks_mut(NOISE_BLOCK)
        .enumerate()
        .for_each(|(index, block)| {
            let id = StreamId {
                purpose: Purpose::ServerNoise,
                round,
                device: index as u32,
            };
            noise.add_to(block, &mut root.stream(id));
        });
}

/// What the server does with the noisy sum: `w ← w + η_g · denoise(sum / denominator)`.
#[derive(Clone, Debug)]
pub struct ServerStep {
    /// η_g.
    pub learning_rate: LearningRate,
    /// What happens to the noisy average.
    pub denoiser: Denoiser,
    /// What the sum is divided by; `None` for the number of devices drawn.
    pub fixed_denominator: Option<f64>,
}

/// A sum after the noise, with what is needed to read it.
#[derive(Clone, Copy, Debug)]
pub struct NoisySum<'a> {
    /// Integers, one a parameter.
    pub integers: &'a [i64],
    /// One step of the integers, in units of the parameters.
    pub step: f64,
    /// Std of the noise in the sum, in units of the parameters.
    pub noise_std: f64,
    /// Devices that were drawn.
    pub cohort_size: usize,
}

impl ServerStep {
    /// The denominator of a round; `None` when it is the realised size and nobody came.
    #[must_use]
    pub fn denominator(&self, cohort_size: usize) -> Option<f64> {
        let realised = (cohort_size > 0).then_some(cohort_size as f64);
        self.fixed_denominator.or(realised)
    }

    /// The noisy average, before denoising.
    #[must_use]
    pub fn average(&self, sum: &NoisySum<'_>) -> Vec<f32> {
        let Some(denominator) = self.denominator(sum.cohort_size) else {
            return vec![0.0; sum.integers.len()];
        };
        let scale = |q: &i64| (*q as f64 * sum.step / denominator) as f32;
        sum.integers.iter().map(scale).collect()
    }

    /// Denoises an average in place and adds it to the global model.
    pub fn apply(
        &self,
        global: &mut [f32],
        average: &mut [f32],
        sum: &NoisySum<'_>,
        tensors: &[usize],
    ) {
        let denominator = self.denominator(sum.cohort_size).unwrap_or(1.0);
        self.denoiser
            .apply(average, tensors, sum.noise_std / denominator);
        for (parameter, change) in global.iter_mut().zip(average.iter()) {
            *parameter += self.learning_rate.get() * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(fixed_denominator: Option<f64>) -> ServerStep {
        ServerStep {
            learning_rate: LearningRate::new(0.5).unwrap(),
            denoiser: Denoiser::None,
            fixed_denominator,
        }
    }

    fn sum(integers: &[i64], cohort_size: usize) -> NoisySum<'_> {
        NoisySum {
            integers,
            step: 0.25,
            noise_std: 0.0,
            cohort_size,
        }
    }

    #[test]
    fn the_average_divides_by_the_expected_size_whoever_came() {
        assert_eq!(step(Some(4.0)).average(&sum(&[16, -32], 3)), [1.0, -2.0]);
        assert_eq!(step(None).average(&sum(&[16, -32], 2)), [2.0, -4.0]);
    }

    #[test]
    fn an_empty_cohort_changes_nothing_with_the_realised_denominator() {
        let empty = sum(&[16, -32], 0);
        assert_eq!(step(None).denominator(0), None);
        assert_eq!(step(None).average(&empty), [0.0, 0.0]);
    }

    #[test]
    fn the_step_is_scaled_by_the_servers_learning_rate() {
        let (mut global, mut average) = ([1.0, 1.0], [2.0, -4.0]);
        let tensors = [1, 1];
        step(Some(1.0)).apply(&mut global, &mut average, &sum(&[0, 0], 1), &tensors);
        assert_eq!(global, [2.0, -1.0]);
    }

    #[test]
    fn blocks_of_noise_are_independent_of_each_other_and_of_the_round() {
        let noise = DiscreteGaussian::new(1_000_000, 1).unwrap();
        let draw = |round| {
            let mut sum = vec![0; NOISE_BLOCK + 8];
            add_noise(&mut sum, &noise, &Root::from_seed(1), round);
            sum
        };
        let first = draw(0);
        assert_eq!(first, draw(0));
        assert_ne!(
            first[..8],
            first[NOISE_BLOCK..],
            "the second block has a stream of its own"
        );
        assert_ne!(first, draw(1));
    }
}
