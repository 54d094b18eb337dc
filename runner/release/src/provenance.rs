//! The provenance (origin) of figures: public, from releases, from private data in a simulation, or
//! unknown. Every table, file and page shows it with the figure, and a table marks the figures that
//! must not be published about real devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statement::PrivacyStatement;

/// The source of a figure. A figure with several parts has the last source of its parts in this
/// order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Only the configuration or public data.
    Public,
    /// Releases and public data.
    Released,
    /// Private data without noise, which are available only in a simulation.
    SimulationOnly,
    /// A file of an older version without provenance.
    #[default]
    Unknown,
}

/// The mark of a figure in a table that no ε covers, or whose coverage is unknown.
pub const MARK: &str = "*";

impl Provenance {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Public,
        Self::Released,
        Self::SimulationOnly,
        Self::Unknown,
    ];

    /// Returns the provenance of a figure on samples, which is private if devices hold the samples.
    #[must_use]
    pub const fn of_samples(are_private: bool) -> Self {
        match are_private {
            true => Self::SimulationOnly,
            false => Self::Released,
        }
    }

    /// Returns the provenance of the sizes of cohorts and populations, which may be secret.
    #[must_use]
    pub const fn of_sizes(are_secret: bool) -> Self {
        match are_secret {
            true => Self::SimulationOnly,
            false => Self::Public,
        }
    }

    /// Returns the provenance of the number of devices, which depends on their rows if a statement
    /// of the run has that condition.
    #[must_use]
    pub fn of_device_count(statements: &[PrivacyStatement]) -> Self {
        let mut statements = statements.iter();
        Self::of_sizes(statements.any(PrivacyStatement::has_secret_device_count))
    }

    /// Returns the name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Released => "released",
            Self::SimulationOnly => "simulation-only",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether the figure may be published about real devices.
    #[must_use]
    pub const fn is_public(self) -> bool {
        matches!(self, Self::Public | Self::Released)
    }

    /// Returns [`MARK`] for a figure that must not be published, and an empty string otherwise.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        if self.is_public() { "" } else { MARK }
    }

    /// Returns the meaning of the mark, for the foot of a table. `None` without one.
    #[must_use]
    pub const fn meaning(self) -> Option<&'static str> {
        match self {
            Self::Public | Self::Released => None,
            Self::SimulationOnly => {
                Some("* simulation only: on private samples of devices, without noise")
            }
            Self::Unknown => Some(
                "* provenance unknown: a file of an older version does not say whose samples these \
                 are",
            ),
        }
    }
}

/// Adds the origin of all figures to a JSON object, or to each object of a list.
#[must_use]
pub fn with_origin(mut value: Value, origin_of: fn(&str) -> Provenance) -> Value {
    match &mut value {
        Value::Array(all) => {
            for one in all {
                *one = with_origin(one.take(), origin_of);
            }
        }
        Value::Object(figures) => {
            let origins: BTreeMap<&String, Provenance> =
                figures.keys().map(|key| (key, origin_of(key))).collect();
            let origins = serde_json::json!(origins);
            figures.insert("origin".to_owned(), origins);
        }
        _ => {}
    }
    value
}

/// A number with its provenance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Its provenance.
    pub origin: Provenance,
}

impl Figure {
    /// Returns the difference from another figure.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            origin: self.origin.max(other.origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files_and_marks_say_what_is_private() {
        for origin in Provenance::ALL {
            let text = serde_json::to_string(&origin).unwrap();
            assert_eq!(text, format!("\"{}\"", origin.name()));
            assert_eq!(origin.mark().is_empty(), origin.meaning().is_none());
            assert_eq!(origin.mark().is_empty(), origin.is_public());
        }
        assert!(Provenance::ALL.is_sorted());
    }

    #[test]
    fn objects_and_lists_of_them_carry_the_origin_of_each_figure() {
        let of = |key: &str| match key {
            "a" => Provenance::Released,
            _ => Provenance::SimulationOnly,
        };
        let found = with_origin(serde_json::json!([{ "a": 1, "b": [2] }]), of);
        let origin = serde_json::json!({ "a": "released", "b": "simulation-only" });
        let expected = serde_json::json!([{ "a": 1, "b": [2], "origin": origin }]);
        assert_eq!(found, expected);
    }

    #[test]
    fn figures_of_private_samples_and_secret_sizes_are_of_simulations() {
        use Provenance::*;
        assert_eq!(
            [true, false].map(Provenance::of_samples),
            [SimulationOnly, Released]
        );
        assert_eq!(
            [true, false].map(Provenance::of_sizes),
            [SimulationOnly, Public]
        );
    }

    #[test]
    fn a_difference_is_of_the_last_kind() {
        let figure = |value, origin| Figure { value, origin };
        let (public, released) = (Provenance::Public, Provenance::Released);
        let expected = figure(4.0, released);
        assert_eq!(figure(6.0, public).less(figure(2.0, released)), expected);
        assert_eq!(figure(6.0, released).less(figure(2.0, public)), expected);
    }
}
