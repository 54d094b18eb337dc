//! Settings as data, with the feature `serde`: each checked type is serialised as its values, and
//! checked again on reading. Secrets cannot be serialised: no root, key, update or sample.

use heapless::Vec;
use serde::{Deserialize, Serialize};

use crate::{
    fixed_point::FeatureFormat,
    params::{ClipNorm, LearningRate, NoiseMultiplier, ParamError, Penalty},
    quantize::{Grid, QuantizeError},
    smooth::{NarrowSmoothing, SmoothingError, SmoothingFactor},
    window::{Feature, MAX_BANDS, Measure, Recipe, RecipeError, Scale, ScaleError},
};

/// Implements serialisation of a type of one checked `f32`.
macro_rules! number {
    ($name:ident, $error:ident, $get:ident) => {
        impl TryFrom<f32> for $name {
            type Error = $error;

            fn try_from(value: f32) -> Result<Self, $error> {
                Self::new(value)
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> Self {
                value.$get()
            }
        }
    };
}

number!(ClipNorm, ParamError, get);
number!(LearningRate, ParamError, get);
number!(Penalty, ParamError, get);
number!(SmoothingFactor, SmoothingError, get);
number!(NarrowSmoothing, SmoothingError, sigma);

/// Serialised in units of 2⁻³².
impl From<u64> for NoiseMultiplier {
    fn from(units: u64) -> Self {
        Self::from_units(units)
    }
}

/// Serialised in units of 2⁻³².
impl From<NoiseMultiplier> for u64 {
    fn from(multiplier: NoiseMultiplier) -> Self {
        multiplier.units()
    }
}

/// Serialised form of a [`Grid`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGrid {
    clip_norm: ClipNorm,
    bits: u32,
}

impl TryFrom<RawGrid> for Grid {
    type Error = QuantizeError;

    fn try_from(raw: RawGrid) -> Result<Self, QuantizeError> {
        Self::new(raw.clip_norm, raw.bits)
    }
}

impl From<Grid> for RawGrid {
    fn from(grid: Grid) -> Self {
        Self {
            clip_norm: grid.clip_norm(),
            bits: grid.bits(),
        }
    }
}

/// Serialised form of a [`FeatureFormat`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFormat {
    is_wide: bool,
    fraction: u8,
}

impl TryFrom<RawFormat> for FeatureFormat {
    type Error = ParamError;

    fn try_from(raw: RawFormat) -> Result<Self, ParamError> {
        Self::new(raw.is_wide, raw.fraction)
    }
}

impl From<FeatureFormat> for RawFormat {
    fn from(format: FeatureFormat) -> Self {
        Self {
            is_wide: format.is_wide(),
            // At most 15.
            fraction: format.scale().fraction() as u8,
        }
    }
}

/// Serialised form of a [`Recipe`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRecipe {
    length: u16,
    features: Vec<Feature, { Feature::ALL.len() }>,
    bounds: Vec<u16, { MAX_BANDS + 1 }>,
    measure: Measure,
}

impl TryFrom<RawRecipe> for Recipe {
    type Error = RecipeError;

    fn try_from(raw: RawRecipe) -> Result<Self, RecipeError> {
        Self::new(raw.length.into(), &raw.features, &raw.bounds, raw.measure)
    }
}

impl From<Recipe> for RawRecipe {
    fn from(recipe: Recipe) -> Self {
        Self {
            length: recipe.length() as u16,
            features: recipe.features().collect(),
            bounds: recipe.bounds().iter().copied().collect(),
            measure: recipe.measure(),
        }
    }
}

/// Serialised form of a [`Scale`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScale {
    offset: i32,
    multiplier: u16,
    shift: u8,
}

impl TryFrom<RawScale> for Scale {
    type Error = ScaleError;

    fn try_from(raw: RawScale) -> Result<Self, ScaleError> {
        Self::new(raw.offset, raw.multiplier, raw.shift)
    }
}

