//! A device's samples: some rows of data shared by many devices, without a copy.

use std::fmt;

use smolfed_core::samples::Samples;

/// Some rows of a table of features with their targets, in any order.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    features: &'a [f32],
    feature_count: usize,
    targets: &'a [T],
    rows: &'a [u32],
}

impl<'a, T> Rows<'a, T> {
    /// Creates the rows numbered `rows` of a table with `feature_count` features per row.
    ///
    /// A missing row has no features, and every model refuses it.
    #[must_use]
    pub const fn new(
        features: &'a [f32],
        feature_count: usize,
        targets: &'a [T],
        rows: &'a [u32],
    ) -> Self {
        Self {
            features,
            feature_count,
            targets,
            rows,
        }
    }

    /// Returns the same features without targets.
    pub(crate) const fn without_targets(&self) -> Rows<'a, ()> {
        Rows::new(self.features, self.feature_count, &[], self.rows)
    }

    /// Returns the table row of sample `index`, or a missing row if there is no such sample.
    #[inline(always)]
    fn row(&self, index: usize) -> usize {
        self.rows.get(index).map_or(usize::MAX, |row| *row as usize)
    }
}

impl<T: Copy + Default> Samples for Rows<'_, T> {
    type Target = T;

    #[inline(always)]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        let start = self.row(index).saturating_mul(self.feature_count);
        self.features
            .get(start..)
            .and_then(|rest| rest.get(..self.feature_count))
            .unwrap_or_default()
    }

    #[inline(always)]
    fn target(&self, index: usize) -> T {
        self.targets
            .get(self.row(index))
            .copied()
            .unwrap_or_default()
    }
}

/// Shape only: device data never reach a log.
impl<T> fmt::Debug for Rows<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Rows({} samples of {} features)",
            self.rows.len(),
            self.feature_count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_rows_of_the_table() {
        let rows = Rows::new(&[1.0, 2.0, 3.0, 4.0], 2, &[5u16, 6], &[1, 0, 1]);
        assert_eq!(rows.len(), 3);
        assert_eq!((rows.features(0), rows.target(0)), (&[3.0, 4.0][..], 6));
        assert_eq!((rows.features(1), rows.target(1)), (&[1.0, 2.0][..], 5));
        assert_eq!(format!("{rows:?}"), "Rows(3 samples of 2 features)");
    }

    #[test]
    fn features_are_the_same_without_targets() {
        let rows = Rows::new(&[1.0, 2.0, 3.0, 4.0], 2, &[5u16, 6], &[1, 0, 9]);
        let bare = rows.without_targets();
        assert_eq!(bare.len(), rows.len());
        for sample in 0..4 {
            assert_eq!(bare.features(sample), rows.features(sample));
        }
    }

    #[test]
    fn what_is_outside_is_empty() {
        let rows = Rows::new(&[1.0, 2.0, 3.0], 2, &[5u16], &[1, 9]);
        assert!(rows.features(0).is_empty(), "the row is cut short");
        assert!(rows.features(1).is_empty() && rows.features(2).is_empty());
        assert_eq!((rows.target(0), rows.target(2)), (0, 0));
    }
}
