//! Features of a window of a sensor's samples, such as two seconds of an accelerometer: numbers
//! that say more to a small model than the samples do.
//!
//! A [`Recipe`] says which; device and desktop compute them with the same code, from `f32` or from
//! integers, and get the same bits. A window has some channels, each with `length` samples
//! x₀, x₁, ..; the features of the first channel come first. Of one channel they are, in this
//! order and as far as the recipe lists them:
//!
//! | feature | formula |
//! | --- | --- |
//! | mean | m = Σ xₜ / length |
//! | deviation | √(Σ (xₜ − m)² / length) |
//! | minimum, maximum | min xₜ, max xₜ |
//! | energy | Σ xₜ² / length |
//! | zero crossings | how often xₜ − m changes its sign, divided by length |
//! | bands, each | Σ of the energies of the frequencies a ≤ k < b, or its root |
//!
//! The energy of frequency k is cₖ·|Xₖ|² / (n · length), where X is the discrete Fourier transform
//! of the n values xₜ − m, n the least power of two that is not below `length`, and zeros at the
//! end; cₖ is 1 for k = 0 and k = n/2, and 2 in between, for k and n − k. All of them together
//! are the square of the deviation (Parseval). Frequency k is k/n of the sampling rate. There is
//! no taper: a wave between two frequencies shows in both, and less in their neighbours.
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
