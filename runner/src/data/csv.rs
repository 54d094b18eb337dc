//! Tables with a header: one label column, perhaps a device column, every other one a feature.
//!
//! A cell that is empty or `?` is missing; it becomes the mean of its column over the training
//! part later ([`missing`](super::missing)). Labels may be any text for classification.

use std::collections::HashMap;

use csv::{ErrorKind, Position, ReaderBuilder, StringRecord, Trim};

use super::dataset::{Dataset, DatasetError, Groups, Names, Targets};
use super::vocabulary::Vocabulary;

/// What is to be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// One of several classes.
    Classification,
    /// A number.
    Regression,
}

/// Which columns mean what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The column to predict.
    pub label: String,
    /// The column whose values are the natural devices.
    pub device: Option<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
    /// What the label is.
    pub task: Task,
}

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
    #[error("the column `{column}` is named for two things among label, device and ignored")]
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
    #[error("line {line}, column `{column}`: `{cell}` is not a number (missing is empty or ?)")]
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
    /// The test file has another header.
    #[error(
        "its header differs from the training file's: `{found}` stands where `{expected}` should"
    )]
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

/// A parsed file: numbers, and names by their number in a vocabulary of their own.
#[derive(Clone, Debug)]
pub struct Table {
    feature_names: Vec<String>,
    features: Vec<f32>,
    missing: Vec<usize>,
    row_count: usize,
    labels: Labels,
    devices: Option<Vocabulary>,
}

#[derive(Clone, Debug)]
enum Labels {
    Classes(Vocabulary),
    Values(Vec<f32>),
}

/// Parses an unpacked CSV file with a header line.
///
/// # Errors
/// [`CsvError`] with the line and column.
pub fn parse(bytes: &[u8], columns: &Columns) -> Result<Table, CsvError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(from_csv)?.clone();
    let roles = Roles::new(&header, columns)?;
    let mut table = Table {
        feature_names: roles
            .features
            .iter()
            .map(|&at| header[at].to_owned())
            .collect(),
        features: Vec::new(),
        missing: Vec::new(),
        row_count: 0,
        labels: match columns.task {
            Task::Classification => Labels::Classes(Vocabulary::default()),
            Task::Regression => Labels::Values(Vec::new()),
        },
        devices: roles.device.map(|_| Vocabulary::default()),
    };
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(from_csv)? {
        let line = record.position().map_or(0, Position::line);
        table.push(
            &Row {
                header: &header,
                record: &record,
                line,
            },
            &roles,
        )?;
    }
    Ok(table)
}

