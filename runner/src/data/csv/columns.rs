//! Which column means what, by the names of the header.

use std::collections::HashMap;

use csv::StringRecord;

use super::error::CsvError;
use crate::data::classes::Classes;
use crate::data::dataset::TaskKind;

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
    pub task: TaskKind,
    /// The classes that labels can name; `None` for those that occur.
    pub classes: Option<Classes>,
}

/// Positions of the columns by their meaning.
pub(super) struct Roles {
    pub(super) label: usize,
    pub(super) device: Option<usize>,
    pub(super) features: Vec<usize>,
}

impl Roles {
    pub(super) fn new(header: &StringRecord, columns: &Columns) -> Result<Self, CsvError> {
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
                let columns = listed(header.into_iter());
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

/// The first names, as an error message lists them.
pub fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    const MAX_SHOWN: usize = 12;
    let more = names.clone().count().saturating_sub(MAX_SHOWN);
    let mut shown: Vec<String> = names
        .take(MAX_SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
