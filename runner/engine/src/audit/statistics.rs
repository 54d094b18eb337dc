//! The attacker's statistics of the values of a coordinate in all rounds.
//!
//! | statistic | of a coordinate |
//! | --- | --- |
//! | likelihood ratio | from the claim, or from the actual noise if a round has far less noise |
//! | mean over spread | mean over variance of the rounds: finds a coordinate without noise |
//! | spread over rounds | the range: finds noise that is the same in all rounds |
//!
//! The likelihood ratio covers all releases: the bit of adaptive clipping together with the value
//! of its round, and the one-time releases.

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::selection::Scores;

/// Draws the fair coins of a pair of runs. Canaries do not train, so the streams of the shuffles
/// are unused.
#[must_use]
pub fn coins(root: &Root, count: u32) -> Vec<bool> {
    let mut rng = root.stream(StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: u32::MAX,
    });
    (0..count).map(|_| rng.next_u32() & 1 == 1).collect()
}

/// The claim about the values of one round.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The probabilities that 0, 1, .. of a canary's devices take part.
    pub counts: Vec<f64>,
    /// Std of the noise, where a participating device adds 1.
    pub multiplier: f64,
    /// Std for the bit of adaptive clipping, if there is one, including the other canaries.
    pub bit_multiplier: Option<f64>,
    /// Whether the devices of an absent canary add -1 instead (replace-one).
    pub is_replaced: bool,
}

impl Claimed {
    /// Describes a value to which one device adds 1 for certain.
    #[must_use]
    pub fn of_one(multiplier: f64, is_replaced: bool) -> Self {
        Self::of_all(1, multiplier, is_replaced)
    }

    /// Describes a value to which `devices` devices add 1 each for certain.
    #[must_use]
    pub fn of_all(devices: u32, multiplier: f64, is_replaced: bool) -> Self {
        let mut counts = vec![0.0; devices as usize];
        counts.push(1.0);
        Self {
            counts,
            multiplier,
            bit_multiplier: None,
            is_replaced,
        }
    }

    /// Returns the expected number of participating devices, and the expectation of its square.
    #[must_use]
    pub fn moments(&self) -> [f64; 2] {
        let of = |power| {
            let terms = self.counts.iter().zip(0..);
            terms.map(|(p, c)| p * f64::from(c).powi(power)).sum()
        };
        [of(1), of(2)]
    }

    /// Returns the log-likelihood ratio of a round: of a value with noise of variance v, and of a
    /// bit.
    fn log_ratio(&self, x: f64, v: f64, bit: Option<f64>) -> f64 {
        let (mut signal, mut information) = (x / v, 1.0 / v);
        if let Some((bit, multiplier)) = bit.zip(self.bit_multiplier) {
            let v = multiplier.powi(2);
            signal += bit / v;
            information += 1.0 / v;
        }
        match self.is_replaced {
            true => self.ln_mixture(signal, information) - self.ln_mixture(-signal, information),
            false => self.ln_mixture(signal, information),
        }
    }

    /// Returns ln of the sum of exp(c s - c² i / 2) over the device counts c, each with its weight:
    /// the density with c devices over the density with none.
    fn ln_mixture(&self, signal: f64, information: f64) -> f64 {
        /// Larger values may overflow an exponential.
        const MAX_EXPONENT: f64 = 600.0;
        let exponent = |c: u32| {
            let c = f64::from(c);
            c * signal - c * c * information / 2.0
        };
        if let Some((last, before)) = self.counts.split_last()
            && *last >= 1.0
        {
            // All devices take part for certain.
            return exponent(before.len() as u32);
        }
        let terms = || self.counts.iter().zip(0u32..).filter(|(p, _)| **p > 0.0);
        let largest = terms().map(|(_, c)| exponent(c)).fold(0.0, f64::max);
        let offset = match largest < MAX_EXPONENT {
            true => 0.0,
            false => largest,
        };
        let term = |(p, c): (&f64, u32)| match c {
            0 => p * (-offset).exp(),
            c => p * (exponent(c) - offset).exp(),
        };
        offset + terms().map(term).sum::<f64>().ln()
    }

