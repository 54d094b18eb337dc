//! The JSON schema of experiment files, for editors, and the keys that it names.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use super::Config;

/// A key that is a number, or a name or formula as text. Only its schema is used.
#[derive(JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema alone is used")]
pub(crate) enum NumberOrText {
    Number(f64),
    Text(String),
}

impl Config {
    /// Returns the JSON schema of an experiment file (draft 7, which all editors know).
    #[must_use]
    pub fn schema() -> Value {
        generator().into_root_schema_for::<Self>().to_value()
    }

    /// Returns the schema of an experiment file that may also have a table `name` of type `T`.
    #[must_use]
    pub fn schema_with<T: JsonSchema>(name: &str) -> Value {
        let mut generator = generator();
        let table = generator.subschema_for::<T>();
        let mut schema = generator.into_root_schema_for::<Self>().to_value();
        schema["properties"][name] = table.to_value();
        schema
    }

    /// Returns the dotted names of all keys, table by table.
    #[must_use]
    pub fn keys() -> Vec<String> {
        let schema = Self::schema();
        let mut keys = Vec::new();
        add_keys(&schema, &schema, "", &mut keys);
        keys
    }

    /// Returns the dotted name of a key. If several tables have it, the table nearest to the top
    /// wins.
    #[must_use]
    pub fn key_named(name: &str) -> Option<String> {
        let is_meant = |key: &String| key.rsplit('.').next() == Some(name);
        let keys = Self::keys().into_iter().filter(is_meant);
        keys.min_by_key(|key| key.matches('.').count())
    }
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft07().for_deserialize().into_generator()
}

/// Adds the keys of the table that `schema`, a part of `root`, describes.
fn add_keys(root: &Value, schema: &Value, prefix: &str, keys: &mut Vec<String>) {
    let mut parts = vec![schema];
    for combined in ["anyOf", "allOf"] {
        parts.extend(schema[combined].as_array().into_iter().flatten());
    }
    for part in parts {
        let target = part["$ref"]
            .as_str()
            .and_then(|path| root.pointer(path.strip_prefix('#')?));
        let properties = target.unwrap_or(part)["properties"].as_object();
        if target.is_some() && properties.is_none() {
            continue;
        }
        for (name, inner) in properties.into_iter().flatten() {
            let key = format!("{prefix}{name}");
            add_keys(root, inner, &format!("{key}."), keys);
            keys.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULT;

    #[test]
    fn keys_of_all_tables_are_named() {
        let keys = Config::keys();
        for key in [
            "rounds",
            "method",
            "data.source",
            "data.categories",
            "privacy.epsilon",
            "privacy.adaptive.quantile",
            "contrast.privacy.epsilon",
            "simulation.memory",
        ] {
            assert!(keys.iter().any(|known| known == key), "{key}: {keys:?}");
        }
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), keys.len());
    }

    /// Every written key is in the schema.
    #[test]
    fn complete_files_have_known_keys() {
        fn visit(table: &toml::Table, prefix: &str, keys: &[String]) {
            for (name, value) in table {
                let key = format!("{prefix}{name}");
                assert!(keys.contains(&key), "{key}");
                if let (toml::Value::Table(inner), false) = (value, key == "data.scale") {
                    visit(inner, &format!("{key}."), keys);
                }
            }
        }
        let config = Config::parse(DEFAULT, "default", &[]).unwrap();
        let table = config.to_toml().unwrap().parse().unwrap();
        visit(&table, "", &Config::keys());
    }

    #[test]
    fn keys_have_their_documentation() {
        let schema = Config::schema();
        assert_eq!(schema["additionalProperties"], false);
        let text = schema.to_string();
        for words in [
            "Communication rounds T.",
            "The noise is calibrated to it",
            "dp-fed-ls",
        ] {
            assert!(text.contains(words), "{words}");
        }
    }
}
