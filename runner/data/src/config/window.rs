//! The key `data.window`: a number of rows, or a table that also lists the computed features of a
//! window.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smolfed_core::window::{Feature, Measure, Recipe, RecipeError};

use super::error::{DataConfigError, in_range, wrong};
use crate::recordings::Recordings;
use crate::synthetic::windows::WindowsConfig;
use crate::window_features::WindowFeatures;

/// Maximum number of rows of a window: a sequence has fewer than 2¹⁶ steps.
pub(super) const MAX_WINDOW: u32 = 65_535;

/// Maximum number of rows from one window to the next, far above practical values.
const MAX_STEP: u32 = 10_000_000;

/// Largest number of counts of a unit, far above practical values.
const MAX_COUNTS: f64 = 1e9;

/// What `data.window` is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum WindowKey {
    /// Rows of a window, or values of a generated one.
    Length(u32),
    /// All of it.
    Table(WindowTable),
}

/// How rows become windows, and what is computed of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowTable {
    length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "features")]
    features: Option<Vec<Feature>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bands: Option<Vec<u16>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "measure")]
    measure: Option<Measure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<f64>>,
}

fn features(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "items": {"type": "string", "enum": Feature::ALL}})
}

fn measure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": [Measure::Amplitude, Measure::Energy, ()]})
}

impl WindowKey {
    /// Returns the number of values of a channel of generated windows, and the computed features.
    pub(super) fn generated(self) -> Result<(u32, Option<Recipe>), DataConfigError> {
        let table = match self {
            Self::Length(length) => return Ok((length, None)),
            Self::Table(table) => table,
        };
        let unused = [
            ("window.step", table.step.is_some()),
            ("window.every", table.every.is_some()),
            ("window.counts", table.counts.is_some()),
        ];
        if let Some((key, _)) = unused.into_iter().find(|(_, is_given)| *is_given) {
            return Err(wrong(key, "given", "left out for generated windows"));
        }
        let length = table.length;
        let features = table.features(length)?;
        Ok((length, features.map(|features| *features.recipe())))
    }

    /// Returns the key of generated windows, the inverse of [`Self::generated`].
    pub(super) fn of_generated(length: u32, features: Option<Recipe>) -> Self {
        match features {
            None => Self::Length(length),
            Some(recipe) => {
                let table = WindowTable {
                    length,
                    ..WindowTable::default()
                };
                Self::Table(table.with_recipe(&recipe))
            }
        }
    }
}

impl TryFrom<WindowTable> for Recordings {
    type Error = DataConfigError;

    fn try_from(table: WindowTable) -> Result<Self, DataConfigError> {
        let window = in_range("window.length", table.length, 2..=MAX_WINDOW)?;
        let step = in_range("window.step", table.step.unwrap_or(window), 1..=MAX_STEP)?;
        let every = in_range("window.every", table.every.unwrap_or(1), 1..=window)?;
        if !window.is_multiple_of(every) {
            let expected = format!("a divisor of `data.window.length` = {window}");
            return Err(wrong("window.every", every, &expected));
        }
        Ok(Self {
            window,
            step,
            every,
            features: table.features(window / every)?,
        })
    }
}

impl WindowTable {
    /// Adds the features of a recipe.
    fn with_recipe(self, recipe: &Recipe) -> Self {
        Self {
            features: Some(recipe.features().collect()),
            bands: Some(recipe.bounds().to_vec()),
            measure: Some(recipe.measure()),
            ..self
        }
    }

