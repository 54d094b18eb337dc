//! Independent noise: one exact discrete Gaussian per coordinate and round.

use rayon::prelude::*;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_simd::Words;

/// Coordinates that share one noise stream, so that large models draw noise on all threads.
const NOISE_BLOCK: usize = 4096;

/// Adds noise to a sum: one exact discrete Gaussian per coordinate.
///
/// The noise of block b of 4,096 coordinates in round t comes from the stream (purpose, t, b) under
/// the root of the party that adds it. The purpose names the kind of release, and no stream is used
/// twice.
pub(crate) fn add_noise(
    sum: &mut [i64],
    noise: &DiscreteGaussian,
    root: &Root,
    purpose: Purpose,
    number: u32,
) {
    sum.par_chunks_mut(NOISE_BLOCK)
        .enumerate()
        .for_each(|(index, block)| {
            let id = StreamId {
                purpose,
                round: number,
                device: index as u32,
            };
            noise.add_to(block, &mut Words::new(root, id));
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_noise_are_independent_of_each_other_and_of_the_round() {
        let noise = DiscreteGaussian::new(1_000_000, 1).unwrap();
        let draw = |round| {
            let mut sum = vec![0; NOISE_BLOCK + 8];
            let root = Root::from_seed(1);
            add_noise(&mut sum, &noise, &root, Purpose::ServerNoise, round);
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
