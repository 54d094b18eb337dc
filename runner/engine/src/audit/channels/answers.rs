//! Answers to questions, under separate noise: the noise, the effect of one device on an answer,
//! how often it counts, and the cohorts. All questions are tested together, with all entries of all
//! answers.

use std::ops::Range;

use rayon::prelude::*;
use smolfed_accounting::Sampling;

use crate::audit::canaries::{Canary, Sends};
use crate::audit::channel::{COST, Channel, Draws, Names, transposed};
use crate::audit::check::{Check, ERROR};
use crate::audit::counts;
use crate::audit::sensitivity::{Difference, bound, supports};
use crate::audit::source::Asks;
use crate::audit::tails::{Worst, heads, mean};
use crate::audit::target::{Course, Joining, Observation, Target, TargetError};
use crate::question::AskedQuestion;

/// First seeds of the tests of noise, of sensitivity and of counts.
const SEEDS: [u64; 3] = [12 << 40, 13 << 40, 14 << 40];
/// Number of runs with noise alone.
const RUNS: Range<usize> = 32..2048;
/// A device whose individual upload is visible (local trust).
const DEVICE: u32 = 0;

/// The answers of a target.
pub struct Answers<'a> {
    target: &'a Target<'a>,
    /// The questions whose answers have noise.
    questions: Vec<&'a AskedQuestion>,
}

/// A question after a given round.
#[derive(Clone, Copy)]
struct Slot<'a> {
    round: u32,
    asked: &'a AskedQuestion,
}

/// Observations of a slot in a run: the answer, the update of the round before, and both cohorts.
#[derive(Default)]
struct Seen {
    answer: Vec<f64>,
    update: Vec<f64>,
    asked: Vec<u32>,
    trained: Vec<u32>,
}

impl<'a> Answers<'a> {
    /// Returns `None` if the target asks no questions, or no answer has noise.
    #[must_use]
    pub fn from_target(target: &'a Target<'a>) -> Option<Self> {
        let has_noise = |asked: &&AskedQuestion| {
            let event = target.event_of(asked);
            event.is_some_and(|event| event.mechanism.noise_multiplier().get() > 0.0)
        };
        let questions: Vec<_> = target.questions().iter().filter(has_noise).collect();
        (!questions.is_empty()).then_some(Self { target, questions })
    }

    fn multiplier(&self, asked: &AskedQuestion) -> f64 {
        let event = self.target.view().event(asked.side.event);
        event.mechanism.noise_multiplier().get()
    }

    /// Returns the number of entries of the longest answer.
    fn length(&self) -> usize {
        let lengths = self.questions.iter().map(|asked| asked.length());
        lengths.max().unwrap_or(1)
    }

