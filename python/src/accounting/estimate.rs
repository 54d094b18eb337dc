//! ε of events in Python, by a named accountant or the tightest one.

use pyo3::prelude::*;
use smolfed_accounting::{Accountant, PrivacyEvent};

use super::event::{Event, unwrapped};
use super::release::DeltaArgument;
use crate::error::value_error;

/// ε at a δ, with the kind of claim and the accountant behind it.
#[pyclass(frozen, module = "smolfed.accounting")]
pub(crate) struct Estimate(pub(crate) smolfed_accounting::Estimate);

/// Returns the accountant with this name, or without a name the tightest sound one for `events`.
///
/// # Errors
/// `ValueError` for an unknown name.
pub(crate) fn accountant(name: Option<&str>, events: &[PrivacyEvent]) -> PyResult<Accountant> {
    match name {
        Some(name) => name.parse().map_err(value_error),
        None => Ok(Accountant::tightest_for(events)),
    }
}

/// Computes the ε of the composition of `events`.
#[pyfunction]
pub(crate) fn estimate(
    py: Python<'_>,
    events: Vec<Event>,
    delta: DeltaArgument,
    accountant: Option<&str>,
) -> PyResult<Estimate> {
    let events = unwrapped(&events);
    let delta = delta.resolve(&events)?;
    let accountant = self::accountant(accountant, &events)?;
    let found = py.detach(|| accountant.epsilon(&events, delta));
    found.map(Estimate).map_err(value_error)
}

#[pymethods]
impl Estimate {
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon
    }

    #[getter]
    fn delta(&self) -> f64 {
        self.0.delta.get()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.words()
    }

    #[getter]
    fn is_upper_bound(&self) -> bool {
        self.0.is_upper_bound()
    }

    #[getter]
    fn epsilon_low(&self) -> Option<f64> {
        self.0.epsilon_low
    }

    #[getter]
    fn accountant(&self) -> &'static str {
        self.0.accountant.name()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    fn __float__(&self) -> f64 {
        self.0.epsilon
    }

    fn __repr__(&self) -> String {
        format!(
            "<Estimate: epsilon = {:.4} at delta = {:e}, {} ({})>",
            self.0.epsilon,
            self.0.delta.get(),
            self.kind(),
            self.accountant(),
        )
    }
}
