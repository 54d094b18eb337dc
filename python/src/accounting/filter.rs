//! Budgets in Python for rounds that are chosen, or runs that are stopped, depending on earlier
//! ones: filter and odometer.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use smolfed_accounting::{Odometer, RenyiFilter};

use super::event::{Event, unwrapped};
use super::release::DeltaArgument;
use crate::error::value_error;

/// A budget for adaptively chosen rounds.
#[pyclass(frozen, module = "smolfed.accounting")]
pub(crate) struct Filter(Mutex<RenyiFilter>);

#[pymethods]
impl Filter {
    #[new]
    fn new(plan: Vec<Event>, delta: DeltaArgument) -> PyResult<Self> {
        let plan = unwrapped(&plan);
        let filter = RenyiFilter::of_plan(&plan, delta.resolve(&plan)?);
        Ok(Self(Mutex::new(filter.map_err(value_error)?)))
    }

    /// Whether the budget has room for an event.
    fn admits(&self, event: Event) -> PyResult<bool> {
        self.filter().admits(&event.0).map_err(value_error)
    }

    /// Charges an event before its release.
    fn charge(&self, event: Event) -> PyResult<()> {
        self.filter().charge(&event.0).map_err(value_error)
    }

    #[getter]
    fn epsilon(&self) -> f64 {
        self.filter().epsilon()
    }
}

impl Filter {
    fn filter(&self) -> std::sync::MutexGuard<'_, RenyiFilter> {
        // A charge is a single assignment, so it cannot be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reading of an odometer after `events`.
#[pyfunction]
pub(crate) fn odometer(events: Vec<Event>, delta: DeltaArgument) -> PyResult<f64> {
    let events = unwrapped(&events);
    let reading = Odometer::read(&events, delta.resolve(&events)?);
    Ok(reading.map_err(value_error)?.epsilon)
}
