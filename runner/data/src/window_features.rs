//! Features of windows of recordings, by the code that runs on devices:
//! [`smolfed_core::window`].

use smolfed_core::window::{Recipe, WindowError};

/// Which features are computed of a window, and whether from numbers or from counts.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFeatures {
    recipe: Recipe,
    counts: Option<Vec<f64>>,
}

/// Why features of windows are not computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowFeaturesError {
    /// A number for each channel, or one for all.
    #[error(
        "`data.window.counts` has {found} numbers for {channels} channels; give 1 or {channels}"
    )]
    Counts {
        /// Numbers that were given.
        found: usize,
        /// Channels.
        channels: usize,
    },
    /// A window with a gap.
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
    /// Values that are too large.
    #[error("the window from row {}: {reason}", row + 1)]
    Window {
        /// The first row of the window, from 0.
        row: usize,
        /// What is wrong with it.
        reason: WindowError,
    },
}

impl WindowFeatures {
    /// From numbers in `f32`; or from integers of 16 bits, as a sensor gives them, where `counts`
    /// says how many counts a unit has, for all channels or for each: each value is rounded to a
    /// count, and beyond 16 bits to the last one.
    #[must_use]
    pub const fn new(recipe: Recipe, counts: Option<Vec<f64>>) -> Self {
        Self { recipe, counts }
    }

    /// Which features.
    #[must_use]
    pub const fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// How many counts a unit of each channel has, or of all; `None` for features of numbers.
    #[must_use]
    pub fn counts(&self) -> Option<&[f64]> {
        self.counts.as_deref()
    }

    /// The names of the features of channels of these names: `ax_mean`, `ax_band_0`.
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

    /// The features of a window that begins at `row`; `value` gives the values of a channel.
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
