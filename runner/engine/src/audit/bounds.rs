//! Lower bounds on ε from counts of canaries that an attacker finds. They are distribution-free,
//! and valid for any statistic whose threshold does not depend on the counts.

use std::collections::BTreeMap;

use libm::{exp, lgamma, log, log1p};

/// Returns ln P[Binomial(n, p) = k].
fn ln_mass(n: u64, k: u64, p: f64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    let choose = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
    let times = |count: f64, ln: f64| if count > 0.0 { count * ln } else { 0.0 };
    choose + times(k, log(p)) + times(n - k, log1p(-p))
}

/// Returns P[Binomial(n, p) ≥ k], within 1e-12 relative or 1e-300.
#[must_use]
pub fn upper_tail(n: u64, k: u64, p: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    // Terms decrease from the mode on. Below it, the sum is the complement of the lower tail. Each
    // term follows from the previous one.
    let odds = p / (1.0 - p);
    let mode = (n as f64 * p) as u64;
    if k > mode {
        let next = |j: u64| (n - j) as f64 / (j + 1) as f64 * odds;
        sum_of_falling(exp(ln_mass(n, k, p)), (k..n).map(next))
    } else {
        let next = |j: u64| j as f64 / (n - j + 1) as f64 / odds;
        let below = sum_of_falling(exp(ln_mass(n, k - 1, p)), (1..k).rev().map(next));
        (1.0 - below).max(0.0)
    }
}

/// Sums decreasing terms, given the first one and the ratios of neighbours, up to the first term
/// that is too small to change the sum.
fn sum_of_falling(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut term) = (first, first);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Number of pairs of runs, by hits (canaries found where they took part) and alarms (canaries
/// found where they did not).
pub type Pairs = BTreeMap<(u32, u32), u64>;

/// Rule for counting a pair of runs with one seed and `canaries` canaries each. Every canary takes
/// part in one of them, and at most `max_found` are found in both together.
#[derive(Clone, Copy, Debug)]
pub struct PairRule {
    /// Canaries in a run.
    pub canaries: u32,
    /// Maximum sum of hits and alarms.
    pub max_found: u32,
    /// δ of the claim.
    pub delta: f64,
}

/// Number of bets λ.
const BETS: u32 = 60;

impl PairRule {
    /// Returns the bets, from the largest to the smallest: `1 + λW` stays above 0.
    fn bets(self, epsilon: f64) -> impl Iterator<Item = f64> {
        let largest = 0.999 / -self.worth(epsilon, 0, self.max_found);
        (0..BETS).map(move |i| largest * 10f64.powf(-4.0 * f64::from(i) / f64::from(BETS - 1)))
    }

    /// Returns W of a pair. Each canary takes part in one of the two runs, with a fair coin for the
    /// order, so under (ε, δ)-privacy its mean is at most 0. This follows by linearity, under any
    /// dependence between coordinates and between the two runs.
    #[must_use]
    pub fn worth(self, epsilon: f64, hits: u32, alarms: u32) -> f64 {
        (f64::from(hits) - exp(epsilon) * f64::from(alarms)) / f64::from(self.canaries) - self.delta
    }

    /// Returns ln E, where E is the mean over bets λ of the products of `1 + λW` over pairs with
    /// separate seeds. Under (ε, δ)-privacy its expectation is at most 1, so it exceeds 1/α with
    /// probability at most α (Ville's inequality; Waudby-Smith, Ramdas 2023, arXiv:2010.09686).
    #[must_use]
    pub fn ln_e_value(self, epsilon: f64, pairs: &Pairs) -> f64 {
        let growth = |bet: f64| -> f64 {
            let of = |(&(hits, alarms), &count): (&(u32, u32), &u64)| {
                count as f64 * log1p(bet * self.worth(epsilon, hits, alarms))
            };
            pairs.iter().map(of).sum()
        };
        ln_mean_exp(&self.bets(epsilon).map(growth).collect::<Vec<_>>())
    }

    /// Returns the largest ε, in steps of 0.01, up to which all values are refuted. It is wrong
    /// with probability at most `error`.
    #[must_use]
    pub fn epsilon_low(self, pairs: &Pairs, error: f64) -> f64 {
        last_refuted(|epsilon| self.ln_e_value(epsilon, pairs) >= -log(error))
    }
}

/// Returns ln of the mean of the exponentials.
#[must_use]
pub fn ln_mean_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = values.iter().map(|value| exp(value - largest)).sum();
    largest + log(sum / values.len() as f64)
}

