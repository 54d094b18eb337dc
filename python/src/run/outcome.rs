//! What a run leaves in memory. None of it holds samples of devices.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::data::Federation;
use smolfed::experiment::Experiment;
use smolfed::inference::model::TrainedModel;
use smolfed::layout::TensorLayout;
use smolfed::preprocessing::Preprocessing;
use smolfed::report::{self, ReportInput};
use smolfed::run::{Ending, RunResult};

use crate::accounting::statement::{StatementParts, parts};
use crate::error::value_error;
use crate::model::{Model, tensors};

/// What a run leaves in memory.
#[pyclass(frozen, module = "smolfed._native")]
pub(crate) struct Outcome {
    input: ReportInput,
    model: Option<Py<Model>>,
    parameters: Vec<f32>,
    layout: Vec<TensorLayout>,
    device_count: u32,
    ending: (&'static str, Option<String>),
    dir: Option<PathBuf>,
}

impl Outcome {
    /// What `result` leaves.
    pub(super) fn new(
        py: Python<'_>,
        experiment: &Experiment,
        federation: &Federation,
        result: RunResult,
        dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let input = ReportInput::of_result(experiment, federation, &result);
        let ending = match &result.ending {
            Ending::Done => ("done", None),
            Ending::Interrupted => ("interrupted", None),
            Ending::OverBudget(error) => ("over-budget", Some(error.to_string())),
            Ending::GaveUp(error) => ("gave-up", Some(error.to_string())),
        };
        let preprocessing = Preprocessing::new(experiment, federation);
        // A method may share no model, or only a part of one.
        let model = TrainedModel::of_run(preprocessing, result.model.clone()).ok();
        let model = model.map(|model| Py::new(py, Model(model))).transpose()?;
        Ok(Self {
            input,
            model,
            layout: experiment.shared_layout(),
            parameters: result.model,
            device_count: federation.device_count(),
            ending,
            dir,
        })
    }
}

#[pymethods]
impl Outcome {
    /// The complete experiment, as TOML.
    #[getter]
    fn config(&self) -> PyResult<String> {
        self.input.config.to_toml().map_err(value_error)
    }

    /// The records of all rounds, as JSON.
    #[getter]
    fn records(&self) -> PyResult<String> {
        serde_json::to_string(&self.input.records).map_err(value_error)
    }

    /// The privacy statements.
    #[getter]
    fn statements(&self) -> PyResult<Vec<StatementParts>> {
        self.input.statements.iter().map(parts).collect()
    }

    /// All figures of the final model on held-out samples, as JSON.
    #[getter]
    fn assessment(&self) -> PyResult<String> {
        serde_json::to_string(&self.input.assessment).map_err(value_error)
    }

    /// The shared tensors by their names.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tensors(py, &self.layout, &self.parameters)
    }

    /// The shared model, if there is one that predicts.
    #[getter]
    fn model(&self, py: Python<'_>) -> Option<Py<Model>> {
        self.model.as_ref().map(|model| model.clone_ref(py))
    }

    /// The page about the run.
    fn report(&self, py: Python<'_>) -> String {
        py.detach(|| report::render(&self.input))
    }

    /// "done", "interrupted", "over-budget" or "gave-up", with the reason.
    #[getter]
    fn ending(&self) -> (&'static str, Option<String>) {
        self.ending.clone()
    }

    /// Devices of the federation.
    #[getter]
    fn device_count(&self) -> u32 {
        self.device_count
    }

    /// The run directory.
    #[getter]
    fn dir(&self) -> Option<PathBuf> {
        self.dir.clone()
    }
}
