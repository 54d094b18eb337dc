//! The noise of every round and of every block of coordinates: does it have the claimed std, and is
//! it independent of all other noise? All devices send zeros.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rayon::prelude::*;
use smolfed_accounting::PrivacyEvent;

use super::cohorts::{Cohorts, pairs_of_rounds};
use crate::audit::canaries::{Canary, Sends};
use crate::audit::channel::{DEVICES, MIN_STEPS};
use crate::audit::check::{Check, ERROR};
use crate::audit::tails::{Worst, mean_product, mean_square};
use crate::audit::target::{Joining, Observation, Target, TargetError};

/// Number of coordinates per noise stream of the server.
pub const STREAM_BLOCK: usize = 4096;
/// First seed of these runs.
const SEEDS: u64 = 2 << 40;
const MAX_RUNS: usize = 256;
/// Values of a run to compare with each other.
const KEPT: usize = 1 << 22;
/// Coordinates of a small block.
const BLOCK: usize = 64;

/// Distances from the first device to the devices of a run whose uploads are compared with each
/// other. Half of them are neighbours, and successive runs start that many devices apart.
const DISTANCES: [u32; DEVICES] = [0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256];

/// The observed quantities of a run, and the way to compare it.
pub struct Layout {
    /// Coordinates of an update.
    length: usize,
    /// Number of devices with visible uploads. With a trusted server, there are none.
    devices: usize,
    device_count: u32,
    rounds: u32,
    runs: usize,
    /// Claimed std, in clip norms.
    std: f64,
    /// Claimed std, in steps of the grid.
    steps: f64,
    /// Number of values hashed together, large enough that no tuples are equal by chance.
    tuple: usize,
    pairs: Vec<(u32, u32)>,
    lags: Vec<usize>,
}

impl Layout {
    /// Creates a layout for updates of `length` coordinates. All runs together show about `total`
    /// values.
    #[must_use]
    pub fn new(target: &Target<'_>, claim: &PrivacyEvent, length: usize, total: usize) -> Self {
        let (rounds, device_count) = (target.rounds(), target.device_count());
        let devices = match target.is_local() {
            true => DEVICES.min(device_count as usize),
            false => 0,
        };
        let values = length * devices.max(1);
        let std = target.multipliers(claim).update;
        let steps = std * target.steps_per_clip_norm();
        // A run also draws a coin for each device. A few coins take as long as one value.
        let work = rounds as usize * values.max(device_count as usize / 8);
        let runs = (total / work.max(1)).clamp(1, MAX_RUNS);
        let mut lags: Vec<usize> = (1..=32).chain((6..=14).map(|i| 1 << i)).collect();
        lags.extend((devices > 1).then_some(length));
        lags.retain(|lag| *lag < values);
        lags.sort_unstable();
        lags.dedup();
        Self {
            length,
            devices,
            device_count,
            rounds,
            runs,
            std,
            steps,
            tuple: tuple(steps, (runs * KEPT.min(rounds as usize * values)) as f64),
            pairs: pairs_of_rounds(rounds),
            lags,
        }
    }

    fn values(&self) -> usize {
        self.length * self.devices.max(1)
    }

    /// Returns the visible devices of a run, in ascending order.
    fn canaries(&self, run: usize) -> Vec<Canary> {
        let count = self.device_count;
        let first = run as u32 * DISTANCES.len() as u32 / 2;
        let mut devices = BTreeSet::new();
        for distance in &DISTANCES[..self.devices] {
            let mut device = (first + distance) % count;
            while !devices.insert(device) {
                device = (device + 1) % count;
            }
        }
        let canary = |device| Canary {
            devices: device..device + 1,
            support: 0..0,
            sends: Sends::Zero,
            is_clipped: false,
        };
        devices.into_iter().map(canary).collect()
    }

    /// Returns the values of a round to compare with other rounds: all, or the first and last ones.
    fn kept(&self, values: &[f64]) -> Vec<f32> {
        let most = (KEPT / self.rounds.max(1) as usize).max(2);
        let small = |x: &f64| *x as f32;
        if values.len() <= most {
            return values.iter().map(small).collect();
        }
        let (first, last) = (&values[..most / 2], &values[values.len() - most / 2..]);
        first.iter().chain(last).map(small).collect()
    }
}

/// Returns the tuple length for which equal tuples have a probability below 1e-8. Two discrete
/// Gaussians of std s are equal with probability 1 / (2 s √π), about.
fn tuple(steps: f64, tuples: f64) -> usize {
    /// Averages are `f32`.
    const MAX_STEPS: f64 = (1 << 20) as f64;
    let surprise = (2.0 * steps.min(MAX_STEPS) * std::f64::consts::PI.sqrt()).ln();
    let needed = (tuples * tuples * 5e7).ln() / surprise.max(0.1);
    (needed.ceil() as usize).clamp(4, STREAM_BLOCK)
}

