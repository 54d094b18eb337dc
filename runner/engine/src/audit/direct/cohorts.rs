//! The cohorts: is every device drawn at the claimed rate, freshly in every round, and
//! independently of the other devices?

use smolfed_accounting::Sampling;

use crate::audit::check::{Check, ERROR};
use crate::audit::tails::{Worst, heads};

/// Maximum number of devices with tests of their individual rates, from device 0 on.
const DEVICES: usize = 4096;

/// Maximum number of devices for comparing all pairs, from device 0 on.
const PAIRED: usize = 300;

/// Maximum number of rounds for comparing all pairs of them.
const ALL_PAIRS: u32 = 64;

/// Returns all pairs of rounds. For many rounds, returns the neighbours and the pairs with the
/// first and the last round.
#[must_use]
pub fn pairs_of_rounds(rounds: u32) -> Vec<(u32, u32)> {
    let is_near = |a: u32, b: u32| a == 0 || b + 1 == rounds || a + 1 == b;
    let with = |b: u32| {
        let all = (0..b).filter(move |a| rounds <= ALL_PAIRS || is_near(*a, b));
        all.map(move |a| (a, b))
    };
    (0..rounds).flat_map(with).collect()
}

/// Counts over runs.
#[derive(Debug, Clone)]
pub struct Cohorts {
    sampling: Sampling,
    pairs: Vec<(u32, u32)>,
    runs: u64,
    rounds: u64,
    /// Number of drawn devices in all rounds.
    total: u64,
    /// Rounds whose cohort differs from a fixed claimed size.
    other_sizes: u64,
    devices: Vec<u64>,
    /// Devices drawn in both rounds of a pair.
    in_both: Vec<u64>,
    /// Rounds in which both devices of a pair were drawn. Row a has the devices before a.
    together: Vec<u32>,
    /// Cohorts of the current run.
    current: Vec<Vec<u32>>,
}

impl Cohorts {
    /// Creates empty counts for runs of `rounds` rounds that claim this sampling.
    #[must_use]
    pub fn new(sampling: Sampling, rounds: u32) -> Self {
        let pairs = pairs_of_rounds(rounds);
        Self {
            sampling,
            runs: 0,
            rounds: 0,
            total: 0,
            other_sizes: 0,
            devices: vec![0; DEVICES.min(sampling.device_count() as usize)],
            together: vec![0; triangle(PAIRED.min(sampling.device_count() as usize))],
            in_both: vec![0; pairs.len()],
            pairs,
            current: Vec::new(),
        }
    }

    /// Returns empty counts with the same settings.
    #[must_use]
    pub fn empty(&self) -> Self {
        Self::new(self.sampling, 0).with_pairs(self.pairs.clone())
    }

    fn with_pairs(self, pairs: Vec<(u32, u32)>) -> Self {
        Self {
            in_both: vec![0; pairs.len()],
            pairs,
            ..self
        }
    }

    /// Adds the cohort of a round.
    pub fn add_round(&mut self, drawn: &[u32]) {
        self.rounds += 1;
        self.total += drawn.len() as u64;
        if let Sampling::Uniform { cohort_size, .. } = self.sampling {
            self.other_sizes += u64::from(drawn.len() != cohort_size as usize);
        }
        for device in drawn {
            if let Some(count) = self.devices.get_mut(*device as usize) {
                *count += 1;
            }
        }
        let paired = drawn.partition_point(|device| (*device as usize) < PAIRED);
        for (index, device) in drawn[..paired].iter().enumerate() {
            for before in &drawn[..index] {
                self.together[triangle(*device as usize) + *before as usize] += 1;
            }
        }
        self.current.push(drawn.to_vec());
    }

    /// Ends a run.
    pub fn add_run(&mut self) {
        self.runs += 1;
        let current = std::mem::take(&mut self.current);
        for ((a, b), count) in self.pairs.iter().zip(&mut self.in_both) {
            let (Some(first), Some(second)) = (current.get(*a as usize), current.get(*b as usize))
            else {
                continue;
            };
            let is_in_both = |device: &&u32| second.binary_search(device).is_ok();
            *count += first.iter().filter(is_in_both).count() as u64;
        }
    }

