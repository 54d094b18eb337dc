//! Features of a sensor's windows: channels, samples of a window, overlap, recipe, and counts per
//! unit.
//!
//! The samples are counts of six channels, as from an accelerometer and a gyroscope. The experiment
//! has the same recipe in `data.window`, and the same scale.

use smolfed_core::window::{Feature, Measure, Recipe, RecipeError};

/// Channels of the sensor.
pub const CHANNELS: usize = 6;

/// Samples per channel in a window.
pub const LENGTH: usize = 64;

/// Samples from the start of one window to the next: windows overlap by half.
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

/// Counts per unit. With a power of two and a mean of 0, the quotient is exact, so a model reads
/// the same bits as with `data.scale = { mean = 0, std = 4096 }`.
pub const UNIT: f32 = 4_096.0;

/// Returns a valid recipe. An invalid recipe does not compile.
#[expect(clippy::panic, reason = "while compiling only")]
pub const fn checked(recipe: Result<Recipe, RecipeError>) -> Recipe {
    match recipe {
        Ok(recipe) => recipe,
        Err(_) => panic!("the recipe of the features is wrong"),
    }
}
