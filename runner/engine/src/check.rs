//! Why an experiment cannot run, and checks of single keys that several modules share.

use smolfed_core::params::ParamError;

use crate::combinations::Conflict;
use crate::task::TaskError;
use crate::task::pretrained::PretrainedError;
use smolfed_accounting::calibrate::CalibrationError;
use smolfed_accounting::correlated::CorrelatedError;
use smolfed_accounting::params as privacy_params;
use smolfed_release::plan::error::{self as plan_error, PlanError, without_value};

/// Why an experiment cannot run; each names the key, the value and what would be right.
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
        /// What it must be.
        reason: ParamError,
    },
    /// A number out of a range that is special to the key.
    #[error("`{key}` is {value}: it must be {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: String,
    },
    /// Two keys whose values do not fit each other.
    #[error("`{first}` and `{second}` contradict each other: {advice}")]
    Contradiction {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// Settings that exclude each other.
    #[error(transparent)]
    Combination(#[from] Conflict),
    /// A key that is needed.
    #[error("`{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// The randomness of the run is not known any more.
    #[error(
        "`privacy.selection.seed` is \"secret\": a private selection chose this run, and its \
         randomness was not kept, so that it can be neither repeated nor resumed; `smolfed sweep` \
         selects anew, which costs epsilon again"
    )]
    SecretRandomness,
    /// A plan of correlated noise.
    #[error("`{key}` is {value}: {}", without_value(&value.to_string(), reason))]
    Correlated {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u32,
        /// What is wrong.
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
        /// Why not.
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

/// A number with a default, from 1 to `max`.
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

/// What is wrong with the bound on participations, by the key that it is about.
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

/// A number out of a range that is special to the key.
pub(crate) fn out_of_range(key: &'static str, value: f64, expected: &str) -> ExperimentError {
    ExperimentError::Range {
        key,
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}

/// Two keys whose values do not fit each other. Settings that exclude each other whatever their
/// values are a rule in [`crate::combinations`].
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

/// Parses a number of the core, which is `f32`.
pub(crate) fn number<T>(
    key: &'static str,
    value: f64,
    parse: impl Fn(f32) -> Result<T, ParamError>,
) -> Result<T, ExperimentError> {
    parse(value as f32).map_err(|reason| ExperimentError::Value { key, value, reason })
}

/// An error of the privacy settings that names the key and its value.
pub(crate) fn refuse(
    key: &'static str,
    value: impl ToString,
) -> impl FnOnce(privacy_params::ParamError) -> ExperimentError {
    let refuse = plan_error::refuse(key, value);
    move |reason| refuse(reason).into()
}
