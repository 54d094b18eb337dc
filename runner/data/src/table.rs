//! Tables: one label column, an optional device column, and features in all other columns.
//!
//! | question | file |
//! | --- | --- |
//! | the common part of the formats | [`reader`], `rows` |
//! | the formats | `format`, `delimited`, `json_lines`, `arff`, `parquet` |
//! | tables of a program | [`frame`] |
//! | bytes as text | `text` |
//! | the meaning of columns | [`columns`] |
//! | cells of a column as features | [`column`](super::column) |
//! | the content of each column | [`profile`] |
//!
//! Missing cells are filled later ([`missing`](super::missing)). For classification, labels may be
//! any text.

mod arff;
pub mod columns;
mod delimited;
mod error;
mod format;
pub mod frame;
mod json_lines;
#[cfg(feature = "parquet")]
mod parquet;
pub mod profile;
mod quotes;
pub mod reader;
mod rows;
mod text;

use std::collections::HashMap;

use super::classes::Classes;
use super::dataset::{Dataset, DatasetError, Groups, Names, Targets};
use super::remark::Remark;
use super::vocabulary::Vocabulary;
use crate::column::name::name_of;
use crate::column::{FeatureColumn, Values};
use columns::Roles;

pub use crate::column::Encoding;
pub use crate::column::error::{CellError, quoted_key};
pub use crate::column::place::Place;
pub use crate::column::time::TimePart;
pub use crate::wording::listed;
pub use columns::Columns;
pub use error::TableError;
pub use format::TableFormat;
use frame::Frame;
use reader::{Cells, Reader, Row, shortened};

/// Maximum number of numeric labels that count as classes if the kind of labels is not configured.
pub(super) const MAX_NUMERIC_CLASSES: usize = 20;

/// A parsed file: numbers, and names as numbers in their own vocabulary.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<FeatureColumn>,
    unnamed: Vec<usize>,
    values: Values,
    row_count: usize,
    labels: Labels,
    devices: Option<Vocabulary>,
    series: Option<Vocabulary>,
    remarks: Vec<Remark>,
}

#[derive(Clone, Debug)]
enum Labels {
    /// The names that occur.
    Classes(Vocabulary),
    /// The numbers of known classes.
    Known(KnownLabels),
    Values(Vec<f32>),
}

/// Labels of classes that are known before any row is read.
#[derive(Clone, Debug)]
struct KnownLabels {
    classes: Classes,
    numbers: HashMap<String, u32>,
    /// By the shortest spelling of numbers.
    of_number: HashMap<String, u32>,
    rows: Vec<u32>,
}

impl KnownLabels {
    fn new(classes: &Classes) -> Self {
        let labels = classes.list.labels();
        let short = |label: &String| name_of(label).into_owned();
        Self {
            of_number: labels.iter().map(short).zip(0..).collect(),
            numbers: labels.into_iter().zip(0..).collect(),
            classes: classes.clone(),
            rows: Vec::new(),
        }
    }

    /// Adds the label of a row. Returns whether the class exists, or unknown ones are left out.
    fn push(&mut self, label: &str) -> bool {
        let number = self.numbers.get(label);
        let number = number.or_else(|| self.of_number.get(&*name_of(label)));
        let number = number.copied();
        self.rows.push(number.unwrap_or(u32::MAX));
        number.is_some() || self.classes.drops_unknown()
    }
}

/// Parses an unpacked file.
///
/// # Errors
/// [`TableError`] with the line and column.
pub fn parse(format: TableFormat, bytes: &[u8], columns: &Columns) -> Result<Table, TableError> {
    Table::of_rows(Reader::new(format, bytes)?, columns)
}

/// Refuses labels that are probably measurements: numbers with a fraction, or too many of them.
fn check_classes(names: &Vocabulary, column: &str) -> Result<(), TableError> {
    let numbers: Option<Vec<f64>> = names.names().iter().map(|name| name.parse().ok()).collect();
    let Some(numbers) = numbers else {
        return Ok(());
    };
    let with_fraction = numbers.iter().position(|number| number.fract() != 0.0);
    if with_fraction.is_none() && numbers.len() <= MAX_NUMERIC_CLASSES {
        return Ok(());
    }
    Err(TableError::NumericLabels {
        column: column.to_owned(),
        found: numbers.len(),
        example: names.names()[with_fraction.unwrap_or(0)].clone(),
    })
}

