//! `--set key=value`: any key of an experiment by its dotted name.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use toml::{Table, Value};

use super::error::ConfigError;

/// One `--set key=value`, or `--set key=`, which removes the key.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    key: String,
    value: Option<Value>,
}

impl Override {
    /// Creates an override of `key` by a value.
    #[must_use]
    pub fn new(key: &str, value: Value) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(value),
        }
    }

    /// Returns the dotted key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the value, or `None` to remove the key.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Sets the key in `table` and creates missing parent tables, or removes the key. Of
    /// `server.denoiser` and `server.smoothing_factor`, a new value that has an effect replaces the
    /// other key.
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
                match &self.value {
                    Some(value) => table.insert(part.to_owned(), value.clone()),
                    None => table.remove(part),
                };
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
    /// Returns the neighbouring key that becomes obsolete.
    fn replaced(&self) -> Option<&'static str> {
        let value = self.value.as_ref()?;
        let is_zero = value.as_float() == Some(0.0) || value.as_integer() == Some(0);
        match self.key.as_str() {
            "server.denoiser" if value.as_str() != Some("none") => Some("smoothing_factor"),
            "server.smoothing_factor" if !is_zero => Some("denoiser"),
            _ => None,
        }
    }
}

impl FromStr for Override {
    type Err = ConfigError;

    /// Parses the value as TOML (`6`, `0.5`, `true`, `[28, 28]`, `"text"`). Anything else is text,
    /// so `--set method=dp-fed` needs no quotes.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || ConfigError::Override {
            text: text.to_owned(),
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            return Err(wrong());
        }
        if value.is_empty() {
            return Ok(Self {
                key: key.to_owned(),
                value: None,
            });
        }
        let parsed = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .filter(|table| table.len() == 1)
            .and_then(|mut table| table.remove("value"));
        // Common notations that TOML lacks: `.5`, `5.`.
        let number = || value.contains('.').then(|| value.parse().ok()).flatten();
        let parsed = parsed.or_else(|| number().map(Value::Float));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        Ok(Self::new(key, value))
    }
}

/// Prints the override for `--set`, with TOML quotes only if the text would parse as another value.
impl Display for Override {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { key, value } = self;
        let Some(value) = value else {
            return write!(f, "{key}=");
        };
        let plain = value.as_str().map(|text| format!("{key}={text}"));
        let is_read = |plain: &String| plain.parse::<Self>().is_ok_and(|read| read == *self);
        match plain.filter(is_read) {
            Some(plain) => f.write_str(&plain),
            None => write!(f, "{key}={value}"),
        }
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
        let value = |text| set(text).value.unwrap();
        assert_eq!(value("rounds=3"), Value::Integer(3));
        assert_eq!(value("privacy.epsilon = 0.5"), Value::Float(0.5));
        assert_eq!(value("server.axes=[28, 28]").as_array().unwrap().len(), 2);
        assert_eq!(value("method=dp-fed"), Value::String("dp-fed".into()));
        assert_eq!(
            value("privacy.delta=1/N^1.1"),
            Value::String("1/N^1.1".into())
        );
        assert_eq!(value("name=\"a=b\""), Value::String("a=b".into()));
        assert_eq!(value("privacy.epsilon=.5"), Value::Float(0.5));
        assert_eq!(value("privacy.epsilon=-5."), Value::Float(-5.0));
        assert_eq!(value("data.path=."), Value::String(".".into()));
        assert_eq!(value("name=a.5"), Value::String("a.5".into()));
    }

    #[test]
    fn what_is_displayed_is_read_again() {
        for text in [
            "rounds=3",
            "privacy.epsilon=0.5",
            "method=dp-fed",
            "data.digits=\"7\"",
            "data.note=a \" b",
            "data.note=\" b\"",
            "cohort={ sampling = \"full\" }",
            "privacy.noise_std=",
        ] {
            assert_eq!(set(text).to_string(), text);
        }
        assert_eq!(set("method=\"dp-fed\"").to_string(), "method=dp-fed");
    }

    #[test]
    fn text_without_key_or_value_is_refused() {
        for text in ["rounds", "=3", "a..b=1", ".=1"] {
            assert!(
                matches!(text.parse::<Override>(), Err(ConfigError::Override { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn no_value_removes_the_key() {
        let mut table: Table = toml::from_str("[privacy]\nepsilon = 1\ndelta = 0.1").unwrap();
        for text in ["privacy.epsilon=", "privacy.noise_std =", "nothing.at.all="] {
            set(text).apply(&mut table).unwrap();
        }
        assert_eq!(table["privacy"].as_table().unwrap().len(), 1);
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