    /// Returns the first and the last slot of each question, by round.
    fn slots(&self) -> Vec<Slot<'a>> {
        let of = |asked: &&'a AskedQuestion| {
            let asked: &'a AskedQuestion = asked;
            let rounds: Vec<u32> = self.target.asked_in(asked).collect();
            let last = rounds.last().copied();
            let first = rounds.first().copied().filter(|first| Some(*first) != last);
            let ends = first.into_iter().chain(last);
            ends.map(move |round| Slot { round, asked })
        };
        let mut slots: Vec<Slot<'_>> = self.questions.iter().flat_map(of).collect();
        slots.sort_by_key(|slot| (slot.round, slot.asked.index));
        slots
    }

    /// Makes one run with noise alone.
    fn run(&self, seed: u64, slots: &[Slot<'_>]) -> Result<Vec<Seen>, TargetError> {
        let canaries = match self.target.is_local() {
            true => vec![Self::canary(DEVICE, 0..0, Sends::Zero, false)],
            false => Vec::new(),
        };
        let mut rounds: Vec<u32> = slots.iter().map(|slot| slot.round).collect();
        rounds.dedup();
        let course = Course {
            rounds: Some(&rounds),
            has_updates: true,
            asks: Asks::All,
        };
        let update = self.target.multipliers(&self.target.event()).update;
        let length = self.length();
        // A lost answer has no noise.
        let lost = || Seen {
            answer: vec![0.0; length],
            update: vec![0.0; length],
            ..Seen::default()
        };
        let mut all: Vec<Seen> = slots.iter().map(|_| lost()).collect();
        let see = |seen: &Observation<'_>| {
            for (slot, place) in slots.iter().zip(&mut all) {
                let mut answers = seen.answers.iter();
                let answer = answers.find(|answer| answer.question == slot.asked.index);
                let Some(answer) = answer.filter(|_| slot.round == seen.round) else {
                    continue;
                };
                let std = self.multiplier(slot.asked);
                *place = Seen {
                    answer: answer.values.iter().map(|x| x / std).collect(),
                    update: seen.values.iter().map(|x| x / update).collect(),
                    asked: answer.drawn.clone(),
                    trained: seen.drawn.to_vec(),
                };
            }
        };
        let (target, joins) = (self.target, Joining::Always);
        target.observe_course(seed, length, canaries, joins, &course, see)?;
        Ok(all)
    }

    /// Makes runs with noise alone.
    fn runs(&self, seed: u64, values: usize) -> Result<Vec<Vec<Seen>>, TargetError> {
        let slots = self.slots();
        let entries = slots.len() * self.length();
        let runs = (values / COST / entries).clamp(RUNS.start, RUNS.end);
        let run = |run: usize| self.run(seed.wrapping_add(SEEDS[0] + run as u64), &slots);
        (0..runs).into_par_iter().map(run).collect()
    }

    /// Returns the noise of these runs. A group is a coordinate of a slot, with one value per run.
    fn noise(&self, runs: &[Vec<Seen>]) -> Draws {
        let length = self.length();
        let slots = self.slots();
        let mut groups = Vec::new();
        let mut others = Vec::new();
        for at in 0..slots.len() {
            let of = |part: fn(&Seen) -> &Vec<f64>| {
                let rows: Vec<Vec<f64>> = runs.iter().map(|run| part(&run[at]).clone()).collect();
                transposed(&rows)
            };
            groups.extend(of(|seen| &seen.answer));
            let updates = of(|seen| &seen.update).into_iter();
            others.extend(updates.map(|coordinate| vec![coordinate]));
        }
        let steps = |asked: &&AskedQuestion| {
            let bits = asked.release.encoding.grid().map_or(0, |grid| grid.bits());
            self.multiplier(asked) * f64::from(bits).exp2()
        };
        Draws {
            names: Names {
                std: "standard deviation of the noise on answers",
                independence: "noise of answers and other noise",
                group: "coordinate",
            },
            steps: self.questions.iter().map(steps).fold(f64::MAX, f64::min),
            groups,
            // The next coordinate, and the same one of the next two answers.
            distances: vec![1, length, 2 * length],
            others,
        }
    }

    fn canary(device: u32, support: Range<usize>, sends: Sends, is_clipped: bool) -> Canary {
        Canary {
            devices: device..device + 1,
            support,
            sends,
            is_clipped,
        }
    }

    /// Returns the last answer to a question. The same seed gives the same noise.
    fn answer(
        target: &Target<'_>,
        asked: &AskedQuestion,
        seed: u64,
        length: usize,
        canaries: Vec<Canary>,
        joins: Joining,
    ) -> Result<Vec<f64>, TargetError> {
        let rounds: Vec<u32> = target.asked_in(asked).last().into_iter().collect();
        let course = Course {
            rounds: Some(&rounds),
            has_updates: false,
            asks: Asks::One(asked.index),
        };
        let mut values = Vec::new();
        let see = |seen: &Observation<'_>| {
            let answers = seen.answers.iter();
            values.extend(answers.flat_map(|answer| answer.values.iter().copied()));
        };
        target.observe_course(seed, length, canaries, joins, &course, see)?;
        Ok(values)
    }

    /// Measures how much one device changes an answer, along each of the supports. Returns the
    /// bound and the worst difference.
    fn change(&self, asked: &AskedQuestion, seed: u64) -> Result<(f64, Difference), TargetError> {
        let length = asked.length();
        let bound = bound(&self.target.view().event(asked.side.event));
        let mut worst: Option<Difference> = None;
        for (index, support) in supports(&[], length).into_iter().enumerate() {
            let seed = seed.wrapping_add(SEEDS[1] + index as u64);
            let device = index as u32 % self.target.device_count();
            for is_clipped in [true, false] {
                let run = |sends| {
                    let canary = Self::canary(device, support.clone(), sends, is_clipped);
                    let (target, joins) = (self.target, Joining::Always);
                    Self::answer(target, asked, seed, length, vec![canary], joins)
                };
                let (with, without) = (run(Sends::Update)?, run(self.target.other_world())?);
                let difference = Difference::new(&with, &without, |at| support.contains(&at));
                let excess = difference.excess(bound);
                if worst
                    .as_ref()
                    .is_none_or(|worst| excess > worst.excess(bound))
                {
                    worst = Some(difference);
                }
            }
        }
        Ok((bound, worst.unwrap_or_default()))
    }

    /// Checks how often each device counts in an answer.
    fn counts(&self, seed: u64) -> Result<Check, TargetError> {
        const TEST: &str = "how often a device counts in answers";
        let summed = self.target.summed();
        let devices = counts::devices(&summed);
        let mut first = None;
        for asked in &self.questions {
            let run = |sends| {
                let canaries = counts::canaries(devices, sends);
                let seed = seed.wrapping_add(SEEDS[2] + u64::from(asked.index));
                let length = devices as usize + 1;
                Self::answer(&summed, asked, seed, length, canaries, Joining::Alone)
            };
            let (with, without) = (run(Sends::Update)?, run(Sends::Zero)?);
            let check = counts::verdict(TEST, devices as usize, &with, &without);
            if !check.is_as_claimed {
                return Ok(check);
            }
            first = first.or(Some(check));
        }
        Ok(first.unwrap_or(Check {
            test: TEST,
            is_as_claimed: true,
            evidence: "nothing is asked".to_owned(),
        }))
    }
}

