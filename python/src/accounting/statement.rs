//! The privacy statement of events in Python, as JSON, in words and in one line.

use pyo3::prelude::*;
use smolfed::privacy::PrivacyStatement;
use smolfed_accounting::ClipNorm;

use super::estimate::accountant;
use super::event::{Event, unwrapped};
use super::release::DeltaArgument;
use crate::error::value_error;

/// A statement for Python: as JSON, in words and in one line.
pub(crate) type StatementParts = (String, String, String);

/// Returns the parts of a statement.
///
/// # Errors
/// `ValueError` if the statement has no JSON form, which cannot happen.
pub(crate) fn parts(statement: &PrivacyStatement) -> PyResult<StatementParts> {
    let json = serde_json::to_string(statement).map_err(value_error)?;
    Ok((json, statement.in_words(), statement.in_one_line()))
}

/// Returns the statement for events under conditions, each as JSON.
#[pyfunction]
pub(crate) fn statement(
    py: Python<'_>,
    events: Vec<Event>,
    delta: DeltaArgument,
    accountant: Option<&str>,
    clip_norm: Option<f64>,
    conditions: Vec<String>,
) -> PyResult<StatementParts> {
    let events = unwrapped(&events);
    let delta = delta.resolve(&events)?;
    let accountant = self::accountant(accountant, &events)?;
    let clip_norm = clip_norm.map(ClipNorm::new).transpose();
    let clip_norm = clip_norm.map_err(value_error)?;
    let made = py.detach(|| {
        let estimate = accountant.epsilon(&events, delta)?;
        Ok::<_, smolfed_accounting::AccountingError>(PrivacyStatement::new(
            &estimate, &events, clip_norm,
        ))
    });
    let Some(mut statement) = made.map_err(value_error)? else {
        return Err(value_error("nothing was released"));
    };
    for condition in conditions {
        let condition = serde_json::from_str(&condition).map_err(value_error)?;
        statement = statement.with_note(condition);
    }
    parts(&statement)
}
