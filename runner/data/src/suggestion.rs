//! A `[data]` table for a file with unknown columns, with the reasons: the usual names of label and
//! device columns, and limits on categories and classes.
//!
//! For `smolfed init` and `smolfed data inspect`: it follows from private rows, and their owner
//! reads it before any run does.

use std::collections::BTreeMap;
use std::fmt;

use super::dataset::TaskKind;
use super::table::profile::{CellKind, ColumnProfile, MAX_DISTINCT, Profile};
use super::table::{Columns, Encoding, MAX_NUMERIC_CLASSES, TimePart};
use super::wording::listed;
use crate::column::time::Time;
use crate::spelling::similar;

/// Maximum number of categories of a column that become features.
const MAX_CATEGORIES: usize = 30;

/// Maximum number of listed classes.
const MAX_CLASSES: usize = 200;

/// Usual names of the label column, and of the column of devices. Only letters and digits count,
/// and a final `id`, `no` or `number` is ignored.
const LABELS: [&str; 5] = ["label", "labels", "class", "target", "outcome"];
const DEVICES: [&str; 24] = [
    "client",
    "customer",
    "device",
    "driver",
    "farm",
    "hospital",
    "house",
    "household",
    "machine",
    "meter",
    "node",
    "participant",
    "patient",
    "person",
    "phone",
    "school",
    "sensor",
    "site",
    "station",
    "store",
    "subject",
    "user",
    "vehicle",
    "writer",
];

/// The user's choices for a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// The column to predict.
    pub label: Option<String>,
    /// The column that names the device of a row.
    pub device_column: Option<String>,
    /// The kind of label.
    pub task: Option<TaskKind>,
    /// Whether no column names devices, so that none is guessed by its name.
    pub has_no_devices: bool,
    /// Columns to leave out.
    pub ignore: Vec<String>,
}

/// The use of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Use {
    /// It is the target.
    Label,
    /// It names the device.
    Device,
    /// It is one feature.
    Number,
    /// It is one feature per category.
    Categories(Vec<String>),
    /// It is one feature per part of the time.
    Time(Vec<TimePart>),
    /// It has no name, so it is never read.
    Unnamed,
    /// It is ignored, for this reason.
    Ignored(String),
}

impl Use {
    /// Returns the number of independent features: exactly one category of a column is 1.
    #[must_use]
    pub fn independent_features(&self) -> usize {
        match self {
            Self::Number | Self::Categories(_) => 1,
            Self::Time(parts) => parts.len(),
            Self::Label | Self::Device | Self::Unnamed | Self::Ignored(_) => 0,
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label => f.write_str("label"),
            Self::Device => f.write_str("device"),
            Self::Number => f.write_str("feature"),
            Self::Categories(categories) => {
                write!(f, "{} features, one per category", categories.len())
            }
            Self::Time(parts) => {
                let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
                write!(f, "features: {}", parts.join(", "))
            }
            Self::Unnamed => f.write_str("left out: it has no name"),
            Self::Ignored(reason) => write!(f, "left out: {reason}"),
        }
    }
}

/// A `[data]` table with its reasons.
#[derive(Clone, Debug)]
pub struct Suggestion {
    /// The use of each column, by name.
    pub uses: Vec<(String, Use)>,
    /// Whether the rows determine the use of some columns, except that they are numbers.
    pub uses_are_read: bool,
    /// The column to predict.
    pub label: String,
    /// The kind of label.
    pub task: TaskKind,
    /// The reason for this kind.
    pub task_reason: String,
    /// The classes, if there are few enough to list.
    pub classes: Option<Vec<String>>,
    /// The column that names the device of a row.
    pub device_column: Option<String>,
    /// Whether this column was guessed by its name.
    pub device_is_guessed: bool,
    /// Whether any features are missing.
    pub has_missing: bool,
}

/// The reason why there is no suggestion.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SuggestionError {
    /// The column to predict is unknown.
    #[error("which column should be predicted? add `--label NAME`; the columns are {columns}")]
    NoLabel {
        /// The first columns.
        columns: String,
    },
    /// A named column does not exist.
    #[error(
        "has no column `{column}` (`{flag}`); the columns are {columns}{}",
        also(meant)
    )]
    NoColumn {
        /// The name.
        column: String,
        /// The flag that names it.
        flag: &'static str,
        /// A column with a similar name.
        meant: Option<String>,
        /// The first columns.
        columns: String,
    },
    /// A column to leave out has another use.
    #[error(
        "`--ignore {column}`: the column is the label or names the devices; ignore other columns"
    )]
    Needed {
        /// The column.
        column: String,
    },
    /// The label cannot be predicted.
    #[error(
        "the column `{column}` cannot be predicted: {reason}; choose another one with `--label`"
    )]
    Label {
        /// The column.
        column: String,
        /// The reason.
        reason: String,
    },
    /// No column is left to predict from.
    #[error("no feature is left: {0}")]
    NoFeature(String),
}

