//! Block-cyclic sampling: each participation of a device is a separate release, hidden by the draw.
//! The release spans as many rounds as there are parts that take turns.
//!
//! With x_i = Σ_t (y_t c_t - c_t²/2) / σ² over the releases of a device's i-th turn, c a column of
//! C, and τ the rate, the likelihood ratio of the claim is Σ_i ln(1 - τ + τ exp x_i).

use smolfed_accounting::correlated::{COEFFICIENT_UNIT, Strategy, StrategyKind};
use smolfed_core::stream::Root;

use crate::attendance::{Attendance, Timetable};
use crate::audit::check::{Check, ERROR};
use crate::audit::injection::with_rate;
use crate::audit::tails::{Worst, heads};
use crate::experiment::Experiment;
use smolfed_release::Fault;

/// Number of draws of single devices in the direct test of the draw.
const COINS: f64 = 262_144.0;

/// The claim about the draw.
#[derive(Clone, Debug)]
pub(super) struct InTurn {
    parts: Timetable,
    /// b.
    turns: u32,
    /// τ.
    rate: f64,
    /// Contribution of a participation to the releases from its round on, in clip norms.
    column: Vec<f64>,
}

impl InTurn {
    /// Returns the claim for an experiment with noise of `strategy`, or `None` if its devices are
    /// not drawn in turn.
    pub fn from_experiment(experiment: &Experiment, strategy: &Strategy) -> Option<Self> {
        let (Attendance::InTurn { sampling, parts }, StrategyKind::Toeplitz(toeplitz)) =
            (&experiment.attendance, strategy.kind())
        else {
            return None;
        };
        let coefficients = toeplitz.coefficients().iter();
        Some(Self {
            parts: parts.clone(),
            turns: strategy.participation().separation(),
            rate: sampling.sampling_rate()?,
            column: coefficients
                .map(|m| *m as f64 / COEFFICIENT_UNIT as f64)
                .collect(),
        })
    }

    /// Returns the first round in which a device may take part.
    fn first_turn(&self, device: u32) -> usize {
        let has_turn = |round: &u32| self.parts.cohort(*round).binary_search(&device).is_ok();
        (0..self.turns).find(has_turn).unwrap_or(0) as usize
    }

