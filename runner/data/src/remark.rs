//! Remarks (warnings) for the owner of a file about an unexpected reading of it, such as removed
//! currency signs or left-out rows: one sentence each.
//!
//! For standard error and `smolfed data inspect`: they quote private rows.

use std::fmt;

use super::column::signs::Found;
use super::dataset::{Dataset, Targets};
use super::wording::listed;

/// An ambiguous reading, or omitted data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// Numbers had signs.
    Signs(Found),
    /// A name has a line break.
    LineBreak {
        /// Its column.
        column: String,
        /// The kind of name.
        what: &'static str,
        /// Its first line.
        first: String,
    },
    /// Times are in UTC in this format, and their parts are features.
    Utc {
        /// Their column.
        column: String,
    },
    /// The test part has columns that the training part does not have.
    OtherColumns(Vec<String>),
    /// Test rows were left out because no training row has their class.
    OtherLabels {
        /// Number of rows.
        rows: usize,
        /// The labels.
        labels: Vec<String>,
    },
    /// Only held-out rows of the same file have these classes.
    Untrained(Vec<String>),
    /// Some rows of recordings are outside all windows.
    OutsideWindows {
        /// Number of these rows.
        rows: usize,
        /// Number of all rows.
        of: usize,
        /// Number of rows of a window.
        window: u32,
    },
}

impl Remark {
    /// Returns the remark on a name, if it has a line break.
    pub(crate) fn of_name(column: &str, what: &'static str, name: &str) -> Option<Self> {
        let (first, _) = name.split_once(['\n', '\r'])?;
        Some(Self::LineBreak {
            column: column.to_owned(),
            what,
            first: first.chars().take(40).collect(),
        })
    }

    /// Returns the remark on recordings with `rows` rows outside all windows, if there are any.
    pub(crate) fn of_windows(rows: usize, of: usize, window: u32) -> Option<Self> {
        (rows > 0).then_some(Self::OutsideWindows { rows, of, window })
    }

    /// Returns the remark on classes without training rows, if the classes are read from rows.
    pub(crate) fn of_classes(data: &Dataset, training: &[u32], are_read: bool) -> Option<Self> {
        if !are_read {
            return None;
        }
        let Targets::Classes {
            labels,
            class_count,
        } = data.targets()
        else {
            return None;
        };
        let mut has_rows = vec![false; *class_count];
        for &row in training {
            has_rows[usize::from(labels[row as usize])] = true;
        }
        let missing = (0..*class_count).filter(|class| !has_rows[*class]);
        let name = |class: usize| match data.names().classes.get(class) {
            Some(name) => name.clone(),
            None => class.to_string(),
        };
        let names: Vec<String> = missing.map(name).collect();
        (!names.is_empty()).then_some(Self::Untrained(names))
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signs(found) => {
                let Found {
                    kind,
                    cells,
                    place,
                    cell,
                    text,
                } = found;
                let cells = match cells {
                    1 => "1 number was".to_owned(),
                    count => format!("{count} numbers were"),
                };
                write!(
                    f,
                    "{cells} read without {kind}: `{cell}` ({place}) as {text}"
                )
            }
            Self::LineBreak {
                column,
                what,
                first,
            } => write!(
                f,
                "a {what} in column `{column}` has a line break after `{first}`: there may be a \
                 missing or an extra quote"
            ),
            Self::Utc { column } => write!(
                f,
                "the times in column `{column}` are in UTC, and so are their hours and weekdays: \
                 for local ones, write local times without a zone (pandas: \
                 `.dt.tz_convert(ZONE).dt.tz_localize(None)`)"
            ),
            Self::OtherColumns(columns) => write!(
                f,
                "columns that the training file does not have were left out: {}",
                listed(columns.iter().map(String::as_str))
            ),
            Self::OtherLabels { rows, labels } => write!(
                f,
                "{rows} test rows were left out, as no training row has their labels: {}",
                listed(labels.iter().map(String::as_str))
            ),
            Self::OutsideWindows { rows, of, window } => write!(
                f,
                "{rows} of {of} rows were left out, as no window of {window} rows contains them: a \
                 window belongs to one recording, one device and one class"
            ),
            Self::Untrained(classes) => write!(
                f,
                "these classes occur only in held-out rows, not in training rows: {}",
                listed(classes.iter().map(String::as_str))
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_are_remarked() {
        let remark = Remark::of_name("y", "class", "a\nb,c\n")
            .unwrap()
            .to_string();
        assert!(remark.contains("a class in column `y` has a line break after `a`"));
        assert_eq!(Remark::of_name("y", "class", "a b"), None);
    }

    #[test]
    fn classes_without_training_rows_are_remarked() {
        let targets = Targets::classes(&[0, 1, 2], 3).unwrap();
        let data = Dataset::new(vec![0.0; 3], 1, targets).unwrap();
        assert_eq!(Remark::of_classes(&data, &[0, 2], false), None);
        let expected = Remark::Untrained(vec!["1".into()]);
        assert_eq!(Remark::of_classes(&data, &[0, 2], true), Some(expected));
        assert_eq!(Remark::of_classes(&data, &[0, 1, 2], true), None);
    }
}
