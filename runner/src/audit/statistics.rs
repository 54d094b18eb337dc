//! What an attacker computes from the values of a coordinate in all rounds.
//!
//! | statistic | of a coordinate |
//! | --- | --- |
//! | likelihood ratio | that of the claim; in a round with far less noise, that of such noise |
//! | mean over spread | mean over variance of the rounds: finds a coordinate without noise |
//! | spread over rounds | the range: finds noise that is the same in all rounds |

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::selection::Scores;

/// The fair coins of a pair of runs. Canaries do not train, so that the streams of the shuffles
/// are free for them.
#[must_use]
pub fn coins(root: &Root, count: u32) -> Vec<bool> {
    let mut rng = root.stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: u32::MAX,
    });
    (0..count).map(|_| rng.next_u32() & 1 == 1).collect()
}

/// What is claimed about a value of one round.
#[derive(Debug, Clone, Copy)]
pub struct Claimed {
    /// The probability with which a canary takes part.
    pub rate: f64,
    /// The std of the noise, where a canary that takes part adds 1.
    pub multiplier: f64,
    /// Whether a canary that does not take part adds -1 instead (replace-one).
    pub is_replaced: bool,
}

impl Claimed {
    /// The log-likelihood ratio of one value, for noise of variance v.
    fn log_ratio(&self, x: f64, v: f64) -> f64 {
        let shifted = |x: f64| {
            let exponent = (x - 0.5) / v;
            if self.rate >= 1.0 {
                exponent
            } else if exponent > 700.0 {
                exponent + self.rate.ln()
            } else {
                (1.0 - self.rate + self.rate * exponent.exp()).ln()
            }
        };
        match self.is_replaced {
            true => shifted(x) - shifted(-x),
            false => shifted(x),
        }
    }

    /// The variance of the noise of a round: as claimed, unless the median of its coordinates is
    /// less than half of what it should be.
    fn variance(&self, values: &[f64]) -> f64 {
        /// Coordinates without which a median says too little.
        const MIN_COORDINATES: usize = 16;
        /// The median magnitude of a standard Gaussian.
        const MEDIAN: f64 = 0.674_49;
        const MIN_STD: f64 = 0.05;
        let claimed = self.multiplier.powi(2);
        if values.len() < MIN_COORDINATES {
            return claimed;
        }
        let mut sizes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
        let middle = sizes.len() / 2;
        let (_, median, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
        let std = (*median / MEDIAN).max(MIN_STD);
        if std < self.multiplier / 2.0 {
            std.powi(2)
        } else {
            claimed
        }
    }
}

/// What was seen of each canary's coordinate.
#[derive(Debug)]
pub struct Seen {
    rounds: u32,
    log_ratio: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
    range: Vec<(f64, f64)>,
}

impl Seen {
    /// Nothing yet.
    #[must_use]
    pub fn new(canaries: usize) -> Self {
        Self {
            rounds: 0,
            log_ratio: vec![0.0; canaries],
            sum: vec![0.0; canaries],
            squares: vec![0.0; canaries],
            range: vec![(f64::INFINITY, f64::NEG_INFINITY); canaries],
        }
    }

    /// Adds a round.
    pub fn add(&mut self, claimed: &Claimed, values: &[f64]) {
        let variance = claimed.variance(values);
        self.rounds += 1;
        for (index, x) in values.iter().copied().enumerate() {
            self.log_ratio[index] += claimed.log_ratio(x, variance);
            self.sum[index] += x;
            self.squares[index] += x * x;
            let (low, high) = self.range[index];
            self.range[index] = (low.min(x), high.max(x));
        }
    }

    /// The statistics of each canary.
    #[must_use]
    pub fn scores(self, claimed: &Claimed, is_in: Vec<bool>) -> Scores {
        const MIN_VARIANCE: f64 = 1e-6;
        let rounds = f64::from(self.rounds.max(1));
        let center = if claimed.is_replaced {
            0.0
        } else {
            claimed.rate / 2.0
        };
        let over_spread = |(sum, squares): (&f64, &f64)| {
            let mean = sum / rounds;
            // Less than three rounds show no spread.
            let variance = match self.rounds {
                0..3 => claimed.multiplier.powi(2),
                _ => (squares - sum * mean) / (rounds - 1.0),
            };
            (mean - center) / variance.max(MIN_VARIANCE)
        };
        let sums = self.sum.iter().zip(&self.squares);
        Scores {
            values: [
                self.log_ratio,
                sums.map(over_spread).collect(),
                self.range.iter().map(|(low, high)| high - low).collect(),
            ],
            is_in,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: Claimed = Claimed {
        rate: 0.2,
        multiplier: 2.0,
        is_replaced: false,
    };

    #[test]
    fn the_ratio_is_that_of_the_densities() {
        let density = |x: f64, mean: f64| (-(x - mean).powi(2) / 8.0).exp();
        for x in [-3.0, 0.0, 0.5, 4.0] {
            let mixed = |sign| 0.8 * density(x, 0.0) + 0.2 * density(x, sign);
            let added = (mixed(1.0) / density(x, 0.0)).ln();
            assert!((SAMPLED.log_ratio(x, 4.0) - added).abs() < 1e-12);
            let replaced = Claimed {
                is_replaced: true,
                ..SAMPLED
            };
            let expected = (mixed(1.0) / mixed(-1.0)).ln();
            assert!((replaced.log_ratio(x, 4.0) - expected).abs() < 1e-12);
        }
        // Too large for an exponential.
        assert!((SAMPLED.log_ratio(1e4, 0.01) - (999_950.0 + 0.2f64.ln())).abs() < 1e-6);
    }

    #[test]
    fn a_round_without_noise_is_read_with_its_own_scale() {
        let noisy: Vec<f64> = (-20..20).map(|i| f64::from(i) / 5.0).collect();
        assert_eq!(SAMPLED.variance(&noisy).to_bits(), 4f64.to_bits());
        let mut silent = vec![0.0; 40];
        silent[3] = 1.0;
        assert!(SAMPLED.variance(&silent) < 0.01);
        // Too few coordinates to say.
        assert_eq!(SAMPLED.variance(&silent[..8]).to_bits(), 4f64.to_bits());
    }

    #[test]
    fn what_varies_or_stays_shows() {
        let mut seen = Seen::new(2);
        for round in 0..6 {
            // The same noise in each round; the first canary joins two of them.
            let joins = if round < 2 { 1.0 } else { 0.0 };
            seen.add(&SAMPLED, &[-3.0 + joins, 1.5]);
        }
        let scores = seen.scores(&SAMPLED, vec![true, false]);
        let [_, over_spread, range] = &scores.values;
        assert!((range[0] - 1.0).abs() < 1e-12 && range[1] <= 0.0);
        assert!(over_spread[1] > 1e5 && over_spread[0] < 0.0);
    }
}