impl Table {
    /// Appends a table of the same columns, such as the test part.
    ///
    /// # Errors
    /// [`CsvError::OtherHeader`] if the feature columns differ in name or order.
    pub fn append(&mut self, other: Self) -> Result<(), CsvError> {
        let length = self.feature_names.len().max(other.feature_names.len());
        for at in 0..length {
            let name = |names: &[String]| names.get(at).cloned().unwrap_or_default();
            let (expected, found) = (name(&self.feature_names), name(&other.feature_names));
            if expected != found {
                return Err(CsvError::OtherHeader { expected, found });
            }
        }
        let offset = self.features.len();
        self.missing
            .extend(other.missing.into_iter().map(|place| place + offset));
        self.features.extend(other.features);
        self.row_count += other.row_count;
        match (&mut self.labels, other.labels) {
            (Labels::Classes(ours), Labels::Classes(theirs)) => ours.extend(&theirs),
            (Labels::Values(ours), Labels::Values(theirs)) => ours.extend(theirs),
            // Both were parsed with the same columns, hence the same task.
            _ => {}
        }
        if let (Some(ours), Some(theirs)) = (&mut self.devices, &other.devices) {
            ours.extend(theirs);
        }
        Ok(())
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// The data set: classes and devices numbered in the order of their names (by value where all
    /// are numbers).
    ///
    /// # Errors
    /// [`DatasetError`] if there is no row or feature, or only one class.
    pub fn into_dataset(self) -> Result<Dataset, DatasetError> {
        let mut names = Names {
            features: self.feature_names,
            classes: Vec::new(),
        };
        let targets = match self.labels {
            Labels::Values(values) => Targets::Values(values),
            Labels::Classes(vocabulary) => {
                let (labels, classes) = vocabulary.into_sorted();
                if let [only] = classes.as_slice() {
                    return Err(DatasetError::OneClass {
                        label: only.clone(),
                    });
                }
                let targets = Targets::classes(&labels, classes.len())?;
                names.classes = classes;
                targets
            }
        };
        let data = Dataset::new(self.features, names.features.len(), targets)?
            .with_names(names)
            .with_missing(self.missing);
        match self.devices {
            Some(devices) => {
                let (device_of_row, names) = devices.into_sorted();
                data.with_groups(Groups::new(device_of_row, names)?)
            }
            None => Ok(data),
        }
    }

    fn push(&mut self, row: &Row<'_>, roles: &Roles) -> Result<(), CsvError> {
        match &mut self.labels {
            Labels::Classes(vocabulary) => vocabulary.push(row.text(roles.label, "label")?),
            Labels::Values(values) => {
                row.text(roles.label, "target")?;
                values.push(row.number(roles.label)?);
            }
        }
        if let (Some(devices), Some(at)) = (&mut self.devices, roles.device) {
            devices.push(row.text(at, "device")?);
        }
        for &at in &roles.features {
            if is_missing(&row.record[at]) {
                self.missing.push(self.features.len());
                self.features.push(0.0);
            } else {
                self.features.push(row.number(at)?);
            }
        }
        self.row_count += 1;
        Ok(())
    }
}

/// Positions of the columns by their meaning.
struct Roles {
    label: usize,
    device: Option<usize>,
    features: Vec<usize>,
}

impl Roles {
    fn new(header: &StringRecord, columns: &Columns) -> Result<Self, CsvError> {
        if header.iter().all(str::is_empty) {
            return Err(CsvError::NoHeader);
        }
        let mut places = HashMap::new();
        for (at, name) in header.iter().enumerate() {
            if places.insert(name, at).is_some() {
                return Err(CsvError::DuplicateColumn {
                    column: name.to_owned(),
                });
            }
        }
        let mut taken = vec![false; header.len()];
        let mut take = |column: &str, key| {
            let Some(&at) = places.get(column) else {
                let columns = listed(header);
                return Err(CsvError::NoColumn {
                    column: column.to_owned(),
                    key,
                    columns,
                });
            };
            if std::mem::replace(&mut taken[at], true) {
                return Err(CsvError::ColumnTwice {
                    column: column.to_owned(),
                });
            }
            Ok(at)
        };
        let label = take(&columns.label, "label")?;
        let device = match &columns.device {
            Some(column) => Some(take(column, "device_column")?),
            None => None,
        };
        for column in &columns.ignore {
            take(column, "ignore")?;
        }
        let features = (0..header.len()).filter(|&at| !taken[at]).collect();
        Ok(Self {
            label,
            device,
            features,
        })
    }
}

/// One line with what its errors need.
struct Row<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
    line: u64,
}

impl<'a> Row<'a> {
    fn text(&self, at: usize, what: &'static str) -> Result<&'a str, CsvError> {
        let cell = &self.record[at];
        if is_missing(cell) {
            let column = self.header[at].to_owned();
            return Err(CsvError::Empty {
                line: self.line,
                column,
                what,
            });
        }
        Ok(cell)
    }

    fn number(&self, at: usize) -> Result<f32, CsvError> {
        let text = &self.record[at];
        let (line, column) = (self.line, || self.header[at].to_owned());
        match text.parse::<f32>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) => Err(CsvError::NotFinite {
                line,
                column: column(),
                cell: shortened(text),
            }),
            Err(_) => Err(CsvError::NotNumber {
                line,
                column: column(),
                cell: shortened(text),
            }),
        }
    }
}

fn is_missing(cell: &str) -> bool {
    cell.is_empty() || cell == "?"
}

fn shortened(cell: &str) -> String {
    cell.chars().take(40).collect()
}

