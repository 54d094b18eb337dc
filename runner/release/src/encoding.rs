//! Encoding of updates as integers with exact sums: on the grid of the clip norm, or unclipped
//! without a privacy guarantee.

use smolfed_core::quantize::Grid;

/// Encoding of updates as integers with exact sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    /// Clipped updates on the grid of their clip norm, `Σq² ≤ 4^b` checked.
    Clipped(Grid),
    /// Unclipped updates, in steps of 2⁻³⁰: for runs without a privacy guarantee.
    Unbounded,
}

impl Encoding {
    /// One step of an unbounded update.
    pub(super) const UNBOUNDED_STEP: f64 = 1.0 / (1u64 << 30) as f64;
    /// Largest entry of an unbounded update: 2²⁰ of them fit into an `i64`.
    pub(super) const UNBOUNDED_LIMIT: f32 = 8192.0;

    /// Returns the step of the integers, in units of the parameters.
    #[must_use]
    pub fn step(&self) -> f64 {
        match self {
            Self::Clipped(grid) => grid.step(),
            Self::Unbounded => Self::UNBOUNDED_STEP,
        }
    }

    /// Returns the grid of clipped updates.
    #[must_use]
    pub const fn grid(&self) -> Option<Grid> {
        match self {
            Self::Clipped(grid) => Some(*grid),
            Self::Unbounded => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_an_update_without_bound_is_a_multiple_of_two_to_the_minus_thirty() {
        assert_eq!(Encoding::Unbounded.step(), 2f64.powi(-30));
        assert_eq!(Encoding::Unbounded.grid(), None);
        // 2^20 of the largest entries fit into an `i64`.
        let largest = f64::from(Encoding::UNBOUNDED_LIMIT) / Encoding::UNBOUNDED_STEP;
        assert!(largest * 2f64.powi(20) <= 2f64.powi(63));
    }
}
