//! A number as steps, a piecewise-linear encoding of a column: its bounds, the largest number of
//! steps, and 0 for a missing value.

use super::error::{FeatureError, has_length};
use crate::format::{Feature, FeatureScale};
use crate::integer::divide;

/// Maximum number of steps.
pub const MAX_STEPS: usize = 255;

/// Public bounds of a number, the lower one below the upper one. Numbers outside count as the
/// nearest bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Range<T> {
    low: T,
    high: T,
}

impl Range<f32> {
    /// Creates bounds from `low` to `high`.
    ///
    /// # Errors
    /// [`FeatureError::Bounds`], also if their difference is subnormal, or not finite times
    /// [`MAX_STEPS`].
    pub const fn new(low: f32, high: f32) -> Result<Self, FeatureError> {
        let width = high - low;
        let is_valid = width.is_normal() && width > 0.0 && (width * MAX_STEPS as f32).is_finite();
        match is_valid {
            true => Ok(Self { low, high }),
            false => Err(FeatureError::Bounds),
        }
    }
}

impl Range<i32> {
    /// Creates bounds from `low` to `high`, in the counts of a sensor.
    ///
    /// # Errors
    /// [`FeatureError::Bounds`].
    pub const fn of_counts(low: i32, high: i32) -> Result<Self, FeatureError> {
        match low < high {
            true => Ok(Self { low, high }),
            false => Err(FeatureError::Bounds),
        }
    }
}

impl<T: Copy> Range<T> {
    /// Returns the lower bound.
    #[must_use]
    pub const fn low(&self) -> T {
        self.low
    }

    /// Returns the upper bound.
    #[must_use]
    pub const fn high(&self) -> T {
        self.high
    }
}

/// Number of steps of a number. [`features`](super) has the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Steps {
    count: u8,
}

impl Steps {
    /// Creates an encoding with `count` steps.
    ///
    /// # Errors
    /// [`FeatureError::Steps`] unless `count` is from 1 to [`MAX_STEPS`].
    pub const fn new(count: usize) -> Result<Self, FeatureError> {
        if count == 0 || count > MAX_STEPS {
            let (found, max) = (count, MAX_STEPS);
            return Err(FeatureError::Steps { found, max });
        }
        Ok(Self { count: count as u8 })
    }

    /// Returns the number of features of a number.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// Writes the features of a number, from −½ to ½, or 0 for NaN, a missing value.
    ///
    /// * Error: at most 2⁻²² from the formula over the `f32` bounds. n_j = (x − low) · count − j ·
    ///   (high − low) is exact in the relevant range, between 0 and high − low: differences and
    ///   products are split into two parts, whose products are exact.
    /// * Cost: one division.
    ///
    /// # Errors
    /// [`FeatureError::Length`] unless there are [`count`](Self::count) features. Nothing is then
    /// written.
    pub fn features_into(
        &self,
        x: f32,
        range: &Range<f32>,
        features: &mut [f32],
    ) -> Result<(), FeatureError> {
        has_length(features.len(), self.count())?;
        if x.is_nan() {
            features.fill(0.0);
            return Ok(());
        }
        let above = Parts::of_difference(x.clamp(range.low, range.high), range.low);
        let width = Parts::of_difference(range.high, range.low);
        let count = f32::from(self.count);
        for (feature, j) in features.iter_mut().zip(0_u8..) {
            let number = above.times_less(count, &width, f32::from(j));
            *feature = if number <= 0.0 {
                -0.5
            } else if number >= width.whole {
                0.5
            } else {
                number / width.whole - 0.5
            };
        }
        Ok(())
    }

    /// Writes the features of a number in counts as integers times 2^−F, rounded half away from
    /// zero, and returns the number of saturated features: values of ½ if F is the number of bits
    /// of the type.
    ///
    /// * Error: half a unit.
    /// * Cost: no floating point, one division of 64 bits.
    ///
    /// # Errors
    /// As [`features_into`](Self::features_into).
    pub fn quantised_into<X: Feature>(
        &self,
        x: i32,
        range: &Range<i32>,
        scale: FeatureScale,
        features: &mut [X],
    ) -> Result<usize, FeatureError> {
        has_length(features.len(), self.count())?;
        let low = i64::from(range.low);
        let above = i64::from(x.clamp(range.low, range.high)) - low;
        let width = i64::from(range.high) - low;
        let mut saturated = 0;
        for (feature, j) in features.iter_mut().zip(0_i64..) {
            // 40 bits.
            let number = (above * i64::from(self.count) - j * width).clamp(0, width);
            // (number / width − ½) · 2^F in 35 bits, times 2 · width in 34.
            let twice = 2 * number - width;
            let magnitude = match twice.unsigned_abs() == width.unsigned_abs() {
                true => (1 + (1 << scale.fraction())) >> 1,
                false => rounded(twice.unsigned_abs(), scale.fraction(), width.unsigned_abs()),
            };
            let integer = match twice < 0 {
                true => -magnitude,
                false => magnitude,
            };
            *feature = X::saturated(integer);
            saturated += usize::from(feature.get() != integer);
        }
        Ok(saturated)
    }
}

/// Returns twice · 2^F / (2 · width), rounded half up. `twice` is below the width, which has 33
/// bits.
fn rounded(twice: u64, fraction: u32, width: u64) -> i32 {
    let (quotient, rest) = divide(twice, fraction, 2 * width);
    quotient as i32 + i32::from(rest >= width)
}

/// A number, and three parts that add up to it exactly. The upper and the lower part have 12
/// digits.
struct Parts {
    whole: f32,
    upper: f32,
    lower: f32,
    rest: f32,
}

impl Parts {
    /// Computes a − b exactly (Knuth 1969, TwoSum).
    fn of_difference(a: f32, b: f32) -> Self {
        let whole = a - b;
        let lost = whole - a;
        let rest = (a - (whole - lost)) - (b + lost);
        // Sign, exponent and the 11 digits after the first one.
        let upper = f32::from_bits(whole.to_bits() & 0xffff_f000);
        Self {
            whole,
            upper,
            lower: whole - upper,
            rest,
        }
    }

    /// Returns this number times `factor` minus `other` times `other_factor`. The factors are
    /// integers of 8 bits, so the products of the upper and lower parts are exact.
    fn times_less(&self, factor: f32, other: &Self, other_factor: f32) -> f32 {
        let upper = self.upper * factor - other.upper * other_factor;
        let lower = self.lower * factor - other.lower * other_factor;
        let rest = self.rest * factor - other.rest * other_factor;
        upper + (lower + rest)
    }
}
