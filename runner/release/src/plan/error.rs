//! Why updates cannot be released as they are configured.

use smolfed_accounting::accountant::AccountingError;
use smolfed_accounting::calibrate::CalibrationError;
use smolfed_accounting::params::ParamError;

/// Why updates cannot be released as they are configured; each names the key, the value and what
/// would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
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
        reason: ParamError,
    },
    /// The target ε cannot be met.
    #[error("`privacy.epsilon` is {epsilon}: {reason}")]
    Calibration {
        /// The target.
        epsilon: f64,
        /// Why not.
        reason: CalibrationError,
    },
    /// The target ε cannot be met, because correlation matrices reveal something about whole
    /// devices.
    #[error(
        "`privacy.epsilon` is {epsilon}: {reason}, because correlation matrices also reveal \
         something about whole devices: give them more noise, leave `privacy.epsilon` out (`--set \
         privacy.epsilon=`), or use method \"fedavg-sc\""
    )]
    MatricesOverBudget {
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
#[must_use]
pub fn without_value(value: &str, reason: &impl ToString) -> String {
    let text = reason.to_string();
    match text.split_once(&format!(" is {value}: ")) {
        Some((_, advice)) => advice.to_owned(),
        None => text,
    }
}

/// An error of the privacy settings that names the key and its value.
pub fn refuse(key: &'static str, value: impl ToString) -> impl FnOnce(ParamError) -> PlanError {
    let value = value.to_string();
    move |reason| PlanError::Privacy { key, value, reason }
}