/// The first column names, as an error message lists them.
fn listed(header: &StringRecord) -> String {
    const MOST: usize = 12;
    let mut names: Vec<String> = header
        .iter()
        .take(MOST)
        .map(|name| format!("`{name}`"))
        .collect();
    if header.len() > MOST {
        names.push(format!("and {} more", header.len() - MOST));
    }
    names.join(", ")
}

fn from_csv(error: csv::Error) -> CsvError {
    let line = error.position().map_or(1, Position::line);
    match error.into_kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => CsvError::Ragged {
            line,
            expected: expected_len,
            found: len,
        },
        ErrorKind::Utf8 { .. } => CsvError::NotText { line },
        other => CsvError::Other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(task: Task) -> Columns {
        Columns {
            label: "y".into(),
            device: Some("who".into()),
            ignore: vec!["id".into()],
            task,
        }
    }

    fn read(text: &str) -> Result<Table, CsvError> {
        parse(text.as_bytes(), &columns(Task::Classification))
    }

    const GOOD: &str = "id,who,a,b,y\n1,10,0.5,?,yes\n2,9,1e1,-3,no\n3,10,,4,yes\n";

    #[test]
    fn columns_become_features_labels_and_devices() {
        let data = read(GOOD).unwrap().into_dataset().unwrap();
        assert_eq!(data.features(), [0.5, 0.0, 10.0, -3.0, 0.0, 4.0]);
        assert_eq!(data.missing(), [1, 4]);
        assert_eq!(data.names().features, ["a", "b"]);
        assert_eq!(data.names().classes, ["no", "yes"]);
        let expected = Targets::Classes {
            labels: vec![1, 0, 1],
            class_count: 2,
        };
        assert!(data.targets() == &expected);
        let groups = data.groups().unwrap();
        assert_eq!(groups.names(), ["9", "10"]);
        assert_eq!(groups.device_of_row(), [1, 0, 1]);
    }

    #[test]
    fn regression_reads_numbers() {
        let text = "who,id,a,y\n1,1,2,0.5\n1,2,3,-1\n";
        let table = parse(text.as_bytes(), &columns(Task::Regression)).unwrap();
        assert!(table.into_dataset().unwrap().targets() == &Targets::Values(vec![0.5, -1.0]));
        let text = "who,id,a,y\n1,1,2,low\n";
        let error = parse(text.as_bytes(), &columns(Task::Regression)).unwrap_err();
        assert!(
            matches!(error, CsvError::NotNumber { line: 2, .. }),
            "{error}"
        );
        let text = "who,id,a,y\n1,1,2,\n";
        let error = parse(text.as_bytes(), &columns(Task::Regression)).unwrap_err();
        assert!(
            matches!(
                error,
                CsvError::Empty {
                    line: 2,
                    what: "target",
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn windows_line_ends_spaces_and_quotes_are_fine() {
        let data = read("id,who, a,y\r\n1, 2,\"3\" ,\"n,o\"\r\n1,2,4,yes\r\n").unwrap();
        let data = data.into_dataset().unwrap();
        assert_eq!(data.names().classes, ["n,o", "yes"]);
        assert_eq!(data.features(), [3.0, 4.0]);
    }

    #[test]
    fn empty_file_has_no_header() {
        for text in ["", "\n", ",,\n"] {
            assert_eq!(read(text).unwrap_err(), CsvError::NoHeader, "{text:?}");
        }
    }

    #[test]
    fn header_without_rows_is_no_data_set() {
        let table = read("id,who,a,y\n").unwrap();
        assert_eq!(table.into_dataset().unwrap_err(), DatasetError::NoSamples);
    }

    #[test]
    fn table_without_features_is_no_data_set() {
        let table = read("id,who,y\n1,1,a\n1,1,b\n").unwrap();
        assert_eq!(table.into_dataset().unwrap_err(), DatasetError::NoFeatures);
    }

    #[test]
    fn duplicate_column_is_refused() {
        let error = read("id,who,a,a,y\n").unwrap_err();
        assert_eq!(error, CsvError::DuplicateColumn { column: "a".into() });
    }

    #[test]
    fn unknown_column_is_refused_with_the_known_ones() {
        let error = read("id,who,a,label\n").unwrap_err();
        assert!(
            matches!(&error, CsvError::NoColumn { key: "label", .. }),
            "{error}"
        );
        assert!(error.to_string().contains("`who`"), "{error}");
        let error = read("who,a,y\n").unwrap_err();
        assert!(
            matches!(&error, CsvError::NoColumn { key: "ignore", .. }),
            "{error}"
        );
        let error = read("id,a,y\n").unwrap_err();
        assert!(
            matches!(
                &error,
                CsvError::NoColumn {
                    key: "device_column",
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn column_with_two_meanings_is_refused() {
        let mut columns = columns(Task::Classification);
        columns.ignore.push("y".into());
        let error = parse(GOOD.as_bytes(), &columns).unwrap_err();
        assert_eq!(error, CsvError::ColumnTwice { column: "y".into() });
    }

    #[test]
    fn ragged_line_is_named() {
        for row in ["1,2,3", "1,2,3,4,5,6"] {
            let error = read(&format!("id,who,a,b,y\n1,2,3,4,5\n{row}\n")).unwrap_err();
            let found = row.split(',').count() as u64;
            assert_eq!(
                error,
                CsvError::Ragged {
                    line: 3,
                    expected: 5,
                    found
                }
            );
        }
    }

    #[test]
    fn text_and_non_finite_features_are_named() {
        let error = read("id,who,a,y\n1,2,3,no\n1,2,tall,no\n").unwrap_err();
        let expected = CsvError::NotNumber {
            line: 3,
            column: "a".into(),
            cell: "tall".into(),
        };
        assert_eq!(error, expected);
        for cell in ["nan", "inf", "-Infinity", "1e39"] {
            let error = read(&format!("id,who,a,y\n1,2,{cell},no\n")).unwrap_err();
            assert!(
                matches!(error, CsvError::NotFinite { line: 2, .. }),
                "{cell}: {error}"
            );
        }
    }

    #[test]
    fn missing_label_or_device_is_refused() {
        let error = read("id,who,a,y\n1,2,3,?\n").unwrap_err();
        assert!(
            matches!(
                error,
                CsvError::Empty {
                    line: 2,
                    what: "label",
                    ..
                }
            ),
            "{error}"
        );
        let error = read("id,who,a,y\n1,,3,a\n").unwrap_err();
        assert!(
            matches!(
                error,
                CsvError::Empty {
                    line: 2,
                    what: "device",
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn one_class_is_named() {
        let error = read("id,who,a,y\n1,2,3,yes\n")
            .unwrap()
            .into_dataset()
            .unwrap_err();
        assert_eq!(
            error,
            DatasetError::OneClass {
                label: "yes".into()
            }
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let error = parse(b"id,who,a,y\n1,2,\xff,x\n", &columns(Task::Classification));
        assert_eq!(error.unwrap_err(), CsvError::NotText { line: 2 });
    }

    #[test]
    fn test_part_shares_classes_and_devices() {
        let mut table = read(GOOD).unwrap();
        table
            .append(read("id,who,a,b,y\n1,8,?,2,maybe\n").unwrap())
            .unwrap();
        assert_eq!(table.row_count(), 4);
        let data = table.into_dataset().unwrap();
        assert_eq!(data.missing(), [1, 4, 6]);
        assert_eq!(data.names().classes, ["maybe", "no", "yes"]);
        assert_eq!(data.groups().unwrap().device_of_row(), [2, 1, 2, 0]);
    }

    #[test]
    fn test_part_with_another_header_is_refused() {
        for header in ["id,who,b,a,y", "id,who,a,y", "id,who,a,b,c,y"] {
            let other = read(&format!("{header}\n")).unwrap();
            let error = read(GOOD).unwrap().append(other).unwrap_err();
            assert!(matches!(error, CsvError::OtherHeader { .. }), "{error}");
        }
    }

    proptest! {
        /// Any text is read or refused, and what is read has whole rows.
        #[test]
        fn any_text_is_read_or_refused(body in "[a-z0-9,.?\n\"-]{0,80}") {
            if let Ok(table) = read(&format!("id,who,a,y\n{body}")) {
                prop_assert_eq!(table.features.len(), table.row_count);
            }
        }
    }
}
