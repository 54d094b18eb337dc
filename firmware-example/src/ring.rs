//! A ring buffer of a sensor's raw samples, of whose windows features are computed.

use smolfed_core::window::WindowError;

use crate::features::{CHANNELS, LENGTH, RECIPE, STEP, UNIT};

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
    /// [`WindowError`] unless there is room for [`COUNT`](crate::features::COUNT) features.
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
