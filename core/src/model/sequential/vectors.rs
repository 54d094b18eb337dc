//! Vectors of neighbouring entries: one register of 512 bits or two of 256, or half of that.

use crate::lanes::LANES;

/// Entries of the wide vectors.
pub(super) const WIDTH: usize = 2 * LANES;

/// Returns the length of the next vector if `left` entries are left: [`WIDTH`] or [`LANES`].
#[inline(always)]
pub(super) const fn next_width(left: usize) -> usize {
    if left > LANES { WIDTH } else { LANES }
}

/// Rounds a number of entries up to whole vectors.
pub(super) const fn padded(count: usize) -> usize {
    count.next_multiple_of(LANES)
}

/// Returns the `W` entries from `start`, padded with zeros.
#[inline(always)]
pub(super) fn load<const W: usize>(v: &[f32], start: usize) -> [f32; W] {
    let rest = v.get(start..).unwrap_or_default();
    match rest.first_chunk() {
        Some(vector) => *vector,
        None => load_rest(rest),
    }
}

/// Not inlined, because the compiler would split the vector into its entries.
#[cold]
#[inline(never)]
fn load_rest<const W: usize>(rest: &[f32]) -> [f32; W] {
    let mut vector = [0.0; W];
    for (to, from) in vector.iter_mut().zip(rest) {
        *to = *from;
    }
    vector
}

/// Writes at most the first `count` entries of a vector from `start` on.
#[inline(always)]
pub(super) fn store<const W: usize>(vector: [f32; W], v: &mut [f32], start: usize, count: usize) {
    let rest = v.get_mut(start..).unwrap_or_default();
    match rest.first_chunk_mut() {
        Some(place) if count >= W => *place = vector,
        _ => store_rest(&vector, rest, count),
    }
}

/// Not inlined, as above.
#[inline(never)]
fn store_rest<const W: usize>(vector: &[f32; W], rest: &mut [f32], count: usize) {
    for (to, from) in rest.iter_mut().zip(vector).take(count) {
        *to = *from;
    }
}

/// Computes `sums += vector·x`.
#[inline(always)]
pub(super) fn add<const W: usize>(sums: &mut [f32; W], vector: &[f32; W], x: f32) {
    for l in 0..W {
        sums[l] += vector[l] * x;
    }
}
