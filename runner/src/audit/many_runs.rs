//! Many runs with one canary, in and out: the classical test of two worlds by a threshold.
//!
//! The threshold is chosen on one half of the runs and judged on the other, so that the choice
//! costs no confidence.

use rayon::prelude::*;
use smolfed_core::stream::Root;

use super::Finding;
use super::bounds::from_test;
use super::one_run::{mean, spread};
use super::target::{Release, Target};
use crate::privacy::params::Delta;

/// Coordinates beside the canary's, at which an attacker reads the scale of the noise.
const PURE_NOISE: usize = 128;
/// Thresholds that are tried on the first half.
const THRESHOLDS: usize = 200;
/// What the attacker looks at.
const STATISTICS: [&str; 3] = [
    "mean over rounds",
    "spread over rounds",
    "scale of the noise",
];

/// Attacks `2 · runs` runs in each world; bounds fail with probability at most `error` together.
#[must_use]
pub fn audit(target: &Target, seed: u64, runs: u32, delta: Delta, error: f64) -> Vec<Finding> {
    let world = |is_in: bool| -> Vec<[f64; 3]> {
        (0..2 * runs)
            .into_par_iter()
            .map(|run| {
                let number = 2 * u64::from(run) + u64::from(is_in);
                let root = Root::from_seed(seed.wrapping_add(number));
                statistics(&target.releases(&root, &[is_in], 1 + PURE_NOISE))
            })
            .collect()
    };
    let (outs, ins) = (world(false), world(true));
    let half = runs as usize;
    let error = error / STATISTICS.len() as f64;
    STATISTICS
        .into_iter()
        .enumerate()
        .map(|(index, statistic)| {
            let column =
                |rows: &[[f64; 3]]| -> Vec<f64> { rows.iter().map(|row| row[index]).collect() };
            let worlds = |range: std::ops::Range<usize>| Worlds {
                outs: column(outs.get(range.clone()).unwrap_or_default()),
                ins: column(ins.get(range).unwrap_or_default()),
            };
            let rule = worlds(0..half).best_rule(delta, error);
            worlds(half..2 * half).judge(statistic, rule, delta, error)
        })
        .collect()
}

fn statistics(releases: &[Release]) -> [f64; 3] {
    let scale = |release: &Release| {
        let squares = release.average.iter().skip(1);
        squares.map(|x| f64::from(x * x)).sum::<f64>()
    };
    // A round of nobody shows no noise where the sum is divided by the cohort's own size.
    let scales = releases.iter().map(scale).filter(|scale| *scale > 0.0);
    let least = scales.fold(f64::INFINITY, f64::min);
    [mean(releases, 0), spread(releases, 0), least]
}

/// "In" if the statistic lies on this side of the threshold.
#[derive(Clone, Copy)]
struct Rule {
    threshold: f64,
    above: bool,
}

impl Rule {
    fn says_in(self, value: f64) -> bool {
        (value > self.threshold) == self.above
    }
}

/// The same statistic in runs without and with the canary.
struct Worlds {
    outs: Vec<f64>,
    ins: Vec<f64>,
}

impl Worlds {
    fn bound(&self, rule: Rule, delta: Delta, error: f64) -> (f64, u64, u64) {
        let count = |values: &[f64]| values.iter().filter(|v| rule.says_in(**v)).count() as u64;
        let (alarms, hits) = (count(&self.outs), count(&self.ins));
        let (outs, ins) = (self.outs.len() as u64, self.ins.len() as u64);
        let bound = from_test(outs, alarms, ins, hits, delta.get(), error);
        (bound, alarms, hits)
    }

    fn best_rule(&self, delta: Delta, error: f64) -> Rule {
        let mut values: Vec<f64> = self.outs.iter().chain(&self.ins).copied().collect();
        values.sort_by(f64::total_cmp);
        let step = (values.len() / THRESHOLDS).max(1);
        let rules = values.iter().step_by(step).flat_map(|threshold| {
            [true, false].map(|above| Rule {
                threshold: *threshold,
                above,
            })
        });
        let start = Rule {
            threshold: 0.0,
            above: true,
        };
        let better = |best: (f64, Rule), rule: Rule| {
            let (bound, ..) = self.bound(rule, delta, error);
            if bound > best.0 { (bound, rule) } else { best }
        };
        rules.fold((0.0, start), better).1
    }

    fn judge(&self, statistic: &'static str, rule: Rule, delta: Delta, error: f64) -> Finding {
        let (epsilon_low, alarms, hits) = self.bound(rule, delta, error);
        Finding {
            test: "many runs, one canary",
            statistic,
            epsilon_low,
            evidence: format!(
                "{hits} of {} hits, {alarms} of {} false alarms",
                self.ins.len(),
                self.outs.len()
            ),
        }
    }
}
