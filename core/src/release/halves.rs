//! Integers in two halves, in the places of two vectors of `f32`: how an update becomes what is
//! sent without a third vector. Quantised, and with noise added, here and nowhere else on a device.

use crate::{
    noise::DiscreteGaussian,
    participation::Streams,
    quantize::{Grid, Repair},
    stream::Purpose,
};

/// Repairs the rounded entries in `low`, and makes two halves of each; zeros of a device without an
/// update. Whether the update is to be negated.
#[inline(never)]
pub(crate) fn quantise(
    repair: Option<Repair>,
    grid: &Grid,
    is_bare: bool,
    low: &mut [u32],
    high: &mut [u32],
) -> bool {
    // Without noise or masks, +2^b is the one value that has no place in b + 1 bits. It is sent as
    // −2^b, of an update that is to be negated: its other entries are 0, since Σq² ≤ 4^b.
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

/// Adds noise to integers in two halves, modulo 2⁶⁴, from where `words` of the stream for this
/// purpose were drawn; they are counted. A function, so that the sampler is once in the flash.
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

/// The lower and the upper half of an integer.
pub(crate) const fn halves(value: i64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

/// The integer of these halves.
pub(crate) const fn whole(low: u32, high: u32) -> i64 {
    (high as i32 as i64) << 32 | low as i64
}

/// The memory of numbers as that of integers.
pub(crate) fn patterns(numbers: &[f32]) -> &[u32] {
    bytemuck::try_cast_slice(numbers).unwrap_or_default()
}

/// [`patterns`] to write to.
pub(crate) fn patterns_mut(numbers: &mut [f32]) -> &mut [u32] {
    bytemuck::try_cast_slice_mut(numbers).unwrap_or_default()
}
