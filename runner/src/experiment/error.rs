//! Why an experiment cannot run.

use smolfed_core::params::ParamError;

use crate::privacy::accountant::AccountingError;
use crate::privacy::calibrate::CalibrationError;
use crate::privacy::params as privacy_params;
use crate::task::TaskError;

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
    /// Two keys that exclude each other.
    #[error("`{first}` and `{second}` contradict each other: {advice}")]
    Contradiction {
        /// One key.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A key that is needed.
    #[error("`{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// A number of the privacy settings or the cohort.
    #[error("`{key}` is {value}: {}", without_value(value, reason))]
    Privacy {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong.
        reason: privacy_params::ParamError,
    },
    /// The model does not fit the data.
    #[error("`model.kind` is {0}")]
    Task(#[from] TaskError),
    /// The target ε cannot be met.
    #[error("`privacy.epsilon` is {epsilon}: {reason}")]
    Calibration {
        /// The target.
        epsilon: f64,
        /// Why not.
        reason: CalibrationError,
    },
    /// The target ε cannot be met, because of what correlation matrices tell of a whole device.
    #[error(
        "`privacy.epsilon` is {epsilon}: {reason}, as correlation matrices tell of whole devices: give them more noise, leave \
         `privacy.epsilon` out (or inf), or use method \"fedavg-sc\""
    )]
    MatricesTooDear {
        /// The target.
        epsilon: f64,
        /// Why not.
        reason: CalibrationError,
    },
    /// The target ε of the correlation matrices cannot be met.
    #[error("`contrast.privacy.epsilon` is {epsilon}: {reason}")]
    MatrixCalibration {
        /// The target.
        epsilon: f64,
        /// Why not.
        reason: CalibrationError,
    },
    /// The accountant has no figure for this experiment.
    #[error("`privacy.accountant` is \"{accountant}\": {reason}")]
    Accounting {
        /// Its name.
        accountant: &'static str,
        /// Why not.
        reason: AccountingError,
    },
}

/// What is wrong with a number whose value the sentence already has.
fn without_value(value: &str, reason: &privacy_params::ParamError) -> String {
    let text = reason.to_string();
    match text.split_once(&format!(" is {value}: ")) {
        Some((_, advice)) => advice.to_owned(),
        None => text,
    }
}
