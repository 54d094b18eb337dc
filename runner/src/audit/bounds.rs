//! Lower bounds on ε from counts of right guesses.

use libm::{exp, lgamma, log, log1p};

use super::Confidence;

/// ln P[Binomial(n, p) = k].
fn ln_mass(n: u64, k: u64, p: f64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    let choose = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
    let times = |count: f64, ln: f64| if count > 0.0 { count * ln } else { 0.0 };
    choose + times(k, log(p)) + times(n - k, log1p(-p))
}

/// P[Binomial(n, p) ≥ k], within 1e-12 relative or 1e-300.
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
    // Terms fall from the mode on; below it the sum is the complement of the lower tail.
    let mode = (n as f64 * p) as u64;
    if k > mode {
        sum_of_falling((k..=n).map(|j| exp(ln_mass(n, j, p))))
    } else {
        let below = sum_of_falling((0..k).rev().map(|j| exp(ln_mass(n, j, p))));
        (1.0 - below).max(0.0)
    }
}

/// A sum of falling terms, up to the first that is too small to change it.
fn sum_of_falling(terms: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    for term in terms {
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// The largest p with P[Binomial(n, p) ≤ k] ≥ `error`: Clopper and Pearson's upper limit for a
/// probability of which `k` of `n` trials were seen; it fails with probability at most `error`.
#[must_use]
pub fn probability_at_most(n: u64, k: u64, error: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    // P[≤ k] falls with p; the upper end of the bracket is the safe one.
    bisect(0.0, 1.0, |p| 1.0 - upper_tail(n, k + 1, p) >= error).1
}

/// Clopper and Pearson's lower limit.
#[must_use]
pub fn probability_at_least(n: u64, k: u64, error: f64) -> f64 {
    1.0 - probability_at_most(n, n - k.min(n), error)
}

/// How a threshold test went, on runs without and with the canary.
#[derive(Clone, Copy, Debug)]
pub struct TestCounts {
    /// Runs without the canary.
    pub outs: u64,
    /// Those of them in which the test says that it is there.
    pub false_positives: u64,
    /// Runs with the canary.
    pub ins: u64,
    /// Those of them in which the test says so.
    pub true_positives: u64,
}

/// ε from one threshold test: any (ε, δ) has
/// true-positive rate ≤ e^ε · false-positive rate + δ, and the same for the complements.
///
/// Wrong (above the true ε) with probability at most `confidence.error`.
/// Source: Jagielski, Ullman, Oprea 2020 (arXiv:2006.07709), Section 4, with the limits of
/// Clopper and Pearson at `error / 2` each.
#[must_use]
pub fn from_test(counts: TestCounts, confidence: Confidence) -> f64 {
    let delta = confidence.delta.get();
    let ratio = |large: f64, small: f64| {
        if large > delta && small > 0.0 {
            log((large - delta) / small)
        } else {
            0.0
        }
    };
    let half = confidence.error / 2.0;
    let true_positive_rate = probability_at_least(counts.ins, counts.true_positives, half);
    let false_positive_rate = probability_at_most(counts.outs, counts.false_positives, half);
    // The complementary test uses the same two limits.
    let direct = ratio(true_positive_rate, false_positive_rate);
    let complement = ratio(1.0 - false_positive_rate, 1.0 - true_positive_rate);
    direct.max(complement).max(0.0)
}

/// How an attacker guessed the coins of canaries.
#[derive(Clone, Copy, Debug)]
pub struct Guesses {
    /// Canaries whose coins were tossed.
    pub canaries: u64,
    /// Coins that the attacker guessed.
    pub guesses: u64,
    /// Right guesses.
    pub right: u64,
}

impl Guesses {
    /// The largest probability with which an (ε, δ)-private mechanism lets an attacker guess at
    /// least so many coins right.
    ///
    /// Source: Steinke, Nasr, Jagielski 2023 (arXiv:2305.08846), Theorem 5.2:
    /// `f(v) + 2mδ · max over i of (f(v-i) - f(v)) / i`, f the upper tail of
    /// Binomial(r, 1/(1+e^-ε)).
    #[must_use]
    pub fn probability(self, epsilon: f64, delta: f64) -> f64 {
        let p = 1.0 / (1.0 + exp(-epsilon));
        let tail = upper_tail(self.guesses, self.right, p);
        let mut slope: f64 = 0.0;
        let mut reached = tail;
        for i in 1..=self.right.min(self.canaries) {
            reached += exp(ln_mass(self.guesses, self.right - i, p));
            slope = slope.max((reached - tail) / i as f64);
            // Once all of the probability is reached, longer steps are flatter.
            if reached >= 1.0 - 1e-12 {
                break;
            }
        }
        (tail + 2.0 * self.canaries as f64 * delta * slope).min(1.0)
    }
}

/// The largest ε that these guesses refute at this δ; wrong with probability at most `error`.
#[must_use]
pub fn from_guesses(guesses: Guesses, delta: f64, error: f64) -> f64 {
    const MAX_EPSILON: f64 = 50.0;
    let is_refuted = |epsilon: f64| guesses.probability(epsilon, delta) <= error;
    if !is_refuted(0.0) {
        return 0.0;
    }
    bisect(0.0, MAX_EPSILON, is_refuted).0
}

/// The bracket of the point up to which `holds`, which must hold at `low` if anywhere.
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
    use smolfed_accounting::Delta;

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

    #[test]
    fn limits_of_clopper_and_pearson_are_the_published_ones() {
        // Rule of three: nothing seen in n trials.
        assert!((probability_at_most(100, 0, 0.05) - (1.0 - 0.05f64.powf(0.01))).abs() < 1e-12);
        // 10 of 100 at 97.5 % each way: [0.0490047, 0.1762226].
        assert!((probability_at_most(100, 10, 0.025) - 0.176_222_6).abs() < 1e-6);
        assert!((probability_at_least(100, 10, 0.025) - 0.049_004_7).abs() < 1e-6);
        assert_eq!(probability_at_least(10, 0, 0.05), 0.0);
        assert_eq!(probability_at_most(10, 10, 0.05), 1.0);
    }

    #[test]
    fn a_perfect_attack_is_limited_by_its_trials_only() {
        let bound = |false_positives, true_positives| {
            let counts = TestCounts {
                outs: 1000,
                false_positives,
                ins: 1000,
                true_positives,
            };
            let delta = Delta::new(1e-5).unwrap();
            from_test(counts, Confidence { delta, error: 1e-3 })
        };
        let perfect = bound(0, 1000);
        assert!((4.0..7.0).contains(&perfect), "{perfect}");
        assert_eq!(bound(500, 500), 0.0);
    }

    #[test]
    fn guesses_without_delta_are_a_binomial_test() {
        // r of r right: refuted while p^r <= error.
        let expected = {
            let p = 1e-3f64.powf(1.0 / 100.0);
            (p / (1.0 - p)).ln()
        };
        let bound = |right, delta| {
            let guesses = Guesses {
                canaries: 100,
                guesses: 100,
                right,
            };
            from_guesses(guesses, delta, 1e-3)
        };
        let found = bound(100, 0.0);
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        assert_eq!(bound(50, 0.0), 0.0);
        assert!(bound(100, 1e-4) < found);
    }
}
