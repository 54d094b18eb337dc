//! Tables of pandas and polars. Their cells are text, read by the code that reads files.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smolfed::data::config::{DataConfig, SourceConfig, StoredSet};
use smolfed::data::dataset::{Dataset, Targets, TaskKind};
use smolfed::data::suggestion::{Choices, Suggestion, SuggestionError, Use};
use smolfed::data::table::frame::Frame;
use smolfed::data::table::profile::Profile;
use smolfed::data::table::{Columns, Table as Parsed, TableFormat};
use smolfed::starter::DataSection;
use toml::{Table, Value};

use crate::error::value_error;
use crate::keys;

/// Name in errors and remarks, instead of a file's.
pub(crate) const ORIGIN: &str = "the frame";

/// Columns by name, each with its cells as text.
pub(crate) type Cells = Vec<(String, Vec<String>)>;

/// Instructions for reading a frame, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading<'py> {
    label: String,
    groups: Option<String>,
    task: String,
    /// Categories of columns that declare them, whatever their names look like.
    categories: Vec<(String, Vec<String>)>,
    /// Keys of `[data]` that replace the suggested ones.
    keys: Bound<'py, PyDict>,
}

/// The samples of a frame: numbers, and what a model needs to read other cells.
#[pyclass(frozen, module = "smolfed._native", name = "Table")]
pub(crate) struct FrameTable {
    data: Dataset,
    left_out: Option<String>,
    remarks: Vec<String>,
}

/// Reads the columns as `smolfed init` proposes for the columns of a file.
#[pyfunction]
pub(crate) fn read_frame(
    py: Python<'_>,
    columns: Cells,
    reading: Reading<'_>,
) -> PyResult<FrameTable> {
    let frame = frame(columns)?;
    let task = match reading.task.as_str() {
        "regression" => TaskKind::Regression,
        _ => TaskKind::Classification,
    };
    let keys = keys::table(&reading.keys)?;
    let choices = Choices {
        label: Some(reading.label),
        has_no_devices: reading.groups.is_none(),
        device_column: reading.groups,
        task: Some(task),
        ignore: Vec::new(),
    };
    py.detach(|| FrameTable::read(&frame, &choices, reading.categories, keys))
}

/// Returns a table of these cells.
///
/// # Errors
/// `ValueError` for columns of different lengths.
pub(crate) fn frame(columns: Cells) -> PyResult<Frame> {
    Frame::new(columns).map_err(at_frame)
}

/// Returns an error about the frame.
fn at_frame(error: impl std::fmt::Display) -> PyErr {
    value_error(format!("{ORIGIN}: {error}"))
}

/// Converts the error of a suggestion, with arguments instead of flags.
pub(crate) fn suggestion_error(error: SuggestionError) -> PyErr {
    match error {
        SuggestionError::NoLabel { columns } => at_frame(format!(
            "which column should be predicted? give `label`; the columns are {columns}"
        )),
        SuggestionError::NoColumn {
            column, columns, ..
        } => at_frame(format!(
            "there is no column `{column}`; the columns are {columns}"
        )),
        SuggestionError::Label { column, reason } => at_frame(format!(
            "the column `{column}` cannot be predicted: {reason}"
        )),
        error => at_frame(error),
    }
}

impl FrameTable {
    fn read(
        frame: &Frame,
        choices: &Choices,
        categories: Vec<(String, Vec<String>)>,
        keys: Table,
    ) -> PyResult<Self> {
        let profile = Profile::of_frame(frame).map_err(at_frame)?;
        let suggestion = Suggestion::new(&profile, choices).map_err(suggestion_error)?;
        let columns = columns(&profile, &suggestion, categories, keys)?;
        let table = Parsed::of_frame(frame, &columns).map_err(at_frame)?;
        Ok(Self {
            left_out: suggestion.left_out(),
            remarks: table.remarks(ORIGIN),
            data: table.into_dataset().map_err(at_frame)?,
        })
    }

    /// Returns the samples.
    pub(crate) fn dataset(&self) -> Dataset {
        self.data.clone()
    }
}

/// Returns the meaning of the columns.
fn columns(
    profile: &Profile,
    suggestion: &Suggestion,
    declared: Vec<(String, Vec<String>)>,
    keys: Table,
) -> PyResult<Columns> {
    let section = DataSection::of_columns(TableFormat::Csv, ORIGIN, profile, suggestion);
    let mut table: Table = section.text.parse().map_err(at_frame)?;
    // Only declared classes are known beforehand. Others are taken from the rows.
    for key in ["classes", "classes_are_public"] {
        table.remove(key);
    }
    let mut categories = match table.remove("categories") {
        Some(Value::Table(categories)) => categories,
        _ => Table::new(),
    };
    for (column, names) in declared {
        let is_number = |(name, used): &(String, Use)| *name == column && *used == Use::Number;
        if suggestion.uses.iter().any(is_number) && names.len() > 1 {
            let names = names.into_iter().map(Value::String).collect();
            categories.insert(column, Value::Array(names));
        }
    }
    table.remove("categories_are_public");
    if !categories.is_empty() {
        table.insert("categories".to_owned(), Value::Table(categories));
    }
    table.extend(keys);
    let config: DataConfig = Value::Table(table).try_into().map_err(at_frame)?;
    match config.source {
        SourceConfig::Stored(stored) => match stored.set {
            StoredSet::Table(table) => Ok(table.columns),
            _ => Err(at_frame("it is not a table")),
        },
        SourceConfig::Synthetic(_) => Err(at_frame("it is not a table")),
    }
}

#[pymethods]
impl FrameTable {
    /// Returns the class index of each row, or `None` for values.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u16>>> {
        match self.data.targets() {
            Targets::Classes { labels, .. } => Some(PyArray1::from_slice(py, labels)),
            Targets::Values(_) => None,
        }
    }

    /// Returns the numbers of rows and features.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.data.len(), self.data.feature_count())
    }

    /// Returns the names of the features.
    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.data.names().features.clone()
    }

    /// Returns the number of devices, or 0 if each row is a device.
    #[getter]
    fn device_count(&self) -> usize {
        self.data.groups().map_or(0, |groups| groups.names().len())
    }

    /// Returns the omitted columns with the reasons, in a sentence.
    #[getter]
    fn left_out(&self) -> Option<String> {
        self.left_out.clone()
    }

    /// Returns sentences on readings of cells that the owner may not expect.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }
}
