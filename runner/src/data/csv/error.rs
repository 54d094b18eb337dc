//! What can be wrong with a table.

/// What can be wrong with a CSV file. Lines count from 1, the header included.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// No header line.
    #[error("is empty; a header line with the names of the columns is needed")]
    NoHeader,
    /// A column name occurs twice.
    #[error("line 1: the header names the column `{column}` twice")]
    DuplicateColumn {
        /// The name.
        column: String,
    },
    /// A column of the configuration is not in the header.
    #[error("line 1: no column `{column}` (key `{key}`); the columns are {columns}")]
    NoColumn {
        /// The name.
        column: String,
        /// The configuration key that names it.
        key: &'static str,
        /// The first column names.
        columns: String,
    },
    /// One column cannot have two meanings.
    #[error("the column `{column}` is given two of the roles label, device and ignored")]
    ColumnTwice {
        /// The name.
        column: String,
    },
    /// A line has more or fewer cells than the header.
    #[error("line {line}: has {found} cells, but the header has {expected}")]
    Ragged {
        /// Line in the file.
        line: u64,
        /// Cells of the header.
        expected: u64,
        /// Cells of the line.
        found: u64,
    },
    /// Bytes that are not UTF-8.
    #[error("line {line}: is not UTF-8 text")]
    NotText {
        /// Line in the file.
        line: u64,
    },
    /// A feature or regression target is no number.
    #[error("line {line}, column `{column}`: `{cell}` is not a number (missing: empty or ?)")]
    NotNumber {
        /// Line in the file.
        line: u64,
        /// Name of the column.
        column: String,
        /// The cell, at most its first 40 characters.
        cell: String,
    },
    /// A feature or regression target is NaN, infinite or too large for `f32`.
    #[error("line {line}, column `{column}`: `{cell}` is not a finite number")]
    NotFinite {
        /// Line in the file.
        line: u64,
        /// Name of the column.
        column: String,
        /// The cell, at most its first 40 characters.
        cell: String,
    },
    /// A label or device is missing.
    #[error("line {line}, column `{column}`: is empty, but every row needs a {what}")]
    Empty {
        /// Line in the file.
        line: u64,
        /// Name of the column.
        column: String,
        /// Label or device.
        what: &'static str,
    },
    /// A label that the configuration does not list.
    #[error(
        "line {line}, column `{column}`: the label `{label}` is not among `data.classes` \
         ({classes}); add it, or leave such rows out with `data.unknown_labels = \"drop\"`"
    )]
    UnknownLabel {
        /// Line in the file.
        line: u64,
        /// Name of the column.
        column: String,
        /// The label, at most its first 40 characters.
        label: String,
        /// The first classes.
        classes: String,
    },
    /// The test file has another header.
    #[error("its header differs from the training file's: found `{found}`, expected `{expected}`")]
    OtherHeader {
        /// Name in the training file.
        expected: String,
        /// Name in this file.
        found: String,
    },
    /// The reader gave up for another reason.
    #[error("cannot be read as CSV ({0})")]
    Other(String),
}
