//! Features of a sensor's windows: which, and a ring buffer of raw samples to compute them of.
//!
//! The samples are counts of six channels, as an accelerometer and a gyroscope give them. The
//! experiment has the same recipe in `data.window`, and the same scale.

use smolfed_core::window::{Feature, Measure, Recipe, RecipeError, WindowError};

/// Channels of the sensor.
pub const CHANNELS: usize = 6;

/// Samples of a channel in a window.
pub const LENGTH: usize = 64;

/// Samples from the beginning of a window to that of the next: windows overlap by half.
pub const STEP: usize = 32;

/// The features of each channel.
pub const RECIPE: Recipe = checked(Recipe::new(
    LENGTH,
    &[
        Feature::Mean,
        Feature::Deviation,
        Feature::Minimum,
        Feature::Maximum,
    ],
    &[1, 3, 8, 33],
    Measure::Amplitude,
));

/// All features of a window.
pub const COUNT: usize = CHANNELS * RECIPE.feature_count();

/// The counts of a unit. A power of two, and a mean of 0: the quotient is exact, so that a model
/// reads the bits that it reads with `data.scale = { mean = 0, std = 4096 }`.
pub const UNIT: f32 = 4_096.0;

/// A recipe that is right, or does not compile.
#[expect(clippy::panic, reason = "while compiling only")]
pub const fn checked(recipe: Result<Recipe, RecipeError>) -> Recipe {
    match recipe {
        Ok(recipe) => recipe,
        Err(_) => panic!("the recipe of the features is wrong"),
    }
}

/// The last `LENGTH` rows of samples, in a ring.
pub struct Ring {
    rows: [[i16; CHANNELS]; LENGTH],
    /// The place of the next row, which is that of the oldest one.
    next: usize,
    /// Rows until a window is complete.
    missing: usize,
}

impl Ring {
    /// No rows yet.
    pub const fn new() -> Self {
        Self {
            rows: [[0; CHANNELS]; LENGTH],
            next: 0,
            missing: LENGTH,
        }
    }

    /// Takes the next row in the place of the oldest one; whether a window is complete.
    pub fn push(&mut self, row: [i16; CHANNELS]) -> bool {
        if let Some(place) = self.rows.get_mut(self.next) {
            *place = row;
        }
        self.next = (self.next + 1) % LENGTH;
        self.missing -= 1;
        let is_complete = self.missing == 0;
        if is_complete {
            self.missing = STEP;
        }
        is_complete
    }

    /// A sample of the window, from the oldest row on.
    pub fn sample(&self, channel: usize, step: usize) -> i16 {
        let row = self.rows.get((self.next + step) % LENGTH);
        row.and_then(|row| row.get(channel)).copied().unwrap_or(0)
    }

    /// The features of the window, as the model reads them.
    ///
    /// # Errors
    /// [`WindowError`] unless there is room for [`COUNT`] features.
    #[inline(never)]
    pub fn features_into(&self, features: &mut [f32]) -> Result<(), WindowError> {
        let sample = |channel, step| f32::from(self.sample(channel, step));
        RECIPE.features_into(sample, &mut [0.0; RECIPE.work_count()], features)?;
        features.iter_mut().for_each(|x| *x /= UNIT);
        Ok(())
    }

    /// The same in whole counts, without a floating-point unit.
    ///
    /// # Errors
    /// As [`features_into`](Self::features_into).
    #[inline(never)]
    pub fn counts_into(&self, features: &mut [i32]) -> Result<(), WindowError> {
        let sample = |channel, step| self.sample(channel, step);
        RECIPE.counts_into(sample, &mut [0; RECIPE.work_count()], features)
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}
