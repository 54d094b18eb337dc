//! What follows from the experiment: features, classes, model and arithmetic.
//!
//! `smolfed data recipe experiment.toml --rust` prints this file.

use smolfed_core::{
    Const, Softmax,
    features::{Cells, FeatureError, Gradients},
    fixed_point::FeatureScale,
    recipe::Recipe,
    session::FixedPoint,
};

/// Rows of an image.
pub const ROWS: usize = 28;
/// Columns of an image.
pub const COLUMNS: usize = 28;
/// Planes of an image: 3 of a colour image.
pub const PLANES: usize = 1;
/// The image in cells.
const CELLS: Cells = match Cells::new(ROWS, COLUMNS, 4) {
    Ok(cells) => cells,
    Err(_) => panic!("the cells do not fit the image"),
};
const GRADIENTS: Gradients = Gradients::new(CELLS);
/// Features of an image.
pub const FEATURES: usize = GRADIENTS.feature_count();
/// Classes, in the order of the experiment.
pub const CLASSES: usize = {{classes}};
/// A feature, as it is stored.
pub type Value = i8;
/// The recipe, which records and coordinators must have as well.
pub const RECIPE: Option<Recipe> = Some(Recipe::Gradients {
    cells: CELLS,
    planes: PLANES as u8,
});

/// Writes the features of an image of 8 bits, row after row.
///
/// # Errors
/// None: lengths are those of the recipe.
pub fn features_into(
    planes: &[[u8; ROWS * COLUMNS]; PLANES],
    features: &mut [Value; FEATURES],
) -> Result<(), FeatureError> {
    let planes = planes.each_ref().map(|plane| plane.as_slice());
    let mut sums = [0; FEATURES];
    let _saturated = GRADIENTS.quantised_into(planes, SCALE, &mut sums, features)?;
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
