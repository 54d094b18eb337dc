//! The integer grid: the range and default of its bits, and the exact conversion of a clipped
//! update to integers, and back after the noise.
//!
//! The grid has the step `clip_norm · 2^-b`. Each entry is rounded **toward zero**, so rounding
//! never raises the norm, and an update inside the L2 ball of radius `clip_norm` satisfies
//! `Σq² ≤ 4^b`. Privacy rests on that bound. It is computed and enforced in integers, by the device
//! here ([`Grid::quantizer`]) and again by the server ([`Grid::check`]), so the rounding of the
//! floating-point clipping before it cannot matter.
//!
//! From here to the noise there are only integers, which prevents attacks on floating-point
//! Gaussian noise and makes sums independent of order. [`Grid::value`] converts back. It is
//! post-processing and costs no privacy.

use crate::{
    integer::{divide, square_root},
    params::ClipNorm,
};

/// The range of the bits of a [`Grid`].
pub const BITS: core::ops::RangeInclusive<u32> = 4..=24;

/// Default number of bits of a grid.
pub const DEFAULT_BITS: u32 = 20;

/// Number of entries of at most 2²⁵ with a sum of squares below 2⁶⁴.
const BLOCK: usize = 1 << 13;

/// Parts of the bit pattern of an `f32`: sign, stored significand, and hidden bit.
const SIGN: u32 = 0x8000_0000;
const SIGNIFICAND: u32 = 0x007f_ffff;
const HIDDEN: u32 = 0x0080_0000;

/// Reason why an update does not fit the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum QuantizeError {
    /// The number of bits is outside [`BITS`].
    Bits(u32),
    /// An entry is NaN or infinite.
    NotFinite,
    /// The update was not clipped: an entry is more than twice the clip norm, or the sum of the
    /// squares does not fit 64 bits.
    NotClipped,
    /// Integers whose squares sum to more than 4^b: not a clipped update.
    OutOfBound,
    /// The lengths of buffer and update differ.
    Length {
        /// Entries of the update.
        expected: usize,
        /// Entries of the buffer.
        found: usize,
    },
}

impl core::fmt::Display for QuantizeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Bits(bits) => {
                write!(
                    f,
                    "a grid of {bits} bits: it must have {} to {}",
                    BITS.start(),
                    BITS.end()
                )
            }
            Self::NotFinite => f.write_str("the update has an entry that is not finite"),
            Self::NotClipped => f.write_str("the update is not clipped to the clip norm"),
            Self::OutOfBound => f.write_str("the integers exceed the bound of a clipped update"),
            Self::Length { expected, found } => {
                write!(
                    f,
                    "the buffer has {found} entries, but the update has {expected}"
                )
            }
        }
    }
}

impl core::error::Error for QuantizeError {}

/// The grid of step `clip_norm · 2^-bits`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "crate::serial::RawGrid", into = "crate::serial::RawGrid")
)]
pub struct Grid {
    clip_norm: ClipNorm,
    bits: u32,
}

impl Grid {
    /// Creates a grid for updates clipped to `clip_norm`.
    ///
    /// # Errors
    /// [`QuantizeError::Bits`] unless `bits` is in [`BITS`].
    pub const fn new(clip_norm: ClipNorm, bits: u32) -> Result<Self, QuantizeError> {
        if bits < *BITS.start() || bits > *BITS.end() {
            return Err(QuantizeError::Bits(bits));
        }
        Ok(Self { clip_norm, bits })
    }

    /// Returns the clip norm.
    pub const fn clip_norm(&self) -> ClipNorm {
        self.clip_norm
    }

    /// Returns the number of bits b.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the bound 4^b on the sum of squares of a quantised update.
    pub const fn bound(&self) -> u64 {
        1 << (2 * self.bits)
    }

    /// Returns the step of the grid, in units of the parameters: `clip_norm · 2^-b`, exact.
    pub const fn step(&self) -> f64 {
        self.clip_norm.get() as f64 / (1u64 << self.bits) as f64
    }

    /// Converts to floating point, **after** the noise: `sum · step / divisor`.
    pub fn value(&self, sum: i64, divisor: f64) -> f32 {
        (sum as f64 * self.step() / divisor) as f32
    }

