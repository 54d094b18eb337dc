//! Draws from a named stream: bounded integers, shuffles, normal and gamma variables.
//!
//! The order of draws and every float operation are fixed (`f64` through `libm`), so a seed gives
//! the same data on every machine. For data only: `smolfed_core::noise` draws noise that protects
//! privacy, exactly and in integers.

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};

/// Returns the stream for dealing and splitting. `part` names the purpose.
pub(super) fn partition_stream(seed: u64, part: u32, device: u32) -> Stream {
    Root::from_seed(seed).stream(StreamId {
        purpose: Purpose::Partition,
        round: part,
        device,
    })
}

/// Returns the stream for synthetic data. `part` names the purpose.
pub(super) fn synthesis_stream(seed: u64, part: u32, device: u32) -> Stream {
    Root::from_seed(seed).stream(StreamId {
        purpose: Purpose::Synthesis,
        round: part,
        device,
    })
}

/// Draws a uniform integer in `0..bound`. 0 for a bound of 0 or 1.
///
/// Source: Lemire, "Fast Random Integer Generation in an Interval", 2019, Algorithm 5: the upper
/// half of `draw * bound`, drawn again if the lower half falls into the uneven rest.
pub(super) fn below(rng: &mut impl Rng, bound: u32) -> u32 {
    let rest = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        if product as u32 >= rest {
            return (product >> 32) as u32;
        }
    }
}

/// Shuffles at most 2³² − 1 items in place with a uniform order (Fisher and Yates, in the version
/// of Durstenfeld 1964).
pub(super) fn shuffle<T>(rng: &mut impl Rng, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u32 + 1) as usize);
    }
}

/// Draws uniformly from the 2⁵³ evenly spaced numbers of (0, 1]. It is never 0, so its logarithm is
/// finite.
pub(super) fn unit(rng: &mut impl Rng) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    ((rng.next_u64() >> 11) + 1) as f64 * STEP
}

/// Standard normal draws in pairs (Box and Muller 1958): √(−2 ln u₁) · (cos, sin)(2π u₂).
#[derive(Default)]
pub(super) struct Normals {
    second: Option<f64>,
}

impl Normals {
    /// Returns the next draw.
    pub(super) fn next(&mut self, rng: &mut impl Rng) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = libm::sqrt(-2.0 * libm::log(unit(rng)));
        let (sin, cos) = libm::sincos(std::f64::consts::TAU * unit(rng));
        self.second = Some(radius * sin);
        radius * cos
    }
}

/// Draws the logarithm of a Gamma(shape, 1) variable, for `shape` > 0. It is the logarithm because
/// draws of a small shape are below the smallest float.
///
/// Source: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000. For a shape
/// below 1, their section 6: Gamma(shape) = Gamma(shape + 1) · u^(1/shape).
pub(super) fn log_gamma(rng: &mut impl Rng, normals: &mut Normals, shape: f64) -> f64 {
    let boost = if shape < 1.0 {
        libm::log(unit(rng)) / shape
    } else {
        0.0
    };
    let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normals.next(rng);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if libm::log(unit(rng)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return libm::log(d * v) + boost;
        }
    }
}

/// Fills `shares` with a draw from the symmetric Dirichlet distribution: they sum to 1.
pub(super) fn dirichlet_into(rng: &mut impl Rng, alpha: f64, shares: &mut [f64]) {
    let mut normals = Normals::default();
    for share in shares.iter_mut() {
        *share = log_gamma(rng, &mut normals, alpha);
    }
    let largest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for share in shares.iter_mut() {
        *share = libm::exp(*share - largest);
        total += *share;
    }
    for share in shares.iter_mut() {
        *share /= total;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rng() -> Stream {
        partition_stream(7, 0, 0)
    }

    /// Returns the mean and variance of `count` draws.
    fn moments(count: u32, mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..count {
            let x = draw();
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(count);
        (mean, squares / f64::from(count) - mean * mean)
    }

    #[test]
    fn bounded_draws_hit_every_number_evenly() {
        let mut rng = rng();
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut rng, 7) as usize] += 1;
        }
        // Chi-square with 6 degrees of freedom exceeds 27.9 with probability 1e-4.
        let chi: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4)
            .sum();
        assert!(chi < 27.9, "{counts:?}");
        assert_eq!((below(&mut rng, 0), below(&mut rng, 1)), (0, 0));
    }

    #[test]
    fn first_draws_are_pinned() {
        let mut rng = rng();
        let draws: Vec<u32> = (0..4).map(|_| below(&mut rng, 1000)).collect();
        assert_eq!(draws, [538, 665, 1, 729]);
        assert_eq!(unit(&mut rng).to_bits(), 4_607_140_889_868_799_386);
        assert_eq!(
            Normals::default().next(&mut rng).to_bits(),
            4_607_583_096_408_899_007
        );
    }

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let (mut rng, mut normals) = (rng(), Normals::default());
        let (mean, variance) = moments(100_000, || normals.next(&mut rng));
        // Five standard errors: 1/√n for the mean, √(2/n) for the variance.
        assert!(
            mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023,
            "{mean} {variance}"
        );
    }

    #[test]
    fn gammas_have_mean_and_variance_of_their_shape() {
        for shape in [0.3, 1.0, 4.5] {
            let (mut rng, mut normals) = (rng(), Normals::default());
            let (mean, variance) = moments(100_000, || {
                libm::exp(log_gamma(&mut rng, &mut normals, shape))
            });
            // Five standard errors. The relative one of the variance is √((6/shape + 2)/n).
            let tolerance = 5.0 * (shape / 1e5).sqrt();
            assert!((mean - shape).abs() < tolerance, "{shape}: {mean}");
            let tolerance = 5.0 * shape * ((6.0 / shape + 2.0) / 1e5f64).sqrt();
            assert!((variance - shape).abs() < tolerance, "{shape}: {variance}");
        }
    }

    #[test]
    fn tiny_alpha_still_gives_shares() {
        let mut shares = [0.0; 5];
        dirichlet_into(&mut rng(), 1e-6, &mut shares);
        assert!(
            (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12,
            "{shares:?}"
        );
        assert!(shares.iter().any(|&share| share > 0.999), "{shares:?}");
    }

    proptest! {
        /// A shuffle keeps every item.
        #[test]
        fn shuffle_is_a_permutation(seed: u64, length in 0usize..100) {
            let mut items: Vec<usize> = (0..length).collect();
            shuffle(&mut partition_stream(seed, 0, 0), &mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..length).collect::<Vec<_>>());
        }

        /// Bounded draws stay below their bound.
        #[test]
        fn bounded_draws_stay_below(seed: u64, bound in 1u32..) {
            prop_assert!(below(&mut partition_stream(seed, 0, 0), bound) < bound);
        }
    }
}
