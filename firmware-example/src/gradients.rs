//! Gradients of a camera's images as features, in `f32` and in integers: the size of their cells,
//! and the recipe.
//!
//! The experiment has the same cells in `[features]`. The device sends its recipe in each greeting,
//! and a coordinator with another recipe refuses the device.

use smolfed_core::{
    features::{Cells, Gradients},
    recipe::Recipe,
};

use crate::{
    backbone::{PIXELS, SIDE},
    camera::ImageFeatures,
    client::SCALE,
    number::number,
};

/// Pixels per side of a cell, from `SMOLFED_CELL` at build time.
const CELL: usize = number(env!("SMOLFED_CELL"));

/// Cells of the image.
const CELLS: Cells = match Cells::new(SIDE, SIDE, CELL) {
    Ok(cells) => cells,
    Err(_) => panic!("SMOLFED_CELL does not fit the image"),
};

const GRADIENTS: Gradients = Gradients::new(CELLS);

/// Features of an image.
pub const FEATURES: usize = GRADIENTS.feature_count();

const RECIPE: Recipe = Recipe::Gradients {
    cells: CELLS,
    planes: 1,
};

/// The gradients of an image.
pub struct OfImage;

impl ImageFeatures<f32> for OfImage {
    const RECIPE: Option<Recipe> = Some(RECIPE);

    fn features_into(image: &[u8; PIXELS], features: &mut [f32]) -> Option<()> {
        GRADIENTS.features_into([image], features).ok()
    }
}

impl ImageFeatures<i8> for OfImage {
    const RECIPE: Option<Recipe> = Some(RECIPE);

    fn features_into(image: &[u8; PIXELS], features: &mut [i8]) -> Option<()> {
        let mut sums = [0; FEATURES];
        let written = GRADIENTS.quantised_into([image], SCALE, &mut sums, features);
        written.ok().map(|_saturated| ())
    }
}