    /// Adds the counts of other runs.
    pub fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.rounds += other.rounds;
        self.total += other.total;
        self.other_sizes += other.other_sizes;
        let counts = self.devices.iter_mut().chain(&mut self.in_both);
        for (count, more) in counts.zip(other.devices.iter().chain(&other.in_both)) {
            *count += more;
        }
        for (count, more) in self.together.iter_mut().zip(&other.together) {
            *count += more;
        }
    }

    /// Returns the verdicts, or none if no sampling is claimed.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let devices = f64::from(self.sampling.device_count());
        let claimed = match self.sampling {
            Sampling::Poisson { sampling_rate, .. } => {
                let rate = sampling_rate.get();
                Claimed {
                    rate,
                    coins: devices,
                    in_both: rate * rate,
                    together: rate * rate,
                }
            }
            Sampling::Uniform { cohort_size, .. } => {
                let (size, rate) = (f64::from(cohort_size), f64::from(cohort_size) / devices);
                Claimed {
                    rate,
                    coins: size,
                    in_both: rate,
                    together: rate * (size - 1.0) / (devices - 1.0),
                }
            }
            _ => return Vec::new(),
        };
        if claimed.rate >= 1.0 {
            return Vec::new();
        }
        vec![
            self.rates(&claimed, devices),
            self.independent_rounds(&claimed),
            self.independent_devices(&claimed),
        ]
    }

    fn rates(&self, claimed: &Claimed, devices: f64) -> Check {
        let (rounds, rate) = (self.rounds as f64, claimed.rate);
        let mut worst = Worst::default();
        let mut add = |coins: f64, count: u64, words: String| {
            let share = count as f64 / coins;
            let probability = heads(coins, count as f64, rate);
            worst.add(probability, || format!("{words} {share:.5}"));
        };
        add(devices * rounds, self.total, "all devices".to_owned());
        for (device, count) in self.devices.iter().enumerate() {
            add(rounds, *count, format!("device {device}"));
        }
        Check {
            test: "rate of the cohorts",
            is_as_claimed: !worst.fails(ERROR) && self.other_sizes == 0,
            evidence: format!(
                "{:.5} of {} devices drawn in {rounds} rounds, {rate:.5} claimed; worst of {} \
                 rates, {}",
                self.total as f64 / (devices * rounds),
                devices,
                worst.tests,
                worst.words
            ),
        }
    }

    fn independent_rounds(&self, claimed: &Claimed) -> Check {
        let mut worst = Worst::default();
        let (coins, shared) = (claimed.coins * self.runs as f64, claimed.in_both);
        for ((a, b), count) in self.pairs.iter().zip(&self.in_both) {
            let share = *count as f64 / coins;
            let words = || format!("rounds {a} and {b}, {share:.4} for {shared:.4}");
            worst.add(heads(coins, *count as f64, shared), words);
        }
        let evidence = match worst.tests {
            0 => "there is one round".to_owned(),
            tests => format!(
                "devices in both of {tests} pairs of rounds; worst: {}",
                worst.words
            ),
        };
        Check {
            test: "cohorts of different rounds",
            is_as_claimed: !worst.fails(ERROR),
            evidence,
        }
    }

    fn independent_devices(&self, claimed: &Claimed) -> Check {
        let mut worst = Worst::default();
        let (rounds, both) = (self.rounds as f64, claimed.together);
        let mut counts = self.together.iter();
        for device in 0..PAIRED.min(self.devices.len()) {
            for (before, count) in (0..device).zip(&mut counts) {
                let count = f64::from(*count);
                let words = || {
                    let share = count / rounds;
                    format!("devices {before} and {device}, {share:.4} for {both:.4}")
                };
                worst.add(heads(rounds, count, both), words);
            }
        }
        Check {
            test: "coins of different devices",
            is_as_claimed: !worst.fails(ERROR),
            evidence: format!(
                "rounds with both of {} pairs of devices; worst: {}",
                worst.tests, worst.words
            ),
        }
    }
}

/// The claim about the draw.
struct Claimed {
    /// Probability of drawing a device.
    rate: f64,
    /// Number of coins that decide how many devices are in both of two rounds.
    coins: f64,
    /// Their probability.
    in_both: f64,
    /// Probability of drawing both of two devices.
    together: f64,
}

/// Returns the number of pairs of `devices` devices.
const fn triangle(devices: usize) -> usize {
    devices * devices.saturating_sub(1) / 2
}