fn also(meant: &Option<String>) -> String {
    let meant = meant.as_ref();
    meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

impl Suggestion {
    /// Creates a table for `profile`.
    ///
    /// # Errors
    /// [`SuggestionError`].
    pub fn new(profile: &Profile, choices: &Choices) -> Result<Self, SuggestionError> {
        let label = label(profile, choices)?;
        let device = match &choices.device_column {
            Some(name) => Some(named(profile, name, "--device-column")?),
            None if choices.has_no_devices => None,
            None => guessed_device(profile, label),
        };
        for name in &choices.ignore {
            let column = named(profile, name, "--ignore")?;
            if column.name == label.name || device.is_some_and(|device| device.name == *name) {
                let column = name.clone();
                return Err(SuggestionError::Needed { column });
            }
        }
        let (task, task_reason) = task(label, choices.task)?;
        let classes = match task {
            TaskKind::Classification => label.sorted_values(),
            TaskKind::Regression => None,
        };
        let use_of = |column: &ColumnProfile| {
            if column.name == label.name {
                Use::Label
            } else if device.is_some_and(|device| device.name == column.name) {
                Use::Device
            } else if choices.ignore.contains(&column.name) {
                Use::Ignored("as you asked".into())
            } else {
                feature(column, profile.rows)
            }
        };
        let uses = profile
            .columns
            .iter()
            .map(|column| (column.name.clone(), use_of(column)));
        let uses: Vec<(String, Use)> = uses.collect();
        let is_feature =
            |used: &Use| matches!(used, Use::Number | Use::Categories(_) | Use::Time(_));
        if !uses.iter().any(|(_, used)| is_feature(used)) {
            let reasons = uses.iter().filter_map(|(name, used)| match used {
                Use::Ignored(reason) => Some(format!("`{name}`: {reason}")),
                _ => None,
            });
            let reasons: Vec<String> = reasons.collect();
            return Err(SuggestionError::NoFeature(reasons.join("; ")));
        }
        let uses_are_read = uses.iter().any(|(name, used)| match used {
            Use::Ignored(_) => !choices.ignore.contains(name),
            Use::Categories(_) | Use::Time(_) => true,
            Use::Label | Use::Device | Use::Number | Use::Unnamed => false,
        });
        let mut used = profile.columns.iter().zip(&uses);
        let has_missing = used.any(|(column, (_, used))| is_feature(used) && column.missing > 0);
        Ok(Self {
            has_missing,
            label: label.name.clone(),
            task,
            task_reason,
            classes: classes.filter(|classes| classes.len() <= MAX_CLASSES),
            device_column: device.map(|device| device.name.clone()),
            device_is_guessed: choices.device_column.is_none(),
            uses,
            uses_are_read,
        })
    }
}

impl Suggestion {
    /// Returns the meaning of the columns, as in the `[data]` table. The classes are those of the
    /// rows.
    #[must_use]
    pub fn columns(&self) -> Columns {
        let of_kind = |(name, used): &(String, Use)| {
            let encoding = match used {
                Use::Categories(categories) => Encoding::Categories(categories.clone()),
                Use::Time(parts) => Encoding::Time(parts.clone()),
                _ => return None,
            };
            Some((name.clone(), encoding))
        };
        let encodings: BTreeMap<String, Encoding> = self.uses.iter().filter_map(of_kind).collect();
        let ignored = self
            .uses
            .iter()
            .filter(|(_, used)| matches!(used, Use::Ignored(_)));
        Columns {
            label: self.label.clone(),
            device: self.device_column.clone(),
            ignore: ignored.map(|(name, _)| name.clone()).collect(),
            task: Some(self.task),
            encodings,
            ..Columns::default()
        }
    }

    /// Returns a sentence with the columns that are left out and the reasons. `None` if all are
    /// used.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let reasons = self.uses.iter().filter_map(|(name, used)| match used {
            Use::Ignored(reason) => Some(format!("`{name}` ({reason})")),
            Use::Unnamed => Some("one without a name".to_owned()),
            _ => None,
        });
        let reasons: Vec<String> = reasons.collect();
        let columns = match reasons.len() {
            0 => return None,
            1 => "1 column is".to_owned(),
            count => format!("{count} columns are"),
        };
        Some(format!("{columns} left out: {}", reasons.join(", ")))
    }
}

