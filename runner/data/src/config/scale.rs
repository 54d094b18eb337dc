//! The keys for the scale (normalisation) of features and targets (`data.scale`,
//! `data.target_scale`): their named values, and the meaning of some by the kind of samples.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::{DataConfigError, wrong};
use super::set::StoredSet;
use crate::constants::Constants;
use crate::scale::moments::ScaleNoise;
use crate::scale::{Scale, TargetScale};

/// Default share of the target ε that a private scale costs.
const DEFAULT_SHARE: f64 = 0.1;

/// A name, or a table of constants.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum NameOr<N> {
    Name(N),
    Constants(Constants),
}

/// The names of the scales. Without a suffix, what is usual for the source: one mean and deviation
/// for images, one for each feature of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ScaleName {
    None,
    Unit,
    Standardise,
    StandardiseSet,
    StandardiseChannels,
    StandardiseFeatures,
    Private,
    PrivateSet,
    PrivateFeatures,
}

/// The names of the scales of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TargetScaleName {
    None,
    Standardise,
}

/// The kind of samples, which determines the default scale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Samples {
    /// Rows of a table, or features of windows.
    Rows,
    /// Windows of a recording, with several channels.
    Windows,
    /// Images and other grids.
    Grids,
}

impl Samples {
    /// Returns the kind of samples of a set.
    pub(super) fn of(set: &StoredSet) -> Self {
        match set {
            StoredSet::Table(table) => match &table.recordings {
                Some(recordings) if recordings.features.is_none() => Self::Windows,
                Some(_) => Self::Rows,
                None if table.axes.is_empty() => Self::Rows,
                None => Self::Grids,
            },
            StoredSet::Memory(memory) if memory.axes.is_empty() => Self::Rows,
            _ => Self::Grids,
        }
    }
}

/// The scale in a table, without the keys of a private one.
pub(super) enum Named {
    /// The complete scale.
    Scale(Scale),
    /// A private scale.
    Private {
        /// Whether each feature has its own mean and deviation.
        is_per_feature: bool,
    },
}

impl NameOr<ScaleName> {
    /// Returns the scale. The default depends on the kind of samples.
    pub(super) fn resolve(self, samples: Samples) -> Named {
        let name = match self {
            Self::Constants(constants) => return Named::Scale(Scale::Constants(constants)),
            Self::Name(name) => name,
        };
        let is_per_feature = match name {
            ScaleName::None => return Named::Scale(Scale::None),
            ScaleName::Unit => return Named::Scale(Scale::Unit),
            ScaleName::StandardiseFeatures => return Named::Scale(Scale::StandardiseFeatures),
            ScaleName::StandardiseSet => return Named::Scale(Scale::StandardiseSet),
            ScaleName::StandardiseChannels => return Named::Scale(Scale::StandardiseChannels),
            ScaleName::Standardise => {
                return Named::Scale(match samples {
                    Samples::Rows => Scale::StandardiseFeatures,
                    Samples::Windows => Scale::StandardiseChannels,
                    Samples::Grids => Scale::StandardiseSet,
                });
            }
            ScaleName::Private => samples == Samples::Rows,
            ScaleName::PrivateSet => false,
            ScaleName::PrivateFeatures => true,
        };
        Named::Private { is_per_feature }
    }

    /// Returns the written form. A private scale has more keys.
    pub(super) fn of(scale: &Scale) -> Self {
        Self::Name(match scale {
            Scale::Constants(constants) => return Self::Constants(constants.clone()),
            Scale::None => ScaleName::None,
            Scale::Unit => ScaleName::Unit,
            Scale::StandardiseSet => ScaleName::StandardiseSet,
            Scale::StandardiseChannels => ScaleName::StandardiseChannels,
            Scale::StandardiseFeatures => ScaleName::StandardiseFeatures,
            Scale::Private(private) if private.is_per_feature => ScaleName::PrivateFeatures,
            Scale::Private(_) => ScaleName::PrivateSet,
        })
    }
}

/// Returns the noise of a private scale, from the given key.
pub(super) fn noise(
    share: Option<f64>,
    multiplier: Option<f64>,
) -> Result<ScaleNoise, DataConfigError> {
    match (share, multiplier) {
        (Some(_), Some(value)) => {
            let expected = "left out with `data.scale_share`: set the noise with one of them";
            Err(wrong("scale_noise_multiplier", value, expected))
        }
        (None, Some(value)) if value.is_finite() && value > 0.0 => {
            Ok(ScaleNoise::Multiplier(value))
        }
        (None, Some(value)) => Err(wrong("scale_noise_multiplier", value, "above 0")),
        (share, None) => {
            let share = share.unwrap_or(DEFAULT_SHARE);
            match share > 0.0 && share < 1.0 {
                true => Ok(ScaleNoise::Share(share)),
                false => Err(wrong("scale_share", share, "above 0 and below 1")),
            }
        }
    }
}

impl From<Option<NameOr<TargetScaleName>>> for TargetScale {
    fn from(raw: Option<NameOr<TargetScaleName>>) -> Self {
        match raw {
            None | Some(NameOr::Name(TargetScaleName::None)) => Self::None,
            Some(NameOr::Name(TargetScaleName::Standardise)) => Self::Standardise,
            Some(NameOr::Constants(constants)) => Self::Constants(constants),
        }
    }
}

impl From<TargetScale> for NameOr<TargetScaleName> {
    fn from(scale: TargetScale) -> Self {
        match scale {
            TargetScale::None => Self::Name(TargetScaleName::None),
            TargetScale::Standardise => Self::Name(TargetScaleName::Standardise),
            TargetScale::Constants(constants) => Self::Constants(constants),
        }
    }
}

/// Implemented by hand, so that the printed error is the one about a constant.
impl<'de, N: Deserialize<'de>> Deserialize<'de> for NameOr<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<N>(PhantomData<N>);
        impl<'de, N: Deserialize<'de>> Visitor<'de> for Either<N> {
            type Value = NameOr<N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or constants such as { mean = .., std = .. }")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<NameOr<N>, E> {
                let known = N::deserialize(name.into_deserializer()).map(NameOr::Name);
                known.map_err(|error: E| {
                    let names = error.to_string();
                    let names = names.trim_end();
                    E::custom(format!("{names}, or constants: {{ mean = .., std = .. }}"))
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameOr<N>, A::Error> {
                Constants::deserialize(MapAccessDeserializer::new(map)).map(NameOr::Constants)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}
