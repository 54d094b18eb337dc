//! Rows of a table: columns by name in any order, or in order without names.

use std::collections::{HashMap, HashSet};

use csv::StringRecord;

use super::rows::{Options, Rows, prepare, unknown};
use crate::inference::error::InferenceError;
use smolfed_data::column::name::position;
use smolfed_data::column::{FeatureColumn, Unknown, Values};
use smolfed_data::error::DataError;
use smolfed_data::table::reader::{Cells, Reader, Row};
use smolfed_data::table::{TableError, TableFormat, listed};
use smolfed_engine::preprocessing::{Preprocessing, Target};

/// A table read row by row.
pub(super) struct Table<'a> {
    rows: Reader,
    /// The feature columns and their indices. They are numbers if they have no names.
    cells: Vec<(usize, FeatureColumn)>,
    /// The column of the targets, if requested.
    target: Option<usize>,
    /// The column that names rows.
    id: Option<usize>,
    /// The number of each class by its label.
    classes: HashMap<&'a str, usize>,
    /// Handling of unknown categories.
    unknown: Unknown,
    /// Number of rows with such categories.
    unknown_rows: u64,
    /// Number of rows read so far.
    done: u64,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        bytes: &[u8],
        origin: &str,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        Self::of_reader(
            open(bytes, origin, options)?,
            origin,
            preprocessing,
            options,
        )
    }

    /// Reads an opened table.
    pub(super) fn of_reader(
        rows: Reader,
        origin: &str,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        let header = rows.header();
        let (id, label) = roles(header, origin, preprocessing, options)?;
        let cells = match (preprocessing.cells(), options.has_header) {
            (Some(cells), true) => {
                let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
                let places = by_name(&names, header, origin)?;
                places.into_iter().zip(cells).collect()
            }
            (cells, _) => {
                let cells = cells
                    .unwrap_or_else(|| vec![FeatureColumn::default(); preprocessing.columns.len()]);
                let places = in_order(cells.len(), header, origin, [id, label])?;
                places.into_iter().zip(cells).collect()
            }
        };
        Ok(Self {
            rows,
            cells,
            target: label.filter(|_| options.has_targets),
            id,
            classes: classes(preprocessing),
            unknown: options.unknown,
            unknown_rows: 0,
            done: 0,
        })
    }

    /// Returns the number of rows so far with a category unknown to the model, if ignored.
    pub(super) const fn unknown_rows(&self) -> u64 {
        self.unknown_rows
    }

    /// Returns surprising facts about the rows so far.
    pub(super) fn remarks(&self, origin: &str) -> Vec<String> {
        self.rows.remarks(origin)
    }

    /// Returns the next rows.
    pub(super) fn next(
        &mut self,
        count: usize,
        origin: &str,
        preprocessing: &Preprocessing,
    ) -> Result<Rows, InferenceError> {
        let mut rows = Rows::default();
        while rows.ids.len() < count {
            let row = self.rows.next_row().map_err(DataError::at(origin))?;
            let Some((row, mut numbers)) = row else { break };
            self.done += 1;
            let mut values = Values {
                unknown: self.unknown,
                ..Values::default()
            };
            for (at, column) in &self.cells {
                let first = values.features.len();
                numbers
                    .features(&row, *at, column, &mut values)
                    .map_err(DataError::at(origin))?;
                let place = || format!("{}, column `{}`", row.place(), row.column(*at));
                for feature in first..values.features.len() {
                    let value = values.get(feature);
                    let value = prepare(preprocessing, feature, value, origin, place)?;
                    rows.features.push(value);
                }
            }
            self.unknown_rows += u64::from(values.unknown != self.unknown);
            rows.targets.push(match self.target {
                Some(at) => {
                    let classes = &self.classes;
                    read(preprocessing, classes, origin, &row, &mut numbers, at)?
                }
                None => 0.0,
            });
            rows.ids.push(match self.id {
                Some(at) => row
                    .text(at, "name")
                    .map_err(DataError::at(origin))?
                    .to_owned(),
                None => self.done.to_string(),
            });
        }
        Ok(rows)
    }
}

