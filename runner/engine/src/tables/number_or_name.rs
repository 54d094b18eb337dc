//! Values that are a number, or a name for a number found in another way.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Reads a number, or returns `None` for `name`.
pub(super) fn number_or<'de, D: Deserializer<'de>>(
    name: &'static str,
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    struct Setting(&'static str);

    impl Visitor<'_> for Setting {
        type Value = Option<f64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a number or \"{}\"", self.0)
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
            Ok(Some(value))
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok(Some(value as f64))
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok(Some(value as f64))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            match text == self.0 {
                true => Ok(None),
                false => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
    }

    deserializer.deserialize_any(Setting(name))
}
