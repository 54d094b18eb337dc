//! `[simulation]`: the arithmetic of simulated devices, its memory, and the format of features in
//! integers. Real devices must train in the same arithmetic (`f32` or `integer`) and format.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_core::fixed_point;

use crate::combinations::{Setting, Settings};

/// How simulated devices calculate in local training. An arithmetic is a variant here and a file
/// with its line in [`crate::arithmetic`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArithmeticName {
    /// The bits of boards.
    #[default]
    F32,
    /// Within rounding of [`Self::F32`], and no board's bits.
    Fast,
    /// The bits of boards that train in integers ([`smolfed_core::fixed_point`]).
    Integer,
}

impl ArithmeticName {
    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Fast => "fast",
            Self::Integer => "integer",
        }
    }

    /// A warning to readers of a result about its bits, or `None` if they are the bits of boards.
    #[must_use]
    pub const fn caution(self) -> Option<&'static str> {
        match self {
            Self::F32 | Self::Integer => None,
            Self::Fast => Some("not the bits of a board"),
        }
    }
}

/// `[simulation]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimulationConfig {
    /// `"f32"`: bit-identical to boards. `"fast"` (also `--fast`): several times as fast
    /// (docs/performance.md#fast-arithmetic), within rounding of `"f32"`. `"integer"`:
    /// bit-identical to boards that train in integers (docs/integer.md), for models of one layer.
    pub arithmetic: ArithmeticName,
    /// Memory of `"fast"` for device state between rounds: bytes, or text with `KiB`, `MiB` or
    /// `GiB`.
    #[schemars(with = "crate::config::schema::NumberOrText")]
    pub memory: MemorySize,
    /// How features are stored for `integer` arithmetic.
    pub integer: FeatureFormat,
}

/// `[simulation.integer]`: a feature is an integer times a power of two. Both are public, and must
/// not be chosen from private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureFormat {
    /// With `"integer"`: the type of features, `"i8"` or `"i16"`.
    pub features: FeatureType,
    /// With `"integer"`: binary places of the features, at most 7 (`"i8"`) or 15 (`"i16"`). Type
    /// and places are public.
    pub fraction: u8,
}

/// Types of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureType {
    /// From −128 to 127.
    #[default]
    I8,
    /// From −32,768 to 32,767.
    I16,
}

impl Default for FeatureFormat {
    /// From −2 to 127/64, in steps of 1/64.
    fn default() -> Self {
        Self {
            features: FeatureType::I8,
            fraction: 6,
        }
    }
}

impl FeatureFormat {
    /// The format on the wire, or `None` if there is no such format.
    #[must_use]
    pub fn checked(self) -> Option<fixed_point::FeatureFormat> {
        let is_wide = self.features == FeatureType::I16;
        fixed_point::FeatureFormat::new(is_wide, self.fraction).ok()
    }
}

impl SimulationConfig {
    /// The settings that it declares ([`crate::combinations`]).
    pub(crate) fn settings(&self) -> Settings {
        let is_integer = self.arithmetic == ArithmeticName::Integer;
        Settings::of([
            (Setting::Integer, is_integer),
            (Setting::FloatingPoint, !is_integer),
            (Setting::Fast, self.arithmetic == ArithmeticName::Fast),
            (
                Setting::FeatureFormat,
                self.integer != FeatureFormat::default(),
            ),
        ])
    }

    /// How devices store features in integers. `None` for other arithmetics, and for formats that
    /// do not exist.
    pub(crate) fn feature_format(&self) -> Option<fixed_point::FeatureFormat> {
        match self.arithmetic {
            ArithmeticName::Integer => self.integer.checked(),
            _ => None,
        }
    }

    /// Whether no key is given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An amount of memory: a number of bytes, or text such as "512 MiB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize(pub u64);

/// Units, the largest first.
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl Default for MemorySize {
    fn default() -> Self {
        Self(1 << 30)
    }
}

impl fmt::Display for MemorySize {
    /// In the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS
            .into_iter()
            .find(|(_, unit)| self.0.is_multiple_of(*unit));
        let (name, unit) = unit.filter(|_| self.0 > 0).unwrap_or(("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl FromStr for MemorySize {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parse = |(name, unit): (&str, u64)| {
            let number: u64 = text.trim().strip_suffix(name)?.trim_end().parse().ok()?;
            number.checked_mul(unit)
        };
        UNITS.into_iter().find_map(parse).map(Self).ok_or(())
    }
}

impl Serialize for MemorySize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemorySize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Size;

        impl serde::de::Visitor<'_> for Size {
            type Value = MemorySize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or text such as \"512 MiB\" or \"1 GiB\"")
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Self::Value, E> {
                Ok(MemorySize(bytes))
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Self::Value, E> {
                let refused = |_| E::invalid_value(Unexpected::Signed(bytes), &self);
                u64::try_from(bytes).map(MemorySize).map_err(refused)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let refused = |()| E::invalid_value(Unexpected::Str(text), &self);
                text.parse().map_err(refused)
            }
        }

        deserializer.deserialize_any(Size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(text: &str) -> Result<MemorySize, String> {
        let config: Result<SimulationConfig, _> = toml::from_str(&format!("memory = {text}"));
        config
            .map(|config| config.memory)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn memory_is_bytes_or_text_with_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("\"512 MiB\"", 512 << 20),
            ("\"2GiB\"", 2 << 30),
            ("\"7 KiB\"", 7 << 10),
            ("\"9 B\"", 9),
        ] {
            assert_eq!(memory(text), Ok(MemorySize(bytes)), "{text}");
        }
        for text in [
            "-1",
            "1.5",
            "\"much\"",
            "\"512\"",
            "\"-1 MiB\"",
            "\"99999999999 GiB\"",
        ] {
            let error = memory(text).unwrap_err();
            assert!(
                error.contains("a number of bytes, or text such as"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn memory_is_written_as_it_is_read() {
        for (bytes, text) in [
            (0, "0 B"),
            (1 << 30, "1 GiB"),
            (3 << 20, "3 MiB"),
            (1025, "1025 B"),
        ] {
            assert_eq!(MemorySize(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(MemorySize(bytes)));
        }
    }

    #[test]
    fn names_are_those_of_the_file() {
        for name in [
            ArithmeticName::F32,
            ArithmeticName::Fast,
            ArithmeticName::Integer,
        ] {
            let text = format!("arithmetic = \"{}\"", name.name());
            let config: SimulationConfig = toml::from_str(&text).unwrap();
            assert_eq!(config.arithmetic, name);
        }
    }
}
