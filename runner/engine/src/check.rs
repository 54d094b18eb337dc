//! Reasons why an experiment cannot run, with the messages about its keys, and checks of
//! single keys that several modules share.

use smolfed_core::params::ParamError;

use crate::combinations::Conflict;
use crate::task::TaskError;
use crate::task::pretrained::PretrainedError;
use smolfed_accounting::calibrate::CalibrationError;
use smolfed_accounting::correlated::CorrelatedError;
use smolfed_accounting::params as privacy_params;
use smolfed_release::plan::error::{self as plan_error, PlanError, without_value};

/// Why an experiment cannot run. Each variant names the key, the value and the requirement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A number out of range.
    #[error("`{key}` is {value}: it {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// The requirement.
        reason: ParamError,
    },
    /// A number outside a range specific to the key.
    #[error("`{key}` is {value}: it must be {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The requirement.
        expected: String,
    },
    /// Two keys with incompatible values.
    #[error("`{first}` and `{second}` contradict each other: {advice}")]
    Contradiction {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Advice.
        advice: &'static str,
    },
    /// Settings that exclude each other.
    #[error(transparent)]
    Combination(#[from] Conflict),
    /// A missing key.
    #[error("`{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// Purpose of the key.
        purpose: &'static str,
    },
    /// The randomness of the run was not kept.
    #[error(
        "`privacy.selection.seed` is \"secret\": a private selection chose this run, and its \
         randomness was not kept, so it can be neither repeated nor resumed; `smolfed sweep` \
         selects again, which costs more epsilon"
    )]
    SecretRandomness,
    /// An invalid plan of correlated noise.
    #[error("`{key}` is {value}: {}", without_value(&value.to_string(), reason))]
    Correlated {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u32,
        /// The reason.
        reason: CorrelatedError,
    },
    /// Noise and accounting.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The model does not fit the data.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The initial parameters cannot be taken from their file.
    #[error(transparent)]
    Pretrained(#[from] Box<PretrainedError>),
    /// The target ε of the correlation matrices cannot be met.
    #[error("`contrast.privacy.epsilon` is {epsilon}: {reason}")]
    MatrixCalibration {
        /// The target.
        epsilon: f64,
        /// The reason.
        reason: CalibrationError,
    },
}

/// Refuses 0.
pub(crate) fn at_least_one(key: &'static str, value: u32) -> Result<(), ExperimentError> {
    if value == 0 {
        Err(out_of_range(key, 0.0, "at least 1"))
    } else {
        Ok(())
    }
}

/// Returns a number from 1 to `max`, or its default.
pub(crate) fn in_range(
    key: &'static str,
    value: Option<u32>,
    default: u32,
    max: u32,
) -> Result<u32, ExperimentError> {
    let value = value.unwrap_or(default);
    at_least_one(key, value)?;
    if value > max {
        let expected = format!("at most {max}");
        return Err(out_of_range(key, f64::from(value), &expected));
    }
    Ok(value)
}

/// Converts an invalid bound on participations into an error about its key.
pub(crate) fn of_participation(rounds: u32) -> impl FnOnce(CorrelatedError) -> ExperimentError {
    move |reason| {
        let (key, value) = match reason {
            CorrelatedError::Separation { separation, .. } => ("privacy.separation", separation),
            CorrelatedError::NoParticipations => ("privacy.participations", 0),
            _ => ("rounds", rounds),
        };
        ExperimentError::Correlated { key, value, reason }
    }
}

/// Returns an error about a number outside a range specific to the key.
pub(crate) fn out_of_range(key: &'static str, value: f64, expected: &str) -> ExperimentError {
    ExperimentError::Range {
        key,
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

/// Returns an error about two keys with incompatible values. Settings that exclude each other for
/// all values are a rule in [`crate::combinations`].
pub(crate) fn contradiction(
    first: &'static str,
    second: &'static str,
    advice: &'static str,
) -> ExperimentError {
    ExperimentError::Contradiction {
        first,
        second,
        advice,
    }
}

/// Parses an `f32` number of the core.
pub(crate) fn number<T>(
    key: &'static str,
    value: f64,
    parse: impl Fn(f32) -> Result<T, ParamError>,
) -> Result<T, ExperimentError> {
    parse(value as f32).map_err(|reason| ExperimentError::Value { key, value, reason })
}

/// Returns an error of the privacy settings that names the key and its value.
pub(crate) fn refuse(
    key: &'static str,
    value: impl ToString,
) -> impl FnOnce(privacy_params::ParamError) -> ExperimentError {
    let refuse = plan_error::refuse(key, value);
    move |reason| refuse(reason).into()
}
