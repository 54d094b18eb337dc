//! A server's step in Python: a function of arrays, applied to released values.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::layout::TensorLayout;
use smolfed::server::{OwnStep, StepView};

use crate::error::value_error;
use crate::model::tensors;

/// The first error of a Python function, which stops the run.
#[derive(Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// Keeps the first error.
    pub(super) fn keep(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }

    /// Returns the error, if any.
    pub(super) fn take(&self) -> Option<PyErr> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take()
    }
}

/// Returns the step given by `function(model, update, noise_std, learning_rate)`, which returns the
/// next model: all tensors by name. If it fails, the model is unchanged.
pub(super) fn own(
    function: Py<PyAny>,
    layout: Vec<TensorLayout>,
    stop: Arc<AtomicBool>,
    failure: Failure,
) -> OwnStep {
    OwnStep::new(move |view: StepView<'_>| {
        let called = Python::attach(|py| next(py, &function, &layout, &view));
        match called {
            Ok(model) => view.global.copy_from_slice(&model),
            Err(error) => {
                failure.keep(error);
                stop.store(true, Ordering::Relaxed);
            }
        }
    })
}

/// Returns the parameters of the next model.
fn next(
    py: Python<'_>,
    function: &Py<PyAny>,
    layout: &[TensorLayout],
    view: &StepView<'_>,
) -> PyResult<Vec<f32>> {
    let model = tensors(py, layout, view.global)?;
    let update = tensors(py, layout, view.average)?;
    let arguments = (model, update, view.noise_std, view.learning_rate);
    let answer = function.call1(py, arguments)?;
    let answer = answer.cast_bound::<PyDict>(py).map_err(|_| {
        value_error("a server step must return a dictionary with the arrays of the next model")
    })?;
    let mut parameters = Vec::with_capacity(view.global.len());
    for tensor in layout {
        let name = &tensor.name;
        let array = answer.get_item(name)?.ok_or_else(|| {
            value_error(format!(
                "the result of the server step has no array `{name}`"
            ))
        })?;
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (array, "float32"))?;
        let array: PyReadonlyArrayDyn<'_, f32> = array.extract()?;
        let array = array.as_array();
        if array.shape() != tensor.shape.as_slice() {
            return Err(value_error(format!(
                "`{name}` of the server step has shape {:?}, but must have {:?}",
                array.shape(),
                tensor.shape
            )));
        }
        if let Some(wrong) = array.iter().find(|x| !x.is_finite()) {
            return Err(value_error(format!(
                "`{name}` of the server step has {wrong}, but every entry must be finite"
            )));
        }
        parameters.extend(array.iter());
    }
    Ok(parameters)
}