/// Returns the column named by the user, or the one with a usual name.
fn label<'a>(
    profile: &'a Profile,
    choices: &Choices,
) -> Result<&'a ColumnProfile, SuggestionError> {
    if let Some(name) = &choices.label {
        return named(profile, name, "--label");
    }
    let called = |names: &'static [&str]| {
        let is_called =
            move |column: &&ColumnProfile| names.contains(&plain(&column.name).as_str());
        profile.columns.iter().filter(is_called).collect::<Vec<_>>()
    };
    // A `y` next to a class is more likely a coordinate.
    let found = match called(&LABELS) {
        none if none.is_empty() => called(&["y"]),
        found => found,
    };
    match found.as_slice() {
        [only] => Ok(only),
        _ => Err(SuggestionError::NoLabel {
            columns: columns(profile),
        }),
    }
}

fn named<'a>(
    profile: &'a Profile,
    name: &str,
    flag: &'static str,
) -> Result<&'a ColumnProfile, SuggestionError> {
    profile.column(name).ok_or_else(|| {
        let names = profile.columns.iter().map(|column| column.name.as_str());
        SuggestionError::NoColumn {
            column: name.to_owned(),
            flag,
            meant: similar(name, names).map(str::to_owned),
            columns: columns(profile),
        }
    })
}

fn columns(profile: &Profile) -> String {
    listed(profile.columns.iter().map(|column| column.name.as_str()))
}

/// Returns the first column with a usual name and on average at least two rows per value.
fn guessed_device<'a>(profile: &'a Profile, label: &ColumnProfile) -> Option<&'a ColumnProfile> {
    let is_device = |column: &&ColumnProfile| {
        let name = plain(&column.name);
        let stem = ["id", "number", "no"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let is_usual =
            DEVICES.contains(&name.as_str()) || stem.is_some_and(|x| DEVICES.contains(&x));
        let devices = column.distinct;
        let is_shared = devices > 1 && 2 * devices <= profile.rows;
        is_usual && is_shared && column.missing == 0 && column.name != label.name
    };
    profile.columns.iter().find(is_device)
}

pub(crate) fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// Decides between classes and numbers.
fn task(
    label: &ColumnProfile,
    chosen: Option<TaskKind>,
) -> Result<(TaskKind, String), SuggestionError> {
    let refuse = |reason: String| SuggestionError::Label {
        column: label.name.clone(),
        reason,
    };
    let found = label.distinct;
    match label.kind {
        CellKind::Nothing => return Err(refuse("it is empty".into())),
        CellKind::Time => return Err(refuse("it holds dates and times".into())),
        _ if found < 2 => return Err(refuse("it has the same value in every row".into())),
        _ if label.missing > 0 => {
            let rows = label.missing;
            let reason = format!("it is empty in {rows} rows, which must be removed first");
            return Err(refuse(reason));
        }
        _ => {}
    }
    if let Some(task) = chosen {
        return Ok((task, "as you asked".into()));
    }
    Ok(match (label.kind, label.is_whole) {
        (CellKind::Number, false) => (
            TaskKind::Regression,
            "the labels are numbers with a fraction".into(),
        ),
        (CellKind::Number, true) if found > MAX_NUMERIC_CLASSES => (
            TaskKind::Regression,
            format!("the labels are {found} different numbers"),
        ),
        _ => (
            TaskKind::Classification,
            format!("there are {found} different labels"),
        ),
    })
}

/// Returns whether each row has another value, and the name is that of an identifier.
fn is_identifier(column: &ColumnProfile, rows: usize) -> bool {
    let name = plain(&column.name);
    let is_named = name.ends_with("id") || name == "index" || name.ends_with("uuid");
    is_named && column.distinct >= rows.min(MAX_DISTINCT + 1)
}

