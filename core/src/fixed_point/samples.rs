//! The samples of a device in integers: reading of their features and targets for training.

use crate::format::Feature;
use crate::samples::ShapeError;

/// Labelled samples of one device with integer features.
pub trait FixedPointSamples {
    /// Type of stored features.
    type Feature: Feature;

    /// A class, or a value in multiples of 2^−[`TARGET_FRACTION`](super::TARGET_FRACTION).
    type Target: Copy;

    /// Returns the number of samples.
    fn len(&self) -> usize;

    /// Returns whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the features of sample `index < len()` into `row`, and returns their number.
    ///
    /// Widening them once here makes each use a single load instruction, twice for each class.
    fn read(&self, index: usize, row: &mut [i32]) -> usize;

    /// Returns the target of sample `index < len()`.
    fn target(&self, index: usize) -> Self::Target;
}

/// Samples in two slices: features row by row, and targets.
#[derive(Clone, Copy)]
pub struct FixedPointSlice<'a, X, T> {
    features: &'a [X],
    targets: &'a [T],
    feature_count: usize,
}

impl<'a, X, T> FixedPointSlice<'a, X, T> {
    /// Creates `targets.len()` samples of `feature_count` features each.
    ///
    /// # Errors
    /// [`ShapeError`] unless there are `feature_count · targets.len()` features.
    pub const fn new(
        features: &'a [X],
        targets: &'a [T],
        feature_count: usize,
    ) -> Result<Self, ShapeError> {
        let expected = feature_count.saturating_mul(targets.len());
        if expected != features.len() {
            let found = features.len();
            return Err(ShapeError { expected, found });
        }
        Ok(Self {
            features,
            targets,
            feature_count,
        })
    }
}

impl<X: Feature, T: Copy + Default> FixedPointSamples for FixedPointSlice<'_, X, T> {
    type Feature = X;
    type Target = T;

    fn len(&self) -> usize {
        self.targets.len()
    }

    #[inline(always)]
    fn read(&self, index: usize, row: &mut [i32]) -> usize {
        let start = index * self.feature_count;
        let features = self.features.get(start..start + self.feature_count);
        let features = features.unwrap_or_default();
        for (place, x) in row.iter_mut().zip(features) {
            *place = x.get();
        }
        features.len()
    }

    #[inline(always)]
    fn target(&self, index: usize) -> T {
        self.targets.get(index).copied().unwrap_or_default()
    }
}

impl<X, T> core::fmt::Debug for FixedPointSlice<'_, X, T> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (samples, features) = (self.targets.len(), self.feature_count);
        write!(f, "FixedPointSlice({samples} x {features})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_targets_go_together() {
        let samples = FixedPointSlice::new(&[1_i8, 2, 3, 4], &[0_u16, 1], 2).unwrap();
        let mut row = [0; 2];
        assert_eq!((samples.read(1, &mut row), row), (2, [3, 4]));
        assert_eq!(samples.target(1), 1);
        assert!(samples.len() == 2 && !samples.is_empty());
        assert_eq!(samples.read(2, &mut row), 0, "outside: no panic");
        assert_eq!(std::format!("{samples:?}"), "FixedPointSlice(2 x 2)");
    }

    #[test]
    fn slices_that_do_not_fit_are_refused() {
        let error = FixedPointSlice::new(&[1_i16; 3], &[0_u16; 2], 2).unwrap_err();
        let (expected, found) = (4, 3);
        assert_eq!(error, ShapeError { expected, found });
        assert!(FixedPointSlice::new(&[0_i8; 0], &[0_u16; 2], usize::MAX).is_err());
    }
}