    /// Checks a clipped update and returns the map from its entries to integers, which guarantees
    /// `Σq² ≤ 4^b` over the whole update.
    ///
    /// The map is applied entry by entry, so a device can send an update without a second buffer.
    ///
    /// # Errors
    /// [`QuantizeError::NotFinite`] or [`QuantizeError::NotClipped`] for an update that was not
    /// clipped. The device must then sit the round out.
    pub fn quantizer(&self, update: &[f32]) -> Result<Quantizer, QuantizeError> {
        self.refuse_unclipped(update.iter().map(|x| x.to_bits()))?;
        let steps = Steps::of(self);
        let squares = update.chunks(BLOCK).fold(0, |sum: u64, block| {
            sum.saturating_add(sum_of_squares(
                block.iter().map(|x| steps.round_toward_zero(*x)),
            ))
        });
        let repair = self.repair_for(squares)?;
        Ok(Quantizer { steps, repair })
    }

    /// Rounds a clipped update in place: replaces the bit patterns of its entries by those of
    /// `i32`. The result maps these to the integers of [`Self::quantizer`]. Each entry is rounded
    /// once.
    ///
    /// # Errors
    /// As there. The update is then unusable.
    pub fn round_in_place(&self, update: &mut [f32]) -> Result<Repair, QuantizeError> {
        let patterns: &mut [u32] = bytemuck::try_cast_slice_mut(update).unwrap_or_default();
        self.refuse_unclipped(patterns.iter().copied())?;
        let steps = Steps::of(self);
        let squares = patterns.chunks_mut(BLOCK).fold(0, |sum: u64, block| {
            sum.saturating_add(sum_of_squares(block.iter_mut().map(|pattern| {
                let rounded = steps.round_toward_zero(f32::from_bits(*pattern));
                *pattern = rounded as u32;
                rounded
            })))
        });
        self.repair_for(squares)
    }

    /// Refuses an update that cannot be the result of clipping.
    #[inline(always)]
    fn refuse_unclipped(&self, patterns: impl Iterator<Item = u32>) -> Result<(), QuantizeError> {
        // Bit patterns of magnitudes have the order of the magnitudes, with infinity and NaN above
        // all.
        let largest = patterns.fold(0, |largest, pattern| {
            let magnitude = pattern & !SIGN;
            if magnitude > largest {
                magnitude
            } else {
                largest
            }
        });
        if largest >= f32::INFINITY.to_bits() {
            return Err(QuantizeError::NotFinite);
        }
        // Twice the clip norm has the same digits and the next exponent. Near f32::MAX this exceeds
        // every finite pattern.
        if largest > self.clip_norm.get().to_bits() + HIDDEN {
            return Err(QuantizeError::NotClipped);
        }
        Ok(())
    }

    /// Returns the repair of an update whose rounded entries have this sum of squares. [`u64::MAX`]
    /// stands for every larger sum.
    ///
    /// Such a sum cannot result from rounding: the norm is above 2³² steps, at least 2⁸ clip norms.
    /// The necessary factor is unknown, so the update is refused instead of being shrunk too
    /// little.
    fn repair_for(&self, squares: u64) -> Result<Repair, QuantizeError> {
        if squares == u64::MAX {
            return Err(QuantizeError::NotClipped);
        }
        Ok(Repair((squares > self.bound()).then(|| {
            // f ≤ 2^30 · 2^b / √Σq², so that Σ⌊|q| f / 2^30⌋² ≤ Σq² f² / 2^60 ≤ 4^b.
            let root = square_root(squares) + 1;
            divide(1, 30 + self.bits, root).0
        })))
    }

    /// Writes the quantised update to `integers`.
    ///
    /// # Errors
    /// Those of [`Self::quantizer`], and [`QuantizeError::Length`]. `integers` is then unchanged or
    /// zero.
    #[inline(always)]
    pub fn quantize_into(&self, update: &[f32], integers: &mut [i32]) -> Result<(), QuantizeError> {
        if update.len() != integers.len() {
            return Err(QuantizeError::Length {
                expected: update.len(),
                found: integers.len(),
            });
        }
        self.refuse_unclipped(update.iter().map(|x| x.to_bits()))?;
        // Rounds once, directly into the result.
        let steps = Steps::of(self);
        let blocks = integers.chunks_mut(BLOCK).zip(update.chunks(BLOCK));
        let squares = blocks.fold(0, |sum: u64, (integers, update)| {
            for (q, x) in integers.iter_mut().zip(update) {
                *q = steps.round_toward_zero(*x);
            }
            sum.saturating_add(sum_of_squares(integers.iter().copied()))
        });
        let repair = self.repair_for(squares).inspect_err(|_| integers.fill(0))?;
        if repair.0.is_some() {
            for q in integers {
                *q = repair.apply(*q);
            }
        }
        Ok(())
    }

