//! Random variations (augmentation) for views of a device's samples: turns, shifts and erased
//! squares of images, and variations of windows.

use rand_core::Rng;
use smolfed_core::contrast::augment::Augment;
use smolfed_core::contrast::{FromRecipe, Recipe, Windows, given};

use super::images::{Erase, ImageShape, Shift, Turn};

/// The variations of an experiment in order of application: first positions, then values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variations {
    /// Turns of images.
    pub turn: Option<(ImageShape, Turn)>,
    /// Shifts of images.
    pub shift: Option<(ImageShape, Shift)>,
    /// Erased squares of images.
    pub erase: Option<(ImageShape, Erase)>,
    /// Variations of windows, and of values.
    pub windows: Windows,
}

impl Variations {
    /// Returns whether all views of a sample would be the same.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.turn.is_none()
            && self.shift.is_none()
            && self.erase.is_none()
            && self.windows.is_none()
    }

    /// Returns the recipe for a real device, without α.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        let shape = self.turn.map(|(shape, _)| shape);
        let shape = shape.or(self.shift.map(|(shape, _)| shape));
        let shape = shape.or(self.erase.map(|(shape, _)| shape));
        let mut recipe = Recipe {
            turn: self.turn.map_or(0.0, |(_, turn)| turn.0),
            shift: self.shift.map_or(0.0, |(_, shift)| shift.0 as f32),
            erase: self.erase.map_or(0.0, |(_, erase)| erase.0 as f32),
            height: shape.map_or(0.0, |shape| shape.height as f32),
            width: shape.map_or(0.0, |shape| shape.width as f32),
            ..Recipe::default()
        };
        self.windows.write(&mut recipe);
        recipe
    }
}

impl FromRecipe for Variations {
    fn from_recipe(recipe: &Recipe) -> Option<Self> {
        let shape = ImageShape::of_axes(&[recipe.height as usize, recipe.width as usize]);
        let of_image = [recipe.turn, recipe.shift, recipe.erase];
        if shape.is_none() && of_image.into_iter().any(|value| value > 0.0) {
            return None;
        }
        let variations = Self {
            turn: shape.zip(given(recipe.turn).map(Turn)),
            shift: shape.zip(given(recipe.shift).map(|reach| Shift(reach as u32))),
            erase: shape.zip(given(recipe.erase).map(|side| Erase(side as u32))),
            windows: Windows::of(recipe),
        };
        (!variations.is_none()).then_some(variations)
    }
}

impl Augment for Variations {
    fn apply(&self, sample: &mut [f32], rng: &mut impl Rng) {
        if let Some((shape, turn)) = &self.turn {
            turn.apply(*shape, sample, rng);
        }
        if let Some((shape, shift)) = &self.shift {
            shift.apply(*shape, sample, rng);
        }
        if let Some((shape, erase)) = &self.erase {
            erase.apply(*shape, sample, rng);
        }
        self.windows.apply(sample, rng);
    }
}

#[cfg(test)]
mod tests {
    use smolfed_core::contrast::augment::Jitter;
    use smolfed_core::stream::{Purpose, Root, StreamId};

    use super::*;

    /// An image larger than the sample allocates nothing.
    #[test]
    fn an_image_of_any_size_does_no_harm() {
        let recipe = Recipe {
            turn: 1.0,
            shift: 9.0,
            erase: 9.0,
            height: 65_535.0,
            width: 65_535.0,
            ..Recipe::default()
        };
        let variations = Variations::from_recipe(&recipe).unwrap();
        let mut sample = [1.0; 12];
        let mut rng = Root::from_seed(1).stream(StreamId {
            purpose: Purpose::Augmentation,
            round: 0,
            device: 0,
        });
        variations.apply(&mut sample, &mut rng);
        assert_eq!(sample, [1.0; 12]);
    }

    #[test]
    fn a_recipe_gives_the_same_views() {
        let shape = ImageShape {
            height: 8,
            width: 6,
        };
        let variations = Variations {
            turn: Some((shape, Turn(0.2))),
            shift: Some((shape, Shift(2))),
            erase: Some((shape, Erase(3))),
            windows: Windows {
                jitter: Some(Jitter(0.1)),
                ..Windows::default()
            },
        };
        let values = variations.recipe().values();
        let read = Variations::from_recipe(&Recipe::read(&values).unwrap()).unwrap();
        assert_eq!(format!("{variations:?}"), format!("{read:?}"));
        let without_shape = Recipe {
            height: 1.0,
            ..variations.recipe()
        };
        assert!(Variations::from_recipe(&without_shape).is_none());
    }
}