impl Table {
    /// Reads a table in the memory of a program, as [`parse`] does a file.
    ///
    /// # Errors
    /// [`TableError`] with the row and column.
    pub fn of_frame(frame: &Frame, columns: &Columns) -> Result<Self, TableError> {
        Self::of_rows(Reader::of_frame(frame), columns)
    }

    fn of_rows(rows: Reader, columns: &Columns) -> Result<Self, TableError> {
        let roles = Roles::new(rows.header(), columns, |at| rows.usual_encoding(at))?;
        let table = Self::read(rows, &roles, columns)?;
        match &table.labels {
            Labels::Classes(names) if columns.task.is_none() => {
                check_classes(names, &columns.label)?;
            }
            _ => {}
        }
        Ok(table)
    }

    /// Parses more rows, such as the test part. Their columns are found by name.
    ///
    /// # Errors
    /// [`TableError`] with the line and column, or [`TableError::MissingColumns`].
    pub fn parse_more(
        &self,
        format: TableFormat,
        bytes: &[u8],
        columns: &Columns,
    ) -> Result<Self, TableError> {
        let rows = Reader::new(format, bytes)?;
        let (roles, left_out) = Roles::like(rows.header(), columns, &self.columns)?;
        let mut table = Self::read(rows, &roles, columns)?;
        if !left_out.is_empty() {
            table.remarks.push(Remark::OtherColumns(left_out));
        }
        Ok(table)
    }

    /// Appends rows read by [`parse_more`](Self::parse_more). If the classes are read from rows,
    /// they stay those of the earlier rows, and the labels of others are returned, in order.
    pub fn append(&mut self, other: Self) -> Vec<String> {
        let mut others = Vec::new();
        self.values.append(other.values);
        self.row_count += other.row_count;
        match (&mut self.labels, other.labels) {
            (Labels::Classes(ours), Labels::Classes(theirs)) => {
                others = ours.extend_known(&theirs);
            }
            (Labels::Known(ours), Labels::Known(theirs)) => ours.rows.extend(theirs.rows),
            (Labels::Values(ours), Labels::Values(theirs)) => ours.extend(theirs),
            // Both were parsed with the same columns, and therefore have the same task.
            _ => {}
        }
        if let (Some(ours), Some(theirs)) = (&mut self.devices, &other.devices) {
            ours.extend(theirs);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.series, &other.series) {
            ours.extend(theirs);
        }
        others.sort_unstable();
        others
    }

    /// Returns unexpected properties of the file for its owner, as sentences that name it.
    #[must_use]
    pub fn remarks(&self, origin: &str) -> Vec<String> {
        let named = self.remarks.iter();
        named.map(|remark| format!("{origin}: {remark}")).collect()
    }

    /// Returns the columns of features, in order, with their encodings.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// Returns the positions of the columns left out because they have no name.
    pub fn unnamed(&self) -> &[usize] {
        &self.unnamed
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns the number of each row's series. Empty without a column of series.
    pub fn series(&self) -> Vec<u32> {
        let series = self.series.as_ref().map(Vocabulary::rows);
        series.map_or(Vec::new(), <[u32]>::to_vec)
    }

    /// Creates the data set. Classes and devices are numbered in the order of their names (by value
    /// if all are numbers), known classes in the order of their list. Rows of other classes, if
    /// they are to be left out or were appended, get one additional class, the last.
    ///
    /// # Errors
    /// [`DatasetError`] if there is no row or feature, or only one class.
    pub fn into_dataset(self) -> Result<Dataset, DatasetError> {
        let mut names = Names {
            features: self
                .columns
                .iter()
                .flat_map(FeatureColumn::feature_names)
                .collect(),
            classes: Vec::new(),
            columns: self.columns,
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
                let targets = Targets::with_others(labels, classes.len())?;
                names.classes = classes;
                targets
            }
        };
        let Values {
            features,
            missing,
            rests,
            ..
        } = self.values;
        let data = Dataset::new(features, names.features.len(), targets)?
            .with_names(names)
            .with_missing(missing)
            .with_rests(rests);
        match self.devices {
            Some(devices) => {
                let (device_of_row, names) = devices.into_sorted();
                data.with_groups(Groups::new(device_of_row, names)?)
            }
            None => Ok(data),
        }
    }

