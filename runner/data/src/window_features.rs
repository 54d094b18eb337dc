//! Features of windows of recordings, by the code that runs on devices:
//! [`smolfed_core::window`].

use smolfed_core::window::{Recipe, WindowError};

/// The features computed from a window, with numbers or with counts as input.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFeatures {
    recipe: Recipe,
    counts: Option<Vec<f64>>,
}

/// The reason why features of windows are not computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowFeaturesError {
    /// The number of counts is neither one nor the number of channels.
    #[error(
        "`data.window.counts` has {found} numbers for {channels} channels; give 1 or {channels}"
    )]
    Counts {
        /// The given number.
        found: usize,
        /// Number of channels.
        channels: usize,
    },
    /// A window has a gap.
    #[error(
        "row {}: `{column}` is missing, and features of a window need all of its values; leave out \
         the column or the row", row + 1
    )]
    Missing {
        /// The row, from 0.
        row: usize,
        /// The channel.
        column: String,
    },
    /// Values are too large.
    #[error("the window from row {}: {reason}", row + 1)]
    Window {
        /// The first row of the window, from 0.
        row: usize,
        /// The reason.
        reason: WindowError,
    },
}

impl WindowFeatures {
    /// Creates features of `f32` numbers or, with `counts`, of 16-bit integers as from a sensor.
    /// `counts` is the number of counts per unit, for all channels or for each. Each value is
    /// rounded to a count, saturating at 16 bits.
    #[must_use]
    pub const fn new(recipe: Recipe, counts: Option<Vec<f64>>) -> Self {
        Self { recipe, counts }
    }

    /// Returns the recipe of the features.
    #[must_use]
    pub const fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the number of counts per unit of each channel, or of all. `None` for features of
    /// numbers.
    #[must_use]
    pub fn counts(&self) -> Option<&[f64]> {
        self.counts.as_deref()
    }

    /// Returns the names of the features of channels with these names: `ax_mean`, `ax_band_0`.
    #[must_use]
    pub fn names<'a>(&self, channels: impl Iterator<Item = &'a str>) -> Vec<String> {
        let features = self.recipe.features();
        let mut names: Vec<String> = features.map(|x| x.name().replace('-', "_")).collect();
        let bands = self.recipe.feature_count() - names.len();
        names.extend((0..bands).map(|band| format!("band_{band}")));
        channels
            .flat_map(|channel| names.iter().map(move |name| format!("{channel}_{name}")))
            .collect()
    }

    /// Returns the features of a window that begins at `row`. `value` returns the values of a
    /// channel.
    ///
    /// # Errors
    /// [`WindowFeaturesError`] for a wrong number of counts, or values that are too large.
    pub fn compute(
        &self,
        channels: usize,
        value: impl Fn(usize, usize) -> f32,
        row: usize,
    ) -> Result<Vec<f32>, WindowFeaturesError> {
        let refused = |reason| WindowFeaturesError::Window { row, reason };
        let count = channels * self.recipe.feature_count();
        let Some(counts) = &self.counts else {
            let (mut work, mut features) = (vec![0.0; self.recipe.work_count()], vec![0.0; count]);
            let computed = self.recipe.features_into(value, &mut work, &mut features);
            return computed.map(|()| features).map_err(refused);
        };
        let of_channel = match counts.as_slice() {
            [all] => vec![*all; channels],
            each if each.len() == channels => each.to_vec(),
            each => {
                let found = each.len();
                return Err(WindowFeaturesError::Counts { found, channels });
            }
        };
        // `as` saturates.
        let sample = |channel: usize, step| {
            (f64::from(value(channel, step)) * of_channel[channel]).round() as i16
        };
        let (mut work, mut features) = (vec![0; self.recipe.work_count()], vec![0; count]);
        let computed = self.recipe.counts_into(sample, &mut work, &mut features);
        computed.map_err(refused)?;
        Ok(features.into_iter().map(|x| x as f32).collect())
    }
}

#[cfg(test)]
mod tests;
