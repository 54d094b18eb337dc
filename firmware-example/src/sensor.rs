//! A ring buffer of the last windows of a sensor: what a device trains on that measures by itself.
//!
//! The sensors are made up: [`Sensor`] gives whole windows, [`Motion`] rows of raw samples, of
//! whose windows features are computed. They see one of `CLASSES` patterns at a time, with noise; a
//! real one takes samples from an accelerometer or a microphone, and targets from a button, a
//! schedule or a rule.

use smolfed_core::samples::Samples;

use crate::{
    features::{CHANNELS, LENGTH, STEP},
    ring::Ring,
};

/// What is measured.
pub trait Sense {
    /// A sensor that sees that many classes; each device number has its own noise.
    fn new(classes: u16, number: u32) -> Self;

    /// Measures once. If a window is complete, its features are written, and its class is returned.
    fn measure(&mut self, features: &mut [f32]) -> Option<u16>;
}

/// The last `WINDOWS` windows of `FEATURES` values, each with its class.
pub struct Windows<const FEATURES: usize, const WINDOWS: usize> {
    windows: [[f32; FEATURES]; WINDOWS],
    classes: [u16; WINDOWS],
    /// Windows so far.
    seen: usize,
}

impl<const FEATURES: usize, const WINDOWS: usize> Windows<FEATURES, WINDOWS> {
    /// No windows yet.
    pub const fn new() -> Self {
        Self {
            windows: [[0.0; FEATURES]; WINDOWS],
            classes: [0; WINDOWS],
            seen: 0,
        }
    }

    /// Lets the sensor measure; a window that is then complete takes the place of the oldest one.
    #[inline(never)]
    pub fn measure(&mut self, sensor: &mut impl Sense) {
        let index = self.seen.checked_rem(WINDOWS).unwrap_or(0);
        let (window, class) = (self.windows.get_mut(index), self.classes.get_mut(index));
        if let (Some(window), Some(class)) = (window, class)
            && let Some(measured) = sensor.measure(window)
        {
            *class = measured;
            self.seen += 1;
        }
    }
}

impl<const FEATURES: usize, const WINDOWS: usize> Default for Windows<FEATURES, WINDOWS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const FEATURES: usize, const WINDOWS: usize> Samples for Windows<FEATURES, WINDOWS> {
    type Target = u16;

    fn len(&self) -> usize {
        self.seen.min(WINDOWS)
    }

    fn features(&self, index: usize) -> &[f32] {
        self.windows.get(index).map_or(&[], |window| window)
    }

    fn target(&self, index: usize) -> u16 {
        self.classes.get(index).copied().unwrap_or_default()
    }
}

/// A sensor that gives a window at a time.
pub struct Sensor {
    classes: u16,
    noise: Noise,
}

impl Sense for Sensor {
    fn new(classes: u16, number: u32) -> Self {
        Self {
            classes,
            noise: Noise(number),
        }
    }

    /// 1 in the class's stretch of the window, and noise everywhere.
    fn measure(&mut self, window: &mut [f32]) -> Option<u16> {
        let class = self.noise.class(self.classes);
        let stretch = (window.len() / usize::from(self.classes.max(1))).max(1);
        for (index, value) in window.iter_mut().enumerate() {
            let level = if index / stretch == usize::from(class) {
                1.0
            } else {
                0.0
            };
            // 24 bits: exact in f32, from -0.25 to 0.25.
            *value = level + ((self.noise.word() >> 8) as f32 / 33_554_432.0 - 0.25);
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
struct Noise(u32);

impl Noise {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0
    }

    fn class(&mut self, classes: u16) -> u16 {
        (self.word() >> 16) as u16 % classes.max(1)
    }
}
