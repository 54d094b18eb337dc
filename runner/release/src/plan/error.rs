//! Errors in the keys of `[privacy]`: reasons why updates cannot be released as configured, such as
//! a missing key or an unsuitable target ε.

use smolfed_accounting::accountant::AccountingError;
use smolfed_accounting::calibrate::CalibrationError;
use smolfed_accounting::params::ParamError;

/// The reason why updates cannot be released as configured. Each message names the key, the value
/// and a valid value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A number is outside a range specific to the key.
    #[error("`{key}` is {value}: it must be {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: String,
    },
    /// A required key is missing.
    #[error("`{key}` is missing: {purpose}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The purpose of the key.
        purpose: &'static str,
    },
    /// A number of the privacy settings or the cohort is invalid.
    #[error("`{key}` is {value}: {}", without_value(value, reason))]
    Privacy {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The reason.
        reason: ParamError,
    },
    /// The target ε cannot be met.
    #[error("`privacy.epsilon` is {epsilon}: {reason}")]
    Calibration {
        /// The target.
        epsilon: f64,
        /// The reason.
        reason: CalibrationError,
    },
    /// The target ε cannot be met, because correlation matrices reveal information about whole
    /// devices.
    #[error(
        "`privacy.epsilon` is {epsilon}: {reason}, because correlation matrices also reveal \
         something about whole devices: give them more noise, leave `privacy.epsilon` out (`--set \
         privacy.epsilon=`), or use method \"fedavg-sc\""
    )]
    MatricesOverBudget {
        /// The target.
        epsilon: f64,
        /// The reason.
        reason: CalibrationError,
    },
    /// The accountant has no figure for this experiment.
    #[error("`privacy.accountant` is \"{accountant}\": {reason}")]
    Accounting {
        /// Its name.
        accountant: &'static str,
        /// The reason.
        reason: AccountingError,
    },
}

/// Returns the reason for an invalid number, without its value if the sentence repeats it.
#[must_use]
pub fn without_value(value: &str, reason: &impl ToString) -> String {
    let text = reason.to_string();
    match text.split_once(&format!(" is {value}: ")) {
        Some((_, advice)) => advice.to_owned(),
        None => text,
    }
}

/// Returns an error of the privacy settings that names the key and its value.
pub fn refuse(key: &'static str, value: impl ToString) -> impl FnOnce(ParamError) -> PlanError {
    let value = value.to_string();
    move |reason| PlanError::Privacy { key, value, reason }
}
