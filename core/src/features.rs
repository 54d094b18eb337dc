//! Fixed features of one sample, from which a small model learns more than from pixels or columns.
//!
//! A feature here is a public function of one sample. It reads no other sample and no other device,
//! so it costs no privacy and needs no noise. Fewer and better features also mean fewer parameters,
//! and so less noise in the model. Device and desktop compute them with the same code, in `f32` or
//! in integers, and get the same bits.
//!
//! | features | input | meaning |
//! | --- | --- | --- |
//! | [`Gradients`] | an image of 8 bits | strength of edges, by cell and by direction |
//! | [`Pool`] | an image of 8 bits | brightness, by cell |
//! | [`Steps`] | a number with public bounds | a piecewise-linear encoding |
//! | [`window`](crate::window) | samples of a sensor | means, deviations, energies of bands |
//!
//! **Gradients** (histograms of oriented gradients: Dalal, Triggs 2005). For the pixel x in row r
//! and column c, gx = x\[r, c+1\] − x\[r, c−1\] and gy = x\[r+1, c\] − x\[r−1, c\]. gx is 0 in the
//! first and last column, gy in the first and last row. With a = max(|gx|, |gy|) and
//! b = min(|gx|, |gy|), the magnitude is a + ⌊3b/8⌋, within 7 % of the Euclidean length. The
//! direction is diagonal if 29b > 12a (12/29 is close to tan 22.5°), else along the axis of the
//! larger one. A cell has 8 sums of magnitudes, one for each direction.
//!
//! **Shares.** Gradients and pooled cells become √(c / S) · √n / 2: c is a sum, S the total of all
//! n sums. Contrast and lighting do not change the length of the roots of shares, √n / 2, which
//! bounds every sample. An image without contrast has zeros.
//!
//! **Steps** of a number x from `low` to `high`: clip((x − low) / (high − low) · count − j, 0, 1) −
//! ½ for j = 0 .. count − 1. A linear model of them is piecewise linear in x. A missing value, NaN,
//! gives zeros, so nothing is filled in. Bounds come from documentation, never from data.
//!
//! ```
//! use smolfed_core::features::{Cells, Gradients};
//!
//! // An image of 8 × 8 pixels, dark on the left and bright on the right, in cells of 4 × 4.
//! const GRADIENTS: Gradients = match Cells::new(8, 8, 4) {
//!     Ok(cells) => Gradients::new(cells),
//!     Err(_) => panic!("a cell that does not fit"),
//! };
//! let image: [u8; 64] = std::array::from_fn(|i| if i % 8 < 4 { 20 } else { 220 });
//! let mut features = [0.0; GRADIENTS.feature_count()];
//! GRADIENTS.features_into([&image], &mut features)?;
//! // All gradients have direction 0, +x: an eighth of the features. Each of the four cells has a
//! // quarter of them: √¼ · √32 / 2.
//! assert_eq!(features.iter().filter(|x| **x > 0.0).count(), 4);
//! assert!((features[0] - 2.0_f32.sqrt()).abs() < 1e-6);
//! # Ok::<(), smolfed_core::features::FeatureError>(())
//! ```

mod cells;
mod error;
mod gradients;
mod pool;
mod shares;
mod steps;

pub use cells::{Cells, MAX_SIDE};
pub use error::FeatureError;
pub use gradients::{DIRECTIONS, Gradients};
pub use pool::Pool;
pub use steps::{MAX_STEPS, Range, Steps};

#[cfg(test)]
mod tests;
