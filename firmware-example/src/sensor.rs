//! A ring buffer of the last windows of a sensor: what a device trains on that measures by itself.
//!
//! The sensor is made up. It sees one of `CLASSES` patterns at a time, with noise; a real one takes
//! windows from an accelerometer or a microphone, and targets from a button, a schedule or a rule.

use smolfed_core::samples::Samples;

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
    fn measure(&mut self, window: &mut [f32]) -> u16 {
        let class = (self.word() >> 16) as u16 % self.classes.max(1);
        let stretch = (window.len() / usize::from(self.classes.max(1))).max(1);
        for (index, value) in window.iter_mut().enumerate() {
            let level = if index / stretch == usize::from(class) {
                1.0
            } else {
                0.0
            };
            // 24 bits: exact in f32, from -0.25 to 0.25.
            *value = level + ((self.word() >> 8) as f32 / 33_554_432.0 - 0.25);
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
