//! Errors in a cell of a table, most with advice: not a number, not finite, an unknown category, no
//! date or an ambiguous one, mixed decimal marks.

use super::place::Place;

/// Errors in the cell of a feature or regression target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellError {
    /// It is not a number.
    NotNumber,
    /// It is infinite or too large for `f32`.
    NotFinite,
    /// It is not one of the categories.
    UnknownCategory,
    /// It is not a date and time.
    NotTime,
    /// Its decimal mark differs from the mark of an earlier row.
    MixedMarks {
        /// The first row with the other mark.
        other: Place,
    },
    /// It is a date and time instead of a number.
    IsTime,
    /// It is a date, and it is unknown whether the day or the month is first.
    DayOrMonth,
    /// It is a target, which must be a number.
    TargetNotNumber,
}

impl CellError {
    /// Describes the error and its correction.
    pub(crate) fn sentence(&self, column: &str, cell: &str) -> String {
        let key = quoted_key(column);
        match self {
            Self::NotNumber => format!(
                "`{cell}` is not a number; if it is one of several categories, list them as \
                 `categories.{key} = [\"{cell}\", ..]` in `[data]`; if the column is not a \
                 feature, add it to `data.ignore` (a missing value is empty, ?, NA, N/A, NaN or \
                 null)"
            ),
            Self::TargetNotNumber => format!(
                "`{cell}` is not a number, but the task is to predict numbers: for classes, set \
                 `data.task = \"classification\"`"
            ),
            Self::NotFinite => format!("`{cell}` is not a finite number"),
            Self::UnknownCategory => format!(
                "`{cell}` is not among the categories of `data.categories.{key}`; add it, or add \
                 the column to `data.ignore`"
            ),
            Self::NotTime => format!(
                "`{cell}` is not a date and time such as 2024-03-04 10:15:30, as \
                 `data.times.{key}` expects"
            ),
            Self::IsTime => format!(
                "`{cell}` is a date and time: take parts of it as features by `times.{key} = \
                 [\"hour\", \"weekday\"]` in `[data]`, or add the column to `data.ignore`"
            ),
            Self::DayOrMonth => format!(
                "`{cell}` may have the day or the month first: write dates as 2024-12-31 10:15:30, \
                 or add the column to `data.ignore`"
            ),
            Self::MixedMarks { other } => format!(
                "`{cell}` and the number in {other} have different decimal marks: write all with a \
                 comma, or all with a point"
            ),
        }
    }
}

/// Returns a column's name as a key of TOML.
pub fn quoted_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}
