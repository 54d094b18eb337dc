//! Features of a window of a sensor's samples, such as two seconds of an accelerometer: a small
//! model learns more from them than from the samples.
//!
//! A [`Recipe`] lists them. Device and desktop compute them with the same code, from `f32` or from
//! integers, and get the same bits. A window has some channels, each with `length` samples x₀, x₁,
//! .. The features of the first channel come first. One channel has the following features, in this
//! order, if the recipe lists them:
//!
//! | feature | formula |
//! | --- | --- |
//! | mean | m = Σ xₜ / length |
//! | deviation | √(Σ (xₜ − m)² / length) |
//! | minimum, maximum | min xₜ, max xₜ |
//! | energy | Σ xₜ² / length |
//! | zero crossings | number of sign changes of xₜ − m, divided by length |
//! | bands, each | Σ of the energies of the frequencies a ≤ k < b, or its root |
//!
//! The energy of frequency k is cₖ·|Xₖ|² / (n · length), where X is the discrete Fourier transform
//! of the n values xₜ − m, n the smallest power of two that is at least `length`, padded with
//! zeros. cₖ is 1 for k = 0 and k = n/2, and 2 in between, for k and n − k. All energies add up to
//! the square of the deviation (Parseval). Frequency k is k/n of the sampling rate. There is no
//! taper: a wave between two frequencies shows in both, and less in their neighbours.
//!
//! ```
//! use smolfed_core::window::{Feature, Measure, Recipe};
//!
//! // Each channel: mean, deviation, and what lies at 1 to 3 and 4 to 16 of 32 frequencies.
//! const RECIPE: Recipe = match Recipe::new(
//!     32,
//!     &[Feature::Mean, Feature::Deviation],
//!     &[1, 4, 17],
//!     Measure::Amplitude,
//! ) {
//!     Ok(recipe) => recipe,
//!     Err(_) => panic!("the recipe"),
//! };
//! let (mut work, mut features) = ([0.0; RECIPE.work_count()], [0.0; 2 * RECIPE.feature_count()]);
//! // Two channels: a wave of two periods around 5, and nothing.
//! let wave = |t: usize| [5.0, 6.0, 5.0, 4.0][t / 4 % 4];
//! let sample = |channel, t| if channel == 0 { wave(t) } else { 0.0 };
//! RECIPE.features_into(sample, &mut work, &mut features)?;
//! assert_eq!(features[0], 5.0);
//! assert!(features[2] > 2.0 * features[3], "most of it is at frequency 2");
//! assert_eq!(features[4..], [0.0; 4]);
//! # Ok::<(), smolfed_core::window::WindowError>(())
//! ```

mod block;
mod error;
mod float;
mod integer;
mod recipe;
mod scale;
mod sine;
mod spectrum;

pub use error::{RecipeError, ScaleError, WindowError};
pub use recipe::{Feature, MAX_BANDS, MAX_LENGTH, Measure, Recipe};
pub use scale::Scale;

#[cfg(test)]
mod tests;