/// Lower bounds are multiples of 1 / `STEPS_PER_UNIT`.
const STEPS_PER_UNIT: f64 = 100.0;
/// Limit of the search for a lower bound.
const MAX_STEPS: u32 = 5_000;

/// Returns the last multiple of 0.01 before the first one not refuted, or 0 if 0 is not refuted.
///
/// Tries the steps upwards. A mechanism that is (ε, δ)-private is also private for the next
/// multiple, which must be refuted for the answer to be too large.
fn last_refuted(is_refuted: impl Fn(f64) -> bool) -> f64 {
    let standing = (0..MAX_STEPS).find(|step| !is_refuted(f64::from(*step) / STEPS_PER_UNIT));
    f64::from(standing.unwrap_or(MAX_STEPS).saturating_sub(1)) / STEPS_PER_UNIT
}

/// Counts of one canary per run, in equally many independent runs with it and without it.
#[derive(Clone, Copy, Debug)]
pub struct TestCounts {
    /// Number of runs with the canary, and of runs without it.
    pub runs: u64,
    /// Runs with the canary in which it was found.
    pub hits: u64,
    /// Runs without the canary in which it was found.
    pub alarms: u64,
}

impl TestCounts {
    /// Returns the largest ε, in steps of 0.01, up to which all values are refuted. It is wrong
    /// with probability at most `error`.
    ///
    /// With the false-positive rate F, (ε, δ)-privacy bounds the true-positive rate by e^ε F + δ.
    /// Both tails are p-values of independent runs. Their product is at most c with probability at
    /// most c (1 - ln c), for every F (Fisher's method).
    #[must_use]
    pub fn epsilon_low(self, delta: f64, error: f64) -> f64 {
        let c = bisect(0.0, error, |c| c <= 0.0 || c * (1.0 - log(c)) <= error).0;
        let tails = |epsilon: f64, rate: f64| {
            let few_alarms = 1.0 - upper_tail(self.runs, self.alarms + 1, rate);
            let largest = (exp(epsilon) * rate + delta).min(1.0);
            (few_alarms, upper_tail(self.runs, self.hits, largest))
        };
        // Both tails are log-concave in F, so their product has one peak. The peak grows with
        // epsilon, so bisection finds the first step that is not refuted.
        let peak = |epsilon: f64| {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..50 {
                let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
                let (at_a, at_b) = (tails(epsilon, a), tails(epsilon, b));
                // If a tail underflows, the other one decides the side.
                match at_a.1 <= 0.0 || at_a.0 * at_a.1 < at_b.0 * at_b.1 {
                    true => low = a,
                    false => high = b,
                }
            }
            let (few_alarms, many_hits) = tails(epsilon, f64::midpoint(low, high));
            few_alarms * many_hits
        };
        let is_refuted = |step: u32| peak(f64::from(step) / STEPS_PER_UNIT) <= c;
        if !is_refuted(0) {
            return 0.0;
        }
        let (mut low, mut high) = (0, MAX_STEPS);
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            match is_refuted(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        f64::from(low) / STEPS_PER_UNIT
    }
}

/// Brackets the point up to which `holds` is true. If it holds anywhere, it must hold at `low`.
fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_binomial() {
        // n = 5, p = 0.3, by hand.
        let mass = [0.16807, 0.36015, 0.3087, 0.1323, 0.02835, 0.00243];
        for k in 0..=5 {
            let expected: f64 = mass[k..].iter().sum();
            assert!((upper_tail(5, k as u64, 0.3) - expected).abs() < 1e-12);
        }
        assert_eq!(upper_tail(5, 6, 0.3), 0.0);
        assert!((upper_tail(1000, 1000, 0.5).ln() - 1000.0 * 0.5f64.ln()).abs() < 1e-8);
        assert!((upper_tail(100_000, 50_000, 0.5) - 0.501_261_6).abs() < 1e-6);
    }

    const RULE: PairRule = PairRule {
        canaries: 10,
        max_found: 4,
        delta: 0.01,
    };