/// Opens a table with its header.
pub(super) fn open(
    bytes: &[u8],
    origin: &str,
    options: Options<'_>,
) -> Result<Reader, InferenceError> {
    if options.labels.is_some() {
        return Err(InferenceError::Option {
            origin: origin.to_owned(),
            option: "--labels",
            meant: "IDX files; in a table, `--label` names the column",
        });
    }
    let rows = match options.has_header {
        true => Reader::new(TableFormat::detect(bytes), bytes),
        false => Reader::without_header(bytes),
    };
    let rows = rows.map_err(DataError::at(origin))?;
    match rows.header().iter().all(str::is_empty) {
        true => Err(InferenceError::Empty {
            origin: origin.to_owned(),
        }),
        false => Ok(rows),
    }
}

/// Returns the columns of names and of targets, if any.
pub(super) fn roles(
    header: &StringRecord,
    origin: &str,
    preprocessing: &Preprocessing,
    options: Options<'_>,
) -> Result<(Option<usize>, Option<usize>), InferenceError> {
    let find = |column: &str, option| {
        let at = header.iter().position(|name| name == column);
        at.ok_or_else(|| InferenceError::NoColumn {
            origin: origin.to_owned(),
            column: column.to_owned(),
            option,
            columns: listed(header.iter()),
        })
    };
    let id = options.id.map(|id| find(id, "--id")).transpose()?;
    let named = options.label.map(|label| find(label, "--label"));
    let label = match (named.transpose()?, preprocessing.target_column()) {
        (Some(at), _) => Some(at),
        (None, Some(column)) if options.has_header => header.iter().position(|name| name == column),
        (None, _) => None,
    };
    match options.has_targets && label.is_none() {
        true => Err(InferenceError::NoTargets {
            origin: origin.to_owned(),
            advice: "name their column with `--label`",
        }),
        false => Ok((id, label)),
    }
}

/// Returns the number of each class by its label.
pub(super) fn classes(preprocessing: &Preprocessing) -> HashMap<&str, usize> {
    let labels = preprocessing.labels().iter().enumerate();
    labels
        .map(|(class, label)| (label.as_str(), class))
        .collect()
}

/// Returns a target in the model's form.
pub(super) fn read(
    preprocessing: &Preprocessing,
    classes: &HashMap<&str, usize>,
    origin: &str,
    row: &Row<'_>,
    numbers: &mut Cells<'_>,
    at: usize,
) -> Result<f32, InferenceError> {
    match &preprocessing.target {
        Target::Classes { .. } => {
            let label = row.text(at, "label").map_err(DataError::at(origin))?;
            let class = classes.get(label).copied();
            match class.or_else(|| position(preprocessing.labels(), label)) {
                // Below 2¹⁶.
                Some(class) => Ok(class as f32),
                None => {
                    let place = format!("{}, column `{}`", row.place(), row.column(at));
                    Err(unknown(preprocessing, origin, place, label))
                }
            }
        }
        Target::Value { scale, .. } => {
            let value = numbers.target(row, at).map_err(DataError::at(origin))?;
            Ok(scale.apply(value))
        }
        Target::Representation => Ok(0.0),
    }
}

/// Returns the indices of the columns with these names.
pub(super) fn by_name(
    names: &[&str],
    header: &StringRecord,
    origin: &str,
) -> Result<Vec<usize>, InferenceError> {
    let mut places = HashMap::new();
    let mut twice = HashSet::new();
    for (at, name) in header.iter().enumerate() {
        if places.insert(name, at).is_some() {
            twice.insert(name);
        }
    }
    // It does not matter for columns that the model does not read.
    if let Some(name) = names.iter().find(|name| twice.contains(*name)) {
        let column = (*name).to_owned();
        return Err(DataError::at(origin)(TableError::DuplicateColumn { column }).into());
    }
    let missing = names.iter().filter(|name| !places.contains_key(*name));
    match missing.clone().next() {
        None => Ok(names.iter().map(|name| places[name]).collect()),
        Some(_) => Err(InferenceError::MissingColumns {
            origin: origin.to_owned(),
            missing: listed(missing.copied()),
            columns: listed(header.iter()),
        }),
    }
}

/// Returns all columns except these, which must be as many as there are features.
fn in_order(
    expected: usize,
    header: &StringRecord,
    origin: &str,
    others: [Option<usize>; 2],
) -> Result<Vec<usize>, InferenceError> {
    let columns = 0..header.len();
    let places: Vec<usize> = columns.filter(|at| !others.contains(&Some(*at))).collect();
    match places.len() == expected {
        true => Ok(places),
        false => Err(InferenceError::FeatureCount {
            origin: origin.to_owned(),
            expected,
            found: places.len(),
            hint: ", in this order; `--label` and `--id` name other columns",
        }),
    }
}
