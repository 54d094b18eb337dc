//! Rows of a table: columns by their names in any order, or in order where there are no names.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use csv::StringRecord;

use super::rows::{Options, Rows, prepare, unknown};
use crate::data::csv::{CsvError, Lines, Row, listed};
use crate::data::error::DataError;
use crate::inference::error::InferenceError;
use crate::inference::preprocessing::{Preprocessing, Target};

/// A table that is read line by line.
pub(super) struct Table<'a> {
    lines: Lines<Box<dyn BufRead>>,
    /// The column of each feature.
    places: Vec<usize>,
    /// The column of the targets, if they were asked for.
    target: Option<usize>,
    /// The column that names rows.
    id: Option<usize>,
    /// The number of each class by its label.
    classes: HashMap<&'a str, usize>,
    /// Rows that have been read.
    done: u64,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        stream: Box<dyn BufRead>,
        origin: &str,
        preprocessing: &'a Preprocessing,
        options: Options<'a>,
    ) -> Result<Self, InferenceError> {
        if options.labels.is_some() {
            return Err(InferenceError::Option {
                origin: origin.to_owned(),
                option: "--labels",
                meant: "IDX files; in a table, `--label` names the column",
            });
        }
        let lines = match options.has_header {
            true => Lines::new(stream),
            false => Lines::without_header(stream),
        };
        let lines = lines.map_err(DataError::of(origin))?;
        let header = lines.header();
        if header.iter().all(str::is_empty) {
            let origin = origin.to_owned();
            return Err(InferenceError::Empty { origin });
        }
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
            (None, Some(column)) if options.has_header => {
                header.iter().position(|name| name == column)
            }
            (None, _) => None,
        };
        if options.has_targets && label.is_none() {
            return Err(InferenceError::NoTargets {
                origin: origin.to_owned(),
                advice: "name their column with `--label`",
            });
        }
        let places = match preprocessing.names().filter(|_| options.has_header) {
            Some(names) => by_name(&names, header, origin)?,
            None => in_order(preprocessing.columns.len(), header, origin, [id, label])?,
        };
        Ok(Self {
            lines,
            places,
            target: label.filter(|_| options.has_targets),
            id,
            classes: preprocessing
                .labels()
                .iter()
                .enumerate()
                .map(|(class, label)| (label.as_str(), class))
                .collect(),
            done: 0,
        })
    }

    /// The next rows.
    pub(super) fn next(
        &mut self,
        count: usize,
        origin: &str,
        preprocessing: &Preprocessing,
    ) -> Result<Rows, InferenceError> {
        let mut rows = Rows::default();
        let names = self.lines.header().clone();
        while rows.ids.len() < count {
            let row = self.lines.next_row().map_err(DataError::of(origin))?;
            let Some(row) = row else { break };
            self.done += 1;
            for (feature, &at) in self.places.iter().enumerate() {
                let value = row.value(at).map_err(DataError::of(origin))?;
                let place = || format!("line {}, column `{}`", row.line(), &names[at]);
                let value = prepare(preprocessing, feature, value, (origin, place))?;
                rows.features.push(value);
            }
            rows.targets.push(match self.target {
                Some(at) => read(preprocessing, &self.classes, origin, (&row, at, &names))?,
                None => 0.0,
            });
            rows.ids.push(match self.id {
                Some(at) => row
                    .text(at, "name")
                    .map_err(DataError::of(origin))?
                    .to_owned(),
                None => self.done.to_string(),
            });
        }
        Ok(rows)
    }
}

/// A target as the model has it.
fn read(
    preprocessing: &Preprocessing,
    classes: &HashMap<&str, usize>,
    origin: &str,
    (row, at, names): (&Row<'_>, usize, &StringRecord),
) -> Result<f32, InferenceError> {
    let label = row.text(at, "label").map_err(DataError::of(origin))?;
    match &preprocessing.target {
        Target::Classes { .. } => match classes.get(label) {
            // Below 2¹⁶.
            Some(class) => Ok(*class as f32),
            None => {
                let place = format!("line {}, column `{}`", row.line(), &names[at]);
                Err(unknown(preprocessing, origin, place, label))
            }
        },
        Target::Value { scale, .. } => {
            let value = row.number(at).map_err(DataError::of(origin))?;
            Ok(scale.apply(value))
        }
        Target::Representation => Ok(0.0),
    }
}

/// The columns with these names.
fn by_name(
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
    // Of columns that the model does not read, it does not matter.
    if let Some(name) = names.iter().find(|name| twice.contains(*name)) {
        let column = (*name).to_owned();
        return Err(DataError::of(origin)(CsvError::DuplicateColumn { column }).into());
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

/// All columns but these, which must be as many as there are features.
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
            hint: ", in this order; `--label` and `--id` name columns that are none",
        }),
    }
}
