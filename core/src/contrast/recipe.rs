//! The recipe that a coordinator sends after an encoder: the variations of views with their limits,
//! and the share of the device's own samples in the repulsion.

use rand_core::Rng;

use super::augment::{Augment, ChannelDrop, Jitter, Rotation, Scaling, TimeShift};

/// Numbers of a [`Recipe`] in messages.
pub const RECIPE_LENGTH: usize = 12;

/// Maximum number of values of a sample, and maximum length and jitter in a recipe.
const MAX_LENGTH: f32 = 65_535.0;

/// Largest angle, in radians, above half a turn either way.
const MAX_ANGLE: f32 = 4.0;

/// Variations of views as numbers, 0 for none, and α.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recipe {
    /// α of the device in this round.
    pub alpha: f32,
    /// Largest rotation of an image, in radians.
    pub turn: f32,
    /// Largest shift of an image, in pixels.
    pub shift: f32,
    /// Largest side of an erased square, in pixels.
    pub erase: f32,
    /// Rows of an image.
    pub height: f32,
    /// Pixels of a row.
    pub width: f32,
    /// Largest angle of [`Rotation`], in radians.
    pub rotation: f32,
    /// Values of a channel.
    pub time: f32,
    /// Largest shift in time, in values.
    pub time_shift: f32,
    /// Reach of [`Scaling`].
    pub scaling: f32,
    /// Probability of [`ChannelDrop`].
    pub channel_drop: f32,
    /// Std of [`Jitter`].
    pub jitter: f32,
}

impl Recipe {
    /// Returns the numbers, in the order of messages.
    #[must_use]
    pub const fn values(&self) -> [f32; RECIPE_LENGTH] {
        [
            self.alpha,
            self.turn,
            self.shift,
            self.erase,
            self.height,
            self.width,
            self.rotation,
            self.time,
            self.time_shift,
            self.scaling,
            self.channel_drop,
            self.jitter,
        ]
    }

    /// Returns the recipe with these numbers, or `None` if their count is wrong or one is out of
    /// range.
    #[must_use]
    pub fn read(values: &[f32]) -> Option<Self> {
        let &[
            alpha,
            turn,
            shift,
            erase,
            height,
            width,
            rotation,
            time,
            time_shift,
            scaling,
            channel_drop,
            jitter,
        ] = values
        else {
            return None;
        };
        // NaN is in no range.
        let is_in = |value: f32, largest: f32| (0.0..=largest).contains(&value);
        let shares = [alpha, scaling, channel_drop];
        let lengths = [shift, erase, height, width, time, time_shift];
        let is_valid = shares.iter().all(|share| is_in(*share, 1.0))
            && [turn, rotation]
                .iter()
                .all(|angle| is_in(*angle, MAX_ANGLE))
            && lengths.iter().all(|length| is_in(*length, MAX_LENGTH))
            && is_in(jitter, MAX_LENGTH);
        is_valid.then_some(Self {
            alpha,
            turn,
            shift,
            erase,
            height,
            width,
            rotation,
            time,
            time_shift,
            scaling,
            channel_drop,
            jitter,
        })
    }
}

/// Variations that a recipe can request.
pub trait FromRecipe: Augment + Sized {
    /// Returns the variations, or `None` if the recipe requests others.
    fn from_recipe(recipe: &Recipe) -> Option<Self>;
}

/// Returns a value, or `None` if it is 0.
#[must_use]
pub fn given(value: f32) -> Option<f32> {
    Some(value).filter(|value| *value > 0.0)
}

/// Variations of sensor windows, in order of application: first of the position, then of the
/// values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    /// Rotation of windows of three axes.
    pub rotation: Option<Rotation>,
    /// Shift in time.
    pub time_shift: Option<TimeShift>,
    /// Scaling of channels.
    pub scaling: Option<Scaling>,
    /// Dropout of channels.
    pub channel_drop: Option<ChannelDrop>,
    /// Noise on values.
    pub jitter: Option<Jitter>,
}

