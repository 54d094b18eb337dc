//! Tables: one label column, perhaps a device column, every other one a feature.
//!
//! | question | file |
//! | --- | --- |
//! | what formats have in common | [`reader`], `rows` |
//! | the formats | `format`, `delimited`, `arff`, `parquet` |
//! | bytes as text | `text` |
//! | which column means what | [`columns`] |
//! | cells of a column as features | [`column`](super::column) |
//! | what is in each column | [`profile`] |
//!
//! A missing cell is filled later ([`missing`](super::missing)). Labels may be any text for
//! classification.

mod arff;
pub mod columns;
mod delimited;
mod error;
mod format;
#[cfg(feature = "parquet")]
mod parquet;
pub mod profile;
pub mod reader;
mod rows;
mod text;

use std::collections::HashMap;

use super::classes::Classes;
use super::dataset::{Dataset, DatasetError, Groups, Names, Targets};
use super::vocabulary::Vocabulary;
use crate::column::FeatureColumn;
use columns::Roles;

pub use crate::column::Encoding;
pub use crate::column::error::{CellError, quoted_key};
pub use crate::column::place::Place;
pub use crate::column::time::TimePart;
pub use columns::{Columns, listed};
pub use error::TableError;
pub use format::TableFormat;
use reader::{Cells, Reader, Row, shortened};

/// Most numbers that are taken for classes where the configuration does not say what labels are.
pub(super) const MAX_NUMERIC_CLASSES: usize = 20;

/// A parsed file: numbers, and names by their number in a vocabulary of their own.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<FeatureColumn>,
    unnamed: Vec<usize>,
    features: Vec<f32>,
    missing: Vec<usize>,
    row_count: usize,
    labels: Labels,
    devices: Option<Vocabulary>,
    series: Option<Vocabulary>,
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

/// Parses an unpacked file.
///
/// # Errors
/// [`TableError`] with the line and column.
pub fn parse(format: TableFormat, bytes: &[u8], columns: &Columns) -> Result<Table, TableError> {
    let mut rows = Reader::new(format, bytes)?;
    let roles = Roles::new(rows.header(), columns, |at| rows.usual_encoding(at))?;
    let is_regression = columns.is_regression();
    let mut table = Table {
        columns: roles
            .features
            .iter()
            .map(|(_, column)| column.clone())
            .collect(),
        unnamed: roles.unnamed.clone(),
        features: Vec::new(),
        missing: Vec::new(),
        row_count: 0,
        labels: match &columns.classes {
            _ if is_regression => Labels::Values(Vec::new()),
            None => Labels::Classes(Vocabulary::default()),
            Some(classes) => Labels::Known(KnownLabels::new(classes)),
        },
        devices: roles.device.map(|_| Vocabulary::default()),
        series: roles.series.map(|_| Vocabulary::default()),
    };
    while let Some((row, mut cells)) = rows.next_row()? {
        table.push(&row, &mut cells, &roles)?;
    }
    match &table.labels {
        Labels::Classes(names) if columns.task.is_none() => check_classes(names, &columns.label)?,
        _ => {}
    }
    Ok(table)
}

/// Refuses labels that are likely to be measured: numbers with a fraction, or too many of them.
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
    /// Appends a table of the same columns, such as the test part.
    ///
    /// # Errors
    /// [`TableError::OtherHeader`] if the feature columns differ in name or order.
    pub fn append(&mut self, other: Self) -> Result<(), TableError> {
        let length = self.columns.len().max(other.columns.len());
        for at in 0..length {
            let name = |columns: &[FeatureColumn]| {
                let column = columns.get(at);
                column.map_or(String::new(), |column| column.name.clone())
            };
            let (expected, found) = (name(&self.columns), name(&other.columns));
            if expected != found {
                return Err(TableError::OtherHeader { expected, found });
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
        if let (Some(ours), Some(theirs)) = (&mut self.series, &other.series) {
            ours.extend(theirs);
        }
        Ok(())
    }

    /// The columns of features, in order, and what became of their cells.
    pub fn columns(&self) -> &[FeatureColumn] {
        &self.columns
    }

    /// Positions of the columns that were left out because they have no name.
    pub fn unnamed(&self) -> &[usize] {
        &self.unnamed
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// The number of each row's series; empty without a column of series.
    pub fn series(&self) -> Vec<u32> {
        let series = self.series.as_ref().map(Vocabulary::rows);
        series.map_or(Vec::new(), <[u32]>::to_vec)
    }

    /// The data set: classes and devices numbered in the order of their names (by value where all
    /// are numbers), known classes in the order of their list. Rows of other classes, if they are
    /// to be left out, are in one more class, the last.
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

    fn push(
        &mut self,
        row: &Row<'_>,
        cells: &mut Cells<'_>,
        roles: &Roles,
    ) -> Result<(), TableError> {
        match &mut self.labels {
            Labels::Classes(vocabulary) => vocabulary.push(row.text(roles.label, "label")?),
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
            devices.push(row.text(at, "device")?);
        }
        if let (Some(series), Some(at)) = (&mut self.series, roles.series) {
            series.push(row.text(at, "series")?);
        }
        for (at, column) in &roles.features {
            cells.features(row, *at, column, &mut self.features, &mut self.missing)?;
        }
        self.row_count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
