//! Releases besides the updates, under separate noise. Does that noise have the claimed std, is it
//! independent of all other noise, and what can one device change?

use std::collections::HashSet;

use super::tails::{Worst, mean_product, mean_square};
use crate::audit::check::{Check, ERROR};
use crate::audit::target::TargetError;

/// Number of devices with visible uploads in a run (local trust).
pub const DEVICES: usize = 12;

/// A channel. Each one is a file of [`channels`](crate::audit::channels).
pub trait Channel: Sync {
    /// Draws about `values` values of noise alone. `seed` gives the randomness.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    fn draws(&self, seed: u64, values: usize) -> Result<Draws, TargetError>;

    /// Measures the effect of one device. Returns `None` if the test of the updates covers it.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    fn changes(&self, _seed: u64) -> Result<Option<Check>, TargetError> {
        Ok(None)
    }

    /// Runs all direct tests of the channel.
    ///
    /// # Errors
    /// [`TargetError`] if a round breaks down.
    fn checks(&self, seed: u64, values: usize) -> Result<Vec<Check>, TargetError> {
        let mut checks = self.draws(seed, values)?.checks();
        checks.extend(self.changes(seed)?);
        Ok(checks)
    }
}

/// Cost of one value of a channel in values of updates. A channel has far fewer values.
pub const COST: usize = 16;

/// Names of the tests of a channel's noise.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Name of the test of its std.
    pub std: &'static str,
    /// Name of the test of its independence.
    pub independence: &'static str,
    /// Name of one group of values.
    pub group: &'static str,
}

/// Noise of a channel, in groups of equal length, in units of the claimed std.
#[derive(Debug)]
pub struct Draws {
    /// Names for the report.
    pub names: Names,
    /// Claimed std, in steps of the grid.
    pub steps: f64,
    /// The values.
    pub groups: Vec<Vec<f64>>,
    /// Distances between groups to compare with each other.
    pub distances: Vec<usize>,
    /// Other noise to compare with each group, with equally many values.
    pub others: Vec<Vec<Vec<f64>>>,
}

/// Minimum std, in steps of the grid. Smaller noise is far from Gaussian, and not tested.
pub const MIN_STEPS: f64 = 2.0;

impl Draws {
    /// Returns the verdicts, or none for noise of too few steps.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        if self.steps < MIN_STEPS {
            return Vec::new();
        }
        vec![self.std(), self.independence()]
    }

    fn std(&self) -> Check {
        let Names { std, group, .. } = self.names;
        let mut worst = Worst::default();
        let (mut total, mut values) = (0.0, 0.0);
        for (index, draws) in self.groups.iter().enumerate() {
            let (squares, n) = (product(draws, draws), draws.len() as f64);
            (total, values) = (total + squares, values + n);
            let ratio = squares / n;
            let words = || format!("{group} {index}: {:.4}", ratio.sqrt());
            worst.add(mean_square(n, ratio), words);
        }
        let mean = total / values;
        worst.add(mean_square(values, mean), || "all".to_owned());
        Check {
            test: std,
            is_as_claimed: !worst.fails(ERROR),
            evidence: format!(
                "{:.4} of the claimed one in {values} values; worst: {}",
                mean.sqrt(),
                worst.words
            ),
        }
    }

    fn independence(&self) -> Check {
        let group = self.names.group;
        let mut worst = Worst::default();
        for (index, draws) in self.groups.iter().enumerate() {
            let n = draws.len() as f64;
            let near = self.distances.iter().map(|distance| index + distance);
            for (other, values) in near.filter_map(|at| Some((at, self.groups.get(at)?))) {
                let mean = product(draws, values) / n;
                let words = || format!("{group}s {index} and {other}: {mean:.4}");
                worst.add(mean_product(n, mean), words);
            }
            let others = self.others.get(index).into_iter().flatten();
            for (coordinate, values) in others.enumerate() {
                let mean = product(draws, values) / n;
                let words = || {
                    format!("{group} {index} and an update's coordinate {coordinate}: {mean:.4}")
                };
                worst.add(mean_product(n, mean), words);
            }
        }
        let bits = |draws: &Vec<f64>| draws.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let different: HashSet<Vec<u64>> = self.groups.iter().map(bits).collect();
        let repeated = self.groups.len() - different.len();
        Check {
            test: self.names.independence,
            is_as_claimed: !worst.fails(ERROR) && repeated == 0,
            evidence: format!(
                "largest correlation of {}: {}; {repeated} {group}s occurred before",
                worst.tests, worst.words
            ),
        }
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Returns the columns of rows of equal length.
#[must_use]
pub fn transposed(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let width = rows.first().map_or(0, Vec::len);
    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
    (0..width).map(column).collect()
}
