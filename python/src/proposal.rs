//! Proposals of `smolfed init` in Python, for files and frames, and TOML texts of experiments as
//! dictionaries.

use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::data::dataset::TaskKind;
use smolfed::data::error::DataError;
use smolfed::data::suggestion::Choices;
use smolfed::proposal::{self, ProposalError, Request};
use smolfed::subject::SubjectError;
use toml::Table;

use crate::error::{config_error, value_error};
use crate::frame::{Cells, frame, suggestion_error};
use crate::keys::dictionary;

/// Statements about the columns, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Said {
    label: Option<String>,
    device: Option<String>,
    task: Option<String>,
    ignore: Vec<String>,
    /// The call, for the head of the file.
    command: String,
}

impl Said {
    fn choices(&self) -> PyResult<Choices> {
        let task = match self.task.as_deref() {
            None => None,
            Some("classification") => Some(TaskKind::Classification),
            Some("regression") => Some(TaskKind::Regression),
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "`task` is {other:?}: it must be \"classification\" or \"regression\""
                )));
            }
        };
        Ok(Choices {
            label: self.label.clone(),
            device_column: self.device.clone(),
            has_no_devices: false,
            task,
            ignore: self.ignore.clone(),
        })
    }
}

/// Proposes an experiment for a file, a folder or a known data set. Also returns the remarks about
/// the data.
#[pyfunction]
pub(crate) fn propose(py: Python<'_>, data: String, said: Said) -> PyResult<(String, Vec<String>)> {
    let request = Request {
        data,
        choices: said.choices()?,
        command: said.command,
    };
    let mut remarks = Vec::new();
    let found = py.detach(|| request.experiment(&mut |said| remarks.push(said.to_owned())));
    Ok((found.map_err(proposal_error)?, remarks))
}

/// Proposes an experiment for the columns of a frame. Also returns the remarks about them.
#[pyfunction]
pub(crate) fn propose_frame(
    py: Python<'_>,
    columns: Cells,
    said: Said,
) -> PyResult<(String, Vec<String>)> {
    let (frame, choices) = (frame(columns)?, said.choices()?);
    let mut remarks = Vec::new();
    let mut remark = |said: &str| remarks.push(said.to_owned());
    let found = py.detach(|| proposal::of_frame(&frame, &choices, &said.command, &mut remark));
    Ok((found.map_err(proposal_error)?, remarks))
}

fn proposal_error(error: ProposalError) -> PyErr {
    match error {
        ProposalError::Config(error) => config_error(error),
        ProposalError::Frame(error) => suggestion_error(error),
        ProposalError::Subject(SubjectError::Unknown { .. })
        | ProposalError::Data(DataError::NotFound { .. }) => {
            PyFileNotFoundError::new_err(error.to_string())
        }
        error => value_error(error),
    }
}

/// Returns the keys of a TOML text, as a dictionary.
#[pyfunction]
pub(crate) fn read_toml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let table: Table = text
        .parse()
        .map_err(|error| value_error(format!("the experiment: {error}")))?;
    dictionary(py, table)
}
