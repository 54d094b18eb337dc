//! Tables with a header: one label column, perhaps a device column, every other one a feature.
//!
//! A cell that is empty or `?` is missing; it is filled later ([`missing`](super::missing)).
//! Labels may be any text for classification.

mod columns;
mod error;

use std::collections::HashMap;
use std::io::Read;

use csv::{ErrorKind, Position, Reader, ReaderBuilder, StringRecord, Trim};

use super::classes::Classes;
use super::dataset::{Dataset, DatasetError, Groups, Names, Targets, TaskKind};
use super::vocabulary::Vocabulary;
use columns::Roles;

pub use columns::{Columns, listed};
pub use error::CsvError;

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
    /// The names that occur.
    Classes(Vocabulary),
    /// The numbers of known classes.
    Known(KnownLabels),
    Values(Vec<f32>),
}

/// Labels of classes that are known before a row is read.
#[derive(Clone, Debug)]
struct KnownLabels {
    classes: Classes,
    numbers: HashMap<String, u32>,
    rows: Vec<u32>,
}

impl KnownLabels {
    fn new(classes: &Classes) -> Self {
        Self {
            numbers: classes.list.labels().into_iter().zip(0..).collect(),
            classes: classes.clone(),
            rows: Vec::new(),
        }
    }

    /// Adds the label of a row; says whether there is such a class, or rows without are left out.
    fn push(&mut self, label: &str) -> bool {
        let number = self.numbers.get(label).copied();
        self.rows.push(number.unwrap_or(u32::MAX));
        number.is_some() || self.classes.drops_unknown()
    }
}

/// Names of the columns by the header line.
///
/// # Errors
/// [`CsvError`] if the header is not UTF-8.
pub fn column_names(bytes: &[u8]) -> Result<Vec<String>, CsvError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(from_csv)?;
    Ok(header.iter().map(str::to_owned).collect())
}

/// Parses an unpacked CSV file with a header line.
///
/// # Errors
/// [`CsvError`] with the line and column.
pub fn parse(bytes: &[u8], columns: &Columns) -> Result<Table, CsvError> {
    let mut lines = Lines::new(bytes)?;
    let roles = Roles::new(lines.header(), columns)?;
    let mut table = Table {
        feature_names: roles
            .features
            .iter()
            .map(|&at| lines.header()[at].to_owned())
            .collect(),
        features: Vec::new(),
        missing: Vec::new(),
        row_count: 0,
        labels: match (columns.task, &columns.classes) {
            (TaskKind::Regression, _) => Labels::Values(Vec::new()),
            (TaskKind::Classification, None) => Labels::Classes(Vocabulary::default()),
            (TaskKind::Classification, Some(classes)) => Labels::Known(KnownLabels::new(classes)),
        },
        devices: roles.device.map(|_| Vocabulary::default()),
    };
    while let Some(row) = lines.next_row()? {
        table.push(&row, &roles)?;
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
            (Labels::Known(ours), Labels::Known(theirs)) => ours.rows.extend(theirs.rows),
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
    /// are numbers), known classes in the order of their list. Rows of other classes, if they are
    /// to be left out, are in one more class, the last.
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
            Labels::Known(known) => {
                names.classes = known.classes.list.labels();
                known.classes.targets(known.rows)?
            }
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
            Labels::Known(known) => {
                let label = row.text(roles.label, "label")?;
                if !known.push(label) {
                    let classes = known.classes.list.labels();
                    return Err(CsvError::UnknownLabel {
                        line: row.line,
                        column: row.header[roles.label].to_owned(),
                        label: shortened(label),
                        classes: listed(classes.iter().map(String::as_str)),
                    });
                }
            }
            Labels::Values(values) => {
                row.text(roles.label, "target")?;
                values.push(row.number(roles.label)?);
            }
        }
        if let (Some(devices), Some(at)) = (&mut self.devices, roles.device) {
            devices.push(row.text(at, "device")?);
        }
        for &at in &roles.features {
            let value = row.value(at)?;
            if value.is_none() {
                self.missing.push(self.features.len());
            }
            self.features.push(value.unwrap_or(0.0));
        }
        self.row_count += 1;
        Ok(())
    }
}

/// The lines of a table one by one, for tables of any size.
pub struct Lines<R> {
    reader: Reader<R>,
    header: StringRecord,
    record: StringRecord,
    /// Whether `record` has been read and not been returned.
    is_ahead: bool,
}

impl<R: Read> Lines<R> {
    /// Reads the header line.
    ///
    /// # Errors
    /// [`CsvError`] if it is no text.
    pub fn new(reader: R) -> Result<Self, CsvError> {
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(reader);
        let header = reader.headers().map_err(from_csv)?.clone();
        Ok(Self {
            reader,
            header,
            record: StringRecord::new(),
            is_ahead: false,
        })
    }

    /// Of a file without a header line, whose columns are then called 1, 2, 3 and so on.
    ///
    /// # Errors
    /// As [`Self::next_row`].
    pub fn without_header(reader: R) -> Result<Self, CsvError> {
        let mut builder = ReaderBuilder::new();
        let mut reader = builder
            .trim(Trim::All)
            .has_headers(false)
            .from_reader(reader);
        let mut record = StringRecord::new();
        let is_ahead = reader.read_record(&mut record).map_err(from_csv)?;
        let names = (1..=record.len()).map(|number| number.to_string());
        Ok(Self {
            reader,
            header: names.collect(),
            record,
            is_ahead,
        })
    }

    /// The names of the columns.
    pub const fn header(&self) -> &StringRecord {
        &self.header
    }

    /// The next line; `None` after the last.
    ///
    /// # Errors
    /// [`CsvError`] with the line, if it is ragged or no text.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, CsvError> {
        let is_any = match std::mem::take(&mut self.is_ahead) {
            true => true,
            false => {
                let is_any = self.reader.read_record(&mut self.record);
                is_any.map_err(from_csv)?
            }
        };
        Ok(is_any.then(|| Row {
            header: &self.header,
            record: &self.record,
            line: self.record.position().map_or(0, Position::line),
        }))
    }
}

/// One line with what its errors need.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    header: &'a StringRecord,
    record: &'a StringRecord,
    line: u64,
}

impl<'a> Row<'a> {
    /// Its number in the file, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The cell in column `at`, which is a `what`.
    ///
    /// # Errors
    /// [`CsvError::Empty`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn text(&self, at: usize, what: &'static str) -> Result<&'a str, CsvError> {
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

    /// The number in column `at`; `None` if it is missing.
    ///
    /// # Errors
    /// As [`Self::number`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn value(&self, at: usize) -> Result<Option<f32>, CsvError> {
        match is_missing(&self.record[at]) {
            true => Ok(None),
            false => self.number(at).map(Some),
        }
    }

    /// The number in column `at`.
    ///
    /// # Errors
    /// [`CsvError::NotNumber`] or [`CsvError::NotFinite`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn number(&self, at: usize) -> Result<f32, CsvError> {
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
mod tests;
