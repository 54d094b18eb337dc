//! The outcome of a run in memory: records, statements, model, report, and the reason of its end.
//! It holds no samples of devices.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::data::Federation;
use smolfed::experiment::Experiment;
use smolfed::inference::error::InferenceError;
use smolfed::inference::model::TrainedModel;
use smolfed::layout::TensorLayout;
use smolfed::method::MethodName;
use smolfed::preprocessing::Preprocessing;
use smolfed::report::{self, ReportInput};
use smolfed::run::directory::RunDir;
use smolfed::run::{Ending, RunResult};
use smolfed::runs::record::{Run, State};

use crate::accounting::statement::{StatementParts, parts};
use crate::error::{run_dir_error, value_error};
use crate::model::{Model, tensors};

/// How a run ended: "done", "interrupted", "over-budget" or "gave-up", with the reason.
type EndingParts = (String, Option<String>);
/// The value of `__reduce__`, from which `restore` recreates the outcome: the input of the report
/// as JSON, the model, the shared parameters, the names and shapes of their tensors, the number of
/// devices, the ending and the directory.
type Parts<'py> = (
    String,
    Option<Py<Model>>,
    Bound<'py, PyArray1<f32>>,
    Vec<(String, Vec<usize>)>,
    u32,
    EndingParts,
    Option<PathBuf>,
);

/// The outcome of a run in memory.
#[pyclass(frozen, module = "smolfed._native")]
pub(crate) struct Outcome {
    input: ReportInput,
    model: Option<Py<Model>>,
    parameters: Vec<f32>,
    layout: Vec<TensorLayout>,
    device_count: u32,
    ending: EndingParts,
    dir: Option<PathBuf>,
}

/// Loads the outcome of the run in a directory.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Outcome> {
    let run = Run::open(&path).map_err(run_dir_error)?;
    let shown = path.display();
    match (run.state, run.statements.is_empty()) {
        (State::Running, _) => {
            let reason = "a process still writes to it: wait until the run has ended";
            return Err(value_error(format!("{shown}: {reason}")));
        }
        (_, true) => {
            return Err(value_error(format!(
                "{shown}: the run has not ended, so it has no privacy statement; `smolfed resume` \
                 or smolfed.resume continues it"
            )));
        }
        (State::Complete | State::Unfinished, false) => {}
    }
    let read = || -> Result<_, InferenceError> {
        let dir = RunDir::open(&path)?;
        let mut input = ReportInput::read(&dir)?;
        input.statements = run.statements;
        // A file that does not fit is an error. A part that stays on devices is not.
        match TrainedModel::open(&path, None) {
            Ok(_) | Err(InferenceError::NotShared { .. }) => {}
            Err(error) => return Err(error),
        }
        let parameters = dir.shared_parameters()?;
        let preprocessing = Preprocessing::read(&path.join(Preprocessing::FILE))?;
        Ok((input, parameters, preprocessing))
    };
    let (input, parameters, preprocessing) = py.detach(read).map_err(value_error)?;
    let is_shared = input.config.method != MethodName::Local;
    if parameters.is_none() && is_shared && run.state == State::Complete {
        return Err(value_error(format!(
            "{shown}: model.safetensors is missing, which a complete run has"
        )));
    }
    let parameters = parameters.unwrap_or_default();
    let ending = match run.state {
        State::Complete => "done",
        State::Running | State::Unfinished => "interrupted",
    };
    let mut total = 0;
    let is_shared = |tensor: &TensorLayout| {
        total += tensor.length();
        total <= parameters.len()
    };
    let layout = preprocessing.task.layout();
    let layout = layout.into_iter().take_while(is_shared).collect();
    let devices = input.statements.first().map_or(0, |said| said.devices);
    Ok(Outcome {
        model: shared_model(py, preprocessing, &parameters)?,
        layout,
        parameters,
        device_count: devices,
        ending: (ending.to_owned(), None),
        input,
        dir: Some(path),
    })
}

/// Returns the shared model, or `None` if the method shares none or only part of one.
fn shared_model(
    py: Python<'_>,
    preprocessing: Preprocessing,
    parameters: &[f32],
) -> PyResult<Option<Py<Model>>> {
    let model = TrainedModel::of_run(preprocessing, parameters.to_vec()).ok();
    model.map(|model| Py::new(py, Model(model))).transpose()
}

impl Outcome {
    /// Creates the outcome of `result`.
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
        Ok(Self {
            input,
            model: shared_model(py, preprocessing, &result.model)?,
            layout: experiment.shared_layout(),
            parameters: result.model,
            device_count: federation.device_count(),
            ending: (ending.0.to_owned(), ending.1),
            dir,
        })
    }
}

#[pymethods]
impl Outcome {
    /// Recreates an outcome from the value of `__reduce__`.
    #[new]
    fn restore(
        input: &str,
        model: Option<Py<Model>>,
        parameters: PyReadonlyArray1<'_, f32>,
        layout: Vec<(String, Vec<usize>)>,
        device_count: u32,
        ending: EndingParts,
        dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let tensor = |(name, shape)| TensorLayout {
            name,
            shape,
            image: None,
        };
        Ok(Self {
            input: serde_json::from_str(input).map_err(value_error)?,
            model,
            parameters: parameters.as_array().to_vec(),
            layout: layout.into_iter().map(tensor).collect(),
            device_count,
            ending,
            dir,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Py<PyAny>, Parts<'py>)> {
        let outcome = slf.get();
        let tensors = outcome.layout.iter();
        let parts = (
            serde_json::to_string(&outcome.input).map_err(value_error)?,
            outcome.model(slf.py()),
            PyArray1::from_slice(slf.py(), &outcome.parameters),
            tensors
                .map(|tensor| (tensor.name.clone(), tensor.shape.clone()))
                .collect(),
            outcome.device_count,
            outcome.ending.clone(),
            outcome.dir.clone(),
        );
        Ok((slf.get_type().into_any().unbind(), parts))
    }

    /// Returns the complete experiment, as TOML.
    #[getter]
    fn config(&self) -> PyResult<String> {
        self.input.config.to_toml().map_err(value_error)
    }

    /// Returns the records of all rounds, as JSON.
    #[getter]
    fn records(&self) -> PyResult<String> {
        serde_json::to_string(&self.input.records).map_err(value_error)
    }

    /// Returns the privacy statements.
    #[getter]
    fn statements(&self) -> PyResult<Vec<StatementParts>> {
        self.input.statements.iter().map(parts).collect()
    }

    /// Returns all figures of the final model on held-out samples, as JSON.
    #[getter]
    fn assessment(&self) -> PyResult<String> {
        serde_json::to_string(&self.input.assessment).map_err(value_error)
    }

    /// Returns the shared tensors by name.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tensors(py, &self.layout, &self.parameters)
    }

    /// Returns the shared model, if it can predict.
    #[getter]
    fn model(&self, py: Python<'_>) -> Option<Py<Model>> {
        self.model.as_ref().map(|model| model.clone_ref(py))
    }

    /// Returns the page about the run.
    fn report(&self, py: Python<'_>) -> String {
        py.detach(|| report::render(&self.input))
    }

    /// "done", "interrupted", "over-budget" or "gave-up", with the reason.
    #[getter]
    fn ending(&self) -> EndingParts {
        self.ending.clone()
    }

    /// Returns the number of devices in the federation.
    #[getter]
    fn device_count(&self) -> u32 {
        self.device_count
    }

    /// Returns the run directory.
    #[getter]
    fn dir(&self) -> Option<PathBuf> {
        self.dir.clone()
    }
}
