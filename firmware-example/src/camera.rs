//! A camera: each image becomes features, and only the features are kept.
//!
//! The images are simulated, unless the provisioning record has images. Another network, for
//! example from TensorFlow Lite Micro or microflow, can replace the backbone here:
//! `docs/board-models.md`, "A frozen backbone".

use core::marker::PhantomData;

use smolfed_core::{
    fixed_point::FeatureScale, provision::StoredSamples, recipe::Recipe, samples::Samples,
};

use crate::{
    backbone::{self, PIXELS, SIDE},
    sensor::{Noise, OfStored, Reading, Sense},
};

/// Pixels are integers already.
const PIXEL_SCALE: FeatureScale = match FeatureScale::new::<i16>(0) {
    Ok(scale) => scale,
    Err(_) => panic!("whole numbers have room in i16"),
};

/// Computes the features of an image.
pub trait ImageFeatures<T> {
    /// Recipe of the features for records and coordinators, if any.
    const RECIPE: Option<Recipe> = None;

    /// Writes the features of an image. Returns `None` if they do not fit.
    fn features_into(image: &[u8; PIXELS], features: &mut [T]) -> Option<()>;
}

/// The features of the frozen backbone.
pub struct Backbone;

impl ImageFeatures<i8> for Backbone {
    fn features_into(image: &[u8; PIXELS], features: &mut [i8]) -> Option<()> {
        // The digits have levels of at most 16.
        let image = image.map(|pixel| pixel.min(127) as i8);
        backbone::features_into(&image, features);
        Some(())
    }
}

/// A camera that sees bars. The row of the bar is the class, as long as there are enough rows.
pub struct Camera<F, T> {
    classes: u16,
    noise: Noise,
    features: PhantomData<(F, T)>,
}

impl<F: ImageFeatures<T>, T: Reading> Sense for Camera<F, T> {
    type Value = T;

    const RECIPE: Option<Recipe> = F::RECIPE;

    const OF_STORED: Option<OfStored<T>> = Some(of_stored::<F, T>);

    fn new(classes: u16, number: u32) -> Self {
        Self {
            classes,
            noise: Noise(number),
            features: PhantomData,
        }
    }

    fn measure(&mut self, features: &mut [T]) -> Option<u16> {
        let class = self.noise.class(self.classes);
        let bar = usize::from(class) % SIDE;
        let image: [u8; PIXELS] = core::array::from_fn(|pixel| {
            let level = if pixel / SIDE == bar { 12 } else { 0 };
            // Adds 0 to 3.
            level + (self.noise.word() >> 30) as u8
        });
        F::features_into(&image, features).map(|()| class)
    }
}

/// Computes the features of an image of the record.
fn of_stored<F: ImageFeatures<T>, T>(
    images: &StoredSamples<'_, u16>,
    index: usize,
    features: &mut [T],
) -> Option<()> {
    let mut pixels = [0; PIXELS];
    let count = images.read_integers::<i16>(index, PIXEL_SCALE, &mut pixels);
    let image = pixels.map(|pixel| pixel.clamp(0, 255) as u8);
    let has_all = (count == PIXELS).then_some(());
    has_all.and_then(|()| F::features_into(&image, features))
}