impl From<Scale> for RawScale {
    fn from(scale: Scale) -> Self {
        let (offset, multiplier, shift) = scale.parts();
        Self {
            offset,
            multiplier,
            shift,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;
    use std::{fmt::Debug, format, string::String};

    use proptest::prelude::*;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::{
        ledger::{Budget, Limits, MaxJump, Separation},
        model::Activation,
        session::Policy,
        train::{Clipping, LocalTraining},
    };

    /// Returns the value after a round trip through JSON and through postcard.
    fn again<T: Serialize + DeserializeOwned>(value: &T) -> [T; 2] {
        let text = serde_json::to_string(value).unwrap();
        let mut buffer = [0; 128];
        let bytes = postcard::to_slice(value, &mut buffer).unwrap();
        [
            serde_json::from_str(&text).unwrap(),
            postcard::from_bytes(bytes).unwrap(),
        ]
    }

    fn refused<T: DeserializeOwned + Debug>(text: &str) -> String {
        format!("{}", serde_json::from_str::<T>(text).unwrap_err())
    }

    proptest! {
        #[test]
        fn settings_come_back_with_their_bits(
            rate in 1e-30_f32..1e30, bound in 1e-30_f32..1e30, decay in 0_f32..10.0,
            epochs in any::<u32>(), batch in 1_u32.., sigma in 0_f32..3.0, last in any::<bool>(),
        ) {
            let settings = LocalTraining::new(
                LearningRate::new(rate).unwrap(),
                ClipNorm::new(bound).unwrap(),
            )
            .with_epochs(epochs)
            .with_batch_size(NonZeroU32::new(batch).unwrap())
            .with_weight_decay(Penalty::new(decay).unwrap())
            .with_clipping(if last { Clipping::Final } else { Clipping::EveryStep })
            .with_gradient_smoothing(NarrowSmoothing::new(sigma).unwrap());
            for again in again(&settings) {
                prop_assert_eq!(format!("{again:?}"), format!("{settings:?}"));
            }
        }

        #[test]
        fn a_policy_comes_back(
            numbers in any::<[u32; 4]>(), noise in any::<[u64; 2]>(),
            hides_number in any::<bool>(), helpers in 0_u8..8,
        ) {
            let policy = Policy {
                limits: Limits {
                    budget: Budget(numbers[0]),
                    separation: Separation(numbers[1]),
                    max_jump: MaxJump(numbers[2]),
                },
                min_noise_multiplier: NoiseMultiplier::from_units(noise[0]),
                min_matrix_noise_multiplier: NoiseMultiplier::from_units(noise[1]),
                max_epochs: numbers[3],
                hides_number,
                helpers,
            };
            for again in again(&policy) {
                prop_assert_eq!(format!("{again:?}"), format!("{policy:?}"));
            }
        }
    }

    #[test]
    fn what_is_made_of_several_numbers_comes_back() {
        let grid = Grid::new(ClipNorm::new(0.3).unwrap(), 20).unwrap();
        assert_eq!(again(&grid), [grid; 2]);
        let format = FeatureFormat::new(true, 12).unwrap();
        assert_eq!(again(&format), [format; 2]);
        let scale = Scale::new(-5, 7, 3).unwrap();
        assert_eq!(again(&scale), [scale; 2]);
        let features = [Feature::Mean, Feature::ZeroCrossings];
        let recipe = Recipe::new(64, &features, &[1, 4, 17], Measure::Amplitude).unwrap();
        assert_eq!(again(&recipe), [recipe; 2]);
        assert_eq!(again(&Activation::Relu), [Activation::Relu; 2]);
    }

    #[test]
    fn names_are_those_of_experiment_files() {
        for feature in Feature::ALL {
            let text = serde_json::to_string(&feature).unwrap();
            assert_eq!(text, format!("\"{}\"", feature.name()));
        }
        assert_eq!(
            serde_json::to_string(&Clipping::EveryStep).unwrap(),
            "\"every-step\""
        );
    }

    #[test]
    fn invalid_values_are_refused_with_their_reason() {
        let starts = |found: String, reason: &str| assert!(found.starts_with(reason), "{found}");
        starts(refused::<ClipNorm>("0.0"), "must be above 0");
        starts(refused::<ClipNorm>("1e-39"), "is too close to 0");
        starts(refused::<LearningRate>("-1.0"), "must be above 0");
        starts(refused::<Penalty>("-1.0"), "must not be negative");
        starts(
            refused::<NarrowSmoothing>("-1.0"),
            "sigma must be 0 or more",
        );
        starts(
            refused::<Grid>(r#"{"clip_norm": 0.3, "bits": 60}"#),
            "a grid of 60 bits",
        );
        starts(
            refused::<FeatureFormat>(r#"{"is_wide": false, "fraction": 9}"#),
            "is too large",
        );
        let twice =
            r#"{"length": 8, "features": ["mean", "mean"], "bounds": [], "measure": "energy"}"#;
        assert!(refused::<Recipe>(twice).contains("mean"));
        assert!(refused::<Scale>(r#"{"offset": 0, "multiplier": 0, "shift": 1}"#).len() > 10);
    }
}
