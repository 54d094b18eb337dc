//! The sines of a quarter of a circle, in flash, for `f32` and for integers.
//!
//! The compiler computes them, and its constant arithmetic is the same on every host.

use core::ops::Neg;

use super::recipe::MAX_LENGTH;

/// Steps of a circle: the length of the longest transform.
pub(super) const CIRCLE: usize = MAX_LENGTH;

/// Steps of a quarter of a circle.
pub(super) const QUARTER: usize = CIRCLE / 4;

/// Fraction bits of [`FIXED`]: 1 fits 16 bits.
pub(super) const FRACTION: u32 = 14;

/// A quarter of a sine wave.
pub(super) type Quarter<T> = [T; QUARTER + 1];

/// Rounded to `f32`.
pub(super) static FLOAT: Quarter<f32> = {
    let (mut table, mut at) = ([0.0; QUARTER + 1], 0);
    while at <= QUARTER {
        table[at] = sine(at) as f32;
        at += 1;
    }
    table
};

/// Rounded to multiples of 2⁻¹⁴.
pub(super) static FIXED: Quarter<i16> = {
    let (mut table, mut at) = ([0; QUARTER + 1], 0);
    while at <= QUARTER {
        table[at] = (sine(at) * (1 << FRACTION) as f64 + 0.5) as i16;
        at += 1;
    }
    table
};

/// Returns sin(2π at / CIRCLE) for a quarter of a circle, by its series. The first omitted term is
/// below 10⁻¹⁸.
const fn sine(at: usize) -> f64 {
    let x = at as f64 * (2.0 * core::f64::consts::PI / CIRCLE as f64);
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while n < 12.0 {
        term *= -x * x / ((2.0 * n) * (2.0 * n + 1.0));
        sum += term;
        n += 1.0;
    }
    sum
}

/// Returns cosine and sine at a step of half a circle, from 0 to CIRCLE / 2.
#[inline(always)]
pub(super) fn turn<T: Copy + Default + Neg<Output = T>>(table: &Quarter<T>, at: usize) -> [T; 2] {
    let get = |at: usize| table.get(at).copied().unwrap_or_default();
    match at.checked_sub(QUARTER) {
        None | Some(0) => [get(QUARTER - at), get(at)],
        Some(beyond) => [-get(beyond), get(QUARTER.wrapping_sub(beyond))],
    }
}

/// Returns the position of the frequency `at` after a transform with bit-reversed output. `count`
/// is a power of two.
#[inline(always)]
pub(super) fn reversed(at: usize, count: usize) -> usize {
    let reversed = (at as u32).reverse_bits();
    let unused = u32::BITS - count.trailing_zeros();
    // With one frequency there are no bits.
    reversed.checked_shr(unused).unwrap_or(0) as usize
}
