//! Errors of the crates as Python's exceptions: the sentence stays, the type is Python's.

use std::fmt::Display;
use std::io::ErrorKind;

use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use smolfed::config::ConfigError;
use smolfed::data::DataError;
use smolfed::run::RunError;
use smolfed::run_files::error::RunDirError;

/// A value that is refused.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An experiment that is refused.
pub(crate) fn config_error(error: ConfigError) -> PyErr {
    match error {
        ConfigError::Missing { .. } => PyFileNotFoundError::new_err(error.to_string()),
        ConfigError::Read { .. } => PyOSError::new_err(error.to_string()),
        _ => value_error(error),
    }
}

/// A run that was refused, or failed.
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

/// A run directory that is not there, or not one.
pub(crate) fn run_dir_error(error: RunDirError) -> PyErr {
    match &error {
        RunDirError::NotARun { .. } => PyFileNotFoundError::new_err(error.to_string()),
        RunDirError::Io { .. } => PyOSError::new_err(error.to_string()),
        _ => value_error(error),
    }
}
