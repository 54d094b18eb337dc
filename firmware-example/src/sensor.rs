//! A ring buffer of the last windows of a sensor: what a device trains on that measures by itself.
//!
//! The sensor is made up. It sees one of `CLASSES` patterns at a time, with noise; a real one takes
//! windows from an accelerometer or a microphone, and targets from a button, a schedule or a rule.

use smolfed_core::{
    fixed_point::{Feature, FeatureScale},
    samples::Samples,
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

    /// Takes the next window of the sensor, in the place of the oldest one.
    #[inline(never)]
    pub fn measure(&mut self, sensor: &mut Sensor) {
        let index = self.seen.checked_rem(WINDOWS).unwrap_or(0);
        let (window, class) = (self.windows.get_mut(index), self.classes.get_mut(index));
        if let (Some(window), Some(class)) = (window, class) {
            *class = sensor.measure(window);
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

/// The sensor that is made up.
pub struct Sensor {
    classes: u16,
    state: u32,
}

impl Sensor {
    /// A sensor that sees that many classes; each device number has its own noise.
    pub const fn new(classes: u16, number: u32) -> Self {
        Self {
            classes,
            state: number,
        }
    }

    /// A window, and its class: 1 in the class's stretch of the window, and noise everywhere.
    fn measure<T: Reading>(&mut self, window: &mut [T]) -> u16 {
        let class = (self.word() >> 16) as u16 % self.classes.max(1);
        let stretch = (window.len() / usize::from(self.classes.max(1))).max(1);
        for (index, value) in window.iter_mut().enumerate() {
            *value = T::measured(index / stretch == usize::from(class), self.word());
        }
        class
    }

    /// A word of a linear congruence (Numerical Recipes): good enough for a sensor.
    fn word(&mut self) -> u32 {
        self.state = self
            .state
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.state
    }
}