/// Sums over runs, in units of the claimed std.
#[derive(Default)]
pub struct Noise {
    runs: usize,
    /// Squares by round.
    rounds: Vec<f64>,
    /// Squares by coordinate, of all devices.
    coordinates: Vec<f64>,
    /// Squares and rounds of each visible device.
    devices: Vec<(f64, f64)>,
    /// Products of rounds, and values in each.
    pairs: Vec<f64>,
    kept: usize,
    /// Lost rounds in all runs: an honest source loses none.
    lost: usize,
    /// Products of coordinates at each distance.
    lags: Vec<f64>,
    hashes: Vec<u64>,
}

impl Noise {
    /// Observes runs in which all devices send zeros, and their cohorts.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    pub fn observe(
        target: &Target<'_>,
        layout: &Layout,
        seed: u64,
        cohorts: &mut Cohorts,
    ) -> Result<Self, TargetError> {
        let observe = |run: usize| -> Result<(Self, Cohorts), TargetError> {
            let number = SEEDS + ((layout.length as u64) << 20) + run as u64;
            let seed = seed.wrapping_add(number);
            let mut noise = Self::default();
            let mut drawn = cohorts.empty();
            let mut kept = Vec::with_capacity(layout.rounds as usize);
            let canaries = layout.canaries(run);
            let devices: Vec<u32> = canaries.iter().map(|canary| canary.devices.start).collect();
            let see = |seen: &Observation<'_>| {
                let scaled: Vec<f64> = seen.values.iter().map(|x| x / layout.std).collect();
                noise.add_round(layout, &scaled, &devices);
                kept.push(layout.kept(&scaled));
                drawn.add_round(seen.drawn);
            };
            target.observe(seed, layout.length, canaries, Joining::Always, see)?;
            noise.add_pairs(layout, &kept);
            drawn.add_run();
            Ok((noise, drawn))
        };
        let runs = (0..layout.runs).into_par_iter().map(observe);
        let mut all = Self::default();
        for (noise, drawn) in runs.collect::<Result<Vec<_>, _>>()? {
            all.merge(noise);
            cohorts.merge(&drawn);
        }
        Ok(all)
    }

    fn add_round(&mut self, layout: &Layout, values: &[f64], devices: &[u32]) {
        let squares = |part: &[f64]| part.iter().map(|x| x * x).sum::<f64>();
        self.rounds.push(squares(values));
        self.coordinates.resize(layout.length, 0.0);
        for upload in values.chunks(layout.length) {
            for (sum, x) in self.coordinates.iter_mut().zip(upload) {
                *sum += x * x;
            }
        }
        if !devices.is_empty() {
            self.devices
                .resize(layout.device_count as usize, (0.0, 0.0));
        }
        for (device, upload) in devices.iter().zip(values.chunks(layout.length)) {
            let (sum, rounds) = &mut self.devices[*device as usize];
            *sum += squares(upload);
            *rounds += 1.0;
        }
        self.lags.resize(layout.lags.len(), 0.0);
        for (sum, lag) in self.lags.iter_mut().zip(&layout.lags) {
            let pairs = values.iter().zip(&values[*lag..]);
            *sum += pairs.map(|(a, b)| a * b).sum::<f64>();
        }
    }

    fn add_pairs(&mut self, layout: &Layout, kept: &[Vec<f32>]) {
        self.runs = 1;
        self.kept = kept.first().map_or(0, Vec::len);
        self.lost = (layout.rounds as usize).saturating_sub(kept.len());
        let values_of = |round: &u32| kept.get(*round as usize).into_iter().flatten();
        let product = |(a, b): &(u32, u32)| {
            let values = values_of(a).zip(values_of(b));
            values.map(|(x, y)| f64::from(x * y)).sum::<f64>()
        };
        self.pairs = layout.pairs.iter().map(product).collect();
        let blocks = kept.iter().flat_map(|round| round.chunks(layout.length));
        let tuples = blocks
            .flat_map(|upload| upload.chunks(STREAM_BLOCK))
            .flat_map(|block| block.chunks_exact(layout.tuple));
        self.hashes = tuples.map(hash).collect();
    }

    fn merge(&mut self, other: Self) {
        let add = |sums: &mut Vec<f64>, others: &[f64]| {
            sums.resize(others.len().max(sums.len()), 0.0);
            sums.iter_mut().zip(others).for_each(|(sum, x)| *sum += x);
        };
        self.runs += other.runs;
        self.kept = other.kept;
        self.lost += other.lost;
        add(&mut self.rounds, &other.rounds);
        add(&mut self.coordinates, &other.coordinates);
        add(&mut self.pairs, &other.pairs);
        add(&mut self.lags, &other.lags);
        self.devices.resize(other.devices.len(), (0.0, 0.0));
        for (sum, more) in self.devices.iter_mut().zip(&other.devices) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
        self.hashes.extend(other.hashes);
    }

    /// Returns the verdicts. Noise of very few steps of the grid is far from Gaussian and has none.
    #[must_use]
    pub fn checks(&self, layout: &Layout) -> Vec<Check> {
        if layout.steps < MIN_STEPS {
            return Vec::new();
        }
        vec![
            self.std(layout),
            self.independent_rounds(layout),
            self.independent_coordinates(layout),
            self.repeated(layout),
        ]
    }

    fn std(&self, layout: &Layout) -> Check {
        let mut worst = Worst::default();
        let mut add = |n: f64, sum: f64, words: &dyn Fn() -> String| {
            let ratio = sum / n;
            let std = ratio.sqrt();
            worst.add(mean_square(n, ratio), || format!("{}: {std:.4}", words()));
        };
        let rounds = self.rounds.len() as f64;
        let by_round = (self.runs * layout.values()) as f64;
        let by_coordinate = (self.runs * layout.devices.max(1)) as f64 * rounds;
        let total: f64 = self.rounds.iter().sum();
        add(by_round * rounds, total, &|| "all values".to_owned());
        for (round, sum) in self.rounds.iter().enumerate() {
            add(by_round, *sum, &|| format!("round {round}"));
        }
        for size in [1, BLOCK, STREAM_BLOCK] {
            for (index, block) in self.coordinates.chunks(size).enumerate() {
                let n = by_coordinate * block.len() as f64;
                let first = index * size;
                let last = first + block.len() - 1;
                let words = || format!("coordinates {first} to {last}");
                add(n, block.iter().sum(), &words);
            }
        }
        for (device, (sum, rounds)) in self.devices.iter().enumerate() {
            if *rounds > 0.0 {
                let n = rounds * layout.length as f64;
                add(n, *sum, &|| format!("device {device}"));
            }
        }
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("; {lost} rounds are lost"),
        };
        Check {
            test: "standard deviation of the noise",
            is_as_claimed: self.lost == 0 && !worst.fails(ERROR),
            evidence: format!(
                "{:.4} of the claimed one in {} values of {} coordinates; worst of {} groups, \
                 {}{lost}",
                (total / (by_round * rounds)).sqrt(),
                by_round * rounds,
                layout.length,
                worst.tests,
                worst.words
            ),
        }
    }

    fn independent_rounds(&self, layout: &Layout) -> Check {
        let mut worst = Worst::default();
        let n = (self.runs * self.kept) as f64;
        for ((a, b), sum) in layout.pairs.iter().zip(&self.pairs) {
            let mean = sum / n;
            let words = || format!("rounds {a} and {b}: {mean:.4}");
            worst.add(mean_product(n, mean), words);
        }
        correlation("noise of different rounds", &worst, "pairs of rounds", n)
    }

    fn independent_coordinates(&self, layout: &Layout) -> Check {
        let mut worst = Worst::default();
        let rounds = (self.runs * self.rounds.len()) as f64;
        let n = |lag: usize| (layout.values() - lag) as f64 * rounds;
        for (lag, sum) in layout.lags.iter().zip(&self.lags) {
            let mean = sum / n(*lag);
            let words = || format!("distance {lag}: {mean:.4}");
            worst.add(mean_product(n(*lag), mean), words);
        }
        let fewest = layout.lags.last().map_or(0.0, |lag| n(*lag));
        let name = "noise of different coordinates";
        correlation(name, &worst, "distances", fewest)
    }

    fn repeated(&self, layout: &Layout) -> Check {
        let different: HashSet<&u64> = self.hashes.iter().collect();
        let repeated = self.hashes.len() - different.len();
        Check {
            test: "noise is not repeated",
            is_as_claimed: repeated == 0,
            evidence: format!(
                "{repeated} of {} tuples of {} values occurred before",
                self.hashes.len(),
                layout.tuple
            ),
        }
    }
}

fn correlation(test: &'static str, worst: &Worst, of: &str, n: f64) -> Check {
    let evidence = match worst.tests {
        0 => format!("there are no {of}"),
        tests => format!(
            "largest correlation of {tests} {of} ({n} values each): {}",
            worst.words
        ),
    };
    Check {
        test,
        is_as_claimed: !worst.fails(ERROR),
        evidence,
    }
}

fn hash(values: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values {
        value.to_bits().hash(&mut hasher);
    }
    hasher.finish()
}
