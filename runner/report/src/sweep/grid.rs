//! Expansion of variants and lists of values to cells: every combination, the first dimension
//! slowest.

use toml::{Table, Value};

use smolfed_engine::config::Override;

/// A difference between cells: a key of the grid, or the variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The dotted key, or [`Dimension::VARIANTS`].
    pub name: String,
    /// Its values in the order of the file, at least one.
    pub levels: Vec<Level>,
}

/// One value of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its label in tables.
    pub label: String,
    /// Keys of the experiment that it sets.
    pub settings: Vec<(String, Value)>,
}

/// One combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The level of each dimension.
    pub levels: Vec<usize>,
    /// Keys of the experiment that it sets, in the order in which they are set.
    pub settings: Vec<(String, Value)>,
}

impl Dimension {
    /// Name of the dimension of variants.
    pub const VARIANTS: &'static str = "variant";

    /// Returns a dimension of one key.
    pub(super) fn of_key(key: &str, values: &[Value]) -> Self {
        let level = |value: &Value| Level {
            label: label(value),
            settings: vec![(key.to_owned(), value.clone())],
        };
        Self {
            name: key.to_owned(),
            levels: values.iter().map(level).collect(),
        }
    }

    /// Returns the value of each level as a number. `None` unless all are numbers.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let number = |level: &Level| match level.settings.as_slice() {
            [(_, Value::Integer(value))] => Some(*value as f64),
            [(_, Value::Float(value))] => Some(*value).filter(|value| value.is_finite()),
            _ => None,
        };
        self.levels.iter().map(number).collect()
    }

    /// Returns the last part of the name: `epsilon` of `privacy.epsilon`.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

/// Returns text without quotes, and everything else as in TOML.
fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns all combinations of `dimensions`, or one cell without settings if there are none.
pub(super) fn cells(dimensions: &[Dimension]) -> Vec<Cell> {
    let start = Cell {
        levels: Vec::new(),
        settings: Vec::new(),
    };
    dimensions.iter().fold(vec![start], |cells, dimension| {
        let extend = |cell: &Cell| {
            let grown = dimension.levels.iter().enumerate().map(|(index, level)| {
                let mut cell = cell.clone();
                cell.levels.push(index);
                cell.settings.extend(level.settings.iter().cloned());
                cell
            });
            grown.collect::<Vec<_>>()
        };
        cells.iter().flat_map(extend).collect()
    })
}

impl Cell {
    /// Returns the settings in a sentence, to name the cell in a message.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.settings.is_empty() {
            return "no settings changed".to_owned();
        }
        let parts = self.settings.iter();
        let parts = parts.map(|(key, value)| format!("{key} = {value}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns `base` with the settings of this cell.
    pub(super) fn apply(&self, base: &Table) -> Result<Table, smolfed_engine::config::ConfigError> {
        let mut table = base.clone();
        for (key, value) in &self.settings {
            Override::new(key, value.clone()).apply(&mut table)?;
        }
        Ok(table)
    }

    /// Returns the settings as in `results.jsonl`. A key set twice has its last value.
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        let pair = |(key, value): &(String, Value)| {
            let value = serde_json::to_value(value).unwrap_or(serde_json::Value::Null);
            (key.clone(), value)
        };
        self.settings.iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(key: &str, values: &[i64]) -> Dimension {
        let values: Vec<Value> = values.iter().map(|value| Value::Integer(*value)).collect();
        Dimension::of_key(key, &values)
    }

    #[test]
    fn cells_are_every_combination_with_the_first_dimension_slowest() {
        let dimensions = [dimension("a", &[1, 2]), dimension("b.c", &[3, 4, 5])];
        let cells = cells(&dimensions);
        let levels: Vec<_> = cells.iter().map(|cell| cell.levels.clone()).collect();
        assert_eq!(levels, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(cells[5].describe(), "a = 2, b.c = 5");
        assert_eq!(cells[5].to_json()["b.c"], 5);
    }

    #[test]
    fn without_dimensions_there_is_one_cell() {
        let cells = cells(&[]);
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0].describe(), "no settings changed");
    }

    #[test]
    fn a_cell_sets_its_keys_and_leaves_the_others() {
        let base: Table = toml::from_str("rounds = 1\n[train]\nepochs = 2").unwrap();
        let cell = &cells(&[dimension("train.epochs", &[7])])[0];
        let table = cell.apply(&base).unwrap();
        assert_eq!(table["train"]["epochs"], Value::Integer(7));
        assert_eq!(table["rounds"], Value::Integer(1));
    }

    #[test]
    fn labels_are_plain_and_numbers_are_known() {
        let values = [Value::Float(0.5), Value::Integer(2)];
        assert_eq!(
            Dimension::of_key("a", &values).numbers(),
            Some(vec![0.5, 2.0])
        );
        let values = [
            Value::String("final".into()),
            Value::Array(vec![28.into(), 28.into()]),
        ];
        let dimension = Dimension::of_key("x.y", &values);
        assert_eq!(dimension.numbers(), None);
        assert_eq!(dimension.levels[0].label, "final");
        assert_eq!(dimension.levels[1].label, "[28, 28]");
        assert_eq!(dimension.short_name(), "y");
    }
}
