//! Errors in a table: missing or duplicate columns, no header, rows of different lengths, unclosed
//! quotes, unknown labels, binary files.

use csv::StringRecord;

use crate::column::error::CellError;
use crate::column::place::Place;
use crate::missing_feature::MissingFeature;

/// Errors in a table. Lines count from 1, including the header.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The columns of a program have different lengths.
    #[error("the column `{column}` has {found} cells, but the first one has {expected}")]
    Columns {
        /// The column.
        column: String,
        /// Number of its cells.
        found: usize,
        /// Number of cells of the first column.
        expected: usize,
    },
    /// This program was compiled without the format.
    #[error(transparent)]
    Missing(MissingFeature),
    /// There is no header line.
    #[error("is empty; a header line with the names of the columns is needed")]
    NoHeader,
    /// The first line has numbers, and none of them is the wanted name.
    #[error("line 1: has numbers where the names of the columns should be; add a header line")]
    NamesMissing,
    /// A column name occurs twice.
    #[error("line 1: the header names the column `{column}` twice")]
    DuplicateColumn {
        /// The name.
        column: String,
    },
    /// A column of the configuration is not in the header.
    #[error("has no column `{column}` (key `{key}`); the columns are {columns}")]
    NoColumn {
        /// The name.
        column: String,
        /// The configuration key that names it.
        key: &'static str,
        /// The first column names.
        columns: String,
    },
    /// A column is given two meanings.
    #[error(
        "the column `{column}` has two of the roles label, device, series, ignored and encoded: \
         name another column for one of them"
    )]
    ColumnTwice {
        /// The name.
        column: String,
    },
    /// A quoted cell is not closed.
    #[error(
        "{place}: opens a quote that is not closed at the end of a cell; close it, or double each \
         quote inside a quoted cell"
    )]
    OpenQuote {
        /// The line of the quote.
        place: Place,
    },
    /// A row has more or fewer cells than the header.
    #[error("{place}: has {found} cells, but the header has {expected}{advice}")]
    Ragged {
        /// The row.
        place: Place,
        /// Number of cells of the header.
        expected: usize,
        /// Number of cells of the row.
        found: usize,
        /// A possible reason.
        advice: &'static str,
    },
    /// The file is of another kind.
    #[error("{advice}")]
    Binary {
        /// The kind of file, and advice.
        advice: &'static str,
    },
    /// A feature or regression target is invalid.
    #[error("{place}, column `{column}`: {}", reason.sentence(column, cell))]
    Cell {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// The cell, at most its first 40 characters.
        cell: String,
        /// The reason.
        reason: CellError,
    },
    /// A label or device is missing.
    #[error("{place}, column `{column}`: is empty, but every row needs a {what}")]
    Empty {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// Whether it is a label or a device.
        what: &'static str,
    },
    /// The configuration does not list a label.
    #[error(
        "{place}, column `{column}`: the label `{label}` is not among `data.classes` \
         ({classes}); add it, or leave such rows out with `data.unknown_labels = \"drop\"`"
    )]
    UnknownLabel {
        /// The row.
        place: Place,
        /// Name of the column.
        column: String,
        /// The label, at most its first 40 characters.
        label: String,
        /// The first classes.
        classes: String,
    },
    /// The labels are probably measurements instead of classes.
    #[error(
        "the labels in column `{column}` are {found} different numbers, such as {example}: to \
         predict a number, set `data.task = \"regression\"`; if each is a class, set `data.task = \
         \"classification\"`"
    )]
    NumericLabels {
        /// Name of the column.
        column: String,
        /// Number of different labels.
        found: usize,
        /// One of them.
        example: String,
    },
    /// The test file lacks columns of the training file.
    #[error("has no column {missing}, which the training file has; the columns are {columns}")]
    MissingColumns {
        /// The first missing names.
        missing: String,
        /// The first column names.
        columns: String,
    },
    /// The file violates the rules of its format.
    #[error("{place}: {what}")]
    Format {
        /// The row.
        place: Place,
        /// The error, and the correction.
        what: String,
    },
    /// The reader failed for another reason.
    #[error("cannot be read as a table ({0})")]
    Other(String),
}

impl TableError {
    /// Creates the error for a row with more or fewer cells than the header. An unclosed quote
    /// makes one cell of the rest of the file.
    pub(super) fn ragged(place: Place, expected: usize, record: &StringRecord) -> Self {
        let has_open_quote = record.iter().any(|cell| cell.contains('\n'));
        Self::Ragged {
            place,
            expected,
            found: record.len(),
            advice: match has_open_quote {
                true => "; a quote in this line may not be closed",
                false => "",
            },
        }
    }

    /// Converts an error of the reader of delimited text. It accepts text, and rows of any length.
    pub(super) fn of_csv(error: csv::Error) -> Self {
        Self::Other(error.to_string())
    }
}