impl Channel for Answers<'_> {
    fn draws(&self, seed: u64, values: usize) -> Result<Draws, TargetError> {
        Ok(self.noise(&self.runs(seed, values)?))
    }

    fn changes(&self, seed: u64) -> Result<Option<Check>, TargetError> {
        let mut found: Option<(f64, Difference)> = None;
        let mut name = "";
        for asked in &self.questions {
            let (bound, worst) = self.change(asked, seed)?;
            let known = found.as_ref();
            if known.is_none_or(|(bound, other)| worst.excess(*bound) > other.excess(*bound)) {
                (found, name) = (Some((bound, worst)), &asked.name);
            }
        }
        Ok(found.map(|(bound, worst)| Check {
            test: "what one device changes in answers",
            is_as_claimed: worst.excess(bound) <= 0.0,
            evidence: format!("{:.5} of {bound} claimed; worst: \"{name}\"", worst.norm),
        }))
    }

    fn checks(&self, seed: u64, values: usize) -> Result<Vec<Check>, TargetError> {
        let runs = self.runs(seed, values)?;
        let draws = self.noise(&runs);
        let mut checks = draws.checks();
        if !checks.is_empty() {
            checks.push(centre(&draws));
        }
        checks.extend(self.changes(seed)?);
        checks.push(self.counts(seed)?);
        checks.extend(cohorts(self.target, &self.slots(), &runs));
        Ok(checks)
    }
}

