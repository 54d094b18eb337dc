//! Trained models: their tensors, and predictions for rows of an array.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use smolfed::data::column::Unknown;
use smolfed::evaluation::samples::Tally;
use smolfed::inference::assessment::assess;
use smolfed::inference::error::InferenceError;
use smolfed::inference::export::format::{self, Format};
use smolfed::inference::input::{Input, Options};
use smolfed::inference::model::TrainedModel;
use smolfed::inference::prediction::Prediction;
use smolfed::inference::rows::RowTargets;

use crate::error::value_error;
use crate::frame::{Cells, ORIGIN, frame};
use crate::samples::Rows;

/// A class, and the arguments that recreate an object of it.
type Reduced = (Py<PyAny>, (String, Vec<f32>));
/// The class index of each row, and figures, one row each.
type Predicted<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<f64>>);

/// The shared model of a run.
#[pyclass(frozen, module = "smolfed._native")]
pub(crate) struct Model(pub(crate) TrainedModel);

#[pymethods]
impl Model {
    /// Creates a model from the text of `preprocessing.json` and its parameters, as returned by
    /// `__reduce__`.
    #[new]
    fn restore(preprocessing: &str, parameters: Vec<f32>) -> PyResult<Self> {
        let preprocessing = serde_json::from_str(preprocessing).map_err(value_error)?;
        let model = TrainedModel::of_run(preprocessing, parameters);
        model.map(Self).map_err(value_error)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Reduced> {
        let model = &slf.get().0;
        let parameters = model.parameters().map_err(value_error)?.to_vec();
        let class = slf.get_type().into_any().unbind();
        Ok((class, (model.preprocessing.to_json(), parameters)))
    }

    /// Returns the text of `preprocessing.json`.
    #[getter]
    fn preprocessing(&self) -> String {
        self.0.preprocessing.to_json()
    }

    /// Returns the tensors by name, in the shapes of `model.safetensors`.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = self.0.parameters().map_err(value_error)?;
        tensors(py, &self.0.task().layout(), parameters)
    }

    /// Predicts rows. For classes, returns each row's class index, and probabilities, one row each.
    /// For values, returns an empty array, and the values as a column.
    fn predict<'py>(&self, py: Python<'py>, rows: Rows<'py>) -> PyResult<Predicted<'py>> {
        let (features, width) = (rows.numbers(), rows.width());
        let found = py.detach(|| self.0.predict_rows(features, width));
        arrays(py, found.map_err(value_error)?)
    }

    /// Like [`Self::predict`] for columns of cells, which are matched by name. Also returns the
    /// number of rows with a category unknown to the model, unless these are refused.
    fn predict_frame<'py>(
        &self,
        py: Python<'py>,
        columns: Cells,
        refuse_unknown: bool,
    ) -> PyResult<(Predicted<'py>, u64)> {
        let frame = frame(columns)?;
        let read = || -> Result<_, InferenceError> {
            let options = options(None, refuse_unknown);
            let mut input = Input::of_frame(&frame, ORIGIN, &self.0.preprocessing, options)?;
            let mut found = Vec::with_capacity(frame.row_count());
            while let Some(part) = input.next(Tally::PART)? {
                let scores = self.0.scores(part.samples())?;
                found.extend(self.0.predictions(&scores));
            }
            Ok((found, input.unknown_rows()))
        };
        let (found, unknown) = py.detach(read).map_err(value_error)?;
        Ok((arrays(py, found)?, unknown))
    }

    /// Like [`Self::assess`] for columns of cells, one of which has the targets.
    fn assess_frame(
        &self,
        py: Python<'_>,
        columns: Cells,
        target: &str,
        refuse_unknown: bool,
    ) -> PyResult<(String, u64)> {
        let frame = frame(columns)?;
        let read = || -> Result<_, InferenceError> {
            let options = options(Some(target), refuse_unknown);
            let mut input = Input::of_frame(&frame, ORIGIN, &self.0.preprocessing, options)?;
            let found = assess(&self.0, &mut input)?;
            Ok((found, input.unknown_rows()))
        };
        let (found, unknown) = py.detach(read).map_err(value_error)?;
        Ok((serde_json::to_string(&found).map_err(value_error)?, unknown))
    }

    /// Returns the scores of rows, one row each: for classes, the logits, or for two classes the
    /// logit of the second.
    fn scores<'py>(&self, py: Python<'py>, rows: Rows<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (features, width) = (rows.numbers(), rows.width());
        let found = py.detach(|| self.0.score_rows(features, width));
        let outputs = self.0.task().output_count();
        let scores = PyArray1::from_vec(py, found.map_err(value_error)?);
        let rows = scores.len()? / outputs;
        scores.reshape([rows, outputs])
    }

    /// Returns the figures of `smolfed evaluate`, as JSON. For classes, `labels` names each row's
    /// class. Otherwise `values` has its value.
    fn assess(
        &self,
        py: Python<'_>,
        rows: Rows<'_>,
        labels: Option<Vec<String>>,
        values: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<String> {
        let (features, width) = (rows.numbers(), rows.width());
        let values: Vec<f64> = values.map_or(Vec::new(), |values| {
            values.as_array().iter().copied().collect()
        });
        let targets = match &labels {
            Some(labels) => RowTargets::Labels(labels),
            None => RowTargets::Values(&values),
        };
        let found = py.detach(|| self.0.assess_rows(features, width, targets));
        serde_json::to_string(&found.map_err(value_error)?).map_err(value_error)
    }

    /// Returns the bytes that `smolfed export` writes.
    fn export<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let found = Format::named(format).ok_or_else(|| {
            let names = Format::ALL.map(|format| format!("{:?}", format.name()));
            value_error(format!(
                "`format` is {format:?}: it must be one of {}",
                names.join(", ")
            ))
        })?;
        let bytes = format::encode(&self.0, found).map_err(value_error)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Returns the options for reading rows of a frame.
fn options(target: Option<&str>, refuse_unknown: bool) -> Options<'_> {
    Options {
        has_targets: target.is_some(),
        label: target,
        labels: None,
        id: None,
        has_header: true,
        unknown: match refuse_unknown {
            true => Unknown::Refuse,
            false => Unknown::Ignore { cells: 0 },
        },
    }
}

/// Converts predictions to arrays.
fn arrays(py: Python<'_>, found: Vec<Prediction>) -> PyResult<Predicted<'_>> {
    let (mut classes, mut figures) = (Vec::new(), Vec::new());
    for prediction in found {
        match prediction {
            Prediction::Class {
                class,
                probabilities,
            } => {
                classes.push(class as u32);
                figures.push(probabilities.into_iter().map(f64::from).collect());
            }
            Prediction::Value(value) => figures.push(vec![value]),
            Prediction::Representation(values) => {
                figures.push(values.into_iter().map(f64::from).collect());
            }
        }
    }
    let figures = PyArray2::from_vec2(py, &figures).map_err(value_error)?;
    Ok((PyArray1::from_vec(py, classes), figures))
}

/// Converts parameters to arrays by name.
///
/// # Errors
/// Returns errors of Python.
pub(crate) fn tensors<'py>(
    py: Python<'py>,
    layout: &[smolfed::layout::TensorLayout],
    parameters: &[f32],
) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    let mut rest = parameters;
    for tensor in layout {
        // Parameters that stay on devices are missing here.
        let Some((values, after)) = rest.split_at_checked(tensor.length()) else {
            break;
        };
        let array = PyArray1::from_slice(py, values).reshape(tensor.shape.as_slice())?;
        named.set_item(&tensor.name, array)?;
        rest = after;
    }
    Ok(named)
}
