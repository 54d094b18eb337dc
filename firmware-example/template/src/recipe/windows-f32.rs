//! What follows from the experiment: features, classes, model and arithmetic.
//!
//! `smolfed data recipe experiment.toml --rust` prints this file.

use smolfed_core::{
    Const, FixedModel, Softmax,
    recipe::Recipe,
    window::{self, Feature, Measure, WindowError},
};

/// Channels of the sensor, in the order of the experiment.
pub const CHANNELS: usize = 3;
/// Rows of a window.
pub const LENGTH: usize = 64;
/// Rows from one window to the next.
pub const STEP: usize = 32;
/// Every so many rows of a window are read.
pub const EVERY: usize = 1;
/// Features of each channel.
const WINDOW: window::Recipe = match window::Recipe::new(
    LENGTH / EVERY,
    &[Feature::Mean, Feature::Deviation],
    &[1, 3, 8, 33],
    Measure::Amplitude,
) {
    Ok(recipe) => recipe,
    Err(_) => panic!("the recipe of the windows is wrong"),
};
/// Features of a window.
pub const FEATURES: usize = CHANNELS * WINDOW.feature_count();
/// Classes, in the order of the experiment.
pub const CLASSES: usize = {{classes}};
/// A feature, as it is stored.
pub type Value = f32;
/// The recipe, which records and coordinators must have as well.
pub const RECIPE: Option<Recipe> = Some(Recipe::Windows {
    recipe: WINDOW,
    channels: CHANNELS as u16,
});

/// Mean and deviation of each feature, as in `data.scale`.
const SCALES: [(f64, f64); FEATURES] = [(0.0, 2048.0); FEATURES];

/// Writes the features of a window: `sample` gives a sample of a channel.
///
/// # Errors
/// None: lengths are those of the recipe.
pub fn features_into(
    sample: impl Fn(usize, usize) -> i16,
    features: &mut [Value; FEATURES],
) -> Result<(), WindowError> {
    let number = |channel, step| f32::from(sample(channel, step));
    let mut numbers = [0.0; FEATURES];
    WINDOW.features_into(number, &mut [0.0; WINDOW.work_count()], &mut numbers)?;
    let found = features.iter_mut().zip(numbers).zip(SCALES);
    for ((feature, found), (mean, std)) in found {
        *feature = ((f64::from(found) - mean) / std) as f32;
    }
    Ok(())
}

/// The model.
pub type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
/// Scratch memory of training.
pub const SCRATCH: usize = Model::SCRATCH;

/// The model.
pub fn model() -> Model {
    Softmax::new(Const, Const)
}
