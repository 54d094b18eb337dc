//! A ring buffer of a sensor's raw samples, in which a new row replaces the oldest one, with
//! features of its windows.

use smolfed_core::window::WindowError;

use crate::features::{CHANNELS, LENGTH, RECIPE, STEP, UNIT};

/// Last `LENGTH` rows of samples, in a ring.
pub struct Ring {
    rows: [[i16; CHANNELS]; LENGTH],
    /// Index of the next row, which replaces the oldest one.
    next: usize,
    /// Rows until a window is complete.
    missing: usize,
}

impl Ring {
    /// Creates an empty ring.
    pub const fn new() -> Self {
        Self {
            rows: [[0; CHANNELS]; LENGTH],
            next: 0,
            missing: LENGTH,
        }
    }

    /// Stores the next row, replacing the oldest one. Returns whether a window is complete.
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

    /// Returns a sample of the window, counted from the oldest row.
    pub fn sample(&self, channel: usize, step: usize) -> i16 {
        let row = self.rows.get((self.next + step) % LENGTH);
        row.and_then(|row| row.get(channel)).copied().unwrap_or(0)
    }

    /// Computes the features of the window in the model's format.
    ///
    /// # Errors
    /// [`WindowError`] unless there is room for [`COUNT`](crate::features::COUNT) features.
    #[inline(never)]
    pub fn features_into(&self, features: &mut [f32]) -> Result<(), WindowError> {
        let sample = |channel, step| f32::from(self.sample(channel, step));
        RECIPE.features_into(sample, &mut [0.0; RECIPE.work_count()], features)?;
        features.iter_mut().for_each(|x| *x /= UNIT);
        Ok(())
    }

    /// Computes the features in whole counts, without a floating-point unit.
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
