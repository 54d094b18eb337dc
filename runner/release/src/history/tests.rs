//! Tests of the mechanism in its release path: it is exact, keeps to its sensitivity, and has the
//! claimed noise.

use proptest::{collection::vec, prelude::*};
use smolfed_accounting::correlated::{Family, Participation, SUM_LIMIT, Strategy};
use smolfed_accounting::{NoiseMultiplier, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Root;

use super::*;
use crate::masked::combination::BLOCK;
use crate::saved::Dtype;
use crate::sum::ReleaseAt;
use crate::{Channel, Encoding, Fault, Mechanism, ReleaseSettings, Timing};

const CLIP_NORM: f64 = 0.5;
const BITS: u32 = 12;

fn strategy(family: Family, (n, b, k): (u32, u32, u32)) -> Arc<Strategy> {
    let participation = Participation::new(n, b, k).unwrap();
    Arc::new(Strategy::plan(family, participation).unwrap())
}

/// Returns a release with this noise multiplier.
fn release(strategy: &Strategy, noise_multiplier: f64) -> ReleaseSettings {
    let grid = Grid::new(ClipNorm::new(CLIP_NORM as f32).unwrap(), BITS).unwrap();
    let multiplier = NoiseMultiplier::new(noise_multiplier).unwrap();
    let steps = strategy.noise_steps(multiplier, BITS as u8);
    let noise = DiscreteGaussian::new(steps.ceil() as u64, 1);
    ReleaseSettings {
        channel: Channel::Updates,
        encoding: Encoding::Clipped(grid),
        weight_cap: None,
        mechanism: Mechanism::for_test(TrustModel::Central, noise.ok()),
        masking: None,
        timing: Timing::EachRound,
        noise_std: noise_multiplier * strategy.sensitivity() * CLIP_NORM,
        is_simulation: true,
        fault: Fault::None,
    }
}

fn at(number: u32) -> ReleaseAt {
    ReleaseAt {
        number,
        learning_rate: 0.1,
        cohort_size: 1,
    }
}

fn sum_of(entries: &[i64]) -> PrivateSum {
    let mut sum = PrivateSum::zero(entries.len());
    sum.integers_mut().copy_from_slice(entries);
    sum
}

/// Runs one round. Returns the release and the estimate.
fn round(
    history: &mut History,
    release: &ReleaseSettings,
    (seed, number): (u64, u32),
    entries: &[i64],
) -> (Vec<i64>, Released) {
    let sum = history.combine(sum_of(entries));
    let released = sum.release(release, &Root::from_seed(seed), &at(number));
    let integers = released.integers().to_vec();
    (integers, history.decode(released).unwrap())
}

fn squares(integers: &[i64]) -> u128 {
    let squares = integers.iter().map(|q| u128::from(q.unsigned_abs()).pow(2));
    squares.sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Without noise, the estimates are the sums.
    #[test]
    fn decoding_undoes_the_combination(
        family in prop::sample::select(Family::ALL.to_vec()),
        (n, b) in (1u32..12, 0u32..12),
        sums in vec(vec(-5000i64..5000, 3), 12),
    ) {
        let strategy = strategy(family, (n, 1 + b % n, 3));
        let mut history = History::new(Some(&strategy), BITS, 3);
        let release = release(&strategy, 0.0);
        let step = release.encoding.step();
        for (number, entries) in (0..n).zip(&sums) {
            let (_, released) = round(&mut history, &release, (1, number), entries);
            prop_assert_eq!(released.length(), 3);
            for (found, x) in released.over(1.0).iter().zip(entries) {
                let expected = *x as f64 * step;
                prop_assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
    }

    /// In integers, like the updates of a device: for any participation within (k, b), any updates,
    /// and any restart of the history.
    #[test]
    fn a_device_moves_the_releases_by_no_more_than_the_sensitivity(
        family in prop::sample::select(Family::ALL.to_vec()),
        (n, b, k) in (1u32..10, 0u32..10, 1u32..5),
        updates in vec([-3000i64..3000, -3000..3000], 10),
        restart in prop::option::of(1u32..10),
    ) {
        let b = 1 + b % n;
        let strategy = strategy(family, (n, b, k));
        let restart = restart.filter(|_| family != Family::Tree);
        let bound = strategy.sensitivity_squared() << (2 * BITS);
        // 3,000 twice is longer than 2^12.
        let inside = |update: &[i64]| squares(update) <= 1 << (2 * BITS);
        for pattern in patterns(n, b, k) {
            let mut history = History::new(Some(&strategy), BITS, 2);
            let mut moved = 0;
            for (number, update) in (0..n).zip(&updates) {
                if restart == Some(number) {
                    history.restart();
                }
                let is_there = pattern >> number & 1 == 1 && inside(update);
                let entries = if is_there { *update } else { [0, 0] };
                moved += squares(history.combine(sum_of(&entries)).integers());
            }
            prop_assert!(moved <= bound, "{pattern:b}: {moved} > {bound}");
        }
    }
}

/// Returns all (k, b) patterns of n rounds, as bits.
fn patterns(n: u32, b: u32, k: u32) -> Vec<u32> {
    let is_allowed = |pattern: &u32| {
        let rounds: Vec<u32> = (0..n).filter(|round| pattern >> round & 1 == 1).collect();
        rounds.len() <= k as usize && rounds.windows(2).all(|pair| pair[1] - pair[0] >= b)
    };
    (0..1 << n).filter(is_allowed).collect()
}

/// The worst pattern attains the bound, so the bound is not too large: one coefficient more than
/// the accounting assumes exceeds it.
#[test]
fn the_worst_pattern_attains_the_sensitivity() {
    for family in Family::ALL {
        let strategy = strategy(family, (9, 3, 2));
        let moved = |strategy: &Arc<Strategy>, pattern: u32| -> u128 {
            let mut history = History::new(Some(strategy), BITS, 1);
            let largest = 1 << BITS;
            (0..9)
                .map(|number| {
                    let entry = if pattern >> number & 1 == 1 {
                        largest
                    } else {
                        0
                    };
                    squares(history.combine(sum_of(&[entry])).integers())
                })
                .sum()
        };
        let patterns = patterns(9, 3, 2);
        let worst = patterns
            .iter()
            .map(|pattern| moved(&strategy, *pattern))
            .max();
        let bound = strategy.sensitivity_squared() << (2 * BITS);
        assert_eq!(worst, Some(bound), "{family}");
        // Injected: coefficients other than the accounted ones.
        if let StrategyKind::Toeplitz(toeplitz) = strategy.kind() {
            let mut other = toeplitz.coefficients().to_vec();
            other.push(1);
            let other = Strategy::from_coefficients(strategy.participation(), other);
            assert!(
                moved(&Arc::new(other.unwrap()), 0b1001) > bound || family == Family::SquareRoot
            );
        }
        // Injected: a device that comes too early.
        let early = moved(&strategy, 0b1_0010_1001).max(moved(&strategy, 0b1_0101));
        assert!(early > bound, "{family}");
    }
}

/// Returns the mean squares of the estimates of each prefix, and of each round, over the claimed
/// variances. The sums are zero, so all of it is noise.
fn spreads(strategy: &Arc<Strategy>, seed: u64, entries: usize) -> Vec<f64> {
    const NOISE_MULTIPLIER: f64 = 1.5;
    let release = release(strategy, NOISE_MULTIPLIER);
    let mut history = History::new(Some(strategy), BITS, entries);
    let mut prefix = vec![0.0; entries];
    let mut ratios = Vec::new();
    let mean_square = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>() / entries as f64;
    for (number, std) in (0..).zip(strategy.prefix_stds()) {
        let (_, released) = round(&mut history, &release, (seed, number), &vec![0; entries]);
        let estimate: Vec<f64> = released.over(1.0).iter().map(|x| f64::from(*x)).collect();
        prefix
            .iter_mut()
            .zip(&estimate)
            .for_each(|(sum, x)| *sum += x);
        let std = std * NOISE_MULTIPLIER * CLIP_NORM;
        ratios.push(mean_square(&prefix) / (std * std));
        let std = released.noise_std();
        ratios.push(mean_square(&estimate) / (std * std));
    }
    ratios
}

/// Returns whether all ratios are within four standard errors of 1: a mean square of d Gaussians
/// has √(2/d).
fn are_as_claimed(ratios: &[f64], entries: usize) -> bool {
    let error = (2.0 / entries as f64).sqrt();
    ratios.iter().all(|ratio| (ratio - 1.0).abs() < 4.0 * error)
}

/// A ratio is outside four standard errors with a probability of 6.4e-5, one of 26 with less than
/// 1.7e-3, and three seeds in a row with less than 5e-9. For six families, this is 3e-8.
#[test]
fn decoded_prefixes_have_the_variance_of_the_formula() {
    const ENTRIES: usize = 1500;
    for family in Family::ALL {
        let strategy = strategy(family, (13, 4, 3));
        let is_as_claimed = |seed| are_as_claimed(&spreads(&strategy, seed, ENTRIES), ENTRIES);
        assert!((1..=3).any(is_as_claimed), "{family}");
    }
}

/// Injected: a round reuses the noise of another round.
#[test]
fn noise_that_is_not_fresh_shows_in_the_prefixes() {
    let strategy = strategy(Family::BandedOptimalMean, (13, 4, 3));
    let mut stale = release(&strategy, 1.5);
    stale.fault = Fault::NoiseStreamReused;
    let mut history = History::new(Some(&strategy), BITS, 50);
    let (first, _) = round(&mut history, &stale, (1, 0), &[0; 50]);
    assert_eq!(first, round(&mut history, &stale, (1, 1), &[0; 50]).0);
    let fresh = release(&strategy, 1.5);
    assert_ne!(first, round(&mut history, &fresh, (1, 2), &[0; 50]).0);
}

/// A round of the tree that completes several nodes has separate noise in each.
#[test]
fn nodes_of_one_round_have_noise_of_their_own() {
    const ENTRIES: usize = 5000;
    let strategy = strategy(Family::Tree, (8, 2, 4));
    let release = release(&strategy, 1.0);
    let mut history = History::new(Some(&strategy), BITS, ENTRIES);
    let released: Vec<Vec<i64>> = (0..8)
        .map(|number| round(&mut history, &release, (1, number), &[0; ENTRIES]).0)
        .collect();
    let nodes: Vec<&[i64]> = released.iter().flat_map(|x| x.chunks(ENTRIES)).collect();
    assert_eq!(nodes.len(), 15);
    for (index, node) in nodes.iter().enumerate() {
        for other in &nodes[..index] {
            let equal = node.iter().zip(*other).filter(|(a, b)| a == b).count();
            assert!(
                equal < 10,
                "{equal} of {ENTRIES} entries have the same noise"
            );
        }
    }
}

#[test]
fn a_restored_history_goes_on_with_the_same_bits() {
    for family in Family::ALL {
        let strategy = strategy(family, (9, 3, 3));
        let release = release(&strategy, 0.7);
        let entries = |number: u32| [i64::from(number) * 71 - 300, 17, -i64::from(number)];
        let mut whole = History::new(Some(&strategy), BITS, 3);
        let step = |history: &mut History, number| {
            let (integers, released) = round(history, &release, (4, number), &entries(number));
            let bits: Vec<u32> = released.over(3.0).iter().map(|x| x.to_bits()).collect();
            (integers, bits, released.noise_std().to_bits())
        };
        for number in 0..5 {
            whole.admit(number, &[number % 3]);
            step(&mut whole, number);
        }
        let mut saved = Saved::default();
        whole.save(&mut saved, true);
        let mut resumed = History::new(Some(&strategy), BITS, 3);
        resumed.restore(&saved, 5).unwrap();
        for number in 5..9 {
            assert_eq!(
                step(&mut whole, number),
                step(&mut resumed, number),
                "{family}"
            );
        }
        assert_eq!(resumed.admit(5, &[0, 1, 2]), Admitted::Only(vec![2]));
        // A damaged state is refused.
        let names: Vec<String> = saved.tensors.keys().cloned().collect();
        for name in names {
            let mut damaged = saved.clone();
            damaged.tensors.get_mut(&name).unwrap().bytes.pop();
            assert!(resumed.restore(&damaged, 5).is_err(), "{name}");
            let mut longer = saved.clone();
            longer.tensors.get_mut(&name).unwrap().bytes.push(7);
            assert!(resumed.restore(&longer, 5).is_err(), "{name}");
            damaged.tensors.remove(&name);
            assert!(resumed.restore(&damaged, 5).is_err(), "{name}");
        }
        let mut other = saved.clone();
        other.tensors.get_mut(SUMS).unwrap().dtype = Dtype::U64;
        assert!(resumed.restore(&other, 5).is_err(), "{family}");
        // The state of another round is refused as well: fewer sums are stored after fewer rounds
        // than there are bands.
        assert!(resumed.restore(&saved, 4).is_err(), "{family}");
        let is_tree = family == Family::Tree;
        let late = resumed.restore(&saved, 6);
        assert_eq!(late.is_err(), is_tree, "{family}");
        let mut counted = saved.clone();
        counted
            .entries
            .values_mut()
            .for_each(|rounds| *rounds = "1".to_owned());
        assert!(resumed.restore(&counted, 5).is_err(), "{family}");
        // The nodes of a tree do not restart, and a history has at most the rounds of its run.
        let mut without = saved.clone();
        without.entries.clear();
        assert_eq!(resumed.restore(&without, 5).is_err(), is_tree, "{family}");
        let rounds = saved.entries.values_mut();
        rounds.for_each(|rounds| *rounds = u32::MAX.to_string());
        assert!(resumed.restore(&saved, 5).is_err(), "{family}");
    }
}

/// An entry of a checkpoint is no larger than the entry of a sum, or of the sum of as many rounds
/// as a node of the tree adds up.
#[test]
fn sums_up_to_the_limit_are_restored_and_none_beyond_it() {
    for family in Family::ALL {
        let strategy = strategy(family, (9, 3, 3));
        let mut history = History::new(Some(&strategy), BITS, 1);
        let limit = limit(&strategy, BITS);
        for number in 0..=4 {
            let mut saved = Saved::default();
            history.save(&mut saved, true);
            let restores = |saved: &Saved| {
                let mut resumed = History::new(Some(&strategy), BITS, 1);
                resumed.restore(saved, number).is_ok()
            };
            assert!(restores(&saved), "{family}: {number}");
            for place in 0..saved.tensors[SUMS].shape[0] {
                let rounds = if family == Family::Tree {
                    1 << place
                } else {
                    1
                };
                let largest = limit * rounds;
                for (entry, is_possible) in [
                    (largest, true),
                    (-largest, true),
                    (largest + 1, false),
                    (-largest - 1, false),
                ] {
                    let mut other = saved.clone();
                    let bytes = &mut other.tensors.get_mut(SUMS).unwrap().bytes;
                    bytes[8 * place..][..8].copy_from_slice(&i64::to_le_bytes(entry));
                    assert_eq!(restores(&other), is_possible, "{family}: {place}");
                }
            }
            let combined = history.combine(sum_of(&[1]));
            let released = Released::for_test(combined.integers(), 1.0, 1);
            history.decode(released).unwrap();
        }
    }
}

#[test]
fn private_sums_of_real_devices_are_not_saved() {
    let strategy = strategy(Family::SquareRootBanded, (9, 3, 3));
    let release = release(&strategy, 0.7);
    let mut history = History::new(Some(&strategy), BITS, 1);
    history.admit(0, &[5]);
    round(&mut history, &release, (4, 0), &[1 << BITS]);
    let mut saved = Saved::default();
    history.save(&mut saved, false);
    assert!(saved.entries.is_empty());
    assert_eq!(
        saved.tensors.keys().collect::<Vec<_>>(),
        ["mechanism.participations"]
    );
    // The next process starts with an empty history and the recorded participations.
    let mut next = History::new(Some(&strategy), BITS, 1);
    next.restore(&saved, 0).unwrap();
    assert_eq!(next.combine(sum_of(&[1])).integers(), [256]);
    assert_ne!(history.combine(sum_of(&[1])).integers(), [256]);
    history.restart();
    assert_eq!(history.combine(sum_of(&[1])).integers(), [256]);
    assert_eq!(next.admit(2, &[5, 6]), Admitted::Only(vec![6]));
}

/// The largest cohort, all of whose devices send the longest update in one direction, with entries
/// beyond the first block.
#[test]
fn honest_sums_are_combined_as_they_are_in_every_block() {
    const LENGTH: usize = 2 * BLOCK + 2;
    for family in Family::ALL {
        let strategy = strategy(family, (6, 2, 3));
        let cohort = i64::try_from(strategy.max_cohort(BITS as u8)).unwrap();
        let largest = cohort << BITS;
        let mut whole = History::new(Some(&strategy), BITS, LENGTH);
        let places = [0, BLOCK, LENGTH - 1];
        let mut alone = places.map(|_| History::new(Some(&strategy), BITS, 1));
        for number in 0..6 {
            let entries = |place: usize| largest - 3 * place as i64 - number;
            let sums: Vec<i64> = (0..LENGTH).map(entries).collect();
            let combined = whole.combine(sum_of(&sums));
            for (place, history) in places.into_iter().zip(&mut alone) {
                let expected = history.combine(sum_of(&[entries(place)]));
                let found = combined.integers().iter().skip(place).step_by(LENGTH);
                assert!(found.eq(expected.integers()), "{family}: {place}");
                if number == 0 {
                    assert_eq!(expected.integers(), [256 * entries(place)], "{family}");
                }
            }
        }
    }
}

#[test]
fn no_sum_leaves_64_bits() {
    for family in Family::ALL {
        let strategy = strategy(family, (16, 5, 4));
        let mut history = History::new(Some(&strategy), BITS, 2);
        for _ in 0..16 {
            let combined = history.combine(sum_of(&[i64::MAX, i64::MIN]));
            let largest = combined.integers().iter().map(|x| x.unsigned_abs()).max();
            assert!(largest <= Some(SUM_LIMIT), "{family}: {largest:?}");
        }
    }
}

/// A masked sum has no magnitude: it is reduced modulo 2^w, and never clamped to a limit.
#[test]
fn masked_sums_are_combined_modulo_their_ring() {
    let strategy = strategy(Family::BandedOptimalMax, (16, 5, 4));
    let ring = Ring::new(57).unwrap();
    let mut history = History::new(Some(&strategy), BITS, 3).of_masked(Some(ring));
    let largest = (1 << 57) - 1;
    assert!(largest > limit(&strategy, BITS));
    // The second is -3 before it is reduced.
    let combined = history.combine(sum_of(&[largest, -3, 5]));
    let expected = [largest, (1 << 57) - 3, 5].map(|x| i64::wrapping_mul(COEFFICIENT_UNIT, x));
    assert_eq!(combined.integers(), expected);
}

#[test]
fn sums_are_kept_where_noise_is_correlated() {
    let strategy = strategy(Family::BandedOptimalMax, (9, 3, 3));
    assert!(History::new(Some(&strategy), BITS, 2).is_kept());
    assert!(!History::new(None, BITS, 2).is_kept());
}

#[test]
fn debug_prints_no_sums() {
    let strategy = strategy(Family::BandedOptimalMax, (9, 3, 3));
    let mut history = History::new(Some(&strategy), BITS, 2);
    let _ = history.combine(sum_of(&[123_456; 2]));
    assert_eq!(
        format!("{history:?}"),
        "History(Some(1 sums of 2 integers))"
    );
}
