//! The smoothing factor of gradients, checked by its bit pattern. Programs without smoothing
//! contain no other code of it.

use super::{error::SmoothingError, recursion::NARROW_SIGMA};

/// σ of gradient smoothing, from 0 to [`NARROW_SIGMA`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct SmoothingFactor(f32);

impl SmoothingFactor {
    /// Checks σ, without unit. 0 is no smoothing, 1 to 3 is usual.
    ///
    /// # Errors
    /// [`SmoothingError::NotFinite`], [`SmoothingError::Negative`] and
    /// [`SmoothingError::TooLarge`].
    pub const fn new(sigma: f32) -> Result<Self, SmoothingError> {
        const MAX: u32 = NARROW_SIGMA.to_bits();
        const INFINITY: u32 = f32::INFINITY.to_bits();
        const SIGN: u32 = (-0.0_f32).to_bits();
        // Bit patterns of non-negative numbers have the order of the numbers.
        match sigma.to_bits() {
            ..=MAX | SIGN => Ok(Self(sigma)),
            pattern if pattern & !SIGN >= INFINITY => Err(SmoothingError::NotFinite),
            SIGN.. => Err(SmoothingError::Negative),
            _ => Err(SmoothingError::TooLarge),
        }
    }

    /// Returns σ.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// Returns whether σ is 0: no smoothing.
    pub const fn is_zero(self) -> bool {
        // A nonzero factor has a bit pattern from 1 to that of the largest factor. The compiler
        // would turn a comparison with 0 into a floating-point one.
        self.0.to_bits().wrapping_sub(1) >= NARROW_SIGMA.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_checked() {
        let new = |sigma| SmoothingFactor::new(sigma).map(SmoothingFactor::get);
        assert_eq!(new(NARROW_SIGMA), Ok(NARROW_SIGMA));
        assert_eq!(new(0.5), Ok(0.5));
        assert_eq!(new(NARROW_SIGMA.next_up()), Err(SmoothingError::TooLarge));
        assert_eq!(new(-1e-40), Err(SmoothingError::Negative));
        for sigma in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(new(sigma), Err(SmoothingError::NotFinite));
        }
        for zero in [0.0, -0.0] {
            assert!(SmoothingFactor::new(zero).unwrap().is_zero());
        }
        assert!(!SmoothingFactor::new(1e-40).unwrap().is_zero());
    }
}
