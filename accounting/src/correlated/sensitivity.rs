//! Sensitivities of correlated noise in exact integers: the unit of coefficients, their limit, and
//! the largest number of rounds of a run.

/// m_0: coefficients are integers in units of 1/256.
pub const COEFFICIENT_UNIT: i64 = 256;
/// The largest number of rounds of a run. A plan keeps a few vectors of this length.
pub const MAX_ROUNDS: u32 = 1 << 22;
/// The largest |m_j|, so that sums of squares stay far inside `u128`.
pub const MAX_COEFFICIENT: i64 = 1 << 24;

/// The largest norm by which one device moves all releases of a run, if each of its updates has
/// norm at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sensitivity {
    /// Its square, in units of 1/256².
    pub squared: u128,
    /// Whether some participation attains it. Otherwise it is an upper bound.
    pub is_exact: bool,
}

impl Sensitivity {
    /// Returns the root in units of clip norms, never below the true one. It is exact for squares.
    pub(super) fn norm(self) -> f64 {
        // The conversion and the root each round by half a unit in the last place.
        let near = (self.squared as f64).sqrt();
        let root = near as u128;
        let is_square = root.checked_mul(root) == Some(self.squared);
        let above = if is_square && root < 1 << f64::MANTISSA_DIGITS {
            root as f64
        } else {
            near.next_up().next_up()
        };
        above / COEFFICIENT_UNIT as f64
    }
}

/// Returns m². Entries of sums of columns are at most k · 2²⁴ <= 2⁴⁶, and their squares at most 2⁹²
/// in each of 2²² rounds.
pub(super) fn square(m: i64) -> u128 {
    u128::from(m.unsigned_abs()).pow(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_never_below() {
        for squared in [1_u128, 2, 3, 65_536, 1_404_928, (1 << 100) + 1, u128::MAX] {
            let exact = Sensitivity {
                squared,
                is_exact: true,
            };
            let steps = exact.norm() * 256.0;
            // A root above 2⁵³ is already an integer. Below, its square is at least the integer.
            let is_enough = match steps < 9e15 {
                true => steps.powi(2).next_up() >= squared as f64,
                false => steps >= (squared as f64).sqrt(),
            };
            assert!(is_enough, "{squared}: {steps}");
            assert!(steps <= (squared as f64).sqrt() * (1.0 + 1e-15));
        }
        let two = Sensitivity {
            squared: 4 * 65_536,
            is_exact: true,
        };
        assert_eq!(two.norm(), 2.0);
    }
}
