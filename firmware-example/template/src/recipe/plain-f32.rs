//! Numbers of the experiment for a sensor without computed features, in `f32`: features, classes
//! and model.
//!
//! The same numbers are in the experiment.

use smolfed_core::{Const, FixedModel, Softmax, recipe::Recipe};

/// Features of a sample.
pub const FEATURES: usize = {{features}};
/// Classes, in the order of the experiment.
pub const CLASSES: usize = {{classes}};
/// A feature, as it is stored.
pub type Value = f32;
/// A feature of 1.
pub const ONE: Value = 1.0;
/// The features are those of the sensor.
pub const RECIPE: Option<Recipe> = None;

/// The model.
pub type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
/// Scratch memory of training.
pub const SCRATCH: usize = Model::SCRATCH;

/// The model.
pub fn model() -> Model {
    Softmax::new(Const, Const)
}