/// Returns the use of a column that is neither label nor device.
fn feature(column: &ColumnProfile, rows: usize) -> Use {
    let distinct = column.distinct;
    match column.kind {
        _ if column.is_unnamed() => Use::Unnamed,
        CellKind::Nothing => Use::Ignored("it is empty".into()),
        _ if distinct == 1 && column.missing == 0 => {
            Use::Ignored("it has the same value in every row".into())
        }
        _ if column.is_counter => Use::Ignored("it counts the rows".into()),
        _ if is_identifier(column, rows) => {
            Use::Ignored("by its name and values, it identifies rows".into())
        }
        CellKind::Number | CellKind::Truth => Use::Number,
        CellKind::Time if column.has_hours => Use::Time(vec![TimePart::Hour, TimePart::Weekday]),
        CellKind::Time => Use::Time(vec![TimePart::Day, TimePart::Weekday]),
        CellKind::Text => {
            let is_date = column.values.iter().all(|value| Time::is_ambiguous(value));
            if let Some(date) = column.values.first().filter(|_| is_date) {
                return Use::Ignored(format!(
                    "`{date}` may have the day or the month first: write dates as 2024-12-31 10:15"
                ));
            }
            if distinct <= MAX_CATEGORIES
                && 2 * distinct <= rows
                && let Some(categories) = column.sorted_values()
            {
                return Use::Categories(categories);
            }
            let odd = column.odd.as_ref();
            let odd = odd.map_or(String::new(), |odd| {
                format!(", such as `{}` among numbers ({})", odd.cell, odd.place)
            });
            Use::Ignored(format!("it is text with {distinct} different values{odd}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableFormat;

    fn profile(text: &str) -> Profile {
        Profile::new(TableFormat::Csv, text.as_bytes()).unwrap()
    }

    /// Returns four rows for each of two phones.
    fn table() -> Profile {
        let row = |i: usize| {
            let (phone, colour) = (i % 2, ["red", "blue"][i / 2 % 2]);
            let time = format!("2024-03-0{} 10:0{i}", 1 + i);
            format!(
                "{i},{i},{phone},{}.5,{colour},{time},7,word{i},{}\n",
                i % 3,
                i % 2
            )
        };
        let rows: String = (0..8).map(row).collect();
        profile(&format!(",id,Phone ID,x,colour,at,same,text,class\n{rows}"))
    }

    #[test]
    fn columns_are_used_for_what_they_are() {
        let found = Suggestion::new(&table(), &Choices::default()).unwrap();
        let uses: Vec<&Use> = found.uses.iter().map(|(_, used)| used).collect();
        let ignored = |reason: &str| Use::Ignored(reason.into());
        let expected = [
            Use::Unnamed,
            ignored("it counts the rows"),
            Use::Device,
            Use::Number,
            Use::Categories(vec!["blue".into(), "red".into()]),
            Use::Time(vec![TimePart::Hour, TimePart::Weekday]),
            ignored("it has the same value in every row"),
            ignored("it is text with 8 different values"),
            Use::Label,
        ];
        assert_eq!(uses, expected.iter().collect::<Vec<_>>());
        assert_eq!(found.task, TaskKind::Classification);
        assert_eq!(found.classes.unwrap(), ["0", "1"]);
        assert!(found.device_is_guessed && !found.has_missing);
    }

    #[test]
    fn dates_in_an_unknown_order_are_left_out_with_the_remedy() {
        let rows = (0..40).map(|i| format!("{}/3/2024,{i}.5,{}\n", i % 5 + 1, i % 2));
        let table = profile(&format!("at,x,class\n{}", rows.collect::<String>()));
        let found = Suggestion::new(&table, &Choices::default()).unwrap();
        let sentence = found.left_out().unwrap();
        assert!(
            sentence.contains("1 column is left out: `at` (`1/3/2024`"),
            "{sentence}"
        );
        assert!(sentence.contains("2024-12-31"), "{sentence}");
    }

    #[test]
    fn numbers_with_many_values_are_a_regression() {
        let of = |rows: &str, choices: &Choices| {
            let found = Suggestion::new(&profile(&format!("a,y\n{rows}")), choices)?;
            Ok::<_, SuggestionError>((found.task, found.task_reason))
        };
        let many: String = (0..30)
            .map(|i| format!("{},{}\n", i % 7, i * 7 % 30))
            .collect();
        let (task, reason) = of(&many, &Choices::default()).unwrap();
        assert_eq!(task, TaskKind::Regression);
        assert_eq!(reason, "the labels are 30 different numbers");
        let (task, _) = of("1,0.5\n2,1\n", &Choices::default()).unwrap();
        assert_eq!(task, TaskKind::Regression);
        let classes = Choices {
            task: Some(TaskKind::Classification),
            ..Choices::default()
        };
        assert_eq!(of(&many, &classes).unwrap().0, TaskKind::Classification);
    }

    #[test]
    fn what_cannot_be_suggested_is_asked_for() {
        let refused = |text: &str, label: Option<&str>| {
            let label = label.map(str::to_owned);
            let choices = Choices {
                label,
                ..Choices::default()
            };
            Suggestion::new(&profile(text), &choices)
                .unwrap_err()
                .to_string()
        };
        for (text, label, words) in [
            (
                "a,b\n1,2\n",
                None,
                "add `--label NAME`; the columns are `a`, `b`",
            ),
            ("label,class\n1,2\n", None, "--label"),
            ("a,score\n1,2\n", Some("scor"), "did you mean `score`?"),
            ("a,y\n1,2\n1,2\n", None, "the same value in every row"),
            ("a,y\n1,2\n1,3\n1,\n", None, "empty in 1 rows"),
            ("a,y\n1,2024-03-04\n1,2024-03-05\n", None, "dates"),
            (
                "a,y\n1,2\n1,3\n",
                None,
                "no feature is left: `a`: it has the same value",
            ),
        ] {
            let error = refused(text, label);
            assert!(error.contains(words), "{error}");
        }
    }
}
