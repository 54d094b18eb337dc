//! The attack: many canaries in pairs of runs, and a lower bound on ε from the canaries found.
//!
//! Each pair of runs has one seed and fair coins b. The canaries with b = 1 take part in one run,
//! and the canaries with b = 0 in the other. Only expectations enter the bound, so the common seed
//! is valid, and it halves the variance. For each statistic, the attacker finds the canaries of a
//! run whose value is above a threshold and among the largest. Other seeds choose the thresholds.

use rayon::prelude::*;
use smolfed_accounting::{Sampling, gdp};

use super::attacker::Attacker;
use super::bounds::{PairRule, Pairs, TestCounts};
use super::selection::{Choice, Scores};
use super::target::{Target, TargetError};
use super::{Confidence, Finding};
use crate::question::AskedQuestion;

/// The statistics, and the share of the error that each of them gets. The rest is for the attack on
/// one canary per run.
const STATISTICS: [(&str, f64); 3] = [
    ("likelihood ratio", 0.7),
    ("mean over spread", 0.1),
    ("spread over rounds", 0.1),
];
const SHARE_OF_ONE: f64 = 0.1;
/// Pairs of runs per pilot pair. Pilot pairs choose the thresholds.
const PER_PILOT: u32 = 10;
const MIN_PILOT: u32 = 50;
/// Pairs in one unit of work.
const PIECE: u32 = 32;
/// First seed of the pilot pairs, far from the others.
const PILOT_SEEDS: u64 = 1 << 40;
/// Values of ε at which the whole curve of the claim is tested.
pub const CURVE: [f64; 6] = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0];

/// Size of an attack. The result is a function of these numbers and of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of pairs of runs.
    pub pairs: u32,
    /// Number of canaries in a run, at most the number of users.
    pub canaries: u32,
}

impl Size {
    /// Returns the number of pairs of runs that takes about ten seconds on one processor. The
    /// estimate counts draws and uses no clock, so it is the same on every machine.
    #[must_use]
    pub fn default_pairs(target: &Target<'_>, canaries: u32) -> u32 {
        const BUDGET: f64 = 1e10;
        let cost = Cost::new(target, canaries);
        let questions = target.questions().iter();
        let answers = questions.map(|asked| cost.of_answers(target, asked));
        let updates = f64::from(target.rounds()) * cost.round(target.event().sampling);
        let once = target.moments().map_or(0.0, |_| cost.of_moments());
        cost.pairs(BUDGET, once + updates + answers.sum::<f64>())
    }

    /// Returns the number of pairs for attacks on the answers to one question. All questions
    /// together take about three seconds.
    #[must_use]
    pub fn default_pairs_of_answers(
        target: &Target<'_>,
        asked: &AskedQuestion,
        canaries: u32,
    ) -> u32 {
        const BUDGET: f64 = 3e9;
        let cost = Cost::new(target, canaries);
        let questions = target.questions().len().max(1) as f64;
        cost.pairs(BUDGET / questions, cost.of_answers(target, asked))
    }
}

/// Nanoseconds for a run.
const RUN: f64 = 40_000.0;
/// Nanoseconds for a round, the coin of a device, a canary's coordinate, its update, an individual
/// upload (local trust), and another drawn device.
const COSTS: [f64; 6] = [3_500.0, 5.0, 100.0, 700.0, 900.0, 200.0];

/// Costs of the parts of a run, in nanoseconds.
struct Cost {
    slowness: f64,
    is_local: bool,
    population: f64,
    canaries: f64,
    /// Devices of each canary.
    devices: f64,
}

impl Cost {
    fn new(target: &Target<'_>, canaries: u32) -> Self {
        Self {
            slowness: f64::from(target.devices().slowness()),
            is_local: target.is_local(),
            population: f64::from(target.device_count()),
            canaries: f64::from(Attacker::new(target, canaries).canaries),
            devices: f64::from(target.devices_per_user()),
        }
    }

    /// Returns the cost of a round or a question.
    fn round(&self, sampling: Sampling) -> f64 {
        let rate = sampling.sampling_rate().unwrap_or(1.0);
        let others = self.population - self.canaries * self.devices;
        let of_devices = match self.is_local {
            true => COSTS[4] * self.devices * self.canaries,
            false => {
                let of_canary = COSTS[2] + COSTS[3] * rate / 2.0 * self.devices;
                of_canary * self.canaries + COSTS[5] * rate * others.max(0.0)
            }
        };
        COSTS[0] + COSTS[1] * self.population + of_devices
    }