    /// Splits the observations into the turns of a device, one after the other.
    fn turns<'a>(&self, device: u32, seen: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
        let first = self.first_turn(device);
        let from_first = seen.get(first..).unwrap_or_default();
        from_first.chunks(self.turns as usize)
    }

    /// Returns the likelihood ratio of the claim for noise of `std`, the evidence of all turns of
    /// the device together, and the evidence of its strongest turn.
    pub fn scores(&self, std: f64, seen: &[f64], canary: u32) -> [f64; 3] {
        let mut scores = [0.0, 0.0, f64::NEG_INFINITY];
        for turn in self.turns(canary, seen) {
            let product = turn.iter().zip(&self.column).map(|(y, c)| y * c);
            let matched: f64 = product.sum();
            let squares: f64 = self.column.iter().take(turn.len()).map(|c| c * c).sum();
            let ratio = (matched - squares / 2.0) / (std * std);
            // Avoids an overflow if there is hardly any noise.
            scores[0] += match ratio > 0.0 {
                true => ratio + (self.rate + (1.0 - self.rate) * (-ratio).exp()).ln(),
                false => (self.rate * ratio.exp_m1()).ln_1p(),
            };
            scores[1] += matched;
            scores[2] = matched.max(scores[2]);
        }
        scores
    }

    /// Returns the largest norm by which device 0 moves the releases of one of its turns, or the
    /// releases before its first turn.
    pub fn largest_move(&self, seen: &[f64]) -> f64 {
        let before = seen.get(..self.first_turn(0)).unwrap_or_default();
        let turns = self.turns(0, seen).chain([before]);
        let norms = turns.map(|turn| turn.iter().map(|x| x * x).sum::<f64>().sqrt());
        norms.fold(0.0, f64::max)
    }

    /// Checks whether `experiment` draws only devices of the round's part, at the claimed rate,
    /// with a fresh draw in each turn of a part.
    pub fn checks(&self, experiment: &Experiment, seed: u64) -> [Check; 2] {
        let rounds = experiment.config.rounds;
        let mut outside = 0_usize;
        let mut of_part = vec![[0.0; 2]; self.turns as usize];
        // Number of devices drawn in this turn and in the next, and their largest possible number.
        let mut in_both = vec![[0.0; 2]; rounds.saturating_sub(self.turns) as usize];
        let (mut run, mut coins) = (0, 0.0);
        while coins < COINS {
            let root = Root::from_seed(seed.wrapping_add(run));
            run += 1;
            let draw = |round| experiment.attendance.cohort(&root, round, round);
            let drawn: Vec<Vec<u32>> = (0..rounds).map(draw).collect();
            for (round, drawn) in (0..).zip(&drawn) {
                let part = self.parts.cohort(round);
                let found = common(drawn, part);
                outside += drawn.len() - found;
                coins += part.len() as f64;
                if let Some(counts) = of_part.get_mut((round % self.turns) as usize) {
                    add(counts, found, part);
                }
            }
            let next = drawn.iter().skip(self.turns as usize);
            for ((round, counts), pair) in (0..).zip(&mut in_both).zip(drawn.iter().zip(next)) {
                add(counts, common(pair.0, pair.1), self.parts.cohort(round));
            }
        }
        [self.rates(&of_part, outside), self.independence(&in_both)]
    }

    fn rates(&self, of_part: &[[f64; 2]], outside: usize) -> Check {
        let mut worst = Worst::default();
        let sum = |index: usize| of_part.iter().map(|counts| counts[index]).sum::<f64>();
        let (inside, coins) = (sum(0), sum(1));
        worst.add(heads(coins, inside, self.rate), || {
            format!("all parts {:.5}", inside / coins)
        });
        for (part, [count, of]) in of_part.iter().enumerate() {
            let words = || format!("part {part} {:.5}", count / of);
            worst.add(heads(*of, *count, self.rate), words);
        }
        Check {
            test: "rate of the cohorts in each part",
            is_as_claimed: !worst.fails(ERROR) && outside == 0,
            evidence: format!(
                "{:.5} of the devices whose turn it was, {:.5} claimed; worst: {}; {outside} \
                 others",
                inside / coins,
                self.rate,
                worst.words
            ),
        }
    }

    fn independence(&self, in_both: &[[f64; 2]]) -> Check {
        let mut worst = Worst::default();
        let claimed = self.rate * self.rate;
        for (round, [count, of]) in in_both.iter().enumerate() {
            let words = || format!("from round {round} on {:.5}", count / of);
            worst.add(heads(*of, *count, claimed), words);
        }
        Check {
            test: "cohorts of two turns",
            is_as_claimed: !worst.fails(ERROR),
            evidence: format!(
                "devices in both of {} pairs of turns, {claimed:.5} claimed; worst: {}",
                worst.tests, worst.words
            ),
        }
    }
}

/// Counts the devices in both lists, which are ascending.
fn common(drawn: &[u32], others: &[u32]) -> usize {
    let is_in_both = |device: &&u32| others.binary_search(device).is_ok();
    drawn.iter().filter(is_in_both).count()
}

/// Adds `found` devices of a part.
fn add(counts: &mut [f64; 2], found: usize, part: &[u32]) {
    counts[0] += found as f64;
    counts[1] += part.len() as f64;
}

/// Puts all devices of the round's part into every cohort.
pub(super) fn draw_all(attendance: &mut Attendance) {
    match attendance {
        Attendance::InTurn { sampling, .. } => {
            let rate = sampling.sampling_rate().unwrap_or(1.0);
            *sampling = with_rate(sampling, 1.0 / rate);
        }
        Attendance::Faulty { drawn, .. } => draw_all(drawn),
        Attendance::Drawn(_) | Attendance::Scheduled(_) | Attendance::Buffered(_) => {}
    }
}

/// Injects faults of the draw.
pub(super) fn inject(fault: Fault, experiment: &mut Experiment) {
    let Attendance::InTurn { sampling, parts } = &mut experiment.attendance else {
        return;
    };
    match fault {
        Fault::SamplingRateTooLarge => *sampling = with_rate(sampling, 1.1),
        // One part, which has every turn.
        Fault::DeviceLetInEarly => {
            *parts = Timetable::rotation(sampling.device_count(), 1, &Root::from_seed(0));
        }
        _ => {}
    }
}