    /// Reads all rows.
    fn read(mut rows: Reader, roles: &Roles, columns: &Columns) -> Result<Self, TableError> {
        let mut table = Self {
            columns: roles
                .features
                .iter()
                .map(|(_, column)| column.clone())
                .collect(),
            unnamed: roles.unnamed.clone(),
            values: Values::default(),
            row_count: 0,
            labels: match &columns.classes {
                _ if columns.is_regression() => Labels::Values(Vec::new()),
                None => Labels::Classes(Vocabulary::default()),
                Some(classes) => Labels::Known(KnownLabels::new(classes)),
            },
            devices: roles.device.map(|_| Vocabulary::default()),
            series: roles.series.map(|_| Vocabulary::default()),
            remarks: Vec::new(),
        };
        while let Some((row, mut cells)) = rows.next_row()? {
            table.push(&row, &mut cells, roles)?;
        }
        table.remark(&rows, roles, columns);
        Ok(table)
    }

    /// Records unexpected properties for the owner of the file.
    fn remark(&mut self, rows: &Reader, roles: &Roles, columns: &Columns) {
        let classes = match &self.labels {
            Labels::Classes(names) => names.names().to_vec(),
            Labels::Known(known) => known.classes.list.labels(),
            Labels::Values(_) => Vec::new(),
        };
        let name = |what, column: &str, names: &[String]| {
            let mut remarks = names.iter().map(|name| Remark::of_name(column, what, name));
            remarks.find_map(|remark| remark)
        };
        self.remarks.extend(name("class", &columns.label, &classes));
        if let (Some(column), Some(devices)) = (&columns.device, &self.devices) {
            self.remarks.extend(name("device", column, devices.names()));
        }
        for (at, column) in &roles.features {
            match &column.encoding {
                Encoding::Categories(categories) => {
                    let remark = name("category", &column.name, categories);
                    self.remarks.extend(remark);
                }
                Encoding::Time(_) if rows.is_utc(*at) => self.remarks.push(Remark::Utc {
                    column: column.name.clone(),
                }),
                Encoding::Time(_) | Encoding::Number => {}
            }
        }
        self.remarks
            .extend(rows.signs().cloned().map(Remark::Signs));
    }

    fn push(
        &mut self,
        row: &Row<'_>,
        cells: &mut Cells<'_>,
        roles: &Roles,
    ) -> Result<(), TableError> {
        match &mut self.labels {
            Labels::Classes(vocabulary) => {
                vocabulary.push(&name_of(row.text(roles.label, "label")?));
            }
            Labels::Known(known) => {
                let label = row.text(roles.label, "label")?;
                if !known.push(label) {
                    let classes = known.classes.list.labels();
                    return Err(TableError::UnknownLabel {
                        place: row.place(),
                        column: row.column(roles.label).to_owned(),
                        label: shortened(label),
                        classes: listed(classes.iter().map(String::as_str)),
                    });
                }
            }
            Labels::Values(values) => values.push(cells.target(row, roles.label)?),
        }
        if let (Some(devices), Some(at)) = (&mut self.devices, roles.device) {
            devices.push(&name_of(row.text(at, "device")?));
        }
        if let (Some(series), Some(at)) = (&mut self.series, roles.series) {
            series.push(row.text(at, "series")?);
        }
        for (at, column) in &roles.features {
            cells.features(row, *at, column, &mut self.values)?;
        }
        self.row_count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
