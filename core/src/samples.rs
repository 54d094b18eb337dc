//! The local data of a device: feature rows with their targets.
//!
//! Firmware with a sensor keeps its samples in a [`SampleBuffer`], which checks each sample. Other
//! storage is checked as a whole by [`Session::check`](crate::session::Session::check) or
//! [`Client::check`](crate::client::Client::check).

use crate::format::{Feature, FeatureScale, round_feature};

mod buffer;
mod error;

pub use buffer::{
    Reading, SampleBuffer, SampleRows, SampleTarget, constant_features, saturated_features,
};
pub use error::SampleError;
pub(crate) use error::{check_features, has_count, is_finite};

/// Labelled samples of one device, in any storage: arrays in flash, a ring buffer of sensor
/// windows, or rows of a data set shared by many simulated devices.
pub trait Samples {
    /// Target of a model: a class (`u16`) or a value (`f32`).
    type Target: Copy;

    /// Returns the number of samples.
    fn len(&self) -> usize;

    /// Returns whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the features of sample `index < len()`. All samples have the same number of
    /// features. Samples stored as integers return none, and train in integers only.
    fn features(&self, index: usize) -> &[f32];

    /// Reads the features of sample `index < len()` as integers of this type and scale into `row`,
    /// and returns their number. Rounds and saturates [`Self::features`], unless the samples are
    /// stored as integers.
    #[inline(always)]
    fn read_integers<X: Feature>(&self, index: usize, scale: FeatureScale, row: &mut [i32]) -> usize
    where
        Self: Sized,
    {
        let features = self.features(index);
        for (place, x) in row.iter_mut().zip(features) {
            *place = round_feature::<X>(*x, scale).0.get();
        }
        features.len()
    }

    /// Returns the target of sample `index < len()`.
    fn target(&self, index: usize) -> Self::Target;
}

/// Samples in two slices: features row by row, and targets.
#[derive(Clone, Copy)]
pub struct SampleSlice<'a, T> {
    features: &'a [f32],
    targets: &'a [T],
    feature_count: usize,
}

/// Error for two slices whose lengths do not match in a [`SampleSlice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ShapeError {
    /// `feature_count` times the number of targets.
    pub expected: usize,
    /// Number of feature values given.
    pub found: usize,
}

impl core::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} feature values, but the targets need {}",
            self.found, self.expected
        )
    }
}

impl core::error::Error for ShapeError {}

impl<'a, T: Copy> SampleSlice<'a, T> {
    /// Creates `targets.len()` samples of `feature_count` features each.
    ///
    /// # Errors
    /// [`ShapeError`] unless there are `feature_count · targets.len()` features.
    pub const fn new(
        features: &'a [f32],
        targets: &'a [T],
        feature_count: usize,
    ) -> Result<Self, ShapeError> {
        match feature_count.checked_mul(targets.len()) {
            Some(expected) if expected == features.len() => Ok(Self {
                features,
                targets,
                feature_count,
            }),
            Some(expected) => Err(ShapeError {
                expected,
                found: features.len(),
            }),
            None => Err(ShapeError {
                expected: usize::MAX,
                found: features.len(),
            }),
        }
    }
}

impl<T: Copy + Default> Samples for SampleSlice<'_, T> {
    type Target = T;

    fn len(&self) -> usize {
        self.targets.len()
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        let start = index * self.feature_count;
        self.features
            .get(start..start + self.feature_count)
            .unwrap_or_default()
    }

    #[inline(always)]
    fn target(&self, index: usize) -> T {
        self.targets.get(index).copied().unwrap_or_default()
    }
}

impl<T> core::fmt::Debug for SampleSlice<'_, T> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "SampleSlice({} x {})",
            self.targets.len(),
            self.feature_count
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_targets_go_together() {
        let samples = SampleSlice::new(&[1.0, 2.0, 3.0, 4.0], &[0u16, 1], 2).unwrap();
        assert_eq!(samples.features(1), [3.0, 4.0]);
        assert_eq!(samples.target(1), 1);
        assert_eq!(samples.len(), 2);
        assert!(!samples.is_empty());
        assert!(samples.features(2).is_empty(), "outside: no panic");
        assert_eq!(std::format!("{samples:?}"), "SampleSlice(2 x 2)");
    }

    #[test]
    fn slices_that_do_not_fit_are_refused() {
        let error = SampleSlice::new(&[1.0; 3], &[0u16; 2], 2).unwrap_err();
        assert_eq!(
            error,
            ShapeError {
                expected: 4,
                found: 3
            }
        );
        assert!(SampleSlice::new(&[], &[0u16; 2], usize::MAX).is_err());
    }
}