/// Checks whether the noise of each entry has mean 0.
fn centre(draws: &Draws) -> Check {
    let mut worst = Worst::default();
    for (index, values) in draws.groups.iter().enumerate() {
        let n = values.len() as f64;
        let found = values.iter().sum::<f64>() / n;
        worst.add(mean(n, found), || format!("coordinate {index}: {found:.4}"));
    }
    Check {
        test: "mean of the noise on answers",
        is_as_claimed: !worst.fails(ERROR),
        evidence: format!("of {} coordinates; worst: {}", worst.tests, worst.words),
    }
}

/// Checks whether devices are asked at the claimed rate, and independently of the cohorts of the
/// previous round and of earlier questions. Returns `None` if all devices are asked.
fn cohorts(target: &Target<'_>, slots: &[Slot<'_>], runs: &[Vec<Seen>]) -> Option<Check> {
    let of_rounds = target.event().sampling;
    let (devices, n) = (f64::from(of_rounds.device_count()), runs.len() as f64);
    let mut worst = Worst::default();
    let mut add = |coins: f64, found: u64, p: f64, what: &dyn Fn() -> String| {
        let (coins, found) = (coins * n, found as f64);
        let words = || format!("{}, {:.4} for {p:.4}", what(), found / coins);
        worst.add(heads(coins, found, p), words);
    };
    for (at, Slot { round, asked }) in slots.iter().enumerate() {
        let name = || format!("\"{}\" after round {round}", asked.name);
        let sampling = asked.side.event.sampling;
        let Some(rate) = rate(&sampling) else {
            continue;
        };
        let total = runs.iter().map(|run| run[at].asked.len() as u64).sum();
        add(devices, total, rate, &|| format!("{}: all", name()));
        for device in 0..sampling.device_count().min(DEVICES) {
            let is_asked = |run: &&Vec<Seen>| run[at].asked.binary_search(&device).is_ok();
            let found = runs.iter().filter(is_asked).count() as u64;
            add(1.0, found, rate, &|| format!("{}: device {device}", name()));
        }
        if let Some((coins, p)) = in_both(&of_rounds, &sampling) {
            let both = runs
                .iter()
                .map(|run| common(&run[at].trained, &run[at].asked));
            add(coins, both.sum(), p, &|| {
                format!("{} and the round", name())
            });
        }
        if let Some(before) = at.checked_sub(1)
            && let Some((coins, p)) = in_both(&slots[before].asked.side.event.sampling, &sampling)
        {
            let both = runs
                .iter()
                .map(|run| common(&run[before].asked, &run[at].asked));
            add(coins, both.sum(), p, &|| {
                format!("{} and the one before", name())
            });
        }
    }
    (worst.tests > 0).then(|| Check {
        test: "cohorts of answers",
        is_as_claimed: !worst.fails(ERROR),
        evidence: format!(
            "rates and shares of {} tests; worst: {}",
            worst.tests, worst.words
        ),
    })
}

/// Number of devices with tests of their individual rates, from device 0 on.
const DEVICES: u32 = 4096;

/// Counts the devices in both cohorts. Both are in ascending order.
fn common(one: &[u32], other: &[u32]) -> u64 {
    let is_there = |device: &&u32| other.binary_search(device).is_ok();
    one.iter().filter(is_there).count() as u64
}

/// Returns the probability of a draw, or `None` if all devices are asked.
fn rate(sampling: &Sampling) -> Option<f64> {
    let is_drawn = matches!(
        sampling,
        Sampling::Poisson { .. } | Sampling::Uniform { .. }
    );
    let rate = sampling.sampling_rate().filter(|_| is_drawn);
    rate.filter(|rate| *rate < 1.0)
}

/// Returns the number of coins that decide which devices are in two independent cohorts, and their
/// probability.
fn in_both(one: &Sampling, other: &Sampling) -> Option<(f64, f64)> {
    let rates = (rate(one)?, rate(other)?);
    let devices = f64::from(one.device_count());
    Some(match one {
        Sampling::Uniform { cohort_size, .. } => (f64::from(*cohort_size), rates.1),
        _ => (devices, rates.0 * rates.1),
    })
}
