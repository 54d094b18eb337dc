//! Buffer of the last samples of a sensor, checked on arrival: a new one replaces the oldest one
//! when the buffer is full. It also counts constant and saturated features.

use super::{
    Samples, ShapeError,
    error::{SampleError, is_finite},
};
use crate::format::{Feature, FeatureScale, round_feature};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for i8 {}
    impl Sealed for i16 {}
    impl Sealed for u16 {}
}

/// A stored feature: a number, or an integer of the model's scale.
pub trait Reading: Copy + Default + PartialEq + sealed::Sealed + 'static {
    /// Returns whether the feature is finite. Integers always are.
    fn is_number(self) -> bool;

    /// Returns whether the feature is the smallest or the largest integer of its type. Numbers have
    /// no limits.
    fn is_limit(self) -> bool;

    /// Converts a number to a stored feature.
    fn of_number(x: f32, scale: FeatureScale) -> Self;

    /// Returns the features as numbers, or none if they are stored as integers.
    fn numbers(features: &[Self]) -> &[f32];

    /// Reads features as integers, as [`Samples::read_integers`] does.
    fn read_integers<X: Feature>(features: &[Self], scale: FeatureScale, row: &mut [i32]) -> usize;
}

impl Reading for f32 {
    #[inline(always)]
    fn is_number(self) -> bool {
        is_finite(self)
    }

    fn is_limit(self) -> bool {
        false
    }

    fn of_number(x: f32, _: FeatureScale) -> Self {
        x
    }

    #[inline(always)]
    fn numbers(features: &[Self]) -> &[f32] {
        features
    }

    #[inline(always)]
    fn read_integers<X: Feature>(features: &[Self], scale: FeatureScale, row: &mut [i32]) -> usize {
        for (place, x) in row.iter_mut().zip(features) {
            *place = round_feature::<X>(*x, scale).0.get();
        }
        features.len()
    }
}

macro_rules! integer {
    ($integer:ty) => {
        impl Reading for $integer {
            #[inline(always)]
            fn is_number(self) -> bool {
                true
            }

            #[inline(always)]
            fn is_limit(self) -> bool {
                self == Self::MIN || self == Self::MAX
            }

            fn of_number(x: f32, scale: FeatureScale) -> Self {
                round_feature::<Self>(x, scale).0
            }

            #[inline(always)]
            fn numbers(_: &[Self]) -> &[f32] {
                &[]
            }

            #[inline(always)]
            fn read_integers<X: Feature>(
                features: &[Self],
                _: FeatureScale,
                row: &mut [i32],
            ) -> usize {
                for (place, x) in row.iter_mut().zip(features) {
                    // 16 bits may exceed the model's 8, whose products fit 32 bits.
                    *place = X::saturated((*x).into()).get();
                }
                features.len()
            }
        }
    };
}

integer!(i8);
integer!(i16);

/// A stored target: a class or a value.
pub trait SampleTarget: Copy + Default + sealed::Sealed + 'static {
    /// Returns whether the target is a class below `classes`, or a finite value.
    fn is_target(self, classes: u16) -> bool;
}

impl SampleTarget for u16 {
    #[inline(always)]
    fn is_target(self, classes: u16) -> bool {
        self < classes
    }
}

impl SampleTarget for f32 {
    #[inline(always)]
    fn is_target(self, _: u16) -> bool {
        is_finite(self)
    }
}

/// The last `N` samples of `D` features. A new sample replaces the oldest one. The buffer refuses
/// samples that training cannot use, so that a bad reading costs no participation.
///
/// ```
/// use smolfed_core::samples::{SampleBuffer, SampleError, Samples};
///
/// let mut samples = SampleBuffer::<f32, u16, 2, 8>::of_classes(3);
/// samples.push(&[0.5, -1.0], 2)?;
/// assert_eq!(samples.push(&[0.5, -1.0], 3), Err(SampleError::Target));
/// let broken = samples.push(&[0.5, f32::NAN], 2);
/// assert_eq!(broken, Err(SampleError::NotFinite { feature: 1 }));
/// assert_eq!(samples.len(), 1);
/// # Ok::<(), SampleError>(())
/// ```
pub struct SampleBuffer<X, T, const D: usize, const N: usize> {
    features: [[X; D]; N],
    targets: [T; N],
    ring: Ring,
}

