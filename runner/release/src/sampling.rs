//! Sampling of the devices of a round: a cohort of fixed size, an independent draw of each device
//! (Poisson, block-cyclic), or all devices. A cohort is drawn from the same [`Sampling`] value as
//! the privacy event carries, so the sampler and the accounting cannot disagree.
//!
//! The cohort of round t comes from the server's stream (CohortSampling, t, 0) alone: it does not
//! depend on earlier rounds, and a resumed run draws the same cohort. Amplification by sampling
//! assumes that only the server learns the cohorts. A simulation's seed reveals them. Devices whose
//! messages are visible to others are therefore drawn from another stream, (SenderSampling, t, 0).

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use rand_core::Rng;
use smolfed_core::stream::{self, Purpose, Root, StreamId};

use smolfed_accounting::event::Sampling;

/// Draws the cohort of `round`, in ascending order of devices.
///
/// * `Uniform`: every set of `cohort_size` devices is equally likely. Memory and time of Floyd's
///   method grow with the cohort, not with the federation.
/// * `Poisson`: every device independently with probability τ. τ is compared as a multiple of
///   2⁻⁶⁴, rounded down: no device is drawn more often than the accounting assumes.
/// * `Full` and `Unsampled`: every device. With `Unsampled`, the devices themselves decide when to
///   take part. In a simulation all of them do.
/// * `BlockCyclic`: an empty cohort, because the part is not known here. Use [`draw_of_part`].
#[must_use]
pub fn draw_cohort(sampling: &Sampling, root: &Root, round: u32) -> Vec<u32> {
    draw(sampling, root, Purpose::CohortSampling, round)
}

/// Draws the cohort of `round` from the devices of its part, in their order: each independently
/// with probability τ, like `Poisson`, from the same stream.
#[must_use]
pub fn draw_of_part(sampling: &Sampling, part: &[u32], root: &Root, round: u32) -> Vec<u32> {
    // If nothing is drawn at random, the accounting claims no amplification.
    let rate = sampling.sampling_rate().unwrap_or(1.0);
    let mut rng = root.stream(id(Purpose::CohortSampling, round));
    poisson(part.iter().copied(), rate, &mut rng)
}

/// Draws the devices that send a separate message in `round`, in ascending order, like
/// [`draw_cohort`] but independently of the cohort. The senders are visible to others, so messages
/// of the cohort would reveal the draw that amplifies the privacy of updates.
#[must_use]
pub fn draw_senders(sampling: &Sampling, root: &Root, round: u32) -> Vec<u32> {
    draw(sampling, root, Purpose::SenderSampling, round)
}

fn draw(sampling: &Sampling, root: &Root, purpose: Purpose, round: u32) -> Vec<u32> {
    let mut rng = root.stream(id(purpose, round));
    match *sampling {
        Sampling::Uniform {
            device_count,
            cohort_size,
            ..
        } => uniform(device_count, cohort_size, &mut rng),
        Sampling::Poisson {
            device_count,
            sampling_rate,
            ..
        } => poisson(0..device_count, sampling_rate.get(), &mut rng),
        Sampling::BlockCyclic { .. } => Vec::new(),
        Sampling::Full { device_count, .. } | Sampling::Unsampled { device_count, .. } => {
            (0..device_count).collect()
        }
    }
}

const fn id(purpose: Purpose, round: u32) -> StreamId {
    StreamId {
        purpose,
        round,
        device: 0,
    }
}

