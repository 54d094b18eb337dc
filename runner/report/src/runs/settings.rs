//! The configuration of a run by dotted keys, and the keys in which several differ.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use smolfed_engine::config::{Config, ConfigError};

/// The values of a complete configuration by their dotted keys.
pub type Settings = BTreeMap<String, Value>;

/// Returns the settings of a configuration.
///
/// # Errors
/// [`ConfigError`] if a value cannot be written as TOML.
pub fn from_config(config: &Config) -> Result<Settings, ConfigError> {
    let text = config.to_toml()?;
    let table: Table = toml::from_str(&text).map_err(|error| ConfigError::Parse {
        origin: "the complete experiment".to_owned(),
        message: error.to_string(),
    })?;
    let mut settings = Settings::new();
    add(&mut settings, "", table);
    Ok(settings)
}

fn add(settings: &mut Settings, prefix: &str, table: Table) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => add(settings, &format!("{key}."), inner),
            value => {
                settings.insert(key, value);
            }
        }
    }
}

/// Returns a value in words: text without its quotes, the rest as in a file.
#[must_use]
pub fn words(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// A key with its value in each of several configurations. `None` if absent.
pub type Difference<'a> = (&'a str, Vec<Option<&'a Value>>);

/// Returns the keys in which configurations differ, ordered by name.
#[must_use]
pub fn differences<'a>(all: &[&'a Settings]) -> Vec<Difference<'a>> {
    let keys: BTreeSet<&str> = (all.iter())
        .flat_map(|settings| settings.keys().map(String::as_str))
        .collect();
    let values = |key: &str| all.iter().map(|s| s.get(key)).collect::<Vec<_>>();
    keys.into_iter()
        .map(|key| (key, values(key)))
        .filter(|(_, values)| values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_engine::config::DEFAULT;

    #[test]
    fn only_keys_that_differ_are_named() {
        let with = |overrides: &[&str]| {
            let overrides: Vec<_> = overrides.iter().map(|o| o.parse().unwrap()).collect();
            from_config(&Config::parse(DEFAULT, "default", &overrides).unwrap()).unwrap()
        };
        let (a, b) = (with(&[]), with(&["rounds=3", "privacy.max_epsilon=9"]));
        let found = differences(&[&a, &b]);
        let keys: Vec<_> = found.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["privacy.max_epsilon", "rounds"]);
        assert_eq!(found[0].1[0], None);
        assert_eq!(found[1].1[1].map(words).unwrap(), "3");
        assert_eq!(words(&a["method"]), "dp-fed-ls");
        assert!(differences(&[&a, &a]).is_empty());
    }
}