    /// Checks a received update on the server: `Σq² ≤ 4^b`, exactly.
    ///
    /// # Errors
    /// [`QuantizeError::OutOfBound`] if the bound does not hold.
    #[inline(always)]
    pub fn check(&self, integers: &[i32]) -> Result<(), QuantizeError> {
        // The square of a larger integer alone exceeds the bound.
        let largest = 1 << self.bits;
        let is_inside = integers.chunks(BLOCK).try_fold(0, |sum: u64, block| {
            let is_small = block
                .iter()
                .fold(true, |all, q| all & (q.unsigned_abs() <= largest));
            is_small.then(|| sum.saturating_add(sum_of_squares(block.iter().copied())))
        });
        match is_inside {
            Some(squares) if squares <= self.bound() => Ok(()),
            _ => Err(QuantizeError::OutOfBound),
        }
    }
}

/// The step of a grid, prepared for division.
#[derive(Clone, Copy, Debug)]
struct Steps {
    /// Significand of the clip norm, 2²³ ≤ m < 2²⁴.
    significand: u32,
    /// ⌊(2⁵⁵ − 1) / significand⌋, for division by multiplication.
    reciprocal: u32,
    /// Biased exponent of numbers whose quotient by a step is 1/2 to 2.
    exponent: u32,
    /// Bit pattern below which magnitudes are rounded to 0.
    least: u32,
}

impl Steps {
    fn of(grid: &Grid) -> Self {
        // `ClipNorm` is normal and positive, so the hidden bit is set and the sign is not.
        let pattern = grid.clip_norm.get().to_bits();
        let significand = (pattern & SIGNIFICAND) | HIDDEN;
        // Zero and subnormal numbers have no hidden bit. They are also rounded to zero: only with a
        // clip norm below 2^-100 are some of them above a step.
        let least = match (pattern >> 23).checked_sub(grid.bits) {
            Some(exponent) if exponent > 0 => exponent << 23,
            _ => HIDDEN,
        };
        Self {
            significand,
            // Below 2³², because the significand is at least 2²³.
            reciprocal: divide((1 << 55) - 1, 0, significand as u64).0 as u32,
            exponent: (pattern >> 23).wrapping_sub(grid.bits),
            least,
        }
    }

    /// Returns ⌊|x| / step⌋ with the sign of `x`, exact for |x| ≤ 2 · clip norm.
    ///
    /// Uses 32 bits, except for one product. With m and M the significands of x and of the clip
    /// norm,
    /// |x| / step = (m / M) · 2^shift, shift ≤ 25.
    ///
    /// *Estimate.* `reciprocal` is short of 2⁵⁵/M by at most 1 + 1/M, so 2⁸m · reciprocal / 2³² is
    /// short of 2³¹·m/M by less than 1.1, and after rounding down by less than 2.1. After a right
    /// shift by 31 − shift ≥ 6 this is less than 2.1/64 of a unit, so the estimate is the quotient
    /// or one less.
    ///
    /// *Correction.* m · 2^shift − estimate · M is therefore at least 0 and below 2M < 2²⁵. The
    /// lowest 32 bits of both products are enough to compute it, and it is M or more if the
    /// estimate is one less. ∎
    #[inline(always)]
    fn round_toward_zero(&self, x: f32) -> i32 {
        let pattern = x.to_bits();
        let magnitude = pattern & !SIGN;
        if magnitude < self.least {
            return 0;
        }
        // The masks have no effect, as 0 ≤ shift ≤ 25, but save the processor a comparison.
        let shift = (magnitude >> 23).wrapping_sub(self.exponent) & 31;
        // The hidden bit is the highest, above the stored significand: 2⁸m.
        let scaled = pattern << 8 | 1 << 31;
        let significand = scaled >> 8;
        let product = u64::from(scaled) * u64::from(self.reciprocal);
        let estimate = (product >> 32) as u32 >> (31 - shift);
        let rest = (significand << shift).wrapping_sub(estimate.wrapping_mul(self.significand));
        let quotient = (estimate + u32::from(rest >= self.significand)) as i32;
        // Negates without a branch, which no processor could predict: −q = !q + 1.
        let sign = pattern as i32 >> 31;
        (quotient ^ sign) - sign
    }
}

/// Returns Σq² of at most [`BLOCK`] integers of at most 2²⁵, exact.
#[inline(always)]
fn sum_of_squares(integers: impl Iterator<Item = i32>) -> u64 {
    integers.fold(0, |sum, q| {
        let q = i64::from(q);
        sum + (q * q) as u64
    })
}

/// The map from the entries of one checked update to integers. See [`Grid::quantizer`].
#[derive(Clone, Copy, Debug)]
pub struct Quantizer {
    steps: Steps,
    repair: Repair,
}

