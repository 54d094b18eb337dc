//! Conversion of the sums of a layer to 8-bit integers of the next layer: bias, multiplier,
//! rounding, and the limit of shifts.

use super::Fault;

/// Bias and multiplier m · 2⁻ⁿ of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Bias in units of the products.
    pub bias: i32,
    /// m in units of 2⁻³¹: at least 0, and 2³⁰ or more for full precision.
    pub mantissa: i32,
    /// n, from −30 to 30.
    pub shift: i8,
}

/// Largest magnitude of n.
const MAX_SHIFT: u8 = 30;

impl Output {
    /// Returns `sum · m · 2⁻ⁿ`, rounded twice: `sum · m` to a whole number, half up, and its
    /// quotient by 2ⁿ to a whole result, half away from zero. If n is negative, `sum · 2⁻ⁿ`
    /// saturates first.
    ///
    /// Source: `MultiplyByQuantizedMultiplier` of TensorFlow Lite, with the rounding of gemmlowp,
    /// `fixedpoint/fixedpoint.h`.
    #[inline]
    #[must_use]
    pub const fn scaled(self, sum: i32) -> i32 {
        let shift = self.shift.unsigned_abs();
        let shift = if shift > MAX_SHIFT { MAX_SHIFT } else { shift };
        if self.shift < 0 {
            // Below 2⁶¹ in magnitude.
            let wide = (sum as i64) << shift;
            let narrow = if wide > i32::MAX as i64 {
                i32::MAX
            } else if wide < i32::MIN as i64 {
                i32::MIN
            } else {
                wide as i32
            };
            return self.high(narrow);
        }
        let high = self.high(sum);
        let rest = high & ((1 << shift) - 1);
        let threshold = (((1 << shift) - 1) >> 1) + (high < 0) as i32;
        (high >> shift) + (rest > threshold) as i32
    }

    /// Returns `sum · m`, rounded half up.
    #[inline]
    const fn high(self, sum: i32) -> i32 {
        // The product is below 2⁶² in magnitude, and the quotient is rounded toward zero.
        let product = sum as i64 * self.mantissa as i64;
        let half = if product < 0 { 1 - (1 << 30) } else { 1 << 30 };
        ((product + half) / (1 << 31)) as i32
    }

    /// Converts a sum without its bias to an integer of the next layer, from `least` to 127.
    #[inline]
    pub(super) fn activation(self, sum: i32, zero: i8, least: i8) -> i8 {
        let scaled = self.scaled(sum.wrapping_add(self.bias));
        let value = scaled.saturating_add(i32::from(zero));
        // Within i8 after the clamp.
        value.clamp(i32::from(least), 127) as i8
    }

    /// Checks that all multipliers are within their limits.
    pub(super) const fn check(outputs: &[Self]) -> Result<(), Fault> {
        if outputs.is_empty() || outputs.len() > u16::MAX as usize {
            return Err(Fault::Outputs);
        }
        let mut i = 0;
        while i < outputs.len() {
            if outputs[i].mantissa < 0 || outputs[i].shift.unsigned_abs() > MAX_SHIFT {
                return Err(Fault::Multiplier);
            }
            i += 1;
        }
        Ok(())
    }
}

/// Returns Σ w (x − zero), over the shorter length.
///
/// Sums of 65,000 products and more could wrap. The quantiser bounds each sum of its tables to
/// prevent this. Other tables give meaningless numbers, but no panic.
#[inline(always)]
pub(super) fn dot(weights: &[i8], values: &[i8], zero: i32) -> i32 {
    let terms = weights.iter().zip(values);
    terms.fold(0_i32, |sum, (weight, value)| {
        sum.wrapping_add(i32::from(*weight) * (i32::from(*value) - zero))
    })
}
