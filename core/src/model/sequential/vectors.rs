//! Vectors of neighbouring entries: one register of 512 bits or two of 256, or half of that.

use crate::lanes::LANES;

/// Entries of the wide vectors.
pub(super) const WIDTH: usize = 2 * LANES;

/// How many entries the next vector has if so many are left: [`WIDTH`] or [`LANES`].
#[inline(always)]
pub(super) const fn next_width(left: usize) -> usize {
    if left > LANES { WIDTH } else { LANES }
}

/// So many entries with what fills up the last vector.
pub(super) const fn padded(count: usize) -> usize {
    count.next_multiple_of(LANES)
}

/// The `W` entries from `start`, zeros after the last.
#[inline(always)]
pub(super) fn load<const W: usize>(v: &[f32], start: usize) -> [f32; W] {
    let rest = v.get(start..).unwrap_or_default();
    match rest.first_chunk() {
        Some(vector) => *vector,
        None => load_rest(rest),
    }
}

/// Not inlined: the compiler would give up the vector for its entries.
#[cold]
#[inline(never)]
fn load_rest<const W: usize>(rest: &[f32]) -> [f32; W] {
    let mut vector = [0.0; W];
    for (to, from) in vector.iter_mut().zip(rest) {
        *to = *from;
    }
    vector
}

/// Writes the first `count` entries of a vector, at most all, from `start` on.
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

/// `sums += vector·x`.
#[inline(always)]
pub(super) fn add<const W: usize>(sums: &mut [f32; W], vector: &[f32; W], x: f32) {
    for l in 0..W {
        sums[l] += vector[l] * x;
    }
}
