//! Instructions for the gradients of an image of 28 × 28 pixels in cells of 4 × 4, in `f32` and in
//! integers.

use core::hint::black_box;

use smolfed_core::{
    features::{Cells, Gradients},
    fixed_point::FeatureScale,
};

use super::counting::{count, print};

const SIDE: usize = 28;

const GRADIENTS: Gradients = match Cells::new(SIDE, SIDE, 4) {
    Ok(cells) => Gradients::new(cells),
    Err(_) => panic!("a cell that does not fit"),
};

/// `i8` with six binary places.
const SCALE: FeatureScale = match FeatureScale::new::<i8>(6) {
    Ok(scale) => scale,
    Err(_) => panic!("more binary places than an i8 has"),
};

/// A bright ring on a dark background, with a gradient in almost every cell.
static IMAGE: [u8; SIDE * SIDE] = {
    let mut image = [0; SIDE * SIDE];
    let mut index = 0;
    while index < image.len() {
        let (down, right) = (index / SIDE * 2, index % SIDE * 2);
        let distance = down.abs_diff(SIDE).pow(2) + right.abs_diff(SIDE).pow(2);
        let from_ring = distance.abs_diff(324) / 2;
        image[index] = if from_ring < 255 {
            255 - from_ring as u8
        } else {
            0
        };
        index += 1;
    }
    image
};

/// Measures the features of an image.
#[inline(never)]
pub fn measure() -> Option<()> {
    let image = black_box(&IMAGE);
    let mut computed = None;
    let mut features = [0.0; GRADIENTS.feature_count()];
    let instructions = count(|| computed = GRADIENTS.features_into([image], &mut features).ok());
    computed?;
    print("gradients", instructions);
    black_box(&features);
    let mut sums = [0; GRADIENTS.feature_count()];
    let mut features = [0_i8; GRADIENTS.feature_count()];
    let mut quantised = None;
    let instructions = count(|| {
        let found = GRADIENTS.quantised_into([image], SCALE, &mut sums, &mut features);
        quantised = found.ok();
    });
    print("gradients-integer", instructions);
    black_box(features);
    quantised.map(|_| ())
}
