//! Instructions for the features of an image by the frozen backbone.

use core::hint::black_box;

use smolfed_firmware::{
    backbone::{FEATURES, PIXELS, features_into},
    data,
};

use super::counting::{count, print};

/// Measures all features of an image whose pixels have any value.
#[inline(never)]
pub fn measure() {
    let image: [i8; PIXELS] = data::image(0);
    let mut features = [0; FEATURES];
    let instructions = count(|| features_into(black_box(&image), &mut features));
    print("backbone", instructions);
    black_box(features);
}