impl<X: Reading, const D: usize, const N: usize> SampleBuffer<X, u16, D, N> {
    /// Creates an empty buffer for classes from 0 to `classes` − 1.
    #[must_use]
    pub fn of_classes(classes: u16) -> Self {
        Self::new(classes)
    }
}

impl<X: Reading, const D: usize, const N: usize> SampleBuffer<X, f32, D, N> {
    /// Creates an empty buffer for values.
    #[must_use]
    pub fn of_values() -> Self {
        Self::new(0)
    }
}

impl<X: Reading, T: SampleTarget, const D: usize, const N: usize> SampleBuffer<X, T, D, N> {
    #[inline(always)]
    fn new(classes: u16) -> Self {
        const { assert!(N < 1 << 16, "at most 65,535 samples") };
        Self {
            features: [[X::default(); D]; N],
            targets: [T::default(); N],
            ring: Ring::new(classes),
        }
    }

    /// Adds a sample, and replaces the oldest one if the buffer is full.
    ///
    /// # Errors
    /// [`SampleError`] for a wrong length, a feature that is not finite, and a target that is not
    /// one of the classes or not finite. The samples are then unchanged.
    pub fn push(&mut self, features: &[X], target: T) -> Result<(), SampleError> {
        let rows = self.features.as_flattened_mut();
        (self.ring).push(rows, &mut self.targets, D, features, target)
    }

    /// Returns the number of features with the same value in all samples, perhaps from a sensor
    /// that has stopped. 0 for fewer than two samples. The result is private: it must not leave the
    /// device.
    #[must_use]
    pub fn constant_features(&self) -> usize {
        constant_features(self.kept(), D)
    }

    /// Returns the number of features in all samples that equal the smallest or the largest integer
    /// of their type, perhaps because they are too large for the scale. The result is private: it
    /// must not leave the device.
    #[must_use]
    pub fn saturated_features(&self) -> usize {
        saturated_features(self.kept())
    }

    fn kept(&self) -> &[X] {
        self.rows().as_flattened()
    }

    fn rows(&self) -> &[[X; D]] {
        self.features
            .get(..self.ring.len.into())
            .unwrap_or_default()
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &[X] {
        self.rows().get(index).map_or(&[], |row| row)
    }
}

/// A [`SampleBuffer`] in the caller's memory, with run-time sizes.
pub struct SampleRows<'a, X, T> {
    features: &'a mut [X],
    targets: &'a mut [T],
    feature_count: usize,
    ring: Ring,
}

impl<'a, X: Reading, T: SampleTarget> SampleRows<'a, X, T> {
    /// Creates an empty buffer for `targets.len()` samples of `feature_count` features each.
    /// Targets are classes from 0 to `classes` − 1, or values, for which `classes` is ignored.
    ///
    /// # Errors
    /// [`ShapeError`] unless there are `feature_count · targets.len()` features, and at most 65,535
    /// targets.
    pub fn new(
        features: &'a mut [X],
        targets: &'a mut [T],
        feature_count: usize,
        classes: u16,
    ) -> Result<Self, ShapeError> {
        let (found, count) = (features.len(), targets.len().min(usize::from(u16::MAX)));
        match feature_count.checked_mul(count) {
            Some(expected) if expected == found && count == targets.len() => Ok(Self {
                features,
                targets,
                feature_count,
                ring: Ring::new(classes),
            }),
            expected => Err(ShapeError {
                expected: expected.unwrap_or(usize::MAX),
                found,
            }),
        }
    }

    /// Adds a sample, and replaces the oldest one if the buffer is full.
    ///
    /// # Errors
    /// As [`SampleBuffer::push`].
    pub fn push(&mut self, features: &[X], target: T) -> Result<(), SampleError> {
        let (rows, targets) = (&mut *self.features, &mut *self.targets);
        (self.ring).push(rows, targets, self.feature_count, features, target)
    }

