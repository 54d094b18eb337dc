//! Integers in two halves, in the memory of two `f32` vectors, so that an update becomes a message
//! without a third vector. A device only quantises and adds noise in this module.

use crate::{
    noise::DiscreteGaussian,
    participation::Streams,
    quantize::{Grid, Repair},
    stream::Purpose,
};

/// Repairs the rounded entries in `low`, and splits each into two halves, or writes zeros for a
/// device without an update. Returns whether the update is to be negated.
#[inline(never)]
pub(crate) fn quantise(
    repair: Option<Repair>,
    grid: &Grid,
    is_bare: bool,
    low: &mut [u32],
    high: &mut [u32],
) -> bool {
    // Without noise or masks, +2^b is the only value that does not fit b + 1 bits. It is sent as
    // −2^b with the negation flag. All other entries are 0, because Σq² ≤ 4^b.
    let largest = 1 << grid.bits();
    let mut negated = false;
    for (low, high) in low.iter_mut().zip(high) {
        let mut value = repair.map_or(0, |repair| repair.apply(*low as i32));
        if is_bare && value == largest {
            negated = true;
            value = -value;
        }
        (*low, *high) = halves(value.into());
    }
    negated
}

/// Adds noise to integers in two halves, modulo 2⁶⁴, from position `words` of the stream for this
/// purpose, and updates `words`. A separate function, so that the sampler is in the flash only
/// once.
#[inline(never)]
pub(crate) fn draw_noise(
    streams: &Streams<'_>,
    purpose: Purpose,
    words: &mut u64,
    noise: &DiscreteGaussian,
    low: &mut [u32],
    high: &mut [u32],
) {
    let mut stream = streams.open(purpose);
    stream.skip(*words);
    for (low, high) in low.iter_mut().zip(high) {
        let value = whole(*low, *high);
        (*low, *high) = halves(value.wrapping_add(noise.sample(&mut stream)));
    }
    *words = stream.position();
}

/// Returns the lower and the upper half of an integer.
pub(crate) const fn halves(value: i64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

/// Returns the integer with these halves.
pub(crate) const fn whole(low: u32, high: u32) -> i64 {
    (high as i32 as i64) << 32 | low as i64
}

/// Returns the memory of numbers as integers.
pub(crate) fn patterns(numbers: &[f32]) -> &[u32] {
    bytemuck::try_cast_slice(numbers).unwrap_or_default()
}

/// Like [`patterns`], mutably.
pub(crate) fn patterns_mut(numbers: &mut [f32]) -> &mut [u32] {
    bytemuck::try_cast_slice_mut(numbers).unwrap_or_default()
}