    /// Returns the variance of the noise of a round: as claimed, unless the median of its
    /// coordinates is less than half of the expected one.
    fn variance(&self, values: &[f64]) -> f64 {
        /// Minimum number of coordinates for a reliable median.
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

/// Sums over the observations of each canary's coordinate.
#[derive(Debug)]
pub struct Seen {
    rounds: u32,
    log_ratio: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
    range: Vec<(f64, f64)>,
}

impl Seen {
    /// Creates empty sums.
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

    /// Adds a round: a value of each canary, and its bit if it has one.
    pub fn add(&mut self, claimed: &Claimed, values: &[f64], bits: &[f64]) {
        self.add_once(claimed, values, bits);
        self.rounds += 1;
        for (index, x) in values.iter().copied().enumerate() {
            self.sum[index] += x;
            self.squares[index] += x * x;
            let (low, high) = self.range[index];
            self.range[index] = (low.min(x), high.max(x));
        }
    }

    /// Adds a one-time release outside the rounds. Only the likelihood ratio uses it.
    pub fn add_once(&mut self, claimed: &Claimed, values: &[f64], bits: &[f64]) {
        self.add_ratios(claimed, claimed.variance(values), values, bits);
    }

    /// Adds a one-time sum that gives each canary this value. Only the claim tells how much noise
    /// it has.
    pub fn add_shared(&mut self, claimed: &Claimed, values: &[f64]) {
        self.add_ratios(claimed, claimed.multiplier.powi(2), values, &[]);
    }

    fn add_ratios(&mut self, claimed: &Claimed, variance: f64, values: &[f64], bits: &[f64]) {
        let all = self.log_ratio.iter_mut().zip(values);
        for (index, (sum, x)) in all.enumerate() {
            *sum += claimed.log_ratio(*x, variance, bits.get(index).copied());
        }
    }

    /// Returns the statistics of each canary.
    #[must_use]
    pub fn scores(self, claimed: &Claimed, is_in: Vec<bool>) -> Scores {
        const MIN_VARIANCE: f64 = 1e-6;
        let rounds = f64::from(self.rounds.max(1));
        let center = if claimed.is_replaced {
            0.0
        } else {
            claimed.moments()[0] / 2.0
        };
        let over_spread = |(sum, squares): (&f64, &f64)| {
            let mean = sum / rounds;
            // Fewer than three rounds show no spread.
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

    fn sampled() -> Claimed {
        Claimed {
            counts: vec![0.8, 0.2],
            multiplier: 2.0,
            bit_multiplier: None,
            is_replaced: false,
        }
    }

    #[test]
    fn the_ratio_is_that_of_the_densities() {
        let density = |x: f64, mean: f64| (-(x - mean).powi(2) / 8.0).exp();
        let claimed = sampled();
        for x in [-3.0, 0.0, 0.5, 4.0] {
            let mixed = |sign| 0.8 * density(x, 0.0) + 0.2 * density(x, sign);
            let added = (mixed(1.0) / density(x, 0.0)).ln();
            assert!((claimed.log_ratio(x, 4.0, None) - added).abs() < 1e-12);
            let replaced = Claimed {
                is_replaced: true,
                ..sampled()
            };
            let expected = (mixed(1.0) / mixed(-1.0)).ln();
            assert!((replaced.log_ratio(x, 4.0, None) - expected).abs() < 1e-12);
        }
        // Overflows an exponential.
        let large = claimed.log_ratio(1e4, 0.01, None);
        assert!((large - (999_950.0 + 0.2f64.ln())).abs() < 1e-6);
        let certain = Claimed::of_one(1.0, false);
        assert!((certain.log_ratio(-1e4, 1.0, None) + 10_000.5).abs() < 1e-6);
    }

    /// Users with three devices, each of which may take part, and their bits.
    #[test]
    fn devices_of_a_user_and_their_bits_are_one_mixture() {
        let claimed = Claimed {
            counts: vec![0.512, 0.384, 0.096, 0.008],
            multiplier: 2.0,
            bit_multiplier: Some(3.0),
            is_replaced: false,
        };
        let density = |x: f64, mean: f64, v: f64| (-(x - mean).powi(2) / (2.0 * v)).exp();
        for (x, bit) in [(-1.0, 0.5), (0.0, 4.0), (3.0, -2.0)] {
            let of = |c: f64| density(x, c, 4.0) * density(bit, c, 9.0);
            let terms = claimed.counts.iter().zip(0..);
            let mixed: f64 = terms.map(|(p, c)| p * of(f64::from(c))).sum();
            let expected = (mixed / of(0.0)).ln();
            assert!((claimed.log_ratio(x, 4.0, Some(bit)) - expected).abs() < 1e-12);
        }
        let [mean, square] = claimed.moments();
        assert!((mean - 0.6).abs() < 1e-12 && (square - 0.84).abs() < 1e-12);
    }

    #[test]
    fn a_round_without_noise_is_read_with_its_own_scale() {
        let claimed = sampled();
        let noisy: Vec<f64> = (-20..20).map(|i| f64::from(i) / 5.0).collect();
        assert_eq!(claimed.variance(&noisy).to_bits(), 4f64.to_bits());
        let mut silent = vec![0.0; 40];
        silent[3] = 1.0;
        assert!(claimed.variance(&silent) < 0.01);
        // Too few coordinates for a median.
        assert_eq!(claimed.variance(&silent[..8]).to_bits(), 4f64.to_bits());
    }

    #[test]
    fn what_varies_or_stays_shows() {
        let mut seen = Seen::new(2);
        for round in 0..6 {
            // The same noise in each round. The first canary joins two of them.
            let joins = if round < 2 { 1.0 } else { 0.0 };
            seen.add(&sampled(), &[-3.0 + joins, 1.5], &[]);
        }
        let scores = seen.scores(&sampled(), vec![true, false]);
        let [_, over_spread, range] = &scores.values;
        assert!((range[0] - 1.0).abs() < 1e-12 && range[1] <= 0.0);
        assert!(over_spread[1] > 1e5 && over_spread[0] < 0.0);
    }
}
