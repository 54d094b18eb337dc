//! Trade-off curves: the least false-negative rate of any attack at each false-positive rate.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use smolfed_accounting::Delta;

use super::estimate::accountant;
use super::event::{Event, unwrapped};
use super::release::DeltaArgument;
use crate::error::value_error;

/// A trade-off curve.
#[pyclass(frozen, module = "smolfed.accounting")]
pub(crate) struct TradeOff(smolfed_accounting::TradeOff);

#[pymethods]
impl TradeOff {
    /// Returns the curve of events.
    #[new]
    fn of_events(
        py: Python<'_>,
        events: Vec<Event>,
        delta: DeltaArgument,
        accountant: Option<&str>,
    ) -> PyResult<Self> {
        let events = unwrapped(&events);
        let delta = delta.resolve(&events)?;
        let accountant = self::accountant(accountant, &events)?;
        let curve = py.detach(|| {
            let estimate = accountant.epsilon(&events, delta)?;
            Ok::<_, smolfed_accounting::AccountingError>(smolfed_accounting::TradeOff::of_events(
                &estimate, &events,
            ))
        });
        curve.map(Self).map_err(value_error)
    }

    /// Returns the curve of one (ε, δ).
    #[staticmethod]
    fn of_epsilon(epsilon: f64, delta: f64) -> PyResult<Self> {
        // False for NaN as well.
        let is_epsilon = epsilon >= 0.0;
        if !is_epsilon {
            return Err(value_error(format!(
                "epsilon is {epsilon}: it must be at least 0"
            )));
        }
        let delta = Delta::new(delta).map_err(value_error)?;
        Ok(Self(smolfed_accounting::TradeOff::new(epsilon, delta)))
    }

    /// Returns the least false-negative rate at each false-positive rate.
    fn false_negative_rate<'py>(
        &self,
        py: Python<'py>,
        false_positive_rate: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rates = false_positive_rate.as_array();
        let is_rate = |rate: &f64| (0.0..=1.0).contains(rate);
        if let Some(wrong) = rates.iter().find(|rate| !is_rate(rate)) {
            return Err(value_error(format!(
                "a false-positive rate is {wrong}: it must be from 0 to 1"
            )));
        }
        let curve = rates.iter().map(|rate| self.0.false_negative_rate(*rate));
        Ok(PyArray1::from_iter(py, curve))
    }

    /// Returns the largest advantage of any attack.
    #[getter]
    fn advantage(&self) -> f64 {
        self.0.advantage()
    }
}
