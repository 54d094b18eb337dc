//! `--set key=value`: any key of an experiment by its dotted name.

use std::str::FromStr;

use toml::{Table, Value};

use super::error::ConfigError;

/// One `--set key=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    key: String,
    value: Value,
}

impl Override {
    /// An override of `key` by a value.
    #[must_use]
    pub fn new(key: &str, value: Value) -> Self {
        Self {
            key: key.to_owned(),
            value,
        }
    }

    /// The dotted key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Sets the key in `table`, and creates the tables above it where they are missing. Of
    /// `server.denoiser` and `server.smoothing_factor`, one that does something takes the place of
    /// the other.
    ///
    /// # Errors
    /// [`ConfigError::NotATable`] if the key reaches into a value.
    pub fn apply(&self, table: &mut Table) -> Result<(), ConfigError> {
        let mut parts = self.key.split('.').peekable();
        let mut table = table;
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                if let Some(other) = self.replaced() {
                    table.remove(other);
                }
                table.insert(part.to_owned(), self.value.clone());
                break;
            }
            let entry = table
                .entry(part)
                .or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = entry else {
                return Err(ConfigError::NotATable {
                    key: self.key.clone(),
                    part: part.to_owned(),
                });
            };
            table = inner;
        }
        Ok(())
    }
}

impl Override {
    /// The key beside this one that has no place any more.
    fn replaced(&self) -> Option<&'static str> {
        let is_zero = self.value.as_float() == Some(0.0) || self.value.as_integer() == Some(0);
        match self.key.as_str() {
            "server.denoiser" if self.value.as_str() != Some("none") => Some("smoothing_factor"),
            "server.smoothing_factor" if !is_zero => Some("denoiser"),
            _ => None,
        }
    }
}

impl FromStr for Override {
    type Err = ConfigError;

    /// The value is TOML (`6`, `0.5`, `true`, `[28, 28]`, `"text"`); anything else is text, so that
    /// `--set method=dp-fed` needs no quotes.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::Override {
            text: text.to_owned(),
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) || value.is_empty() {
            return Err(wrong());
        }
        let parsed = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Override {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_toml_or_plain_text() {
        assert_eq!(set("rounds=3").value, Value::Integer(3));
        assert_eq!(set("privacy.epsilon = 0.5").value, Value::Float(0.5));
        assert_eq!(
            set("server.axes=[28, 28]").value.as_array().unwrap().len(),
            2
        );
        assert_eq!(set("method=dp-fed").value, Value::String("dp-fed".into()));
        assert_eq!(
            set("privacy.delta=1/N^1.1").value,
            Value::String("1/N^1.1".into())
        );
        assert_eq!(set("name=\"a=b\"").value, Value::String("a=b".into()));
    }

    #[test]
    fn text_without_key_or_value_is_refused() {
        for text in ["rounds", "=3", "rounds=", "a..b=1", ".=1"] {
            assert!(
                matches!(text.parse::<Override>(), Err(ConfigError::Override { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn a_denoiser_takes_the_place_of_a_smoothing_factor_and_the_other_way_round() {
        let mut table: Table = toml::from_str("server.smoothing_factor = 1").unwrap();
        set("server.denoiser=none").apply(&mut table).unwrap();
        set("server.denoiser=auto").apply(&mut table).unwrap();
        let only = |text| toml::from_str::<Table>(text).unwrap();
        assert_eq!(table, only("server.denoiser = \"auto\""));
        set("server.smoothing_factor=2").apply(&mut table).unwrap();
        assert_eq!(table, only("server.smoothing_factor = 2"));
        set("server.smoothing_factor=0").apply(&mut table).unwrap();
        set("server.denoiser=auto").apply(&mut table).unwrap();
        set("server.smoothing_factor=0.0")
            .apply(&mut table)
            .unwrap();
        assert_eq!(
            table,
            only("server = { denoiser = \"auto\", smoothing_factor = 0.0 }")
        );
    }

    #[test]
    fn tables_are_made_on_the_way_and_values_are_not_entered() {
        let mut table: Table = toml::from_str("rounds = 1").unwrap();
        set("privacy.epsilon=2").apply(&mut table).unwrap();
        assert_eq!(table["privacy"]["epsilon"], Value::Integer(2));
        let error = set("rounds.of=2").apply(&mut table).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--set rounds.of=..`: `rounds` is a value, not a table"
        );
    }
}
