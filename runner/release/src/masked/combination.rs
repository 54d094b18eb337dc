//! Combinations of the sums of several rounds: Σ_j m_j X_{t-j} with correlated noise, otherwise the
//! sum of the round alone. Both sides of a masked sum combine in the same way, modulo 2^w.

use rayon::prelude::*;
use smolfed_accounting::correlated::{COEFFICIENT_UNIT, Strategy, StrategyKind};

/// Entries that are combined together, so that they stay in the first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// The coefficients by which sums are combined, the latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combination {
    coefficients: Vec<i64>,
    fineness: i64,
}

impl Combination {
    /// Creates the combination of independent noise: the sum of each round by itself.
    #[must_use]
    pub fn single() -> Self {
        Self {
            coefficients: vec![1],
            fineness: 1,
        }
    }

    /// Creates a combination from coefficients in units of 1/256, or [`Self::single`] if there are
    /// none.
    #[must_use]
    pub fn of_coefficients(coefficients: &[i64]) -> Self {
        match coefficients {
            [] => Self::single(),
            _ => Self {
                coefficients: coefficients.to_vec(),
                fineness: COEFFICIENT_UNIT,
            },
        }
    }

    /// Creates the combination of a strategy, or [`Self::single`] without one. `None` for a tree,
    /// whose nodes are not combinations of the last rounds.
    #[must_use]
    pub fn from_strategy(strategy: Option<&Strategy>) -> Option<Self> {
        match strategy.map(Strategy::kind) {
            None => Some(Self::single()),
            Some(StrategyKind::Toeplitz(toeplitz)) => {
                Some(Self::of_coefficients(toeplitz.coefficients()))
            }
            Some(StrategyKind::Tree(_)) => None,
        }
    }

    /// Returns the coefficients in units of 1/256, or none if noise is independent.
    #[must_use]
    pub fn coefficients(&self) -> &[i64] {
        match self.fineness {
            1 => &[],
            _ => &self.coefficients,
        }
    }

    /// Returns how many times finer a combination is than the grid of the updates.
    #[must_use]
    pub const fn fineness(&self) -> i64 {
        self.fineness
    }

    /// Returns Σ |m_j|: the largest factor between an entry of a sum and of a combination.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.coefficients.iter().map(|m| m.unsigned_abs()).sum()
    }

    /// Returns the largest number of earlier rounds in a combination.
    #[must_use]
    pub const fn earlier(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// Returns Σ_j m_j x_j of vectors of `length` entries, the latest first, modulo 2⁶⁴.
    #[must_use]
    pub fn of_sums(&self, sums: &[&[i64]], length: usize) -> Vec<i64> {
        combined(&self.coefficients, sums, length)
    }
}

/// Returns Σ_j m_j x_j of vectors of `length` entries, modulo 2⁶⁴.
#[must_use]
pub(crate) fn combined(coefficients: &[i64], sums: &[&[i64]], length: usize) -> Vec<i64> {
    let mut combined = vec![0_i64; length];
    let blocks = combined.par_chunks_mut(BLOCK).enumerate();
    blocks.for_each(|(block, entries)| {
        for (m, sum) in coefficients.iter().zip(sums) {
            let sum = sum.get(block * BLOCK..).unwrap_or_default();
            let pairs = entries.iter_mut().zip(sum);
            pairs.for_each(|(y, x)| *y = y.wrapping_add(m.wrapping_mul(*x)));
        }
    });
    combined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_is_as_fine_and_as_large_as_its_coefficients() {
        let single = Combination::single();
        assert_eq!((single.fineness(), single.weight()), (1, 1));
        assert_eq!((single.coefficients(), single.earlier()), (&[][..], 0));
        let combination = Combination::of_coefficients(&[256, -100, 20]);
        assert_eq!((combination.fineness(), combination.weight()), (256, 376));
        assert_eq!(combination.coefficients(), [256, -100, 20]);
        assert_eq!(combination.earlier(), 2);
    }
}