    #[test]
    fn no_bet_loses_all_and_fair_counts_win_nothing() {
        for epsilon in [0.0, 1.0, 6.0] {
            let worst = RULE.worth(epsilon, 0, RULE.max_found);
            assert!(RULE.bets(epsilon).all(|bet| 1.0 + bet * worst > 0.0));
        }
        // One hit per alarm, and δ: W is -δ on average.
        let fair = Pairs::from([((1, 1), 5_000), ((0, 0), 5_000)]);
        assert!(RULE.ln_e_value(0.0, &fair) < 0.0);
        assert_eq!(RULE.epsilon_low(&fair, 1e-3), 0.0);
    }

    #[test]
    fn the_bound_approaches_the_ratio_of_hits_and_alarms() {
        // Hits in 1 of 10 trials, alarms in 1 of 40: ln((0.1 - 0.01) / 0.025) = 1.281.
        let many = |n: u64| Pairs::from([((1, 0), 3 * n), ((1, 1), n)]);
        let low = |n| RULE.epsilon_low(&many(n), 1e-3);
        assert!(low(100) < low(1_000) && low(1_000) < low(100_000));
        assert!((1.2..=1.281).contains(&low(100_000)), "{}", low(100_000));
    }

    /// Exact for 12 pairs of one canary with independent hits and alarms.
    #[test]
    fn pairs_refute_a_true_epsilon_as_rarely_as_is_said() {
        let (pairs, error, epsilon, alarm) = (12u32, 0.05, 1.0, 0.2);
        let hit = f64::exp(epsilon) * alarm;
        let rule = PairRule {
            canaries: 1,
            max_found: 2,
            delta: 0.0,
        };
        let outcomes = [
            ((1, 0), hit * (1.0 - alarm)),
            ((0, 1), (1.0 - hit) * alarm),
            ((1, 1), hit * alarm),
            ((0, 0), (1.0 - hit) * (1.0 - alarm)),
        ];
        let factorial = |n: u32| lgamma(f64::from(n) + 1.0);
        let (mut wrong, mut total) = (0.0, 0.0);
        for a in 0..=pairs {
            for b in 0..=pairs - a {
                for c in 0..=pairs - a - b {
                    let counts = [a, b, c, pairs - a - b - c];
                    let terms = counts.iter().zip(outcomes);
                    let ln = |(n, (_, p)): (&u32, (_, f64))| f64::from(*n) * log(p) - factorial(*n);
                    let mass = exp(factorial(pairs) + terms.map(ln).sum::<f64>());
                    let found = outcomes.iter().zip(counts);
                    let found = found.map(|((pair, _), n)| (*pair, u64::from(n))).collect();
                    total += mass;
                    if rule.epsilon_low(&found, error) > epsilon {
                        wrong += mass;
                    }
                }
            }
        }
        assert!(
            (total - 1.0).abs() < 1e-9 && wrong <= error,
            "{wrong} of {total}"
        );
    }

    #[test]
    fn one_canary_a_run_is_limited_by_its_trials_only() {
        let low = |runs, hits, alarms| {
            let counts = TestCounts { runs, hits, alarms };
            counts.epsilon_low(1e-5, 1e-3)
        };
        assert!((4.0..7.0).contains(&low(1_000, 1_000, 0)));
        assert_eq!(low(1_000, 500, 500), 0.0);
        // ln(0.3 / 0.1) = 1.0986.
        let many = low(100_000, 30_000, 10_000);
        assert!((1.0..1.0986).contains(&many), "{many}");
    }

    /// The product of both tails at the true rates respects the bound c. Exact for 12 runs of each
    /// kind.
    #[test]
    fn a_true_epsilon_is_refuted_as_rarely_as_is_said() {
        let (runs, rate, error) = (12, 0.2, 0.05);
        let epsilon = 1.0;
        let hit_rate = f64::exp(epsilon) * rate;
        let mut wrong = 0.0;
        for hits in 0..=runs {
            for alarms in 0..=runs {
                let counts = TestCounts { runs, hits, alarms };
                if counts.epsilon_low(0.0, error) > epsilon {
                    wrong += exp(ln_mass(runs, hits, hit_rate) + ln_mass(runs, alarms, rate));
                }
            }
        }
        assert!(wrong <= error, "{wrong}");
    }
}
