//! What a real device sent, checked.

use smolfed_core::quantize::Grid;

/// The update of a real device, checked as far as the trust model allows. It is private like a
/// [`PrivateSum`](super::PrivateSum), the only place where it can go.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ReceivedUpdate {
    integers: Vec<i64>,
}

impl std::fmt::Debug for ReceivedUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceivedUpdate of {} integers", self.integers.len())
    }
}

impl ReceivedUpdate {
    /// Negates the update back if it was sent negated, and checks all that can be checked about it;
    /// `None` if it exceeds its bound.
    ///
    /// Without device noise: Σq² ≤ 4^b, exactly, and only an update of one +2^b and zeros is sent
    /// negated. With device noise all values are possible; that they contain noise cannot be
    /// checked.
    #[must_use]
    pub fn check(
        grid: &Grid,
        mut integers: Vec<i64>,
        negated: bool,
        has_noise: bool,
    ) -> Option<Self> {
        if has_noise {
            return (!negated).then_some(Self { integers });
        }
        // At most 25 bits each.
        let narrow: Vec<i32> = integers.iter().map(|q| *q as i32).collect();
        grid.check(&narrow).ok()?;
        // At the bound, if one entry is -2^b the others are 0.
        let lowest = -(1i64 << grid.bits());
        if negated && !integers.contains(&lowest) {
            return None;
        }
        if negated {
            integers.iter_mut().for_each(|q| *q = -*q);
        }
        Some(Self { integers })
    }

    /// Entries, which are public: one for each parameter.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.integers.len()
    }

    pub(super) fn integers(&self) -> &[i64] {
        &self.integers
    }
}

#[cfg(test)]
impl From<Vec<i64>> for ReceivedUpdate {
    /// An update that was received, for tests of what carries it.
    fn from(integers: Vec<i64>) -> Self {
        Self { integers }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use smolfed_core::params::ClipNorm;

    use super::*;

    proptest! {
        #[test]
        fn without_device_noise_nothing_beyond_the_bound_is_accepted(
            integers in vec(-80i64..=80, 1..6),
            negated in any::<bool>(),
        ) {
            let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 6).unwrap();
            let squares: i64 = integers.iter().map(|q| q * q).sum();
            let is_allowed = squares <= 64 * 64 && (!negated || integers.contains(&-64));
            let sign = if negated { -1 } else { 1 };
            let expected: Vec<i64> = integers.iter().map(|q| sign * q).collect();
            let found = ReceivedUpdate::check(&grid, integers, negated, false);
            prop_assert_eq!(found, is_allowed.then(|| expected.into()));
        }
    }

    #[test]
    fn one_entry_at_the_bound_is_accepted_and_one_step_more_is_not() {
        let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 6).unwrap();
        let check = |integers: &[i64], negated| {
            ReceivedUpdate::check(&grid, integers.to_vec(), negated, false)
        };
        assert_eq!(check(&[0, -64, 0], true), Some(vec![0, 64, 0].into()));
        assert_eq!(check(&[0, -64, 0], false), Some(vec![0, -64, 0].into()));
        assert_eq!(check(&[0, -64, 1], false), None);
        assert_eq!(check(&[0, 63, 0], true), None);
    }

    #[test]
    fn debug_prints_no_values() {
        let update = ReceivedUpdate::from(vec![123_456; 2]);
        assert_eq!(format!("{update:?}"), "ReceivedUpdate of 2 integers");
    }
}
