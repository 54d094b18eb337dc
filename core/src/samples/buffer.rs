//! The last samples of a sensor, checked as they come.

use super::{
    Samples,
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

/// A feature as it is stored: a number, or an integer of the model's scale.
pub trait Reading: Copy + Default + PartialEq + sealed::Sealed + 'static {
    /// Whether it is a number. Integers are.
    fn is_number(self) -> bool;

    /// Whether it is the smallest or the largest integer of its type. Numbers have no limits.
    fn is_limit(self) -> bool;

    /// Features as numbers; none if they are stored as integers.
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
                    // 16 bits may be more than the model's 8, whose products fit 32 bits.
                    *place = X::saturated((*x).into()).get();
                }
                features.len()
            }
        }
    };
}

integer!(i8);
integer!(i16);

/// A target as it is stored: a class, or a value.
pub trait SampleTarget: Copy + Default + sealed::Sealed + 'static {
    /// Whether it is a class below `classes`, or a finite value.
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

/// The last `N` samples of `D` features: a new one takes the place of the oldest. What cannot be
/// trained with is refused as it comes, so that a bad reading costs no participation.
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
    classes: u16,
    /// Samples that are kept. Short, as the RAM of small boards is.
    len: u16,
    /// The place of the next sample.
    next: u16,
}

impl<X: Reading, const D: usize, const N: usize> SampleBuffer<X, u16, D, N> {
    /// No samples yet, of classes from 0 to `classes` − 1.
    #[must_use]
    pub fn of_classes(classes: u16) -> Self {
        Self::new(classes)
    }
}

impl<X: Reading, const D: usize, const N: usize> SampleBuffer<X, f32, D, N> {
    /// No samples yet, of values.
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
            classes,
            len: 0,
            next: 0,
        }
    }

    /// Keeps a sample in the place of the oldest one.
    ///
    /// # Errors
    /// [`SampleError`] for another length, a feature that is not finite, and a target that is not
    /// one of the classes or not finite; the samples then stay as they are.
    pub fn push(&mut self, features: &[X], target: T) -> Result<(), SampleError> {
        let (expected, found) = (D, features.len());
        if found != expected {
            return Err(SampleError::Length { expected, found });
        }
        if let Some(feature) = features.iter().position(|x| !x.is_number()) {
            return Err(SampleError::NotFinite { feature });
        }
        if !target.is_target(self.classes) {
            return Err(SampleError::Target);
        }
        let next = usize::from(self.next);
        let row = self.features.get_mut(next);
        if let (Some(row), Some(place)) = (row, self.targets.get_mut(next)) {
            for (place, x) in row.iter_mut().zip(features) {
                *place = *x;
            }
            *place = target;
            // A place below N has been found.
            let behind = self.next + 1;
            self.len = self.len.max(behind);
            self.next = if usize::from(behind) < N { behind } else { 0 };
        }
        Ok(())
    }

    /// How many features have the same value in all samples: channels of a sensor that has stopped,
    /// perhaps. 0 for fewer than two samples. Private: it must not leave the device.
    #[must_use]
    pub fn constant_features(&self) -> usize {
        let (Some((first, others)), 2..) = (self.rows().split_first(), self.len) else {
            return 0;
        };
        let is_constant = |(at, x): &(usize, &X)| others.iter().all(|row| row.get(*at) == Some(x));
        first.iter().enumerate().filter(is_constant).count()
    }

    /// How many features of all samples are the smallest or the largest integer of their type: too
    /// large for the scale, perhaps. Private: it must not leave the device.
    #[must_use]
    pub fn saturated_features(&self) -> usize {
        let all = self.rows().as_flattened().iter();
        all.filter(|x| x.is_limit()).count()
    }

    fn rows(&self) -> &[[X; D]] {
        self.features.get(..self.len.into()).unwrap_or_default()
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &[X] {
        self.rows().get(index).map_or(&[], |row| row)
    }
}

impl<X: Reading, T: SampleTarget, const D: usize, const N: usize> Samples
    for SampleBuffer<X, T, D, N>
{
    type Target = T;

    fn len(&self) -> usize {
        self.len.into()
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

impl<X, T, const D: usize, const N: usize> core::fmt::Debug for SampleBuffer<X, T, D, N> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SampleBuffer({} x {D}, at most {N})", self.len)
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

    /// Products of a weight and a feature of 8 bits fit 32 bits, and of one of 16 bits they do not.
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

    #[test]
    fn a_buffer_without_room_keeps_nothing() {
        let mut samples = SampleBuffer::<f32, u16, 1, 0>::of_classes(1);
        assert_eq!(samples.push(&[1.0], 0), Ok(()));
        assert!(samples.is_empty());
    }
}
