//! The key `data.classes`: the number or the names of the classes (labels), listed in the
//! configuration before any row is read, and the handling of rows with other labels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dataset::{DatasetError, MAX_CLASSES, Targets};

/// The classes of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// The list of classes.
    #[serde(rename = "classes")]
    pub list: ClassList,
    /// The handling of a row whose label is not one of them.
    #[serde(rename = "unknown_labels")]
    pub unknown: UnknownLabels,
    /// Whether the user confirms a list that was read from rows. `None` if it was not read from
    /// rows.
    #[serde(rename = "classes_are_public", skip_serializing_if = "Option::is_none")]
    pub are_public: Option<bool>,
}

/// A number of classes, whose labels are the numbers from 0, or their names in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`classes` must be a number of classes or a list of their names"
)]
pub enum ClassList {
    /// So many.
    Count(u16),
    /// These.
    Names(Vec<ClassName>),
}

/// The name of a class, which may be written as a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ClassName {
    /// As text.
    Text(String),
    /// As a whole number.
    Number(i64),
}

/// What becomes of a row whose label is none of the classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownLabels {
    /// The data are refused.
    #[default]
    Error,
    /// It is left out and counted.
    Drop,
}

impl Classes {
    /// Creates `count` classes, whose labels are the numbers from 0. Another label is an error.
    #[must_use]
    pub fn numbered(count: u16) -> Self {
        Self {
            list: ClassList::Count(count),
            unknown: UnknownLabels::Error,
            are_public: None,
        }
    }

    /// Returns the number of the class with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        let labels = self.list.labels();
        labels
            .iter()
            .position(|label| label == name)
            .map(|at| at as u32)
    }

    /// Returns whether rows of other classes are left out.
    #[must_use]
    pub fn drops_unknown(&self) -> bool {
        self.unknown == UnknownLabels::Drop
    }

    /// Returns targets from labels that number the classes. If rows of other classes are left out,
    /// they get one additional class, the last, which [`Dataset::without_last_class`] removes.
    ///
    /// [`Dataset::without_last_class`]: super::dataset::Dataset
    ///
    /// # Errors
    /// [`DatasetError`] for labels outside the classes, and if there is only one class.
    pub(super) fn targets(&self, mut labels: Vec<u32>) -> Result<Targets, DatasetError> {
        let count = self.list.count();
        if !self.drops_unknown() {
            return Targets::classes(&labels, count);
        }
        // At most 2¹⁶.
        let unknown = count as u32;
        for label in &mut labels {
            *label = unknown.min(*label);
        }
        Targets::classes(&labels, count + 1)
    }
}

impl ClassList {
    /// Returns the number of classes C.
    #[must_use]
    pub const fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Names(names) => names.len(),
        }
    }

    /// Returns the names of the classes, if they have names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Count(_) => Vec::new(),
            Self::Names(names) => names.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the names of the classes, or their numbers.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        match self {
            Self::Count(count) => (0..*count).map(|class| class.to_string()).collect(),
            Self::Names(_) => self.names(),
        }
    }

    /// Returns an invalid part of the list, if there is one.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        if !(2..MAX_CLASSES).contains(&self.count()) {
            return Some(self.count().to_string());
        }
        let mut names = self.names();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        let empty = names.iter().any(|name| name.trim().is_empty());
        match (twice, empty) {
            (Some(pair), _) => Some(format!("a list with `{}` twice", pair[0])),
            (None, true) => Some("a list with an empty name".to_owned()),
            (None, false) => None,
        }
    }
}

impl std::fmt::Display for ClassName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> ClassList {
        let names = names.iter().map(|name| ClassName::Text((*name).to_owned()));
        ClassList::Names(names.collect())
    }

    #[test]
    fn lists_that_name_no_classes_are_faulty() {
        assert_eq!(names(&["a", "b"]).fault(), None);
        assert_eq!(ClassList::Count(2).fault(), None);
        for list in [
            names(&[]),
            names(&["a"]),
            names(&["a", "b", "a"]),
            names(&["a", " "]),
            ClassList::Count(1),
        ] {
            assert!(list.fault().is_some(), "{list:?}");
        }
    }

    #[test]
    fn numbers_are_names_too() {
        #[derive(Deserialize)]
        struct Table {
            classes: ClassList,
        }
        let read = |text: &str| toml::from_str::<Table>(text).unwrap().classes;
        assert_eq!(read("classes = [3, \"x\"]").labels(), ["3", "x"]);
        assert_eq!(read("classes = 2").labels(), ["0", "1"]);
        assert!(read("classes = 2").names().is_empty());
    }
}
