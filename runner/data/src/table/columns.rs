//! The meaning (role) of columns, by the names of the header: label, device, recording, left out or
//! feature.

use std::collections::{BTreeMap, HashMap};

use csv::StringRecord;
use serde::Serialize;

use super::error::TableError;
use crate::classes::Classes;
use crate::column::{Encoding, FeatureColumn};
use crate::dataset::TaskKind;
use crate::wording::listed;

/// The meaning of the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Columns {
    /// The column to predict.
    pub label: String,
    /// The column whose values are the natural devices.
    #[serde(rename = "device_column")]
    pub device: Option<String>,
    /// The column whose values are the recordings of the rows.
    #[serde(rename = "series_column")]
    pub series: Option<String>,
    /// Columns to leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The kind of label. `None` means classes, unless their names are too many different numbers.
    pub task: Option<TaskKind>,
    /// The classes of the labels. `None` for those in the rows.
    #[serde(flatten)]
    pub classes: Option<Classes>,
    /// Whether the user confirms categories that were read from rows. `None` if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories_are_public: Option<bool>,
    /// The encodings of feature columns that are not plain numbers.
    #[serde(skip)]
    pub encodings: BTreeMap<String, Encoding>,
}

impl Columns {
    /// Returns whether the label is a number to predict.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.task == Some(TaskKind::Regression)
    }
}

/// Positions of the columns by their meaning.
pub(super) struct Roles {
    pub(super) label: usize,
    pub(super) device: Option<usize>,
    pub(super) series: Option<usize>,
    pub(super) features: Vec<(usize, FeatureColumn)>,
    /// Positions of the columns that are left out because they have no name.
    pub(super) unnamed: Vec<usize>,
}

impl Roles {
    /// Finds the columns. `usual` returns the encoding of a feature column without a configured
    /// one.
    pub(super) fn new(
        header: &StringRecord,
        columns: &Columns,
        usual: impl Fn(usize) -> Encoding,
    ) -> Result<Self, TableError> {
        if header.iter().all(str::is_empty) {
            return Err(TableError::NoHeader);
        }
        let unnamed: Vec<usize> = (0..header.len())
            .filter(|&at| is_unnamed(&header[at]))
            .collect();
        let mut places = Places::new(header)?;
        let label = places.take(&columns.label, "data.label")?;
        let device = match &columns.device {
            Some(column) => Some(places.take(column, "data.device_column")?),
            None => None,
        };
        let series = match &columns.series {
            Some(column) => Some(places.take(column, "data.series_column")?),
            None => None,
        };
        for column in &columns.ignore {
            places.take(column, "data.ignore")?;
        }
        let mut features = Vec::new();
        for at in (0..header.len()).filter(|at| !places.taken[*at] && !unnamed.contains(at)) {
            let name = header[at].to_owned();
            let encoding = columns.encodings.get(&name);
            let encoding = encoding.map_or_else(|| usual(at), Clone::clone);
            features.push((at, FeatureColumn { name, encoding }));
        }
        for (column, encoding) in &columns.encodings {
            let key = match encoding {
                Encoding::Time(_) => "data.times",
                _ => "data.categories",
            };
            places.take(column, key)?;
        }
        Ok(Self {
            label,
            device,
            series,
            features,
            unnamed,
        })
    }
}

impl Roles {
    /// Finds the columns of more rows of a table with these feature columns, by name and in any
    /// order. Also returns the names of the columns that are left out.
    pub(super) fn like(
        header: &StringRecord,
        columns: &Columns,
        features: &[FeatureColumn],
    ) -> Result<(Self, Vec<String>), TableError> {
        if header.iter().all(str::is_empty) {
            return Err(TableError::NoHeader);
        }
        let mut places = Places::new(header)?;
        let label = places.take(&columns.label, "data.label")?;
        let mut take = |column: &Option<String>, key| {
            let place = column.as_ref().map(|column| places.take(column, key));
            place.transpose()
        };
        let device = take(&columns.device, "data.device_column")?;
        let series = take(&columns.series, "data.series_column")?;
        let is_missing = |column: &&FeatureColumn| !places.of_name.contains_key(&*column.name);
        let missing = features.iter().filter(is_missing);
        if missing.clone().next().is_some() {
            return Err(TableError::MissingColumns {
                missing: listed(missing.map(|column| column.name.as_str())),
                columns: listed(header.iter()),
            });
        }
        let place = |column: &FeatureColumn| {
            let at = places.take(&column.name, "data.path")?;
            Ok((at, column.clone()))
        };
        let features: Result<_, TableError> = features.iter().map(place).collect();
        let features = features?;
        let is_left_out = |at: &usize| {
            let name = &header[*at];
            !places.taken[*at] && !is_unnamed(name) && !columns.ignore.iter().any(|x| x == name)
        };
        let left_out = (0..header.len()).filter(is_left_out);
        let left_out = left_out.map(|at| header[at].to_owned()).collect();
        let roles = Self {
            label,
            device,
            series,
            features,
            unnamed: Vec::new(),
        };
        Ok((roles, left_out))
    }
}

/// The columns of a header by name. Each can be taken once.
struct Places<'a> {
    header: &'a StringRecord,
    of_name: HashMap<&'a str, usize>,
    taken: Vec<bool>,
}

impl<'a> Places<'a> {
    fn new(header: &'a StringRecord) -> Result<Self, TableError> {
        let mut of_name = HashMap::new();
        for (at, name) in header.iter().enumerate() {
            if of_name.insert(name, at).is_some() && !name.is_empty() {
                return Err(TableError::DuplicateColumn {
                    column: name.to_owned(),
                });
            }
        }
        Ok(Self {
            header,
            of_name,
            taken: vec![false; header.len()],
        })
    }

    fn take(&mut self, column: &str, key: &'static str) -> Result<usize, TableError> {
        let Some(&at) = self.of_name.get(column) else {
            return Err(no_column(self.header, column, key));
        };
        if std::mem::replace(&mut self.taken[at], true) {
            return Err(TableError::ColumnTwice {
                column: column.to_owned(),
            });
        }
        Ok(at)
    }
}

/// Returns the position of the column with this name. `key` is the configuration key that names it.
pub(super) fn place_of(
    header: &StringRecord,
    column: &str,
    key: &'static str,
) -> Result<usize, TableError> {
    if header.iter().all(str::is_empty) {
        return Err(TableError::NoHeader);
    }
    let place = header.iter().position(|name| name == column);
    place.ok_or_else(|| no_column(header, column, key))
}

fn no_column(header: &StringRecord, column: &str, key: &'static str) -> TableError {
    if header.iter().all(|name| name.parse::<f64>().is_ok()) {
        return TableError::NamesMissing;
    }
    TableError::NoColumn {
        column: column.to_owned(),
        key,
        columns: listed(header.iter()),
    }
}

/// Returns whether a column has no name: pandas and R write the numbers or names of rows into such
/// a column, and a separator at the end of every line creates one. pandas calls it `Unnamed: 0`
/// when it reads and rewrites such a file. In Parquet it writes `__index_level_0__`.
pub(super) fn is_unnamed(name: &str) -> bool {
    let number = name.strip_prefix("Unnamed: ");
    name.is_empty()
        || name == "__index_level_0__"
        || number.is_some_and(|number| number.parse::<u32>().is_ok())
}
