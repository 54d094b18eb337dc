//! Reads `[data]` in one pass, so that an error keeps the line and the name of its key.
//!
//! serde's own enums with an internal tag first read a table into memory, and lose both. Here the
//! keys after `source` go directly to the struct of the source, and only earlier keys wait.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::vec::IntoIter;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::DataConfig;
use super::keys::{ALL_KEYS, RawData, SourceName};
use crate::wording::reworded;

/// The keys of a table with its source.
pub(super) struct TaggedKeys {
    pub(super) source: SourceName,
    pub(super) keys: RawData,
    /// The keys that exist only for other sources.
    pub(super) foreign: Vec<String>,
}

impl<'de> Deserialize<'de> for DataConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tagged = deserializer.deserialize_map(TableVisitor)?;
        tagged.try_into().map_err(D::Error::custom)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = TaggedKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<TaggedKeys, A::Error> {
        let mut waiting = Vec::new();
        while let Some(key) = table.next_key_seed(KeyOf(&ALL_KEYS))? {
            if key != "source" {
                if let Some(value) = table.next_value()? {
                    waiting.push((key, value));
                }
                continue;
            }
            let source = table.next_value()?;
            let mut foreign = Vec::new();
            let rest = Rest {
                waiting: waiting.into_iter(),
                value: None,
                table,
                names: &[],
                foreign: &mut foreign,
            };
            let keys = RawData::read(source, rest)?;
            return Ok(TaggedKeys {
                source,
                keys,
                foreign,
            });
        }
        Err(A::Error::missing_field("source"))
    }
}

/// Reads the name of a key. A name unknown to all sources is an error that lists the names given
/// here.
struct KeyOf(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let key = String::deserialize(deserializer)?;
        match ALL_KEYS.contains(&key.as_str()) {
            true => Ok(key),
            false => Err(D::Error::unknown_field(&key, self.0)),
        }
    }
}

/// The keys of a table except `source`: first those before it, then those after it.
struct Rest<'a, A> {
    waiting: IntoIter<(String, toml::Value)>,
    /// A key that waited, with its value.
    value: Option<(String, toml::Value)>,
    table: A,
    /// The keys of the source.
    names: &'static [&'static str],
    foreign: &'a mut Vec<String>,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.names = names;
        visitor.visit_map(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            self.value = self.waiting.next();
            let key = match &self.value {
                Some((key, _)) => Some(key.clone()),
                None => self.table.next_key_seed(KeyOf(self.names))?,
            };
            let Some(key) = key else { return Ok(None) };
            if self.names.contains(&key.as_str()) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            let is_given = match self.value.take() {
                Some(_) => true,
                None => self.table.next_value::<Option<IgnoredAny>>()?.is_some(),
            };
            if is_given {
                self.foreign.push(key);
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        let Some((key, value)) = self.value.take() else {
            return self.table.next_value_seed(seed);
        };
        seed.deserialize(value).map_err(|error| {
            let message = reworded(error.message());
            let colon = if message.starts_with("is ") { "" } else { ":" };
            A::Error::custom(format!("`data.{key}`{colon} {message}"))
        })
    }
}

/// One table with the keys of all sources, for editors and for the documentation.
impl JsonSchema for DataConfig {
    fn schema_name() -> Cow<'static, str> {
        "DataConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let schemas = RawData::schemas(generator);
        let mut properties = Map::new();
        let mut sources: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (source, schema) in &schemas {
            let keys = schema.get("properties").and_then(Value::as_object);
            for (key, value) in keys.into_iter().flatten() {
                // Only the first appearance of a key has a comment.
                properties.entry(key).or_insert_with(|| value.clone());
                let name = format!("`{}`", super::name_of(source));
                sources.entry(key).or_default().push(name);
            }
        }
        for (key, sources) in sources {
            let description = properties
                .get_mut(key)
                .and_then(|key| key.get_mut("description"));
            if let Some(Value::String(text)) = description {
                *text = with_sources(text, &sources, schemas.len());
            }
        }
        let source = json_schema!({
            "description": "The source (docs/data.md#sources).",
            "allOf": [generator.subschema_for::<SourceName>()],
        });
        properties.insert("source".to_owned(), source.to_value());
        json_schema!({
            "type": "object",
            "description": "A checked `[data]` table.",
            "properties": properties,
            "additionalProperties": false,
            "required": ["source"],
        })
    }
}

/// Returns the comment of a key with the sources that have it, before the paragraph of its default.
fn with_sources(comment: &str, sources: &[String], count: usize) -> String {
    let (meaning, default) = match comment.split_once("\n\n") {
        Some((meaning, default)) => (meaning, format!("\n\n{default}")),
        None => (comment, String::new()),
    };
    let sentence = match sources {
        // Only generated data lack it.
        _ if sources.len() + 1 >= count => String::new(),
        sources => format!(" Sources: {}.", sources.join(", ")),
    };
    format!("{meaning}{sentence}{default}")
}
