//! Errors in samples, with their texts: too few or too many, another number of features, values
//! that are not finite, or a wrong target.

/// Reason why samples are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SampleError {
    /// There are fewer samples than training needs, or more than its memory can hold.
    Count {
        /// Minimum number of samples.
        least: usize,
        /// Maximum number of samples.
        most: usize,
        /// Number of samples found.
        found: usize,
    },
    /// The number of features of a sample differs from the model's.
    Length {
        /// Features of the model.
        expected: usize,
        /// Features of the sample.
        found: usize,
    },
    /// A feature is NaN or infinite.
    NotFinite {
        /// Index of the first such feature.
        feature: usize,
    },
    /// The target is not a class of the model or not a finite value.
    Target,
}

impl core::fmt::Display for SampleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Count { least, most, found } => {
                write!(f, "{found} samples: from {least} to {most} are needed")
            }
            Self::Length { expected, found } => {
                write!(f, "a sample of {found} features for a model of {expected}")
            }
            Self::NotFinite { feature } => {
                write!(f, "feature {feature} of a sample is not finite")
            }
            Self::Target => f.write_str("a target is not a class of the model or a finite value"),
        }
    }
}

impl core::error::Error for SampleError {}

/// Checks that there are at least `least` and at most `most` samples.
#[inline(always)]
pub(crate) fn has_count(found: usize, least: usize, most: usize) -> Result<(), SampleError> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(SampleError::Count { least, most, found }),
    }
}

/// Checks that the features are finite and match the model in number.
#[inline(always)]
pub(crate) fn check_features(features: &[f32], expected: usize) -> Result<(), SampleError> {
    let found = features.len();
    if found != expected {
        return Err(SampleError::Length { expected, found });
    }
    match features.iter().position(|x| !is_finite(*x)) {
        None => Ok(()),
        Some(feature) => Err(SampleError::NotFinite { feature }),
    }
}

/// Tests the bit pattern, so that integer programs need no floating point.
#[inline(always)]
pub(crate) const fn is_finite(x: f32) -> bool {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    x.to_bits() & INFINITY != INFINITY
}
