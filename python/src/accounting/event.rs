//! Privacy events in Python (`Event`): noise, sampling and rounds, their JSON, and copies with
//! other numbers.

use pyo3::prelude::*;
use smolfed_accounting::{NoiseMultiplier, PrivacyEvent, PrivacyUnit};

use super::release::Release;
use crate::error::value_error;

/// Rounds of one mechanism under one sampling scheme.
#[pyclass(frozen, eq, from_py_object, module = "smolfed.accounting")]
#[derive(Clone, PartialEq)]
pub(crate) struct Event(pub(crate) PrivacyEvent);

/// Returns the event that the keyword arguments describe.
#[pyfunction]
pub(crate) fn event(release: Release) -> PyResult<Event> {
    release.event().map(Event)
}

/// Reads events from a JSON list in the form of `privacy.ledger`.
#[pyfunction]
pub(crate) fn events_from_json(text: &str) -> PyResult<Vec<Event>> {
    let events: Vec<PrivacyEvent> = serde_json::from_str(text).map_err(value_error)?;
    Ok(events.into_iter().map(Event).collect())
}

/// Returns the events in a list.
pub(crate) fn unwrapped(events: &[Event]) -> Vec<PrivacyEvent> {
    events.iter().map(|event| event.0).collect()
}

#[pymethods]
impl Event {
    #[getter]
    fn rounds(&self) -> u64 {
        self.0.count
    }

    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.0.mechanism.noise_multiplier().get()
    }

    #[getter]
    fn sampling(&self) -> &'static str {
        self.0.sampling.name()
    }

    #[getter]
    fn sampling_rate(&self) -> Option<f64> {
        self.0.sampling.sampling_rate()
    }

    #[getter]
    fn devices(&self) -> u32 {
        self.0.sampling.device_count()
    }

    #[getter]
    fn adjacency(&self) -> &'static str {
        self.0.adjacency().name()
    }

    #[getter]
    fn trust(&self) -> String {
        self.0.trust.to_string()
    }

    #[getter]
    fn unit(&self) -> &'static str {
        match self.0.unit {
            PrivacyUnit::Device => "device",
            PrivacyUnit::Example => "example",
        }
    }

    #[getter]
    fn devices_per_user(&self) -> u32 {
        self.0.devices_per_user.get()
    }

    /// Returns the event with another number of rounds.
    fn with_rounds(&self, rounds: u64) -> Self {
        Self(self.0.with_count(rounds))
    }

    /// Returns the event with another amount of noise.
    fn with_noise_multiplier(&self, noise_multiplier: f64) -> PyResult<Self> {
        let noise = NoiseMultiplier::new(noise_multiplier).map_err(value_error)?;
        Ok(Self(self.0.with_noise_multiplier(noise)))
    }

    /// Returns the text form used in ledgers.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(value_error)
    }

    fn __repr__(&self) -> String {
        let rate = self.sampling_rate();
        let rate = rate.map_or(String::new(), |rate| format!(" at rate {rate}"));
        format!(
            "<Event: {} rounds, noise multiplier {}, {} sampling{rate}, {}>",
            self.rounds(),
            self.noise_multiplier(),
            self.sampling(),
            self.adjacency(),
        )
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.count.hash(&mut hasher);
        self.noise_multiplier().to_bits().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        let module = py.import("smolfed.accounting")?;
        let restore = module.getattr("_event_from_json")?;
        Ok((restore.unbind(), (self.to_json()?,)))
    }
}