    /// Returns the features computed from the `rows` rows of a window that are kept.
    fn features(self, rows: u32) -> Result<Option<WindowFeatures>, DataConfigError> {
        if self.features.is_none() && self.bands.is_none() {
            let unused = [
                ("window.measure", self.measure.is_some()),
                ("window.counts", self.counts.is_some()),
            ];
            let unused = unused.into_iter().find(|(_, is_given)| *is_given);
            return match unused {
                Some((present, _)) => Err(DataConfigError::Pair {
                    present,
                    absent: "window.features",
                }),
                None => Ok(None),
            };
        }
        let features = self.features.unwrap_or_default();
        let bands = self.bands.unwrap_or_default();
        let measure = self.measure.unwrap_or(Measure::Amplitude);
        let recipe = Recipe::new(rows as usize, &features, &bands, measure);
        let recipe = recipe.map_err(|reason| refused(reason, &bands))?;
        if let Some(counts) = &self.counts {
            let is_right = |x: &f64| *x > 0.0 && *x <= MAX_COUNTS;
            if counts.is_empty() || !counts.iter().all(is_right) {
                let expected = "the counts per unit of each channel, or one number for all, above \
                    0 and at most 1e9";
                return Err(wrong("window.counts", format!("{counts:?}"), expected));
            }
        }
        Ok(Some(WindowFeatures::new(recipe, self.counts)))
    }
}

/// Returns the error of a recipe with the invalid key.
fn refused(reason: RecipeError, bands: &[u16]) -> DataConfigError {
    let of_bands = |expected: &str| wrong("window.bands", format!("{bands:?}"), expected);
    match reason {
        RecipeError::Length { found, max } => {
            let expected = format!("2 to {max} rows with features, after `data.window.every`");
            wrong("window.length", found, &expected)
        }
        RecipeError::Nothing => {
            let expected = "a list of one or more, or left out";
            wrong("window.features", "[]", expected)
        }
        RecipeError::Twice { feature } => wrong(
            "window.features",
            format!("{feature} twice"),
            "a list without repetition",
        ),
        RecipeError::Bounds { max, .. } => of_bands(&format!(
            "none or 2 to {max} boundaries, from each band to the next"
        )),
        RecipeError::Order { .. } => of_bands("a list of increasing numbers"),
        RecipeError::Beyond { max, .. } => {
            of_bands(&format!("at most {max}, one more than the last frequency"))
        }
        other => of_bands(&other.to_string()),
    }
}

impl From<&Recordings> for WindowTable {
    fn from(recordings: &Recordings) -> Self {
        let table = Self {
            length: recordings.window,
            step: Some(recordings.step),
            every: Some(recordings.every),
            ..Self::default()
        };
        match &recordings.features {
            None => table,
            Some(features) => {
                let counts = features.counts().map(<[f64]>::to_vec);
                Self { counts, ..table }.with_recipe(features.recipe())
            }
        }
    }
}

/// The keys of windows.
impl Serialize for Recordings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Keys {
            window: WindowKey,
            every: Option<u32>,
        }
        let is_number = self.features.is_none() && self.step == self.window;
        let (window, every) = match is_number {
            true => (WindowKey::Length(self.window), Some(self.every)),
            false => (WindowKey::Table(self.into()), None),
        };
        Keys { window, every }.serialize(serializer)
    }
}

/// The keys of generated windows except the number of classes.
impl Serialize for WindowsConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let window = WindowKey::of_generated(self.window, self.features);
        let mut keys = serializer.serialize_struct("WindowsConfig", 4)?;
        keys.serialize_field("channels", &self.channels)?;
        keys.serialize_field("window", &window)?;
        keys.serialize_field("drift", &self.drift)?;
        keys.serialize_field("jitter", &self.unusual_jitter())?;
        keys.end()
    }
}

/// Implemented by hand, so that the printed error is the one about a key of the table.
impl<'de> Deserialize<'de> for WindowKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = WindowKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number of rows, or a table such as { length = 100, features = [..] }",
                )
            }

            fn visit_i64<E: serde::de::Error>(self, rows: i64) -> Result<WindowKey, E> {
                let number = u32::try_from(rows);
                number.map(WindowKey::Length).map_err(|_| {
                    E::custom(format!(
                        "`window` is {rows}, but must be a whole number \
                        of rows from 2 to {MAX_WINDOW}"
                    ))
                })
            }

            fn visit_u64<E: serde::de::Error>(self, rows: u64) -> Result<WindowKey, E> {
                self.visit_i64(i64::try_from(rows).unwrap_or(i64::MAX))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WindowKey, A::Error> {
                WindowTable::deserialize(MapAccessDeserializer::new(map)).map(WindowKey::Table)
            }
        }
        deserializer.deserialize_any(Either)
    }
}
