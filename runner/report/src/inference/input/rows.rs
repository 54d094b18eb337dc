//! What rows of all formats have in common.

use std::path::Path;

use crate::inference::error::InferenceError;
use smolfed_data::column::Unknown;
use smolfed_data::table::listed;
use smolfed_engine::preprocessing::Preprocessing;

/// What is known of a file beside its name.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Whether rows have targets, which are needed.
    pub has_targets: bool,
    /// The column of the targets in a table; by default that of training.
    pub label: Option<&'a str>,
    /// The file with the labels of an IDX file.
    pub labels: Option<&'a Path>,
    /// The column that names the rows of a table.
    pub id: Option<&'a str>,
    /// Whether a table has a header line.
    pub has_header: bool,
    /// What becomes of categories that the model does not know.
    pub unknown: Unknown,
}

impl Options<'_> {
    /// Rows without targets, whose columns have names.
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

/// Rows as they are read, before they are a part.
#[derive(Default)]
pub(super) struct Rows {
    /// What names each row.
    pub(super) ids: Vec<String>,
    /// Row after row, as the model reads them.
    pub(super) features: Vec<f32>,
    /// In the model's unit; classes by their numbers.
    pub(super) targets: Vec<f32>,
}

/// What the model reads of a value; `origin` and `place` name it in errors.
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

/// A label that is no class of the model.
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
