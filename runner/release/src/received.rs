//! Checks of the updates of real devices, as far as device noise and masks allow: their bound, the
//! bit of adaptive clipping, and the reasons why an invalid update is left out.

use smolfed_core::mask::Tag;
use smolfed_core::quantize::Grid;

/// The update of a real device, checked as far as the trust model allows. It is private, and can
/// only be added to a [`PrivateSum`](super::PrivateSum).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ReceivedUpdate {
    integers: Vec<i64>,
    /// The bit of adaptive clipping. 0 if the clip norm is fixed.
    bit: i64,
    /// The tag for each helper, if the update is masked. Tags are not secret.
    tags: Vec<Tag>,
}

/// The reason why an update is left out. No honest device sends such an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidUpdate {
    /// Σq² is above 4^b, or the update is negated unnecessarily.
    OutOfBound,
    /// The bit is neither +2^b nor −2^b.
    Bit,
}

impl std::fmt::Debug for ReceivedUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceivedUpdate of {} integers", self.integers.len())
    }
}

impl ReceivedUpdate {
    /// Undoes the negation if the update was sent negated, and checks the update and its bit, if it
    /// has one, as far as possible.
    ///
    /// Without device noise, it checks that Σq² ≤ 4^b exactly, that only an update of one +2^b and
    /// zeros is sent negated, and that the bit is +2^b or −2^b. With device noise all values are
    /// possible, and the presence of noise cannot be checked. Masks have the same effect.
    ///
    /// # Errors
    /// [`InvalidUpdate`].
    pub fn check(
        grid: &Grid,
        mut integers: Vec<i64>,
        negated: bool,
        bit: Option<i64>,
        has_noise: bool,
    ) -> Result<Self, InvalidUpdate> {
        let update = |integers| Self {
            integers,
            bit: bit.unwrap_or(0),
            tags: Vec::new(),
        };
        if has_noise {
            return match negated {
                false => Ok(update(integers)),
                true => Err(InvalidUpdate::OutOfBound),
            };
        }
        // At most 25 bits each.
        let narrow: Vec<i32> = integers.iter().map(|q| *q as i32).collect();
        grid.check(&narrow).map_err(|_| InvalidUpdate::OutOfBound)?;
        // At the bound, if one entry is -2^b the others are 0.
        let bound = 1i64 << grid.bits();
        if negated && !integers.contains(&-bound) {
            return Err(InvalidUpdate::OutOfBound);
        }
        if bit.is_some_and(|bit| bit != bound && bit != -bound) {
            return Err(InvalidUpdate::Bit);
        }
        if negated {
            integers.iter_mut().for_each(|q| *q = -*q);
        }
        Ok(update(integers))
    }

    /// Adds the tags of a masked update.
    #[must_use]
    pub fn with_tags(self, tags: Vec<Tag>) -> Self {
        Self { tags, ..self }
    }

    /// Returns the tag for each helper, or none if the update is not masked.
    #[must_use]
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Returns the number of entries, which is public: one for each parameter.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.integers.len()
    }

    pub(super) fn integers(&self) -> &[i64] {
        &self.integers
    }

    pub(super) const fn bit(&self) -> i64 {
        self.bit
    }
}

#[cfg(any(test, feature = "faults"))]
impl From<Vec<i64>> for ReceivedUpdate {
    /// Creates a received update, for tests.
    fn from(integers: Vec<i64>) -> Self {
        Self {
            integers,
            ..Self::default()
        }
    }
}

#[cfg(any(test, feature = "faults"))]
impl ReceivedUpdate {
    /// Sets the bit.
    pub fn with_bit(self, bit: i64) -> Self {
        Self { bit, ..self }
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
            let found = ReceivedUpdate::check(&grid, integers, negated, None, false);
            prop_assert_eq!(found.ok(), is_allowed.then(|| expected.into()));
        }
    }

    #[test]
    fn one_entry_at_the_bound_is_accepted_and_one_step_more_is_not() {
        let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 6).unwrap();
        let check = |integers: &[i64], negated| {
            ReceivedUpdate::check(&grid, integers.to_vec(), negated, None, false).ok()
        };
        assert_eq!(check(&[0, -64, 0], true), Some(vec![0, 64, 0].into()));
        assert_eq!(check(&[0, -64, 0], false), Some(vec![0, -64, 0].into()));
        assert_eq!(check(&[0, -64, 1], false), None);
        assert_eq!(check(&[0, 63, 0], true), None);
    }

    #[test]
    fn without_device_noise_a_bit_is_one_of_two_values() {
        let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 6).unwrap();
        let check = |integers: &[i64], bit, has_noise| {
            ReceivedUpdate::check(&grid, integers.to_vec(), false, Some(bit), has_noise)
        };
        for bit in -130..=130 {
            let expected = match bit {
                64 | -64 => Ok(ReceivedUpdate::from(vec![5]).with_bit(bit)),
                _ => Err(InvalidUpdate::Bit),
            };
            assert_eq!(check(&[5], bit, false), expected);
            let noisy = ReceivedUpdate::from(vec![500]).with_bit(bit);
            assert_eq!(check(&[500], bit, true), Ok(noisy));
        }
        // A bit does not compensate for an update beyond its bound.
        assert_eq!(check(&[65], 64, false), Err(InvalidUpdate::OutOfBound));
    }

    #[test]
    fn debug_prints_no_values() {
        let update = ReceivedUpdate::from(vec![123_456; 2]);
        assert_eq!(format!("{update:?}"), "ReceivedUpdate of 2 integers");
    }

    #[test]
    fn tags_come_behind_a_masked_update() {
        let update = ReceivedUpdate::from(vec![5, -7]);
        assert_eq!(update.tags(), [[0; 16]; 0]);
        let tagged = update.clone().with_tags(vec![[1; 16], [2; 16]]);
        assert_eq!(tagged.tags(), [[1; 16], [2; 16]]);
        assert_eq!(tagged.integers(), update.integers());
    }
}