    /// Returns the cost of the moments: a round without coins, in which half of the canaries take
    /// part.
    fn of_moments(&self) -> f64 {
        COSTS[0] + (COSTS[2] + COSTS[3] * self.devices / 2.0) * self.canaries
    }

    /// Returns the cost of all answers to a question.
    fn of_answers(&self, target: &Target<'_>, asked: &AskedQuestion) -> f64 {
        let event = target.event_of(asked);
        event.map_or(0.0, |event| event.count as f64 * self.round(event.sampling))
    }

    /// Returns the number of pairs within a budget, with this cost of a run.
    fn pairs(&self, budget: f64, run: f64) -> u32 {
        const LEAST: f64 = 200.0;
        let pairs = budget / (2.0 * (RUN + run)) / self.slowness;
        pairs.clamp((LEAST / self.slowness).max(20.0), 100_000.0) as u32
    }
}

/// Result of an attack.
#[derive(Debug)]
pub struct Attack {
    /// A lower bound for each statistic.
    pub findings: Vec<Finding>,
    /// ε of a Gaussian mechanism with the distance that the likelihood ratio shows between
    /// participating and absent canaries. An estimate, not a bound.
    pub epsilon_estimate: f64,
    /// Hits and alarms of the likelihood ratio above each ε of [`CURVE`].
    pub curve: [Pairs; CURVE.len()],
    /// Canaries in a run.
    pub canaries: u32,
}

/// Attacks an experiment.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn audit(
    target: &Target<'_>,
    size: Size,
    confidence: Confidence,
) -> Result<Attack, TargetError> {
    audit_as(&Attacker::new(target, size.canaries), size, confidence)
}

/// Attacks the answers to one question.
///
/// # Errors
/// [`TargetError`] if an answer breaks down.
pub fn audit_answers(
    target: &Target<'_>,
    asked: &AskedQuestion,
    size: Size,
    confidence: Confidence,
) -> Result<Attack, TargetError> {
    let attacker = Attacker::of_answers(target, size.canaries, asked);
    audit_as(&attacker, size, confidence)
}

fn audit_as(
    attacker: &Attacker<'_>,
    size: Size,
    confidence: Confidence,
) -> Result<Attack, TargetError> {
    let size = Size {
        canaries: attacker.canaries,
        ..size
    };
    evaluate(size, confidence, |pair| attacker.pair(size.seed, pair))
}

/// Bounds ε by pairs of runs. `pair` makes the pair with a given number, which determines its
/// seeds.
///
/// # Errors
/// Those of `pair`.
pub fn evaluate<E: Send>(
    size: Size,
    confidence: Confidence,
    pair: impl Fn(u64) -> Result<[Scores; 2], E> + Sync,
) -> Result<Attack, E> {
    // Every second pair has the single canary.
    let (pairs, canaries) = (size.pairs.next_multiple_of(2), size.canaries);
    let delta = confidence.delta.get();
    let pilot: Vec<[Scores; 2]> = (0..pairs.div_ceil(PER_PILOT).max(MIN_PILOT))
        .into_par_iter()
        .map(|number| pair(PILOT_SEEDS + u64::from(number)))
        .collect::<Result<_, _>>()?;
    let share = |index: usize| confidence.error * STATISTICS[index].1;
    let choices: [Choice; 3] =
        std::array::from_fn(|index| Choice::best(&pilot, index, delta, pairs, share(index)));
    let error_of_one = confidence.error * SHARE_OF_ONE;
    let of_one = Choice::of_one(&pilot, delta, pairs / 2, error_of_one);
    let piece = |piece: u32| -> Result<Counts, E> {
        let mut counts = Counts::default();
        for number in piece * PIECE..((piece + 1) * PIECE).min(pairs) {
            counts.add(&pair(u64::from(number))?, number, &choices, of_one);
        }
        Ok(counts)
    };
    let pieces: Vec<Counts> = (0..pairs.div_ceil(PIECE))
        .into_par_iter()
        .map(piece)
        .collect::<Result<_, _>>()?;
    // In order: floating-point sums must not depend on the threads.
    let mut all = Counts::default();
    for counts in &pieces {
        all.merge(counts);
    }
    let mut findings: Vec<Finding> = (0..STATISTICS.len())
        .map(|index| {
            let rule = choices[index].rule(canaries, delta);
            all.finding(index, rule, u64::from(pairs), share(index))
        })
        .collect();
    findings.push(one_canary(all.one(pairs), delta, error_of_one));
    Ok(Attack {
        findings,
        epsilon_estimate: gdp::epsilon(all.moments.distance(), confidence.delta),
        curve: all.curve,
        canaries,
    })
}

