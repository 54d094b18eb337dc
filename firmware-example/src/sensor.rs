//! A ring buffer of a sensor's last windows, for a device that trains on its own measurements.
//!
//! The sensors are simulated: [`Sensor`] gives whole windows, [`Motion`] rows of raw samples for
//! features of their windows, and [`Camera`](crate::camera::Camera) images. They see one of
//! `CLASSES` patterns at a time, with noise. A real sensor takes samples from an accelerometer or a
//! microphone, and targets from a button, a schedule or a rule.

use core::marker::PhantomData;

use smolfed_core::{
    provision::StoredSamples,
    recipe::Recipe,
    samples::{self, SampleBuffer, SampleError},
};

use crate::{
    features::{CHANNELS, LENGTH, RECIPE, STEP},
    ring::Ring,
};

/// A value of a window: a number, or an integer in units of 2⁻⁶.
pub trait Reading: samples::Reading {
    /// Returns 1 or 0, with noise from −1/4 to 1/4 taken from a word of 32 bits.
    fn measured(is_one: bool, word: u32) -> Self;
}

impl Reading for f32 {
    fn measured(is_one: bool, word: u32) -> Self {
        let level = if is_one { 1.0 } else { 0.0 };
        // 24 bits are exact in f32.
        level + ((word >> 8) as Self / 33_554_432.0 - 0.25)
    }
}

impl Reading for i8 {
    fn measured(is_one: bool, word: u32) -> Self {
        let level = if is_one { 64 } else { 0 };
        // From −16 to 15, so no overflow.
        level + ((word >> 27) as Self - 16)
    }
}

/// Writes the features of a sample of the provisioning record. Returns `None` for another length.
pub type OfStored<T> = fn(&StoredSamples<'_, u16>, usize, &mut [T]) -> Option<()>;

/// A sensor and its features.
pub trait Sense {
    /// A value of a window, or one of its features.
    type Value: Reading;

    /// The recipe of the features, which records and coordinators must also have.
    const RECIPE: Option<Recipe> = None;

    /// Computes features from a raw sample of the provisioning record.
    const OF_STORED: Option<OfStored<Self::Value>> = None;

    /// Creates a sensor that sees `classes` classes. Each device number has different noise.
    fn new(classes: u16, number: u32) -> Self;

    /// Measures once. For a complete window, writes its features and returns its class.
    fn measure(&mut self, features: &mut [Self::Value]) -> Option<u16>;
}

/// Last `WINDOWS` windows of `FEATURES` values, each with its class.
pub struct Windows<const FEATURES: usize, const WINDOWS: usize, T = f32> {
    samples: SampleBuffer<T, u16, FEATURES, WINDOWS>,
}

impl<const FEATURES: usize, const WINDOWS: usize, T: Reading> Windows<FEATURES, WINDOWS, T> {
    /// Creates an empty buffer for `classes` classes.
    pub fn new(classes: u16) -> Self {
        Self {
            samples: SampleBuffer::of_classes(classes),
        }
    }

    /// Lets the sensor measure. A complete window replaces the oldest one.
    ///
    /// # Errors
    /// As [`Self::keep`]: the sensor fails.
    #[inline(never)]
    pub fn measure(&mut self, sensor: &mut impl Sense<Value = T>) -> Result<(), SampleError> {
        self.keep(|window| sensor.measure(window))
    }

    /// Keeps the written window if it is complete, in the slot of the oldest one.
    ///
    /// # Errors
    /// [`SampleError`] for a window that cannot be used in training. The window is dropped.
    pub fn keep(&mut self, write: impl FnOnce(&mut [T]) -> Option<u16>) -> Result<(), SampleError> {
        let mut window = [T::default(); FEATURES];
        match write(&mut window) {
            Some(class) => self.samples.push(&window, class),
            None => Ok(()),
        }
    }

    /// Returns the windows.
    pub const fn samples(&self) -> &SampleBuffer<T, u16, FEATURES, WINDOWS> {
        &self.samples
    }
}

/// A sensor that returns one window at a time.
pub struct Sensor<T = f32> {
    classes: u16,
    noise: Noise,
    value: PhantomData<T>,
}

impl<T: Reading> Sense for Sensor<T> {
    type Value = T;

    fn new(classes: u16, number: u32) -> Self {
        Self {
            classes,
            noise: Noise(number),
            value: PhantomData,
        }
    }

    /// Writes 1 in the class's section of the window, and noise everywhere.
    fn measure(&mut self, window: &mut [T]) -> Option<u16> {
        let class = self.noise.class(self.classes);
        let stretch = (window.len() / usize::from(self.classes.max(1))).max(1);
        for (index, value) in window.iter_mut().enumerate() {
            *value = T::measured(index / stretch == usize::from(class), self.noise.word());
        }
        Some(class)
    }
}

/// A motion sensor that returns one row of counts at a time. Its classes differ in wave period.
pub struct Motion {
    ring: Ring,
    classes: u16,
    noise: Noise,
    class: u16,
    /// Rows since the class began.
    time: i32,
}

impl Motion {
    /// Rows of a class before the next one: three windows.
    const ROWS: i32 = (LENGTH + 2 * STEP) as i32;
}

impl Sense for Motion {
    type Value = f32;

    const RECIPE: Option<Recipe> = Some(Recipe::Windows {
        recipe: RECIPE,
        channels: CHANNELS as u16,
    });

    fn new(classes: u16, number: u32) -> Self {
        let mut noise = Noise(number);
        Self {
            ring: Ring::new(),
            classes,
            class: noise.class(classes),
            noise,
            time: 0,
        }
    }

    fn measure(&mut self, features: &mut [f32]) -> Option<u16> {
        if self.time == Self::ROWS {
            // A window has one class.
            self.ring = Ring::new();
            self.class = self.noise.class(self.classes);
            self.time = 0;
        }
        let row: [i16; CHANNELS] = core::array::from_fn(|channel| {
            // A sawtooth that falls `falls` times in a window.
            let falls = i32::from(self.class) + channel as i32 + 1;
            let wave = self.time * falls * 64 % 4_096 - 2_048;
            (wave + (self.noise.word() >> 22) as i32 - 512) as i16
        });
        self.time += 1;
        let is_complete = self.ring.push(row);
        let computed = is_complete.then(|| self.ring.features_into(features).ok());
        computed.flatten().map(|()| self.class)
    }
}

/// Linear congruential generator (Numerical Recipes): good enough for a sensor.
pub struct Noise(pub u32);

impl Noise {
    /// Returns 32 bits.
    pub const fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    /// Returns a class below `classes`.
    pub fn class(&mut self, classes: u16) -> u16 {
        (self.word() >> 16) as u16 % classes.max(1)
    }
}