/// Floyd's method: for each of the last `size` devices, chooses a uniform device up to it, or the
/// device itself if that one is taken.
fn uniform(device_count: u32, size: u32, rng: &mut impl Rng) -> Vec<u32> {
    let mut chosen = BTreeSet::new();
    for last in device_count.saturating_sub(size)..device_count {
        let candidate = match NonZeroU32::new(last.wrapping_add(1)) {
            Some(bound) => stream::below(bound, rng),
            // `last` is u32::MAX: every word is below 2^32.
            None => rng.next_u32(),
        };
        if !chosen.insert(candidate) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().collect()
}

fn poisson(devices: impl Iterator<Item = u32>, rate: f64, rng: &mut impl Rng) -> Vec<u32> {
    // A product with a power of two is exact. `as` saturates 2^64 to the largest word, and a rate
    // of 1 is handled separately.
    let threshold = (rate * 2f64.powi(64)) as u64;
    let certain = rate >= 1.0;
    devices
        .filter(|_| rng.next_u64() < threshold || certain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_accounting::params::SamplingRate;

    fn counts(sampling: &Sampling, rounds: u32) -> (Vec<u32>, Vec<usize>) {
        let root = Root::from_seed(7);
        let mut per_device = vec![0; sampling.device_count() as usize];
        let mut sizes = Vec::new();
        for round in 0..rounds {
            let cohort = draw_cohort(sampling, &root, round);
            assert!(
                cohort.windows(2).all(|pair| pair[0] < pair[1]),
                "ascending, no repeats"
            );
            sizes.push(cohort.len());
            for device in cohort {
                per_device[device as usize] += 1;
            }
        }
        (per_device, sizes)
    }

    #[test]
    fn uniform_cohorts_have_their_size_and_every_device_the_same_chance() {
        let (per_device, sizes) = counts(&Sampling::uniform(40, 10).unwrap(), 8_000);
        assert!(sizes.iter().all(|size| *size == 10));
        // Each count is Binomial(8000, 1/4): standard deviation 38.7. Beyond 6 deviations for one
        // of 40 devices: probability below 40 · 2e-9 < 1e-7.
        assert!(
            per_device.iter().all(|n| n.abs_diff(2_000) < 233),
            "{per_device:?}"
        );
    }

    #[test]
    fn uniform_pairs_are_equally_likely() {
        let root = Root::from_seed(9);
        let sampling = Sampling::uniform(5, 2).unwrap();
        let mut pairs = std::collections::BTreeMap::new();
        for round in 0..20_000 {
            *pairs
                .entry(draw_cohort(&sampling, &root, round))
                .or_insert(0u32) += 1;
        }
        assert_eq!(pairs.len(), 10);
        // Binomial(20000, 1/10) has standard deviation 42.4. 6 deviations: below 10 · 2e-9.
        assert!(pairs.values().all(|n| n.abs_diff(2_000) < 255), "{pairs:?}");
    }

    #[test]
    fn poisson_cohorts_vary_and_match_the_rate() {
        let rate = SamplingRate::new(0.05).unwrap();
        let (per_device, sizes) = counts(&Sampling::poisson(100, rate).unwrap(), 4_000);
        let total: usize = sizes.iter().sum();
        // 400,000 coins of 1/20 have standard deviation 138. 6 deviations: below 2e-9.
        assert!(total.abs_diff(20_000) < 828, "{total}");
        // Binomial(4000, 1/20) has standard deviation 13.8. 6.5 deviations on 100 devices: below
        // 1e-8.
        assert!(
            per_device.iter().all(|n| n.abs_diff(200) < 90),
            "{per_device:?}"
        );
        assert!(sizes.iter().any(|size| *size != 5));
    }

    /// The coins of a device, one bit per round.
    type Coins = [u64; (ROUNDS / 64) as usize];

    const ROUNDS: u32 = 512;

    /// Returns the coins of these devices in all rounds.
    fn coins(devices: &[u32], cohort: impl Fn(u32) -> Vec<u32>) -> Vec<Coins> {
        let mut coins = vec![Coins::default(); devices.len()];
        for round in 0..ROUNDS {
            for device in cohort(round) {
                let place = devices.binary_search(&device).unwrap();
                coins[place][(round / 64) as usize] |= 1 << (round % 64);
            }
        }
        coins
    }

    /// Two devices that share coins, or that are drawn only in different rounds, lose their
    /// amplification. With fair and independent coins, two of them agree in Binomial(512, 1/2)
    /// rounds: off by 85 or more with a probability of at most 2 exp(-2 · 85² / 512) (Hoeffding).
    /// This is below 6e-7 for any of the 523,776 pairs of 1,024 devices, and below 1e-6 for both
    /// draws, as the 256 devices of a part have 32,640 pairs.
    #[test]
    fn no_two_devices_share_a_coin() {
        let root = Root::from_seed(17);
        let rate = SamplingRate::new(0.5).unwrap();
        let all: Vec<u32> = (0..1_024).collect();
        let sampling = Sampling::poisson(1_024, rate).unwrap();
        let drawn = coins(&all, |round| draw_cohort(&sampling, &root, round));
        let part: Vec<u32> = (0..256).map(|i| 4 * i + 3).collect();
        let sampling = Sampling::block_cyclic(1_024, 4, rate).unwrap();
        let in_turn = coins(&part, |round| draw_of_part(&sampling, &part, &root, round));
        for coins in [drawn, in_turn] {
            for (place, one) in coins.iter().enumerate() {
                for (other, coins) in coins.iter().enumerate().skip(place + 1) {
                    let differ = one.iter().zip(coins).map(|(a, b)| (a ^ b).count_ones());
                    let differ: u32 = differ.sum();
                    assert!(differ.abs_diff(256) < 85, "{place}, {other}: {differ}");
                }
            }
        }
    }

    /// A generator that always returns the same word.
    struct Always(u64);

    impl rand_core::TryRng for Always {
        type Error = std::convert::Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(self.0 as u32)
        }

        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
            let words = self.0.to_le_bytes().into_iter().cycle();
            bytes
                .iter_mut()
                .zip(words)
                .for_each(|(to, byte)| *to = byte);
            Ok(())
        }
    }

    /// At most a share `rate` of the 2^64 words draws a device.
    #[test]
    fn no_word_draws_a_device_beyond_its_rate() {
        let is_drawn = |rate, word| !poisson(0..1, rate, &mut Always(word)).is_empty();
        assert!(is_drawn(0.5, (1 << 63) - 1) && !is_drawn(0.5, 1 << 63));
        assert!(is_drawn(1.0, u64::MAX));
    }

    #[test]
    fn everybody_comes_when_nobody_is_left_out() {
        let root = Root::from_seed(1);
        let all: Vec<u32> = (0..4).collect();
        assert_eq!(draw_cohort(&Sampling::full(4).unwrap(), &root, 3), all);
        assert_eq!(
            draw_cohort(&Sampling::uniform(4, 4).unwrap(), &root, 3),
            all
        );
        let certain = SamplingRate::new(1.0).unwrap();
        assert_eq!(
            draw_cohort(&Sampling::poisson(4, certain).unwrap(), &root, 3),
            all
        );
    }

    #[test]
    fn a_round_draws_the_same_cohort_whenever_it_is_asked() {
        let root = Root::from_seed(3);
        let sampling = Sampling::uniform(1_000_000, 20).unwrap();
        let first = draw_cohort(&sampling, &root, 5);
        assert_eq!(first, draw_cohort(&sampling, &root, 5));
        assert_ne!(first, draw_cohort(&sampling, &root, 6));
    }

    /// Others see the senders: if they depended on the cohort, they would reveal it.
    #[test]
    fn senders_are_drawn_as_a_cohort_is_and_independently_of_it() {
        let root = Root::from_seed(3);
        let sampling = Sampling::uniform(1_000_000, 20).unwrap();
        let senders = draw_senders(&sampling, &root, 5);
        assert_eq!(senders.len(), 20);
        assert_eq!(senders, draw_senders(&sampling, &root, 5));
        assert_ne!(senders, draw_senders(&sampling, &root, 6));
        // 20 of 20 devices out of a million: they intersect with a probability below 4e-4.
        let cohort = draw_cohort(&sampling, &root, 5);
        assert!(senders.iter().all(|device| !cohort.contains(device)));
    }
}
