//! Common parts of new rows of all formats: the columns of targets and of names, the header line,
//! and categories that the model does not know.

use std::path::Path;

use crate::inference::error::InferenceError;
use smolfed_data::column::Unknown;
use smolfed_data::table::listed;
use smolfed_engine::preprocessing::Preprocessing;

/// Information about a file besides its name.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Whether rows have targets, and need them.
    pub has_targets: bool,
    /// The column of the targets in a table. Defaults to the one of training.
    pub label: Option<&'a str>,
    /// The file with the labels of an IDX file.
    pub labels: Option<&'a Path>,
    /// The column that names the rows of a table.
    pub id: Option<&'a str>,
    /// Whether a table has a header line.
    pub has_header: bool,
    /// Handling of categories unknown to the model.
    pub unknown: Unknown,
}

impl Options<'_> {
    /// Returns options for rows without targets, whose columns have names.
    #[must_use]
    pub const fn of_features() -> Self {
        Self {
            has_targets: false,
            label: None,
            labels: None,
            id: None,
            has_header: true,
            unknown: Unknown::Ignore { cells: 0 },
        }
    }
}

/// Rows as read, before they form a part.
#[derive(Default)]
pub(super) struct Rows {
    /// Name of each row.
    pub(super) ids: Vec<String>,
    /// Row after row, in the model's form.
    pub(super) features: Vec<f32>,
    /// In the model's unit. Classes by number.
    pub(super) targets: Vec<f32>,
}

/// Prepares a value for the model. `origin` and `place` name it in errors.
pub(super) fn prepare(
    preprocessing: &Preprocessing,
    at: usize,
    value: Option<f64>,
    origin: &str,
    place: impl Fn() -> String,
) -> Result<f32, InferenceError> {
    let origin = || origin.to_owned();
    match preprocessing.columns[at].map.apply(value) {
        Some(feature) if feature.is_finite() || value.is_none() => Ok(feature),
        Some(_) => Err(InferenceError::TooLarge {
            origin: origin(),
            place: place(),
        }),
        None => Err(InferenceError::NoFill {
            origin: origin(),
            place: place(),
        }),
    }
}

/// Returns the error for a label that is not a class of the model.
pub(super) fn unknown(
    preprocessing: &Preprocessing,
    origin: &str,
    place: String,
    label: &str,
) -> InferenceError {
    let classes = preprocessing.labels().iter().map(String::as_str);
    InferenceError::Label {
        origin: origin.to_owned(),
        place,
        label: label.chars().take(40).collect(),
        classes: listed(classes),
    }
}
