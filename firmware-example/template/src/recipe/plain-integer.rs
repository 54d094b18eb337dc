//! Numbers of the experiment for a sensor without computed features, in integers: features,
//! classes, model and binary places.
//!
//! The same numbers are in the experiment.

use smolfed_core::{
    Const, Softmax, fixed_point::FeatureScale, recipe::Recipe, session::FixedPoint,
};

/// Features of a sample.
pub const FEATURES: usize = {{features}};
/// Classes, in the order of the experiment.
pub const CLASSES: usize = {{classes}};
/// A feature, as it is stored.
pub type Value = i8;
/// A feature of 1, in units of 2^-6.
pub const ONE: Value = 64;
/// The features are those of the sensor.
pub const RECIPE: Option<Recipe> = None;

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
