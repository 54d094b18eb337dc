//! Trained models: their tensors, and predictions for rows of an array.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::inference::model::TrainedModel;
use smolfed::inference::prediction::Prediction;

use crate::error::value_error;
use crate::samples::Rows;

/// A class, and the arguments that make an object of it again.
type Reduced = (Py<PyAny>, (String, Vec<f32>));
/// The number of each row's class, and figures, one row each.
type Predicted<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<f64>>);

/// The shared model of a run.
#[pyclass(frozen, module = "smolfed._native")]
pub(crate) struct Model(pub(crate) TrainedModel);

#[pymethods]
impl Model {
    /// A model from the text of `preprocessing.json` and its parameters, as `__reduce__` gives
    /// them.
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

    /// The text of `preprocessing.json`.
    #[getter]
    fn preprocessing(&self) -> String {
        self.0.preprocessing.to_json()
    }

    /// The tensors by their names, in the shapes of `model.safetensors`.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parameters = self.0.parameters().map_err(value_error)?;
        tensors(py, &self.0.task().layout(), parameters)
    }

    /// For classes: the number of each row's class, and probabilities, one row each. For values:
    /// nothing, and the values as a column.
    fn predict<'py>(&self, py: Python<'py>, rows: Rows<'py>) -> PyResult<Predicted<'py>> {
        let (features, width) = (rows.numbers(), rows.width());
        let found = py.detach(|| self.0.predict_rows(features, width));
        let (mut classes, mut figures) = (Vec::new(), Vec::new());
        for prediction in found.map_err(value_error)? {
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
}

/// Parameters as arrays by their names.
///
/// # Errors
/// Those of Python.
pub(crate) fn tensors<'py>(
    py: Python<'py>,
    layout: &[smolfed::layout::TensorLayout],
    parameters: &[f32],
) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    let mut rest = parameters;
    for tensor in layout {
        // What devices keep to themselves is not there.
        let Some((values, after)) = rest.split_at_checked(tensor.length()) else {
            break;
        };
        let array = PyArray1::from_slice(py, values).reshape(tensor.shape.as_slice())?;
        named.set_item(&tensor.name, array)?;
        rest = after;
    }
    Ok(named)
}
