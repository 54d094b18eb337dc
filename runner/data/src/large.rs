//! Large numbers, which keep the digits that `f32` cannot hold until they are scaled.
//!
//! An epoch in milliseconds is near 2⁴¹, where `f32` has steps of 131,072: (x − mean) / std must
//! subtract before it rounds. Whether a number is large depends only on the number itself, so a
//! device rounds its values like the simulation, and no row affects the reading of another one.
//! Smaller numbers are rounded immediately.

/// The smallest large number: `f32` has steps of 2⁻⁸ there, and of 128 at seconds since 1970.
const LARGE: f64 = 32_768.0;

/// Returns whether the nearest `f32` of a number is large.
#[must_use]
pub fn is_large(nearest: f32) -> bool {
    f64::from(nearest).abs() >= LARGE
}

/// Returns the stored value of a number: all digits of a large one, otherwise the nearest `f32`.
#[must_use]
pub fn kept(value: f64) -> f64 {
    match is_large(value as f32) {
        true => value,
        false => f64::from(value as f32),
    }
}

/// Returns the nearest `f32` of a number, and the rest of a large one.
#[must_use]
pub fn split(value: f64) -> (f32, f64) {
    let nearest = value as f32;
    (nearest, kept(value) - f64::from(nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_numbers_are_more_than_32_bits() {
        for value in [0.1, -32_767.99, 1e-20] {
            assert_eq!(split(value), (value as f32, 0.0));
            assert_eq!(kept(value), f64::from(value as f32));
        }
        for value in [1_700_000_000_123.0, -45_292.51, 16_777_217.0] {
            let (nearest, rest) = split(value);
            assert_ne!(rest, 0.0);
            assert_eq!(f64::from(nearest) + rest, value);
            assert_eq!(kept(value), value);
        }
        assert_eq!(split(65_536.0), (65_536.0, 0.0));
    }
}
