//! Samples: NumPy arrays, copied once into the form for training on devices.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use smolfed::data::dataset::{Dataset, DatasetError, Features, Groups, Names, Targets};

use crate::error::value_error;
use crate::frame::FrameTable;

/// Features of samples, one row each.
pub(crate) enum Rows<'py> {
    Singles(PyReadonlyArray2<'py, f32>),
    Doubles(PyReadonlyArray2<'py, f64>),
    Bytes(PyReadonlyArray2<'py, u8>),
}

impl<'py> FromPyObject<'_, 'py> for Rows<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = object.extract() {
            return Ok(Self::Singles(rows));
        }
        if let Ok(rows) = object.extract() {
            return Ok(Self::Doubles(rows));
        }
        object.extract().map(Self::Bytes).map_err(|_| {
            PyTypeError::new_err("features must be a matrix of float32, float64 or uint8")
        })
    }
}

impl Rows<'_> {
    /// Features per row.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Singles(rows) => rows.as_array().ncols(),
            Self::Doubles(rows) => rows.as_array().ncols(),
            Self::Bytes(rows) => rows.as_array().ncols(),
        }
    }

    /// Returns all features as numbers, row after row.
    pub(crate) fn numbers(&self) -> Vec<f32> {
        match self {
            // Not the slice of `rows`, which also exists in Fortran order.
            Self::Singles(rows) => match rows.as_array().as_slice() {
                Some(slice) => slice.to_vec(),
                None => rows.as_array().iter().copied().collect(),
            },
            Self::Doubles(rows) => rows.as_array().iter().map(|x| *x as f32).collect(),
            Self::Bytes(rows) => rows.as_array().iter().map(|x| f32::from(*x)).collect(),
        }
    }

    /// Returns all features. Bytes stay bytes.
    fn features(&self) -> Features {
        match self {
            Self::Bytes(rows) => Features::of_bytes(rows.as_array().iter().copied().collect()),
            _ => Features::from(self.numbers()),
        }
    }
}

/// The contents of `smolfed.Federation`.
#[derive(FromPyObject)]
pub(crate) enum Source<'py> {
    Frame(PyRef<'py, FrameTable>),
    Arrays(Samples<'py>),
}

impl Source<'_> {
    /// Returns the data set and the number of its last rows that form the test part.
    ///
    /// # Errors
    /// `ValueError` for samples from which nothing can be learned.
    pub(crate) fn dataset(&self) -> PyResult<(Dataset, usize)> {
        match self {
            Self::Frame(table) => Ok((table.dataset(), 0)),
            Self::Arrays(samples) => Ok((samples.dataset()?, samples.test_rows)),
        }
    }
}

/// Arrays, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Samples<'py> {
    features: Rows<'py>,
    /// The class index of each row.
    labels: Option<PyReadonlyArray1<'py, u32>>,
    class_count: usize,
    /// The value of each row, for regression.
    values: Option<PyReadonlyArray1<'py, f64>>,
    /// The device index of each row.
    devices: Option<PyReadonlyArray1<'py, u32>>,
    device_names: Vec<String>,
    feature_names: Vec<String>,
    class_names: Vec<String>,
    /// Number of rows in the test part, which are the last ones.
    test_rows: usize,
}

impl Samples<'_> {
    /// Creates the data set, with the only copy of the features.
    ///
    /// # Errors
    /// `ValueError` for samples from which nothing can be learned.
    fn dataset(&self) -> PyResult<Dataset> {
        self.checked()
            .map_err(|error| value_error(format!("the samples in memory: {error}")))
    }

    fn checked(&self) -> Result<Dataset, DatasetError> {
        let targets = match (&self.labels, &self.values) {
            (Some(labels), _) => {
                let labels: Vec<u32> = labels.as_array().iter().copied().collect();
                Targets::classes(&labels, self.class_count)?
            }
            (None, Some(values)) => {
                Targets::Values(values.as_array().iter().map(|x| *x as f32).collect())
            }
            (None, None) => Targets::Values(Vec::new()),
        };
        let names = Names {
            features: self.feature_names.clone(),
            classes: self.class_names.clone(),
            columns: Vec::new(),
        };
        let maximum = match &self.features {
            Rows::Bytes(_) => Some(f32::from(u8::MAX)),
            _ => None,
        };
        let data = Dataset::new(self.features.features(), self.features.width(), targets)?
            .with_maximum(maximum)
            .with_names(names);
        match &self.devices {
            Some(devices) => {
                let devices = devices.as_array().iter().copied().collect();
                data.with_groups(Groups::new(devices, self.device_names.clone())?)
            }
            None => Ok(data),
        }
    }
}