impl Windows {
    /// Returns whether all views of a sample would be the same.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.rotation.is_none()
            && self.time_shift.is_none()
            && self.scaling.is_none()
            && self.channel_drop.is_none()
            && self.jitter.is_none()
    }

    /// Returns the variations of windows in a recipe, and ignores the others.
    #[must_use]
    pub fn of(recipe: &Recipe) -> Self {
        let time = recipe.time as usize;
        Self {
            rotation: given(recipe.rotation).map(|reach| Rotation { reach }),
            time_shift: given(recipe.time_shift).map(|reach| TimeShift {
                reach: reach as u32,
                time,
            }),
            scaling: given(recipe.scaling).map(|reach| Scaling { reach, time }),
            channel_drop: given(recipe.channel_drop)
                .map(|probability| ChannelDrop { probability, time }),
            jitter: given(recipe.jitter).map(Jitter),
        }
    }

    /// Writes the variations to a recipe.
    pub fn write(&self, recipe: &mut Recipe) {
        let time = self.time_shift.map(|shift| shift.time);
        let time = time.or(self.scaling.map(|scaling| scaling.time));
        let time = time.or(self.channel_drop.map(|drop| drop.time));
        recipe.time = time.unwrap_or(0) as f32;
        recipe.rotation = self.rotation.map_or(0.0, |rotation| rotation.reach);
        recipe.time_shift = self.time_shift.map_or(0.0, |shift| shift.reach as f32);
        recipe.scaling = self.scaling.map_or(0.0, |scaling| scaling.reach);
        recipe.channel_drop = self.channel_drop.map_or(0.0, |drop| drop.probability);
        recipe.jitter = self.jitter.map_or(0.0, |jitter| jitter.0);
    }
}

impl Augment for Windows {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        if let Some(rotation) = &self.rotation {
            rotation.apply(sample, rng);
        }
        if let Some(shift) = &self.time_shift {
            shift.apply(sample, rng);
        }
        if let Some(scaling) = &self.scaling {
            scaling.apply(sample, rng);
        }
        if let Some(drop) = &self.channel_drop {
            drop.apply(sample, rng);
        }
        if let Some(jitter) = &self.jitter {
            jitter.apply(sample, rng);
        }
    }
}

impl FromRecipe for Windows {
    fn from_recipe(recipe: &Recipe) -> Option<Self> {
        let of_images = [recipe.turn, recipe.shift, recipe.erase];
        let windows = Self::of(recipe);
        let has_others = of_images.into_iter().any(|value| value > 0.0);
        (!has_others && !windows.is_none()).then_some(windows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            alpha: 0.5,
            rotation: 0.5,
            time: 25.0,
            time_shift: 4.0,
            scaling: 0.25,
            channel_drop: 0.125,
            jitter: 0.1,
            ..Recipe::default()
        }
    }

    #[test]
    fn variations_of_windows_travel_as_numbers() {
        let asked = recipe();
        let read = Recipe::read(&asked.values()).unwrap();
        assert_eq!(read, asked);
        let windows = Windows::from_recipe(&read).unwrap();
        let mut written = Recipe {
            alpha: asked.alpha,
            ..Recipe::default()
        };
        windows.write(&mut written);
        assert_eq!(written, asked);
        let of_image = Recipe {
            shift: 1.0,
            ..asked
        };
        assert!(Windows::from_recipe(&of_image).is_none());
        // All views would be the same.
        assert!(Windows::from_recipe(&Recipe::default()).is_none());
    }

    #[test]
    fn numbers_out_of_range_are_no_recipe() {
        let values = recipe().values();
        assert_eq!(Recipe::read(&values[1..]), None);
        for place in 0..RECIPE_LENGTH {
            for wrong in [-1.0, f32::NAN, f32::INFINITY, 1e9] {
                let mut values = values;
                values[place] = wrong;
                assert_eq!(Recipe::read(&values), None, "{place}: {wrong}");
            }
        }
    }

    proptest! {
        /// For any request of a coordinator, views have the length of their sample and nothing
        /// panics.
        #[test]
        fn any_recipe_does_no_harm(
            values in proptest::array::uniform12(0.0_f32..2.0), time in 0.0_f32..70_000.0,
            length in 0_usize..40,
        ) {
            let mut values = values;
            values[7] = time;
            if let Some(windows) = Recipe::read(&values).map(|recipe| Windows::of(&recipe)) {
                let mut sample = [1.0; 40];
                let mut rng = crate::stream::Root::from_seed(1).stream(crate::stream::StreamId {
                    purpose: crate::stream::Purpose::Augmentation,
                    round: 0,
                    device: 0,
                });
                windows.apply(&mut sample[..length], &mut rng);
                prop_assert!(sample.iter().all(|x| x.is_finite()));
            }
        }
    }
}
