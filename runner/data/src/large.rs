//! Large numbers, which keep the digits that `f32` has no room for until they are scaled.
//!
//! An epoch in milliseconds is near 2⁴¹, where `f32` steps by 131,072: (x − mean) / std must
//! subtract first and round later. Whether a number is large follows from itself alone, so that a
//! device rounds its values as the simulation does, and no row decides how another one is read.
//! Smaller numbers are rounded at once.

/// Numbers from here on are large: `f32` steps by 2⁻⁸ there, and by 128 at seconds since 1970.
const LARGE: f64 = 32_768.0;

/// Whether the nearest `f32` of a number is large.
#[must_use]
pub fn is_large(nearest: f32) -> bool {
    f64::from(nearest).abs() >= LARGE
}

/// The number that is kept of one: all of a large one, else the nearest `f32`.
#[must_use]
pub fn kept(value: f64) -> f64 {
    match is_large(value as f32) {
        true => value,
        false => f64::from(value as f32),
    }
}

/// The nearest `f32` of a number, and what that leaves out of a large one.
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