/// The repair of an update outside the ball due to rounding: a factor in units of 2⁻³⁰.
#[derive(Clone, Copy, Debug)]
pub struct Repair(Option<u64>);

impl Repair {
    /// Applies the repair to a rounded entry.
    #[inline(always)]
    pub fn apply(self, q: i32) -> i32 {
        match self.0 {
            None => q,
            Some(factor) => {
                let magnitude = ((u64::from(q.unsigned_abs()) * factor) >> 30) as i32;
                if q < 0 { -magnitude } else { magnitude }
            }
        }
    }
}

impl Quantizer {
    /// Returns the integer for one entry of this quantizer's update.
    #[inline(always)]
    pub fn get(&self, x: f32) -> i32 {
        self.repair.apply(self.steps.round_toward_zero(x))
    }
}

#[cfg(test)]
mod limits;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::clip::clip_l2;
    use proptest::{collection::vec, prelude::*};
    use std::{vec, vec::Vec};

    fn grid(clip_norm: f32, bits: u32) -> Grid {
        Grid::new(ClipNorm::new(clip_norm).unwrap(), bits).unwrap()
    }

    fn squares(q: &[i32]) -> u128 {
        q.iter().map(|q| u128::from(q.unsigned_abs()).pow(2)).sum()
    }

    /// Returns the integers of an update rounded in place.
    fn in_place(grid: &Grid, update: &[f32]) -> Vec<i32> {
        let mut rounded = update.to_vec();
        let repair = grid.round_in_place(&mut rounded).unwrap();
        let rounded = rounded.iter().map(|x| x.to_bits() as i32);
        rounded.map(|q| repair.apply(q)).collect()
    }

    /// The definition in `f64`, whose quotient never rounds across an integer here. Subnormal
    /// entries become zero.
    fn by_division(grid: &Grid, x: f32) -> i32 {
        if x.is_subnormal() {
            return 0;
        }
        (f64::from(x) / grid.step()) as i32
    }

    proptest! {
        /// The quotient of two f32 in f64 is never rounded up across an integer here: a quotient
        /// below 2²⁵ with a denominator below 2²⁴ that is not an integer is at least 2⁻⁴⁹ below it.
        #[test]
        fn rounding_is_exact_and_toward_zero(
            x in -1f32..1.0, clip_norm in 0.5f32..3.0, scale in -60i32..60, bits in 4u32..=24,
        ) {
            let factor = 2f32.powi(scale);
            let grid = grid(clip_norm * factor, bits);
            let exact = f64::from(x * factor) / grid.step();
            let rounded = Steps::of(&grid).round_toward_zero(x * factor);
            prop_assert_eq!(f64::from(rounded), exact.trunc());
        }

        /// Covers any clip norm, any entry of up to twice that, and values next to grid points.
        #[test]
        fn every_pattern_is_rounded_like_the_quotient(
            clip_norm in 0x0080_0000_u32..0x7f80_0000, bits in 4u32..=24,
            share in 0.0_f64..2.0, spread in 0_u32..160, point in any::<i32>(),
        ) {
            let grid = grid(f32::from_bits(clip_norm), bits);
            let steps = Steps::of(&grid);
            let largest = (2.0 * grid.clip_norm().get()).min(f32::MAX);
            let entry = (f64::from(largest) * 0.5 * share * 2f64.powi(-(spread as i32))) as f32;
            let near = (f64::from(point >> (30 - bits)) * grid.step()) as f32;
            for x in [entry, near, near.next_up(), near.next_down(), largest, 0.0] {
                if x.abs() <= largest {
                    let (up, down) = (steps.round_toward_zero(x), steps.round_toward_zero(-x));
                    prop_assert_eq!(up, by_division(&grid, x), "{} on {:?}", x, grid);
                    prop_assert_eq!(down, by_division(&grid, -x), "{} on {:?}", -x, grid);
                }
            }
        }

        /// The integer bound holds exactly for every result of clipping.
        #[test]
        fn the_integer_bound_holds_exactly(
            mut v in vec(-1f32..1.0, 1..200), clip_norm in 1e-3f32..10.0, bits in 4u32..=24,
        ) {
            clip_l2(&mut v, clip_norm).unwrap();
            let grid = grid(clip_norm, bits);
            let mut q = vec![0; v.len()];
            grid.quantize_into(&v, &mut q).unwrap();
            prop_assert_eq!(&in_place(&grid, &v), &q);
            prop_assert!(squares(&q) <= u128::from(grid.bound()));
            prop_assert_eq!(grid.check(&q), Ok(()));
            for (q, x) in q.iter().zip(&v) {
                let back = grid.value(i64::from(*q), 1.0);
                // One step, and the repair of at most a few ulps.
                let bound = grid.step() * 1.001 + 1e-5 * f64::from(x.abs());
                prop_assert!(f64::from((back - x).abs()) <= bound);
                prop_assert!(back.abs() <= x.abs());
            }
        }

        /// Updates outside the ball by more than rounding are shrunk onto it.
        #[test]
        fn an_update_outside_the_ball_is_shrunk_onto_it(v in vec(-2f32..2.0, 1..300)) {
            let grid = grid(1.0, 20);
            let mut q = vec![0; v.len()];
            grid.quantize_into(&v, &mut q).unwrap();
            prop_assert_eq!(&in_place(&grid, &v), &q);
            prop_assert!(squares(&q) <= u128::from(grid.bound()));
        }
    }

    /// One step beyond the bound 16², the factor uses the next larger root, 16/17, because 16/16
    /// would not change the entries.
    #[test]
    fn an_update_one_step_outside_is_shrunk_by_a_little() {
        let grid = grid(1.0, 4);
        let mut q = [0; 2];
        grid.quantize_into(&[-1.0, 1.0 / 16.0], &mut q).unwrap();
        assert_eq!(q, [-15, 0]);
        assert_eq!(grid.value(6, 3.0).to_bits(), 0.125f32.to_bits());
    }

    #[test]
    fn one_coordinate_at_the_bound_is_the_largest_integer() {
        let grid = grid(0.3, 20);
        let mut q = [0];
        grid.quantize_into(&[-0.3], &mut q).unwrap();
        assert_eq!(q, [-(1 << 20)]);
        assert_eq!(grid.check(&q), Ok(()));
        assert_eq!(grid.check(&[1 << 20, 1]), Err(QuantizeError::OutOfBound));
        // Squares that add up to 2^64, which wraps to 0 in 64 bits, and to less.
        for count in [4, 3] {
            let huge = vec![i32::MIN; count];
            assert_eq!(grid.check(&huge), Err(QuantizeError::OutOfBound));
        }
    }

    #[test]
    fn entries_at_the_ends_of_the_range_are_rounded_like_the_quotient() {
        let clip_norms = [
            f32::MIN_POSITIVE,
            2e-38,
            1e-31,
            0.3,
            1.0,
            1.999_999_9,
            1e30,
            f32::MAX,
        ];
        let tiny = [0, 1, 0x0040_0000, 0x007f_ffff, 0x0080_0000, 0x0080_0001].map(f32::from_bits);
        for (clip_norm, bits) in clip_norms
            .iter()
            .flat_map(|l| (4..=24).map(move |b| (*l, b)))
        {
            let grid = grid(clip_norm, bits);
            let near = [
                clip_norm,
                clip_norm.next_down(),
                clip_norm.next_up(),
                2.0 * clip_norm,
            ];
            let steps = [1.0, 1.5, 2.0, 3.0].map(|count| (count * grid.step()) as f32);
            for x in tiny
                .into_iter()
                .chain(near)
                .chain(steps)
                .flat_map(|x| [x, -x])
            {
                if x.is_finite() && x.abs() <= 2.0 * clip_norm {
                    assert_eq!(
                        Steps::of(&grid).round_toward_zero(x),
                        by_division(&grid, x),
                        "{x} on {grid:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn tiny_entries_and_signed_zeros_are_zero() {
        let grid = grid(1.0, 20);
        let mut q = [7; 5];
        grid.quantize_into(&[1e-7, -1e-7, -0.0, 1e-40, 0.0], &mut q)
            .unwrap();
        assert_eq!(q, [0; 5]);
    }

    #[test]
    fn updates_that_were_not_clipped_are_refused() {
        let grid = grid(1.0, 20);
        let mut q = [7];
        assert_eq!(
            grid.quantize_into(&[f32::NAN], &mut q),
            Err(QuantizeError::NotFinite)
        );
        assert_eq!(
            grid.quantize_into(&[2.5], &mut q),
            Err(QuantizeError::NotClipped)
        );
        let length = QuantizeError::Length {
            expected: 2,
            found: 1,
        };
        assert_eq!(grid.quantize_into(&[0.0, 0.0], &mut q), Err(length));
        assert_eq!(q, [7]);
        let bound = ClipNorm::new(1.0).unwrap();
        assert_eq!(Grid::new(bound, 3), Err(QuantizeError::Bits(3)));
        assert_eq!(Grid::new(bound, 25), Err(QuantizeError::Bits(25)));
    }

    #[test]
    fn empty_update_is_fine() {
        let grid = grid(1.0, 8);
        assert_eq!(grid.quantize_into(&[], &mut []), Ok(()));
    }
}
