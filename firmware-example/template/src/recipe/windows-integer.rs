//! What follows from the experiment: features, classes, model and arithmetic.
//!
//! `smolfed data recipe experiment.toml --rust` prints this file.

use smolfed_core::{
    Const, Softmax,
    fixed_point::FeatureScale,
    recipe::Recipe,
    session::FixedPoint,
    window::{self, Feature, Measure, Scale, WindowError},
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
pub type Value = i8;
/// The recipe, which records and coordinators must have as well.
pub const RECIPE: Option<Recipe> = Some(Recipe::Windows {
    recipe: WINDOW,
    channels: CHANNELS as u16,
});

/// (feature − offset) · multiplier / 2^shift of each feature, as in `data.scale`.
const SCALES: [Scale; FEATURES] = [scale(0, 1, 5); FEATURES];

const fn scale(offset: i32, multiplier: u16, shift: u8) -> Scale {
    match Scale::new(offset, multiplier, shift) {
        Ok(scale) => scale,
        Err(_) => panic!("a scale is wrong"),
    }
}

/// Writes the features of a window: `sample` gives a sample of a channel.
///
/// # Errors
/// None: lengths are those of the recipe.
pub fn features_into(
    sample: impl Fn(usize, usize) -> i16,
    features: &mut [Value; FEATURES],
) -> Result<(), WindowError> {
    let mut counts = [0; FEATURES];
    WINDOW.counts_into(sample, &mut [0; WINDOW.work_count()], &mut counts)?;
    let found = features.iter_mut().zip(counts).zip(SCALES);
    for ((feature, found), scale) in found {
        (*feature, _) = scale.to_i8(found);
    }
    Ok(())
}

/// The model.
pub type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
/// Scratch memory of training: the scores and the features of a sample.
pub const SCRATCH: usize = CLASSES + FEATURES;

/// The model in integer arithmetic.
pub fn model() -> FixedPoint<Model, Value> {
    FixedPoint::new(Softmax::new(Const, Const), SCALE)
}

/// Features in units of 2^-6.
const SCALE: FeatureScale = match FeatureScale::new::<Value>(6) {
    Ok(scale) => scale,
    Err(_) => panic!("the features have no room for their places"),
};
