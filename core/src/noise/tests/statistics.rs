//! Common parts of the tests of this module: generators, and checks of counts.
//!
//! Every statistical test has a fixed seed, so it gives the same answer each time. The stated
//! probability of a false alarm is the probability of an unlucky seed when the seed was chosen.

extern crate std;
use std::vec::Vec;

use rand_core::{Infallible, TryCryptoRng, TryRng};

use crate::stream::{Purpose, Root, Stream, StreamId};

/// Normal quantile of a false alarm of 4e-8 on one side, 7e-8 on both: small enough that a test may
/// make ten comparisons and still fail by bad luck with less than 1e-6.
pub const FAR: f64 = 5.4;

/// Returns a separate stream for each test.
pub fn stream(test: u32) -> Stream {
    Root::from_seed(0).stream(StreamId {
        purpose: Purpose::ServerNoise,
        round: test,
        device: 0,
    })
}

/// A generator of scripted words, which fails the test when asked for more.
pub struct Script {
    words: std::vec::IntoIter<u32>,
}

impl Script {
    pub fn new(words: impl IntoIterator<Item = u32>) -> Self {
        Self {
            words: words.into_iter().collect::<Vec<_>>().into_iter(),
        }
    }

    /// Returns the number of words not yet drawn.
    pub fn left(&self) -> usize {
        self.words.len()
    }
}

impl TryRng for Script {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.words.next().expect("the script ends too early"))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("the noise is defined by 32-bit words");
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        panic!("the noise is defined by 32-bit words");
    }
}

impl TryCryptoRng for Script {}

/// Asserts that `hits` of `draws` fit `probability`: false alarm 7e-8.
pub fn assert_frequency(hits: u64, draws: u64, probability: f64) {
    let expected = draws as f64 * probability;
    // One event is always possible if few are expected.
    let tolerance = FAR * (expected * (1.0 - probability)).sqrt() + 1.0;
    assert!(
        (hits as f64 - expected).abs() <= tolerance,
        "{hits} of {draws}, expected {expected:.1} ± {tolerance:.1}"
    );
}

/// Asserts that `statistic` is not an unusual chi-square value for these degrees of freedom: false
/// alarm 4e-8 (Wilson and Hilferty's approximation of the quantile).
pub fn assert_chi_square(statistic: f64, degrees: usize) {
    let spread = 2.0 / (9.0 * degrees as f64);
    let limit = degrees as f64 * (1.0 - spread + FAR * spread.sqrt()).powi(3);
    assert!(
        statistic <= limit,
        "chi-square {statistic:.1} of {degrees}, limit {limit:.1}"
    );
}

/// Asserts that `counts` fit `probabilities`: false alarm 4e-8. Cells with fewer than ten expected
/// are merged with their successors.
pub fn assert_law(counts: &[u64], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let draws = counts.iter().sum::<u64>() as f64;
    let mut cells = Vec::new();
    let (mut count, mut expected) = (0.0, 0.0);
    for (&found, probability) in counts.iter().zip(probabilities) {
        count += found as f64;
        expected += draws * probability;
        if expected >= 10.0 {
            cells.push((count, expected));
            (count, expected) = (0.0, 0.0);
        }
    }
    if let Some(last) = cells.last_mut() {
        *last = (last.0 + count, last.1 + expected);
    }
    let statistic = cells
        .iter()
        .map(|(count, mean)| (count - mean).powi(2) / mean)
        .sum::<f64>();
    assert!(cells.len() > 1, "too few draws for a law");
    assert_chi_square(statistic, cells.len() - 1);
}

/// Asserts that two samples of equal size come from one law: false alarm 4e-8.
pub fn assert_same_law(first: &[u64], second: &[u64]) {
    let (mut statistic, mut cells) = (0.0, 0);
    let (mut a, mut b) = (0.0, 0.0);
    for (&first, &second) in first.iter().zip(second) {
        a += first as f64;
        b += second as f64;
        if a + b >= 20.0 {
            statistic += (a - b).powi(2) / (a + b);
            cells += 1;
            (a, b) = (0.0, 0.0);
        }
    }
    assert!(cells > 1, "too few draws for a law");
    assert_chi_square(statistic, cells - 1);
}
