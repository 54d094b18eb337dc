//! Errors of the crates as Python exceptions: the message stays, and the type is Python's.

use std::fmt::Display;
use std::io::ErrorKind;

use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use smolfed::config::ConfigError;
use smolfed::data::DataError;
use smolfed::run::RunError;
use smolfed::run_files::error::RunDirError;

/// Converts the error for a refused value.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts the error for a refused experiment.
pub(crate) fn config_error(error: ConfigError) -> PyErr {
    match error {
        ConfigError::Missing { .. } => PyFileNotFoundError::new_err(error.to_string()),
        ConfigError::Read { .. } => PyOSError::new_err(error.to_string()),
        _ => value_error(error),
    }
}

/// Converts the error of a run that was refused or failed.
pub(crate) fn run_error(error: RunError) -> PyErr {
    let is_missing = match &error {
        RunError::Data(DataError::NotFound { .. }) => true,
        RunError::Data(DataError::Read { reason, .. }) => reason.kind() == ErrorKind::NotFound,
        _ => false,
    };
    match error.is_bad_input() {
        _ if is_missing => PyFileNotFoundError::new_err(error.to_string()),
        true => value_error(error),
        false => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Converts the error for a path that is missing, or not a run directory.
pub(crate) fn run_dir_error(error: RunDirError) -> PyErr {
    match &error {
        RunDirError::NotARun { .. } => PyFileNotFoundError::new_err(error.to_string()),
        RunDirError::Io { .. } => PyOSError::new_err(error.to_string()),
        _ => value_error(error),
    }
}
