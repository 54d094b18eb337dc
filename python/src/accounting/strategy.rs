//! Correlated noise: the matrix that a server applies to the sums of rounds before adding noise.

use numpy::PyArray1;
use pyo3::prelude::*;
use smolfed_accounting::correlated::{self, Family, StrategyKind};
use smolfed_accounting::{NoiseMultiplier, PrivacyEvent, SamplingRate, TrustModel};

use super::event::Event;
use super::release::participation;
use crate::error::value_error;

/// A mechanism of correlated noise for the rounds of one run.
#[pyclass(frozen, module = "smolfed.accounting")]
pub(crate) struct Strategy {
    family: String,
    strategy: correlated::Strategy,
}

#[pymethods]
impl Strategy {
    #[new]
    #[pyo3(signature = (family, rounds, separation, participations, sampling_rate=None))]
    fn new(
        py: Python<'_>,
        family: &str,
        rounds: u32,
        separation: u32,
        participations: Option<u32>,
        sampling_rate: Option<f64>,
    ) -> PyResult<Self> {
        let kind: Family = family.parse().map_err(value_error)?;
        // The most rounds that are this far apart, unless fewer are promised.
        let most = participations.unwrap_or(u32::MAX);
        let participation = participation(rounds, separation, most)?;
        if sampling_rate.is_some() && most < participation.max_participations() {
            return Err(value_error(format!(
                "`participations` is {most}: with block-cyclic sampling a device may be drawn in \
                 {} rounds, which is the default",
                participation.max_participations()
            )));
        }
        let rate = sampling_rate.map(SamplingRate::new).transpose();
        let rate = rate.map_err(value_error)?;
        let strategy = py.detach(|| {
            let strategy = correlated::Strategy::plan(kind, participation)?;
            match rate {
                Some(rate) => strategy.block_cyclic(rate),
                None => Ok(strategy),
            }
        });
        Ok(Self {
            family: family.to_owned(),
            strategy: strategy.map_err(value_error)?,
        })
    }

    /// Returns all rounds of a run with this noise as one event.
    fn event(
        &self,
        noise_multiplier: f64,
        devices: u32,
        grid_bits: u8,
        trust: &str,
    ) -> PyResult<Event> {
        let noise = NoiseMultiplier::new(noise_multiplier).map_err(value_error)?;
        let trust: TrustModel = trust.parse().map_err(value_error)?;
        if trust == TrustModel::Local {
            return Err(value_error(
                "`trust` is \"local\": correlated noise covers sums of several rounds, which a \
                 server combines, trusted or under masks: give \"central\" or \"distributed\"",
            ));
        }
        let event = PrivacyEvent::correlated(&self.strategy, noise, grid_bits, devices);
        let event = event.map_err(value_error)?;
        Ok(Event(PrivacyEvent { trust, ..event }))
    }

    #[getter]
    fn family(&self) -> &str {
        &self.family
    }

    #[getter]
    fn rounds(&self) -> u32 {
        self.strategy.participation().rounds()
    }

    #[getter]
    fn separation(&self) -> u32 {
        self.strategy.participation().separation()
    }

    #[getter]
    fn participations(&self) -> u32 {
        self.strategy.participation().participations()
    }

    #[getter]
    fn sensitivity(&self) -> f64 {
        self.strategy.sensitivity()
    }

    #[getter]
    fn rmse(&self) -> f64 {
        self.strategy.rmse()
    }

    #[getter]
    fn max_error(&self) -> f64 {
        self.strategy.max_error()
    }

    #[getter]
    fn prefix_stds<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.strategy.prefix_stds())
    }

    /// Returns the coefficients of C, 1 first, or `None` for the tree, which has none.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let StrategyKind::Toeplitz(toeplitz) = self.strategy.kind() else {
            return None;
        };
        let unit = correlated::COEFFICIENT_UNIT as f64;
        let whole = toeplitz.coefficients().iter();
        Some(PyArray1::from_iter(py, whole.map(|m| *m as f64 / unit)))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Strategy: {}, {} rounds, separation {}, at most {} participations, rmse {:.4}>",
            self.family,
            self.rounds(),
            self.separation(),
            self.participations(),
            self.rmse(),
        )
    }
}
