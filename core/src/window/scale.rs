//! Conversion of a feature in counts to 8 or 16 bits, by public constants.

use super::error::ScaleError;

/// The scale (feature − offset) · multiplier / 2^shift, rounded to the nearest integer, halves away
/// from zero.
///
/// A simulation in integers has the same bits. With F binary places ([`FeatureScale`]), its
/// `data.scale` is `{ mean = offset, std = 2^(shift + F) / multiplier }`, and [`round_feature`]
/// rounds and saturates by the same rule. The simulation scales in `f64` and keeps `f32`, so this
/// holds for features of magnitude below 2²⁴ (all but large energies), with a shift of at most 16
/// for 8 bits, or 8 for 16 bits. It holds for any shift if the multiplier is a power of two and
/// feature − offset is below 2²⁴ as well.
///
/// [`FeatureScale`]: crate::fixed_point::FeatureScale
/// [`round_feature`]: crate::fixed_point::round_feature
///
/// The constants are public: they come from the sensor's range or from public data, never from
/// measurements of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "crate::serial::RawScale", into = "crate::serial::RawScale")
)]
pub struct Scale {
    offset: i32,
    multiplier: u16,
    shift: u8,
}

impl Scale {
    /// No scaling.
    pub const IDENTITY: Self = Self {
        offset: 0,
        multiplier: 1,
        shift: 0,
    };

    /// # Errors
    /// [`ScaleError`] for a multiplier of 0 or a shift of more than 47 bits.
    pub const fn new(offset: i32, multiplier: u16, shift: u8) -> Result<Self, ScaleError> {
        match (multiplier, shift) {
            (0, _) => Err(ScaleError::Zero),
            (_, 48..) => Err(ScaleError::Shift),
            _ => Ok(Self {
                offset,
                multiplier,
                shift,
            }),
        }
    }

    /// Returns offset, multiplier and shift.
    #[must_use]
    pub const fn parts(self) -> (i32, u16, u8) {
        (self.offset, self.multiplier, self.shift)
    }

    /// Converts to 8 bits, from −128 to 127, and returns whether the value saturated.
    #[must_use]
    pub fn to_i8(self, feature: i32) -> (i8, bool) {
        let (value, is_beyond) = self.within(feature, i8::MIN.into(), i8::MAX.into());
        (value as i8, is_beyond)
    }

    /// Converts to 16 bits, from −32,768 to 32,767, and returns whether the value saturated.
    #[must_use]
    pub fn to_i16(self, feature: i32) -> (i16, bool) {
        let (value, is_beyond) = self.within(feature, i16::MIN.into(), i16::MAX.into());
        (value as i16, is_beyond)
    }

    fn within(self, feature: i32, min: i64, max: i64) -> (i64, bool) {
        // 33 bits, times 16.
        let product = (i64::from(feature) - i64::from(self.offset)) * i64::from(self.multiplier);
        let sign = product >> 63;
        let magnitude = (product ^ sign) - sign;
        let rounded = (magnitude + ((1 << self.shift) >> 1)) >> self.shift;
        let value = (rounded ^ sign) - sign;
        let clamped = value.clamp(min, max);
        (clamped, clamped != value)
    }
}