    /// Adds a sample whose features `fill` writes to its row, after the check of the target and its
    /// own checks: it writes only finite numbers. An error keeps the samples as they are, so `fill`
    /// must not write before one.
    ///
    /// # Errors
    /// [`SampleError::Target`], and those of `fill`.
    pub fn push_with<E: From<SampleError>>(
        &mut self,
        target: T,
        fill: impl FnOnce(&mut [X]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !target.is_target(self.ring.classes) {
            return Err(SampleError::Target.into());
        }
        if let Some(row) = self.ring.next_row(self.features, self.feature_count) {
            fill(row)?;
            self.ring.keep(self.targets, target);
        }
        Ok(())
    }

    /// Removes all samples, and overwrites their memory with zeros.
    pub fn clear(&mut self) {
        self.features.fill(X::default());
        self.targets.fill(T::default());
        self.ring = Ring::new(self.ring.classes);
    }

    /// Returns the number of features of a sample.
    #[must_use]
    pub const fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Returns the features of all samples, row by row, for [`constant_features`] and
    /// [`saturated_features`].
    #[must_use]
    pub fn kept(&self) -> &[X] {
        let count = usize::from(self.ring.len) * self.feature_count;
        self.features.get(..count).unwrap_or_default()
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &[X] {
        let start = index.saturating_mul(self.feature_count);
        let row = self.kept().get(start..).unwrap_or_default();
        row.get(..self.feature_count).unwrap_or_default()
    }
}

/// Stored samples and the position of the next one.
struct Ring {
    classes: u16,
    /// Number of samples, in 16 bits to save RAM.
    len: u16,
    /// Position of the next sample.
    next: u16,
}

impl Ring {
    const fn new(classes: u16) -> Self {
        Self {
            classes,
            len: 0,
            next: 0,
        }
    }

    /// [`SampleBuffer::push`] into rows of `width` features, one row for each target.
    #[inline(always)]
    fn push<X: Reading, T: SampleTarget>(
        &mut self,
        rows: &mut [X],
        targets: &mut [T],
        width: usize,
        features: &[X],
        target: T,
    ) -> Result<(), SampleError> {
        let (expected, found) = (width, features.len());
        if found != expected {
            return Err(SampleError::Length { expected, found });
        }
        let features = features.iter().copied();
        if let Some(feature) = features.clone().position(|x| !x.is_number()) {
            return Err(SampleError::NotFinite { feature });
        }
        if !target.is_target(self.classes) {
            return Err(SampleError::Target);
        }
        if let Some(row) = self.next_row(rows, width) {
            for (place, x) in row.iter_mut().zip(features) {
                *place = x;
            }
            self.keep(targets, target);
        }
        Ok(())
    }

    /// Returns the row of the next sample.
    #[inline(always)]
    fn next_row<'r, X>(&self, rows: &'r mut [X], width: usize) -> Option<&'r mut [X]> {
        let next = usize::from(self.next);
        rows.get_mut(next * width..(next + 1) * width)
    }

    /// Keeps the sample whose features are in the next row.
    #[inline(always)]
    fn keep<T>(&mut self, targets: &mut [T], target: T) {
        let count = targets.len();
        if let Some(place) = targets.get_mut(usize::from(self.next)) {
            *place = target;
            // The position is below the count, which is at most 65,535.
            let behind = self.next + 1;
            self.len = self.len.max(behind);
            self.next = if usize::from(behind) < count {
                behind
            } else {
                0
            };
        }
    }
}

/// Returns the number of features with the same value in all rows of `width` features. See
/// [`SampleBuffer::constant_features`]. The result is private: it must not leave the device.
pub fn constant_features<X: Reading>(kept: &[X], width: usize) -> usize {
    let mut rows = kept.chunks_exact(width.max(1));
    let (Some(first), 1..) = (rows.next(), rows.len()) else {
        return 0;
    };
    let is_constant = |(at, x): &(usize, &X)| rows.clone().all(|row| row.get(*at) == Some(x));
    first.iter().enumerate().filter(is_constant).count()
}

/// Returns the number of features at the limits of their type. See
/// [`SampleBuffer::saturated_features`]. The result is private: it must not leave the device.
pub fn saturated_features<X: Reading>(kept: &[X]) -> usize {
    kept.iter().filter(|x| x.is_limit()).count()
}

