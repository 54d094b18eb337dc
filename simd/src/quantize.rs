//! Rounding to the grid, the bound check and the sum, with the widest vectors of this machine and
//! the same integers as [`smolfed_core::quantize`].
//!
//! This module handles the usual case: an update with entries within the clip norm and integers
//! within the bound. The core repairs or refuses everything else.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::quantize::{Grid, QuantizeError};

/// Count of integers whose squares are summed at once: if they are at most 2²⁴, below 2⁶².
const BLOCK: usize = 1 << 13;
/// Largest integer of an entry within the clip norm, on the finest grid.
const MAX_INTEGER: u32 = 1 << 24;

/// Computes [`Grid::quantize_into`].
///
/// # Errors
/// [`QuantizeError`], as for that method.
pub fn quantize_into(
    grid: &Grid,
    update: &[f32],
    integers: &mut [i32],
) -> Result<(), QuantizeError> {
    // On a finer grid, some subnormal numbers would not be 0.
    let is_usual = grid.step() >= f64::from(f32::MIN_POSITIVE);
    let round = Round {
        grid,
        update,
        integers: &mut *integers,
    };
    if is_usual && update.len() == round.integers.len() && Arch::new().dispatch(round) {
        return Ok(());
    }
    grid.quantize_into(update, integers)
}

/// Runs [`Grid::check`].
///
/// # Errors
/// [`QuantizeError`], as for that method.
pub fn check(grid: &Grid, integers: &[i32]) -> Result<(), QuantizeError> {
    match Arch::new().dispatch(Check { grid, integers }) {
        true => Ok(()),
        false => grid.check(integers),
    }
}

/// Adds `integers[i]` to `sum[i]` over the common length.
#[inline(never)]
pub fn add(sum: &mut [i64], integers: &[i32]) {
    Arch::new().dispatch(Add { sum, integers });
}

/// Rounds. Returns whether all entries and the sum of squares are within their bounds.
struct Round<'a> {
    grid: &'a Grid,
    update: &'a [f32],
    integers: &'a mut [i32],
}

impl NullaryFnOnce for Round<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let steps_per_unit = 1.0 / self.grid.step();
        let (mut largest, mut sum) = (0u32, 0u64);
        for (update, integers) in self
            .update
            .chunks(BLOCK)
            .zip(self.integers.chunks_mut(BLOCK))
        {
            let mut of_block = 0u64;
            for (x, integer) in update.iter().zip(integers) {
                // Bit patterns of magnitudes have the same order as the magnitudes, with infinity
                // and NaN at the top.
                largest = largest.max(x.to_bits() & !(1 << 31));
                *integer = toward_zero(f64::from(*x) * steps_per_unit);
                of_block = of_block.wrapping_add(square(*integer));
            }
            sum = sum.saturating_add(of_block);
        }
        let bound = self.grid.clip_norm().get().to_bits();
        // Integers of entries within the clip norm are small.
        largest <= bound && sum <= self.grid.bound()
    }
}

/// Returns the integer toward zero of x / step, given x times 1 / step, both rounded, for |x| ≤ 2²⁴
/// steps.
///
/// With 24-bit significands m of x and M of the step, |x| / step = (m / M) · 2^k. If k ≥ 0, this is
/// an integer, or at least 1/M > 2⁻²⁴ below the next. If k < 0, it is below 1 by at least 2⁻²⁴: for
/// k = −1, 1 − m / 2M ≥ 1 − (2²⁴ − 1) / 2²⁴ as M ≥ 2²³. The error of the computed quotient is less
/// than 2²⁴ · 2⁻⁵², and its difference to ½ − 2⁻²⁵ adds less than 2⁻²⁹, together less than 2⁻²⁷.
/// The value rounded to the nearest integer is thus less than ½ from the required integer. ∎
#[inline(always)]
fn toward_zero(quotient: f64) -> i32 {
    const TO_NEAREST: f64 = 0.5 - 1.0 / (1 << 25) as f64;
    /// 1.5 · 2⁵²: the lowest bits of its sum with an integer equal the integer's.
    const ALIGNED: f64 = 6_755_399_441_055_744.0;
    let aligned = (quotient - TO_NEAREST.copysign(quotient)) + ALIGNED;
    aligned.to_bits() as i32
}

struct Check<'a> {
    grid: &'a Grid,
    integers: &'a [i32],
}

impl NullaryFnOnce for Check<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let magnitudes = self.integers.iter().map(|q| q.unsigned_abs());
        let largest = magnitudes.max().unwrap_or(0);
        largest <= MAX_INTEGER && squares(self.integers) <= self.grid.bound()
    }
}

/// Returns the sum of squares, exact or 2⁶⁴ − 1, if integers are at most [`MAX_INTEGER`].
#[inline(always)]
fn squares(integers: &[i32]) -> u64 {
    let mut squares = 0u64;
    for block in integers.chunks(BLOCK) {
        let mut of_block = 0u64;
        for q in block {
            // Wraps only for large integers.
            of_block = of_block.wrapping_add(square(*q));
        }
        squares = squares.saturating_add(of_block);
    }
    squares
}