fn one_canary(counts: TestCounts, delta: f64, error: f64) -> Finding {
    Finding {
        test: "one canary a run",
        statistic: STATISTICS[0].0,
        epsilon_low: counts.epsilon_low(delta, error),
        evidence: format!(
            "{} found in {} runs with it, {} in {} without",
            counts.hits, counts.runs, counts.alarms, counts.runs
        ),
    }
}

/// Totals over the pairs of runs.
#[derive(Default)]
struct Counts {
    pairs: [Pairs; 3],
    curve: [Pairs; CURVE.len()],
    hits: u64,
    alarms: u64,
    moments: Moments,
}

impl Counts {
    fn add(&mut self, runs: &[Scores; 2], pair: u32, choices: &[Choice; 3], of_one: f64) {
        for (index, choice) in choices.iter().enumerate() {
            *self.pairs[index]
                .entry(choice.found(runs, index))
                .or_default() += 1;
        }
        for (pairs, epsilon) in self.curve.iter_mut().zip(CURVE) {
            let all = Choice {
                threshold: epsilon,
                most: usize::MAX,
            };
            *pairs.entry(all.found(runs, 0)).or_default() += 1;
        }
        for run in runs {
            self.moments.add(run);
            // Even pairs count their run with the canary, odd pairs their run without it.
            if let (Some(value), Some(is_in)) = (run.values[0].first(), run.is_in.first())
                && *is_in == pair.is_multiple_of(2)
            {
                let count = if *is_in {
                    &mut self.hits
                } else {
                    &mut self.alarms
                };
                *count += u64::from(*value > of_one);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let all = self.pairs.iter_mut().chain(&mut self.curve);
        for (pairs, others) in all.zip(other.pairs.iter().chain(&other.curve)) {
            for (found, count) in others {
                *pairs.entry(*found).or_default() += count;
            }
        }
        self.hits += other.hits;
        self.alarms += other.alarms;
        self.moments.merge(&other.moments);
    }

    /// Returns the counts for one canary per run.
    const fn one(&self, pairs: u32) -> TestCounts {
        TestCounts {
            runs: pairs as u64 / 2,
            hits: self.hits,
            alarms: self.alarms,
        }
    }

    fn finding(&self, index: usize, rule: PairRule, pairs: u64, error: f64) -> Finding {
        let (mut hits, mut alarms) = (0, 0);
        for (found, count) in &self.pairs[index] {
            hits += u64::from(found.0) * count;
            alarms += u64::from(found.1) * count;
        }
        let trials = pairs * u64::from(rule.canaries);
        Finding {
            test: "many canaries, pairs of runs",
            statistic: STATISTICS[index].0,
            epsilon_low: rule.epsilon_low(&self.pairs[index], error),
            evidence: format!("{hits} found of {trials} that take part, {alarms} of the others"),
        }
    }
}

/// Moments of the likelihood ratio, for participating canaries and for the others.
#[derive(Default)]
struct Moments([[f64; 3]; 2]);

impl Moments {
    fn add(&mut self, run: &Scores) {
        for (value, is_in) in run.values[0].iter().zip(&run.is_in) {
            let moments = &mut self.0[usize::from(*is_in)];
            for (moment, power) in moments.iter_mut().zip([1.0, *value, value * value]) {
                *moment += power;
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let of = |moments: &[[f64; 3]; 2]| moments.concat();
        for (moment, more) in self.0.iter_mut().flatten().zip(of(&other.0)) {
            *moment += more;
        }
    }

    /// Returns the distance between the means in standard deviations.
    fn distance(&self) -> f64 {
        let figures = |[count, sum, squares]: [f64; 3]| {
            let mean = sum / count;
            (mean, squares / count - mean * mean)
        };
        let [(mean_out, variance_out), (mean_in, variance_in)] = self.0.map(figures);
        (mean_in - mean_out) / f64::midpoint(variance_in, variance_out).sqrt()
    }
}