/// Samples in rows.
macro_rules! samples {
    ($buffer:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> Samples for $buffer {
            type Target = T;

            fn len(&self) -> usize {
                self.ring.len.into()
            }

            #[inline(always)]
            fn features(&self, index: usize) -> &[f32] {
                X::numbers(self.row(index))
            }

            #[inline(always)]
            fn read_integers<I: Feature>(
                &self,
                index: usize,
                scale: FeatureScale,
                row: &mut [i32],
            ) -> usize {
                X::read_integers::<I>(self.row(index), scale, row)
            }

            #[inline(always)]
            fn target(&self, index: usize) -> T {
                self.targets.get(index).copied().unwrap_or_default()
            }
        }
    };
}

samples!(SampleBuffer<X, T, D, N>, [X: Reading, T: SampleTarget, const D: usize, const N: usize]);
samples!(SampleRows<'_, X, T>, [X: Reading, T: SampleTarget]);

impl<X, T, const D: usize, const N: usize> core::fmt::Debug for SampleBuffer<X, T, D, N> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SampleBuffer({} x {D}, at most {N})", self.ring.len)
    }
}

impl<X, T> core::fmt::Debug for SampleRows<'_, X, T> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (len, width, most) = (self.ring.len, self.feature_count, self.targets.len());
        write!(f, "SampleRows({len} x {width}, at most {most})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{format, string::ToString};

    #[test]
    fn the_oldest_sample_makes_room() {
        let mut samples = SampleBuffer::<f32, u16, 2, 3>::of_classes(9);
        assert!(samples.is_empty());
        for class in 0..5 {
            samples.push(&[f32::from(class), 1.0], class).unwrap();
        }
        let kept: [u16; 3] = core::array::from_fn(|index| samples.target(index));
        assert_eq!((kept, samples.len()), ([3, 4, 2], 3));
        assert_eq!(samples.features(0), [3.0, 1.0]);
        assert!(samples.features(3).is_empty(), "outside: no panic");
        let mut row = [0; 2];
        let scale = FeatureScale::new::<i8>(4).unwrap();
        assert_eq!(samples.read_integers::<i8>(0, scale, &mut row), 2);
        assert_eq!(row, [48, 16]);
        assert_eq!(format!("{samples:?}"), "SampleBuffer(3 x 2, at most 3)");
    }

    /// Products of a weight and a feature fit 32 bits for features of 8 bits, but not of 16 bits.
    #[test]
    fn integers_beyond_those_of_the_model_are_saturated() {
        let mut samples = SampleBuffer::<i16, u16, 3, 1>::of_classes(1);
        samples.push(&[1_000, -1_000, 5], 0).unwrap();
        let mut row = [0; 3];
        let scale = FeatureScale::new::<i8>(4).unwrap();
        samples.read_integers::<i8>(0, scale, &mut row);
        assert_eq!(row, [127, -128, 5]);
        samples.read_integers::<i16>(0, scale, &mut row);
        assert_eq!(row, [1_000, -1_000, 5]);
    }

    #[test]
    fn what_cannot_be_trained_with_is_refused() {
        let mut samples = SampleBuffer::<f32, u16, 2, 2>::of_classes(2);
        samples.push(&[1.0, 2.0], 1).unwrap();
        samples.push(&[3.0, 4.0], 0).unwrap();
        let (expected, found) = (2, 3);
        let length = SampleError::Length { expected, found };
        assert_eq!(samples.push(&[0.0; 3], 1), Err(length));
        for (feature, x) in [(0, f32::INFINITY), (1, f32::NAN), (1, f32::NEG_INFINITY)] {
            let mut row = [5.0; 2];
            row[feature] = x;
            let error = SampleError::NotFinite { feature };
            assert_eq!(samples.push(&row, 1), Err(error));
        }
        for class in [2, 7, u16::MAX] {
            assert_eq!(samples.push(&[5.0; 2], class), Err(SampleError::Target));
        }
        assert_eq!(samples.features(0), [1.0, 2.0], "the oldest one stays");
        assert_eq!((samples.len(), samples.target(1)), (2, 0));
        let mut values = SampleBuffer::<f32, f32, 1, 2>::of_values();
        values.push(&[0.0], -1e9).unwrap();
        assert_eq!(values.push(&[0.0], f32::NAN), Err(SampleError::Target));
        let count = SampleError::Count {
            least: 1,
            most: 8,
            found: 9,
        };
        assert_eq!(count.to_string(), "9 samples: from 1 to 8 are needed");
        for error in [length, SampleError::Target] {
            assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn a_stopped_sensor_and_saturated_features_are_counted() {
        let mut samples = SampleBuffer::<i8, u16, 3, 4>::of_classes(1);
        samples.push(&[1, 127, -128], 0).unwrap();
        assert_eq!(samples.constant_features(), 0, "one sample");
        samples.push(&[1, 126, -128], 0).unwrap();
        samples.push(&[1, -127, 5], 0).unwrap();
        assert_eq!(samples.constant_features(), 1);
        assert_eq!(samples.saturated_features(), 3);
        let mut row = [0; 3];
        let scale = FeatureScale::new::<i8>(6).unwrap();
        assert_eq!(samples.read_integers::<i8>(0, scale, &mut row), 3);
        assert_eq!(row, [1, 127, -128]);
        assert!(samples.features(0).is_empty(), "integers");
    }

    /// Compares every answer, for a stream of samples longer than the buffer.
    #[test]
    fn rows_of_the_caller_keep_what_a_buffer_keeps() {
        let (mut features, mut targets) = ([0; 6], [0; 3]);
        let mut rows = SampleRows::new(&mut features, &mut targets, 2, 4).unwrap();
        let mut buffer = SampleBuffer::<i8, u16, 2, 3>::of_classes(4);
        let scale = FeatureScale::new::<i8>(6).unwrap();
        for step in 0..9_i8 {
            let (sample, class) = ([step - 4, i8::MIN], u16::from(step.unsigned_abs()) % 6);
            assert_eq!(rows.push(&sample, class), buffer.push(&sample, class));
            assert_eq!(rows.push(&[1; 3], 0), buffer.push(&[1; 3], 0));
            assert_eq!(rows.len(), buffer.len());
            for index in 0..4 {
                assert_eq!(rows.target(index), buffer.target(index));
                let (mut a, mut b) = ([9; 2], [9; 2]);
                let count = rows.read_integers::<i8>(index, scale, &mut a);
                assert_eq!(count, buffer.read_integers::<i8>(index, scale, &mut b));
                assert_eq!(a, b);
            }
            assert_eq!(rows.kept(), buffer.kept());
        }
        assert_eq!(format!("{rows:?}"), "SampleRows(3 x 2, at most 3)");
        rows.clear();
        assert!(rows.is_empty() && rows.features(0).is_empty());
    }

    #[test]
    fn a_row_that_is_not_filled_changes_nothing() {
        let (mut features, mut targets) = ([0_i8; 4], [0_u16; 2]);
        let mut rows = SampleRows::new(&mut features, &mut targets, 2, 3).unwrap();
        for class in 0..2 {
            rows.push(&[class as i8 + 1; 2], class).unwrap();
        }
        let fill = |row: &mut [i8]| {
            row.fill(9);
            Ok::<_, SampleError>(())
        };
        assert_eq!(rows.push_with(3, fill), Err(SampleError::Target));
        let refuse = |_: &mut [i8]| Err(SampleError::NotFinite { feature: 0 });
        assert!(rows.push_with(2, refuse).is_err());
        assert_eq!((rows.kept(), rows.target(0)), (&[1, 1, 2, 2][..], 0));
        assert_eq!(rows.push_with(2, fill), Ok(()));
        assert_eq!((rows.kept(), rows.target(0)), (&[9, 9, 2, 2][..], 2));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let (expected, found) = (4, 5);
        let refused = SampleRows::new(&mut [0.0; 5], &mut [0_u16; 2], 2, 1).unwrap_err();
        assert_eq!(refused, ShapeError { expected, found });
        let mut many = std::vec![0_u16; 65_536];
        assert!(SampleRows::<f32, _>::new(&mut [], &mut many, 0, 1).is_err());
        assert!(SampleRows::new(&mut [0.0], &mut [0_u16; 2], usize::MAX, 1).is_err());
    }

    #[test]
    fn a_buffer_without_room_keeps_nothing() {
        let mut samples = SampleBuffer::<f32, u16, 1, 0>::of_classes(1);
        assert_eq!(samples.push(&[1.0], 0), Ok(()));
        assert!(samples.is_empty());
    }
}
