//! What the client is built with: the model's size, and the data that it trains on.

use smolfed_core::{
    provision::{Stored, StoredSamples},
    samples::Samples,
};

use crate::sensor::{Sensor, Windows};

/// Features of the model: `SMOLFED_FEATURES` when the firmware is built.
pub const FEATURES: usize = number(env!("SMOLFED_FEATURES"));

/// Classes of the model: `SMOLFED_CLASSES` when the firmware is built.
pub const CLASSES: usize = number(env!("SMOLFED_CLASSES"));

/// Samples of the record that are used at most, four bytes of RAM each.
pub const MOST_SAMPLES: usize = 64;

/// Windows of the sensor that are kept.
pub const WINDOWS: usize = if cfg!(board = "microbit") { 6 } else { 32 };

/// A number in the environment of the build; anything else does not compile.
const fn number(text: &str) -> usize {
    match usize::from_str_radix(text, 10) {
        Ok(number) if number > 0 => number,
        _ => panic!("SMOLFED_FEATURES and SMOLFED_CLASSES must be positive numbers"),
    }
}

/// What the device trains on. One type for both, so that the training is in the flash once.
pub enum LocalData<'a> {
    /// The samples of the provisioning record.
    Stored(StoredSamples<'a, u16>),
    /// The last windows of the sensor.
    Measured(&'a mut Windows<FEATURES, WINDOWS>),
}

impl<'a> LocalData<'a> {
    /// The record's samples, or windows where it has none; `None` if the samples do not fit the model.
    pub fn new(stored: &Stored<'a>, windows: &'a mut Windows<FEATURES, WINDOWS>) -> Option<Self> {
        if stored.is_empty() {
            return Some(Self::Measured(windows));
        }
        if stored.feature_count() != FEATURES || stored.len() > MOST_SAMPLES {
            return None;
        }
        stored.in_place().ok().map(Self::Stored)
    }

    /// Takes the next window of the sensor, if that is what is trained on.
    pub fn measure(&mut self, sensor: &mut Sensor) {
        if let Self::Measured(windows) = self {
            windows.measure(sensor);
        }
    }
}

impl Samples for LocalData<'_> {
    type Target = u16;

    fn len(&self) -> usize {
        match self {
            Self::Stored(samples) => samples.len(),
            Self::Measured(windows) => windows.len(),
        }
    }

    fn features(&self, index: usize) -> &[f32] {
        match self {
            Self::Stored(samples) => samples.features(index),
            Self::Measured(windows) => windows.features(index),
        }
    }

    fn target(&self, index: usize) -> u16 {
        match self {
            Self::Stored(samples) => samples.target(index),
            Self::Measured(windows) => windows.target(index),
        }
    }
}
