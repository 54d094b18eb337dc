//! Conversion of features to integers of 8 bits, and back, for predictions.

/// A scale of 8-bit integers: the integer q represents `unit · (q − zero)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value of a unit, above 0.
    pub unit: f32,
    /// The integer that represents 0.
    pub zero: i8,
}

impl Scale {
    /// Returns the integer nearest to a number, half away from zero. Numbers beyond −128 and 127
    /// saturate.
    ///
    /// The division is in `f64`, so a C program can reproduce the bits. Firmware without floating
    /// point computes integers itself.
    #[inline]
    #[must_use]
    pub fn integer(self, x: f32) -> i8 {
        let units = f64::from(x) / f64::from(self.unit);
        let half = if units < 0.0 { -0.5 } else { 0.5 };
        // Casts truncate and saturate.
        let whole = (units + half) as i32;
        let integer = whole.saturating_add(i32::from(self.zero));
        integer.clamp(-128, 127) as i8
    }

    /// Returns the number that an integer represents.
    #[must_use]
    pub fn value(self, integer: i8) -> f32 {
        self.unit * (i32::from(integer) - i32::from(self.zero)) as f32
    }
}
