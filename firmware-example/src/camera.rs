//! A camera in front of the frozen backbone: each image becomes features, and only these are kept.
//!
//! The images are made up, as those of the other sensors, unless the provisioning record has some.
//! The file is where another network goes in the place of the backbone, such as one of TensorFlow
//! Lite Micro or microflow: `docs/boards.md`, "A frozen backbone".

use smolfed_core::{fixed_point::FeatureScale, provision::StoredSamples, samples::Samples};

use crate::{
    backbone::{PIXELS, SIDE, features_into},
    sensor::{Noise, OfStored, Sense},
};

/// Pixels are their own integers.
const PIXEL_SCALE: FeatureScale = match FeatureScale::new::<i8>(0) {
    Ok(scale) => scale,
    Err(_) => panic!("whole numbers have room in i8"),
};

/// A camera that sees bars: their row is the class, as long as there are rows enough.
pub struct Camera {
    classes: u16,
    noise: Noise,
}

impl Sense for Camera {
    type Value = i8;

    const OF_STORED: Option<OfStored<i8>> = Some(of_stored);

    fn new(classes: u16, number: u32) -> Self {
        Self {
            classes,
            noise: Noise(number),
        }
    }

    fn measure(&mut self, features: &mut [i8]) -> Option<u16> {
        let class = self.noise.class(self.classes);
        let bar = usize::from(class) % SIDE;
        let image: [i8; PIXELS] = core::array::from_fn(|pixel| {
            let level = if pixel / SIDE == bar { 12 } else { 0 };
            // From 0 to 3 more.
            level + (self.noise.word() >> 30) as i8
        });
        features_into(&image, features);
        Some(class)
    }
}

/// The features of an image of the record.
fn of_stored(images: &StoredSamples<'_, u16>, index: usize, features: &mut [i8]) -> Option<()> {
    let mut pixels = [0; PIXELS];
    let count = images.read_integers::<i8>(index, PIXEL_SCALE, &mut pixels);
    let image = pixels.map(|pixel| pixel as i8);
    features_into(&image, features);
    (count == PIXELS).then_some(())
}
