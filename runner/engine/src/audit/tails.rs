//! Probabilities of large deviations, bounded from above by Chernoff's method: valid for every
//! number of draws.

/// Bounds P that the mean square of n standard Gaussians is as far from 1 as `ratio`, on the same
/// side.
#[must_use]
pub fn mean_square(n: f64, ratio: f64) -> f64 {
    (-n / 2.0 * (ratio - 1.0 - ratio.ln())).exp()
}

/// Bounds P that the mean of n standard Gaussians is as far from 0 as `mean`, on the same side.
#[must_use]
pub fn mean(n: f64, mean: f64) -> f64 {
    (-n * mean * mean / 2.0).exp()
}

/// Bounds P that the mean product of n pairs of independent standard Gaussians is as far from 0 as
/// `mean`, on the same side.
#[must_use]
pub fn mean_product(n: f64, mean: f64) -> f64 {
    let mean = mean.abs();
    if mean <= 0.0 {
        return 1.0;
    }
    // E exp(λxy) = (1 - λ²)^(-1/2).
    let tilt = ((1.0 + 4.0 * mean * mean).sqrt() - 1.0) / (2.0 * mean);
    (-n * (tilt * mean + 0.5 * (-tilt * tilt).ln_1p())).exp()
}

/// Bounds P that n coins of probability p show as many heads as `count`, or a number further from
/// the mean on the same side. It holds for draws without replacement too (Hoeffding 1963, Theorem
/// 4).
#[must_use]
pub fn heads(n: f64, count: f64, p: f64) -> f64 {
    let part = |share: f64, of: f64| {
        if share > 0.0 {
            share * (share / of).ln()
        } else {
            0.0
        }
    };
    let share = count / n;
    (-n * (part(share, p) + part(1.0 - share, 1.0 - p))).exp()
}

/// The worst of many tests. It fails if its probability, on either side and times the number of
/// tests, is at most the error.
#[derive(Debug, Clone, Default)]
pub struct Worst {
    /// Number of tests.
    pub tests: usize,
    probability: f64,
    /// Description of the worst test.
    pub words: String,
}

impl Worst {
    /// Adds a test.
    pub fn add(&mut self, probability: f64, words: impl FnOnce() -> String) {
        if self.tests == 0 || probability < self.probability {
            (self.probability, self.words) = (probability, words());
        }
        self.tests += 1;
    }

    /// Returns whether the worst test fails.
    #[must_use]
    pub fn fails(&self, error: f64) -> bool {
        self.tests > 0 && 2.0 * self.tests as f64 * self.probability <= error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_literature() {
        // A std 10 % too small shows with a probability of 1e-7 from about 2,950 draws on.
        assert!((mean_square(2_950.0, 0.81).log10() + 13.3).abs() < 0.2);
        assert!(mean_square(100.0, 0.0) <= 0.0 && mean_square(5.0, 1.0) >= 1.0);
        // For small means a Gaussian of variance 1/n: exp(-n mean²/2).
        let ratio = mean_product(1e6, 0.01).ln() / -50.0;
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
        assert!(mean_product(100.0, 0.0) >= 1.0);
        assert!((mean(100.0, 0.2).ln() + 2.0).abs() < 1e-12);
        // exp(-n KL): 2^-10 for ten heads of ten.
        assert!((heads(10.0, 10.0, 0.5) - 2f64.powi(-10)).abs() < 1e-15);
        assert!((heads(10.0, 5.0, 0.5) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn the_worst_counts_all_tests_on_both_sides() {
        let mut worst = Worst::default();
        assert!(!worst.fails(1.0));
        worst.add(0.5, || "fair".to_owned());
        worst.add(1e-8, || "rare".to_owned());
        assert!(worst.fails(1e-7) && !worst.fails(1e-8));
        assert_eq!((worst.words.as_str(), worst.tests), ("rare", 2));
    }
}
