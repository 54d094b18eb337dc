//! Calibration of the noise, the rounds or the cohort size for a target ε.

use pyo3::prelude::*;
use smolfed_accounting::{CalibrationError, CalibrationProblem, Epsilon};

use super::estimate::accountant;
use super::event::{Event, unwrapped};
use super::release::DeltaArgument;
use crate::error::value_error;

/// A target and the release planned under it, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Target {
    event: Event,
    spent: Vec<Event>,
    epsilon: f64,
    delta: DeltaArgument,
    accountant: Option<String>,
}

impl Target {
    /// Runs a search without holding the interpreter.
    fn search<T: Send>(
        &self,
        py: Python<'_>,
        search: impl FnOnce(&CalibrationProblem<'_>) -> Result<T, CalibrationError> + Send,
    ) -> PyResult<T> {
        let spent = unwrapped(&self.spent);
        let all: Vec<_> = spent.iter().copied().chain([self.event.0]).collect();
        let problem = CalibrationProblem {
            accountant: accountant(self.accountant.as_deref(), &all)?,
            event: self.event.0,
            spent: &spent,
            target: Epsilon::new(self.epsilon).map_err(value_error)?,
            delta: self.delta.resolve(&all)?,
        };
        py.detach(|| search(&problem)).map_err(value_error)
    }
}

/// Finds the least noise multiplier that keeps ε at or below the target.
#[pyfunction]
pub(crate) fn noise_multiplier(py: Python<'_>, target: Target) -> PyResult<f64> {
    target.search(py, |problem| Ok(problem.noise_multiplier()?.value.get()))
}

/// Finds the largest number of rounds.
#[pyfunction]
pub(crate) fn rounds(py: Python<'_>, target: Target) -> PyResult<u64> {
    target.search(py, |problem| Ok(problem.rounds()?.value))
}

/// Finds the largest cohort size, or the largest expected size for Poisson sampling.
#[pyfunction]
pub(crate) fn cohort_size(py: Python<'_>, target: Target) -> PyResult<u32> {
    let size = target.search(py, |problem| Ok(problem.cohort()?.value.expected_cohort()))?;
    Ok(size.round() as u32)
}
