//! The canaries that an attacker takes for participants: their values are above a threshold, and
//! among the largest of their run. Separate runs choose both limits, and are not counted.

use super::bounds::{PairRule, TestCounts};

/// The attacker's results from one run.
#[derive(Debug)]
pub struct Scores {
    /// The value of each canary, for every statistic.
    pub values: [Vec<f64>; 3],
    /// Whether it takes part.
    pub is_in: Vec<bool>,
}

/// A rule that selects canaries.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Minimum value (exclusive).
    pub threshold: f64,
    /// Maximum number of selected canaries in a run.
    pub most: usize,
}

/// Thresholds are quantiles of the values, from the upper half to one in `RAREST`.
const RAREST: f64 = 5_000.0;
const THRESHOLDS: u32 = 40;

impl Choice {
    /// Returns the hits and alarms in a pair of runs.
    #[must_use]
    pub fn found(self, runs: &[Scores; 2], statistic: usize) -> (u32, u32) {
        let (mut hits, mut alarms) = (0, 0);
        for run in runs {
            let all = run.values[statistic].iter().zip(&run.is_in);
            let mut above: Vec<_> = all.filter(|(value, _)| **value > self.threshold).collect();
            if above.len() > self.most {
                above.sort_by(|a, b| b.0.total_cmp(a.0));
                above.truncate(self.most);
            }
            let of_run = above.iter().filter(|(_, is_in)| **is_in).count();
            hits += of_run as u32;
            alarms += (above.len() - of_run) as u32;
        }
        (hits, alarms)
    }

    /// Returns the rule that counts the pairs of this choice.
    #[must_use]
    pub fn rule(self, canaries: u32, delta: f64) -> PairRule {
        PairRule {
            canaries,
            max_found: (2 * self.most as u32).min(2 * canaries),
            delta,
        }
    }

    /// Returns the choice that promises the largest lower bound from `pairs` pairs.
    #[must_use]
    pub fn best(
        pilot: &[[Scores; 2]],
        statistic: usize,
        delta: f64,
        pairs: u32,
        error: f64,
    ) -> Self {
        let canaries = pilot.first().map_or(1, |runs| runs[0].is_in.len());
        let mut best = (-1.0, Self::first(canaries));
        for threshold in thresholds(pilot, statistic) {
            for parts in [1, 4, 8, 16] {
                let choice = Self {
                    threshold,
                    most: canaries.div_ceil(parts),
                };
                let (mut hits, mut alarms) = (0, 0);
                for runs in pilot {
                    let found = choice.found(runs, statistic);
                    hits += found.0;
                    alarms += found.1;
                }
                let rates = Rates::new(hits, alarms, pilot.len() * canaries);
                let rule = choice.rule(canaries as u32, delta);
                let promised = rates.promise(rule, f64::from(pairs), error);
                if promised > best.0 {
                    best = (promised, choice);
                }
            }
        }
        best.1
    }

    /// Returns the threshold that promises the largest lower bound from one canary in each of
    /// `runs` runs.
    #[must_use]
    pub fn of_one(pilot: &[[Scores; 2]], delta: f64, runs: u32, error: f64) -> f64 {
        let canaries = pilot.first().map_or(1, |runs| runs[0].is_in.len());
        let promise = |threshold: &f64| {
            let all = Self {
                threshold: *threshold,
                most: canaries,
            };
            let found = pilot.iter().map(|runs| all.found(runs, 0));
            let (hits, alarms) = found.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
            let trials = (pilot.len() * canaries) as f64;
            let expected = |count: u32| f64::from(count) / trials * f64::from(runs);
            let counts = TestCounts {
                runs: u64::from(runs),
                hits: expected(hits) as u64,
                alarms: expected(alarms).ceil() as u64,
            };
            counts.epsilon_low(delta, error)
        };
        let candidates = thresholds(pilot, 0);
        let scored = candidates.iter().step_by(4).map(|t| (promise(t), *t));
        scored
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(0.0, |(_, threshold)| threshold)
    }

