//! Many runs with and without one canary: a threshold test between the two.
//!
//! The threshold is chosen on one half of the runs and evaluated on the other, so that the choice
//! costs no confidence.

use rayon::prelude::*;
use smolfed_core::stream::Root;

use super::bounds::{TestCounts, from_test};
use super::one_run::{mean, spread};
use super::target::{Observation, Target, TargetError};
use super::{Confidence, Finding};

/// Further coordinates, at which an attacker observes the scale of the noise.
const PURE_NOISE: usize = 128;
/// Thresholds that are tried on the first half.
const THRESHOLDS: usize = 200;
/// The test statistics of the attacker.
const STATISTICS: [&str; 3] = [
    "mean over rounds",
    "spread over rounds",
    "scale of the noise",
];

/// Attacks `2 · runs` runs without and as many with the canary.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn audit(
    target: &Target<'_>,
    seed: u64,
    runs: u32,
    confidence: Confidence,
) -> Result<Vec<Finding>, TargetError> {
    let world = |is_in: bool| -> Result<Vec<[f64; 3]>, TargetError> {
        (0..2 * runs)
            .into_par_iter()
            .map(|run| {
                let number = 2 * u64::from(run) + u64::from(is_in);
                let root = Root::from_seed(seed.wrapping_add(number));
                let observed = target.observe(&root, &[is_in], 1 + PURE_NOISE)?;
                Ok(statistics(&observed))
            })
            .collect()
    };
    let (outs, ins) = (world(false)?, world(true)?);
    let half = runs as usize;
    let confidence = confidence.of_each(STATISTICS.len());
    let findings = STATISTICS
        .into_iter()
        .enumerate()
        .map(|(index, statistic)| {
            let column =
                |rows: &[[f64; 3]]| -> Vec<f64> { rows.iter().map(|row| row[index]).collect() };
            let worlds = |range: std::ops::Range<usize>| Worlds {
                outs: column(outs.get(range.clone()).unwrap_or_default()),
                ins: column(ins.get(range).unwrap_or_default()),
            };
            let rule = worlds(0..half).best_rule(confidence);
            worlds(half..2 * half).evaluate(statistic, rule, confidence)
        });
    Ok(findings.collect())
}

fn statistics(releases: &[Observation]) -> [f64; 3] {
    let scale = |release: &Observation| {
        let squares = release.average.iter().skip(1);
        squares.map(|x| f64::from(x * x)).sum::<f64>()
    };
    // An empty round shows no noise where the sum is divided by the size of the cohort.
    let scales = releases.iter().map(scale).filter(|scale| *scale > 0.0);
    let min = scales.fold(f64::INFINITY, f64::min);
    [mean(releases, 0), spread(releases, 0), min]
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
    fn counts(&self, rule: Rule) -> TestCounts {
        let positives = |values: &[f64]| values.iter().filter(|v| rule.says_in(**v)).count() as u64;
        TestCounts {
            outs: self.outs.len() as u64,
            false_positives: positives(&self.outs),
            ins: self.ins.len() as u64,
            true_positives: positives(&self.ins),
        }
    }

    fn best_rule(&self, confidence: Confidence) -> Rule {
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
            let bound = from_test(self.counts(rule), confidence);
            if bound > best.0 { (bound, rule) } else { best }
        };
        rules.fold((0.0, start), better).1
    }

    fn evaluate(&self, statistic: &'static str, rule: Rule, confidence: Confidence) -> Finding {
        let counts = self.counts(rule);
        Finding {
            test: "many runs, one canary",
            statistic,
            epsilon_low: from_test(counts, confidence),
            evidence: format!(
                "{} true positives in {} runs, {} false positives in {}",
                counts.true_positives, counts.ins, counts.false_positives, counts.outs
            ),
        }
    }
}
