//! Toeplitz strategies: integer coefficients m_j of the sums of the last rounds, their sensitivity
//! in integers, and the errors of prefix sums.

use super::error::CorrelatedError;
use super::participation::Participation;
use super::sensitivity::{COEFFICIENT_UNIT, MAX_COEFFICIENT, Sensitivity, square};
use super::series::Series;

/// The coefficients m_j of C in units of 1/256: m_0 = 256, and the last is not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toeplitz {
    coefficients: Vec<i64>,
}

impl Toeplitz {
    /// Creates a strategy from coefficients. Trailing zeros and coefficients past the last round
    /// are dropped.
    pub(super) fn new(mut coefficients: Vec<i64>, rounds: u32) -> Result<Self, CorrelatedError> {
        coefficients.truncate(rounds as usize);
        let used = coefficients.iter().rposition(|m| *m != 0);
        coefficients.truncate(used.map_or(0, |last| last + 1));
        if coefficients.first() != Some(&COEFFICIENT_UNIT) {
            let first = coefficients.first().copied().unwrap_or(0);
            return Err(CorrelatedError::FirstCoefficient { first });
        }
        let large = coefficients.iter().find(|m| m.abs() > MAX_COEFFICIENT);
        if let Some(&coefficient) = large {
            return Err(CorrelatedError::LargeCoefficient { coefficient });
        }
        Ok(Self { coefficients })
    }

    /// Rounds real coefficients, of which the first is 1, to units of 1/256.
    pub(super) fn rounded(c: &[f64], rounds: u32) -> Result<Self, CorrelatedError> {
        let unit = COEFFICIENT_UNIT as f64;
        Self::new(
            c.iter().map(|c| (c * unit).round() as i64).collect(),
            rounds,
        )
    }

    /// Returns m_j for j = 0, 1, ..: round t releases Σ m_j X_{t-j} plus noise.
    #[must_use]
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// Returns Σ |m_j|.
    pub(super) fn weight(&self) -> i64 {
        self.coefficients.iter().map(|m| m.abs()).sum()
    }

    /// Returns the sensitivity under `participation`.
    ///
    /// With at most b bands, the columns of a device's rounds do not overlap, so the squared norms
    /// add for all signs of m and directions of the updates. A column's norm is largest if it is
    /// not truncated by the last round, so the earliest rounds are the worst.
    ///
    /// With more bands, columns overlap. If m is non-negative and non-increasing, the earliest
    /// rounds are the worst (2306.08153, Theorem 2). Otherwise |m| is replaced by the smallest
    /// non-increasing sequence above it, which gives an upper bound: entries of Σ C[:,i] u_i are at
    /// most the entries of Σ |C|[:,i] in norm, and larger non-negative entries have a larger norm.
    pub(super) fn sensitivity(&self, participation: Participation) -> Sensitivity {
        let rounds = participation.rounds() as usize;
        if self.coefficients.len() <= participation.separation() as usize {
            let columns = participation.earliest().map(|first| {
                let entries = self.coefficients.iter().take(rounds - first);
                entries.map(|m| square(*m)).sum::<u128>()
            });
            return Sensitivity {
                squared: columns.sum(),
                is_exact: true,
            };
        }
        let mut envelope: Vec<i64> = self.coefficients.iter().map(|m| m.abs()).collect();
        let mut largest = 0;
        for m in envelope.iter_mut().rev() {
            largest = largest.max(*m);
            *m = largest;
        }
        Sensitivity {
            squared: overlapping(&envelope, participation),
            is_exact: envelope == self.coefficients,
        }
    }

    /// Returns err_t = Σ_{s<=t} B_s² for every round t: the variance of the noise in the estimated
    /// sum of rounds 0 to t, relative to the variance of a release.
    pub(super) fn errors(&self, series: &Series) -> Vec<f64> {
        let unit = COEFFICIENT_UNIT as f64;
        let c: Vec<f64> = self.coefficients.iter().map(|m| *m as f64 / unit).collect();
        let mut errors = series.prefix_weights(&c);
        let mut sum = 0.0;
        for error in &mut errors {
            sum += *error * *error;
            *error = sum;
        }
        errors
    }
}

/// Returns || Σ_{i<k} C[:, i b] ||² of non-negative entries: row t has Σ m_{t-ib}, a running sum
/// over rows b apart.
fn overlapping(m: &[i64], participation: Participation) -> u128 {
    let rounds = participation.rounds() as usize;
    let separation = participation.separation() as usize;
    let last = separation * participation.participations() as usize;
    let entry = |index: usize| m.get(index).copied().unwrap_or(0);
    let mut rows: Vec<i64> = Vec::with_capacity(rounds);
    for t in 0..rounds {
        let before = t.checked_sub(separation).and_then(|t| rows.get(t));
        // There is no column of a (k+1)-th participation.
        let beyond = t.checked_sub(last).map_or(0, entry);
        rows.push(before.copied().unwrap_or(0) + entry(t) - beyond);
    }
    rows.into_iter().map(square).sum()
}

/// Returns c_j = c_{j-1} (2j - 1) / (2j): the coefficients of (1 - x)^(-1/2), whose square is the
/// prefix sum.
pub(super) fn square_root(count: usize) -> Vec<f64> {
    let mut c = 1.0;
    let next = |j: usize| {
        let step = c;
        c *= (2 * j + 1) as f64 / (2 * j + 2) as f64;
        step
    };
    (0..count).map(next).collect()
}
