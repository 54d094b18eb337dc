//! Which features of a sensor's windows are computed.
//!
//! The samples are counts of six channels, as an accelerometer and a gyroscope give them. The
//! experiment has the same recipe in `data.window`, and the same scale.

use smolfed_core::window::{Feature, Measure, Recipe, RecipeError};

/// Channels of the sensor.
pub const CHANNELS: usize = 6;

/// Samples of a channel in a window.
pub const LENGTH: usize = 64;

/// Samples from the beginning of a window to that of the next: windows overlap by half.
pub const STEP: usize = 32;

/// The features of each channel.
pub const RECIPE: Recipe = checked(Recipe::new(
    LENGTH,
    &[
        Feature::Mean,
        Feature::Deviation,
        Feature::Minimum,
        Feature::Maximum,
    ],
    &[1, 3, 8, 33],
    Measure::Amplitude,
));

/// All features of a window.
pub const COUNT: usize = CHANNELS * RECIPE.feature_count();

/// The counts of a unit. A power of two, and a mean of 0: the quotient is exact, so that a model
/// reads the bits that it reads with `data.scale = { mean = 0, std = 4096 }`.
pub const UNIT: f32 = 4_096.0;

/// A recipe that is right, or does not compile.
#[expect(clippy::panic, reason = "while compiling only")]
pub const fn checked(recipe: Result<Recipe, RecipeError>) -> Recipe {
    match recipe {
        Ok(recipe) => recipe,
        Err(_) => panic!("the recipe of the features is wrong"),
    }
}
