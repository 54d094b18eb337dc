//! A ring buffer of the last windows of a sensor: what a device trains on that measures by itself.
//!
//! The sensors are made up: [`Sensor`] gives whole windows, [`Motion`] rows of raw samples, of
//! whose windows features are computed, and [`Camera`](crate::camera::Camera) images. They see one
//! of `CLASSES` patterns at a time, with noise; a real one takes samples from an accelerometer or a
//! microphone, and targets from a button, a schedule or a rule.

use core::marker::PhantomData;

use smolfed_core::{
    fixed_point::{Feature, FeatureScale},
    provision::StoredSamples,
    recipe::Recipe,
    samples::Samples,
};

use crate::{
    features::{CHANNELS, LENGTH, RECIPE, STEP},
    ring::Ring,
};

/// A value of a window: a number, or an integer in units of 2⁻⁶.
pub trait Reading: Copy {
    /// Nothing measured.
    const ZERO: Self;

    /// 1 or 0, with the noise of a word of 32 bits, from −1/4 to 1/4.
    fn measured(is_one: bool, word: u32) -> Self;

    /// The values as numbers; none of integers.
    fn numbers(values: &[Self]) -> &[f32];

    /// Reads the values as integers; returns how many there are.
    fn read_integers<X: Feature>(values: &[Self], scale: FeatureScale, row: &mut [i32]) -> usize;
}

impl Reading for f32 {
    const ZERO: Self = 0.0;

    fn measured(is_one: bool, word: u32) -> Self {
        let level = if is_one { 1.0 } else { 0.0 };
        // 24 bits: exact in f32.
        level + ((word >> 8) as Self / 33_554_432.0 - 0.25)
    }

    fn numbers(values: &[Self]) -> &[f32] {
        values
    }

    /// Programs with integers keep windows of integers.
    fn read_integers<X: Feature>(_: &[Self], _: FeatureScale, _: &mut [i32]) -> usize {
        0
    }
}

impl Reading for i8 {
    const ZERO: Self = 0;

    fn measured(is_one: bool, word: u32) -> Self {
        let level = if is_one { 64 } else { 0 };
        // From −16 to 15: no overflow.
        level + ((word >> 27) as Self - 16)
    }

    fn numbers(_: &[Self]) -> &[f32] {
        &[]
    }

    fn read_integers<X: Feature>(values: &[Self], _: FeatureScale, row: &mut [i32]) -> usize {
        for (place, value) in row.iter_mut().zip(values) {
            *place = (*value).into();
        }
        values.len()
    }
}

/// Writes the features of a sample of the provisioning record; `None` if it has another length.
pub type OfStored<T> = fn(&StoredSamples<'_, u16>, usize, &mut [T]) -> Option<()>;

/// What is measured.
pub trait Sense {
    /// A value of a window, or a feature of it.
    type Value: Reading;

    /// The recipe of the features, which records and coordinators must have as well.
    const RECIPE: Option<Recipe> = None;

    /// How a sample of the provisioning record becomes features, if it is raw.
    const OF_STORED: Option<OfStored<Self::Value>> = None;

    /// A sensor that sees that many classes; each device number has its own noise.
    fn new(classes: u16, number: u32) -> Self;

    /// Measures once. If a window is complete, its features are written, and its class is returned.
    fn measure(&mut self, features: &mut [Self::Value]) -> Option<u16>;
}

/// The last `WINDOWS` windows of `FEATURES` values, each with its class.
pub struct Windows<const FEATURES: usize, const WINDOWS: usize, T = f32> {
    windows: [[T; FEATURES]; WINDOWS],
    classes: [u16; WINDOWS],
    /// Windows so far.
    seen: usize,
}

impl<const FEATURES: usize, const WINDOWS: usize, T: Reading> Windows<FEATURES, WINDOWS, T> {
    /// No windows yet.
    pub const fn new() -> Self {
        Self {
            windows: [[T::ZERO; FEATURES]; WINDOWS],
            classes: [0; WINDOWS],
            seen: 0,
        }
    }

    /// Lets the sensor measure; a window that is then complete takes the place of the oldest one.
    #[inline(never)]
    pub fn measure(&mut self, sensor: &mut impl Sense<Value = T>) {
        self.keep(|window| sensor.measure(window));
    }

    /// Keeps the window that is written, unless it is not complete, in the place of the oldest one.
    pub fn keep(&mut self, write: impl FnOnce(&mut [T]) -> Option<u16>) {
        let index = self.seen.checked_rem(WINDOWS).unwrap_or(0);
        let (window, class) = (self.windows.get_mut(index), self.classes.get_mut(index));
        if let (Some(window), Some(class)) = (window, class)
            && let Some(measured) = write(window)
        {
            *class = measured;
            self.seen += 1;
        }
    }
}

impl<const FEATURES: usize, const WINDOWS: usize, T: Reading> Default
    for Windows<FEATURES, WINDOWS, T>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<const FEATURES: usize, const WINDOWS: usize, T: Reading> Samples
    for Windows<FEATURES, WINDOWS, T>
{
    type Target = u16;

    fn len(&self) -> usize {
        self.seen.min(WINDOWS)
    }

    fn features(&self, index: usize) -> &[f32] {
        self.windows
            .get(index)
            .map_or(&[], |window| T::numbers(window))
    }

    fn read_integers<X: Feature>(
        &self,
        index: usize,
        scale: FeatureScale,
        row: &mut [i32],
    ) -> usize {
        self.windows
            .get(index)
            .map_or(0, |window| T::read_integers::<X>(window, scale, row))
    }

    fn target(&self, index: usize) -> u16 {
        self.classes.get(index).copied().unwrap_or_default()
    }
}

/// A sensor that gives a window at a time.
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

    /// 1 in the class's stretch of the window, and noise everywhere.
    fn measure(&mut self, window: &mut [T]) -> Option<u16> {
        let class = self.noise.class(self.classes);
        let stretch = (window.len() / usize::from(self.classes.max(1))).max(1);
        for (index, value) in window.iter_mut().enumerate() {
            *value = T::measured(index / stretch == usize::from(class), self.noise.word());
        }
        Some(class)
    }
}

/// A sensor of motion, a row of counts at a time: its classes are waves of different periods.
pub struct Motion {
    ring: Ring,
    classes: u16,
    noise: Noise,
    class: u16,
    /// Rows since the class began.
    time: i32,
}

impl Motion {
    /// Rows of a class, after which another one begins: three windows.
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
            // A window lies in one class.
            self.ring = Ring::new();
            self.class = self.noise.class(self.classes);
            self.time = 0;
        }
        let row: [i16; CHANNELS] = core::array::from_fn(|channel| {
            // A saw tooth that falls so many times in a window.
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

/// A linear congruence (Numerical Recipes): good enough for a sensor.
pub struct Noise(pub u32);

impl Noise {
    /// 32 bits.
    pub const fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    /// Below `classes`.
    pub fn class(&mut self, classes: u16) -> u16 {
        (self.word() >> 16) as u16 % classes.max(1)
    }
}