#[inline(always)]
fn square(q: i32) -> u64 {
    let q = i64::from(q);
    (q * q) as u64
}

struct Add<'a> {
    sum: &'a mut [i64],
    integers: &'a [i32],
}

impl NullaryFnOnce for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (sum, q) in self.sum.iter_mut().zip(self.integers) {
            *sum += i64::from(*q);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use smolfed_core::params::ClipNorm;

    fn grid(clip_norm: f32, bits: u32) -> Grid {
        Grid::new(ClipNorm::new(clip_norm).unwrap(), bits).unwrap()
    }

    /// Asserts that both give the same integers, or refuse for the same reason.
    fn agree(grid: &Grid, update: &[f32]) {
        let (mut found, mut expected) = (vec![7; update.len()], vec![7; update.len()]);
        let results = (
            quantize_into(grid, update, &mut found),
            grid.quantize_into(update, &mut expected),
        );
        assert_eq!(results.0, results.1);
        if results.1.is_ok() {
            assert_eq!(found, expected);
        }
    }

    proptest! {
        /// For every update, inside the ball or not.
        #[test]
        fn rounding_is_the_cores(
            update in vec(-1.5f32..1.5, 0..40),
            shrink in 1e-3f32..1.0,
            bits in 4u32..=24,
            clip_norm in 0.1f32..2.0,
        ) {
            let update: Vec<f32> = update.iter().map(|x| x * shrink).collect();
            agree(&grid(clip_norm, bits), &update);
        }

        /// For every bit pattern of an entry.
        #[test]
        fn rounding_is_the_cores_for_all_patterns(patterns in vec(any::<u32>(), 1..20)) {
            let update: Vec<f32> = patterns.into_iter().map(f32::from_bits).collect();
            agree(&grid(0.3, 20), &update);
        }

        /// For floats next to multiples of the step, where an inexact quotient would show.
        #[test]
        fn rounding_is_the_cores_next_to_integers(
            clip_norm in prop_oneof![0.1f32..2.0, 1e-30f32..1e-20, 1e20f32..1e30],
            bits in 4u32..=24,
            shares in vec(0.0f64..1.0, 1..20),
            ulps in 0u32..3,
        ) {
            let grid = grid(clip_norm, bits);
            let steps = f64::from(1u32 << bits);
            let update = shares.iter().map(|share| {
                let multiple = (share * steps).floor() * grid.step();
                f32::from_bits((multiple as f32).to_bits().saturating_sub(1) + ulps)
            });
            // One at a time, since together they would exceed the clip norm.
            for x in update.flat_map(|x| [x, -x]) {
                agree(&grid, &[x]);
            }
        }

        #[test]
        fn the_check_is_the_cores(
            small in vec(-600_000i32..600_000, 0..20),
            large in vec(any::<i32>(), 0..3),
        ) {
            let grid = grid(0.3, 20);
            for integers in [small.clone(), [small, large].concat()] {
                prop_assert_eq!(check(&grid, &integers), grid.check(&integers));
            }
        }
    }

    #[test]
    fn the_bound_is_exact() {
        let grid = grid(1.0, 20);
        let edge = 1 << 20;
        assert_eq!(check(&grid, &[edge]), Ok(()));
        assert_eq!(check(&grid, &[edge, 1]), Err(QuantizeError::OutOfBound));
        assert_eq!(check(&grid, &[-edge - 1]), Err(QuantizeError::OutOfBound));
        assert_eq!(check(&grid, &[i32::MIN; 8]), Err(QuantizeError::OutOfBound));
        // 2¹³ integers of 2³¹ in a block. The sum of their squares is a multiple of 2⁶⁴.
        assert_eq!(
            check(&grid, &[i32::MIN; BLOCK]),
            Err(QuantizeError::OutOfBound)
        );
        let many = vec![1 << 12; 3 * BLOCK];
        assert_eq!(check(&grid, &many), Ok(()));
        let too_many = vec![1 << 12; 8 * BLOCK + 1];
        assert_eq!(check(&grid, &too_many), Err(QuantizeError::OutOfBound));
        agree(&grid, &[1.0]);
        agree(&grid, &[1.0, 1e-6]);
        agree(&grid, &[0.9; 2]);
        agree(&grid, &[]);
    }

    #[test]
    fn another_length_is_refused() {
        let found = quantize_into(&grid(1.0, 20), &[0.5], &mut [0; 2]);
        assert_eq!(
            found,
            Err(QuantizeError::Length {
                expected: 1,
                found: 2
            })
        );
    }

    #[test]
    fn sums_are_exact() {
        let mut sum = [i64::MAX - 5, -3, 4];
        add(&mut sum, &[5, i32::MIN]);
        assert_eq!(sum, [i64::MAX, -3 - (1 << 31), 4]);
    }
}
