//! Errors in a `[data]` table (a missing, unused or unpaired key, a value out of range), and the
//! checks of single values.

use std::ops::RangeInclusive;

/// Largest strength of a synthetic effect: above it, samples contain nothing else.
const MAX_STRENGTH: f64 = 1000.0;

/// Errors in a `[data]` table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataConfigError {
    /// A key required by the source or partition is missing.
    #[error("`data.{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The purpose of the key.
        purpose: &'static str,
    },
    /// The source or partition does not use a key.
    #[error("`data.{key}` has no effect with {context}; remove it")]
    Unused {
        /// The key.
        key: String,
        /// Source and partition.
        context: String,
    },
    /// A value is out of range.
    #[error("`data.{key}` is {value}, but must be {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: String,
    },
    /// Only one of two related keys is present.
    #[error("`data.{present}` is given without `data.{absent}`; give both or none")]
    Pair {
        /// The present key.
        present: &'static str,
        /// The absent key.
        absent: &'static str,
    },
}

/// Returns a required value.
pub(super) fn needed<T>(
    key: &'static str,
    value: Option<T>,
    purpose: &'static str,
) -> Result<T, DataConfigError> {
    value.ok_or(DataConfigError::Missing { key, purpose })
}

/// Checks that an integer is in a range.
pub(super) fn in_range(
    key: &'static str,
    value: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, DataConfigError> {
    match value {
        _ if range.contains(&value) => Ok(value),
        _ if value < *range.start() => {
            Err(wrong(key, value, &format!("at least {}", range.start())))
        }
        _ => Err(wrong(key, value, &format!("at most {}", range.end()))),
    }
}

/// Checks that a number is above 0.
pub(super) fn positive<T: Copy + Into<f64> + ToString>(
    key: &'static str,
    value: T,
) -> Result<T, DataConfigError> {
    let number: f64 = value.into();
    if number.is_finite() && number > 0.0 {
        return Ok(value);
    }
    Err(wrong(key, value, "finite and above 0"))
}

/// Returns the strength of a synthetic effect, or `usual` if it is not given.
pub(super) fn strength(
    key: &'static str,
    value: Option<f64>,
    usual: f64,
) -> Result<f64, DataConfigError> {
    let value = value.unwrap_or(usual);
    if (0.0..=MAX_STRENGTH).contains(&value) {
        return Ok(value);
    }
    Err(wrong(key, value, &format!("from 0 to {MAX_STRENGTH}")))
}

/// Returns a share of each device's rows, or 0 if it is not given.
pub(super) fn share(key: &'static str, value: Option<f64>) -> Result<f64, DataConfigError> {
    let share = value.unwrap_or(0.0);
    if (0.0..0.5).contains(&share) {
        return Ok(share);
    }
    let expected = "a share from 0.0 to below 0.5 of each device's samples";
    Err(wrong(key, share, expected))
}

/// Returns the error for a value.
pub(super) fn wrong(key: &'static str, value: impl ToString, expected: &str) -> DataConfigError {
    DataConfigError::Value {
        key,
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}
