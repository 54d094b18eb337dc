//! A frozen backbone: a network of two convolutions in 8-bit integers. A client trains only the
//! head on its output features.
//!
//! No floating point, no heap, no panic: pixels outside an image are its zero point. The host uses
//! the same file in `cargo xtask backbone` and in the tests, and computes the same features.

#[path = "backbone/convolution.rs"]
pub mod convolution;
#[path = "backbone/weights.rs"]
pub mod weights;

use weights::{FIRST, SECOND};

/// Rows and columns of an image.
pub const SIDE: usize = 8;

/// Pixels of an image in row order: 0 to 16.
pub const PIXELS: usize = SIDE * SIDE;

/// Channels of the first layer.
pub const HIDDEN: usize = 8;

/// Channels of the second layer.
pub const CHANNELS: usize = 16;

/// Features of an image, 0 to 127: the channels of each quarter, in row order.
pub const FEATURES: usize = PIXELS / 16 * CHANNELS;

/// Computes the features of an image.
///
/// * Shape: [`PIXELS`] pixels, [`FEATURES`] features. Missing pixels are 0, and features that do
///   not fit are not computed.
/// * Units: the model reads a feature X as X · 2⁻⁶, which is public
///   (`smolfed_core::fixed_point::FeatureScale`).
/// * Cost: 23,040 products, and 128 bytes for the first layer.
pub fn features_into(image: &[i8], features: &mut [i8]) {
    let mut hidden = [[0; HIDDEN]; PIXELS / 4];
    FIRST.apply(image.as_chunks().0, &mut hidden);
    SECOND.apply(&hidden, features.as_chunks_mut().0);
}