    const fn first(canaries: usize) -> Self {
        Self {
            threshold: 0.0,
            most: canaries,
        }
    }
}

/// Returns quantiles of the values of the pilot runs.
fn thresholds(pilot: &[[Scores; 2]], statistic: usize) -> Vec<f64> {
    let of_run = |run: &Scores| run.values[statistic].clone();
    let mut values: Vec<f64> = pilot.iter().flatten().flat_map(of_run).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let quantile = |index: u32| {
        let part = (RAREST / 2.0).powf(-f64::from(index) / f64::from(THRESHOLDS - 1)) / 2.0;
        values.get((part * values.len() as f64) as usize).copied()
    };
    (0..THRESHOLDS).filter_map(quantile).collect()
}

/// Rates of finding canaries.
struct Rates {
    hits: f64,
    alarms: f64,
}

impl Rates {
    /// Estimates the rates. With few counts, it lowers the hits and raises the alarms.
    fn new(hits: u32, alarms: u32, trials: usize) -> Self {
        let (hits, alarms) = (f64::from(hits), f64::from(alarms));
        Self {
            hits: (hits - hits.sqrt()).max(0.0) / trials as f64,
            alarms: (alarms + (alarms + 1.0).sqrt()) / trials as f64,
        }
    }

    /// Returns the approximate lower bound from `pairs` pairs: the ε at which the best bet wins as
    /// much as the error requires.
    fn promise(&self, rule: PairRule, pairs: f64, error: f64) -> f64 {
        let canaries = f64::from(rule.canaries);
        let growth = |epsilon: f64| {
            let ratio = epsilon.exp();
            let mean = self.hits - ratio * self.alarms - rule.delta;
            let variance = (self.hits + ratio * ratio * self.alarms) / canaries;
            let largest = 1.0 / -rule.worth(epsilon, 0, rule.max_found);
            let bet = (mean / variance).min(largest);
            match mean > 0.0 {
                true => pairs * (bet * mean - bet * bet * variance / 2.0),
                false => 0.0,
            }
        };
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            match growth(middle) > -error.ln() {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: [f64; 4], is_in: [bool; 4]) -> Scores {
        Scores {
            values: std::array::from_fn(|_| values.to_vec()),
            is_in: is_in.to_vec(),
        }
    }

    #[test]
    fn the_largest_above_the_threshold_are_found() {
        let coins = [true, true, false, false];
        let runs = [
            run([3.0, 1.0, 2.0, 4.0], coins),
            run([0.5, 0.0, 9.0, 0.7], coins.map(|coin| !coin)),
        ];
        let choice = |threshold, most| Choice { threshold, most };
        // Canaries 3 and 9 take part, 2 and 4 do not.
        assert_eq!(choice(1.0, 4).found(&runs, 0), (2, 2));
        assert_eq!(choice(1.0, 2).found(&runs, 1), (2, 1));
        assert_eq!(choice(1.0, 1).found(&runs, 2), (1, 1));
        assert_eq!(choice(9.0, 4).found(&runs, 0), (0, 0));
        assert_eq!(choice(0.0, 3).rule(4, 0.1).max_found, 6);
    }

    #[test]
    fn a_threshold_that_separates_is_chosen() {
        let coins = [true, false, true, false];
        let pilot: Vec<[Scores; 2]> = (0..50)
            .map(|i| {
                let x = f64::from(i) / 100.0;
                let of = |coin| if coin { 1.0 + x } else { x };
                let opposite = coins.map(|coin| !coin);
                [run(coins.map(of), coins), run(opposite.map(of), opposite)]
            })
            .collect();
        let choice = Choice::best(&pilot, 0, 1e-5, 1_000, 1e-3);
        let all = pilot.iter().map(|runs| choice.found(runs, 0));
        let (hits, alarms) = all.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        assert_eq!(alarms, 0);
        assert!(hits > 100, "{choice:?}");
        let of_one = Choice::of_one(&pilot, 1e-5, 500, 1e-3);
        assert!((0.4..1.2).contains(&of_one), "{of_one}");
    }
}
