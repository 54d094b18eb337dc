//! Packed integers of a few bits, as updates are sent: the bits of an entry of an update or of a
//! sum, and the bytes of all entries.
//!
//! Value i takes bits i·w to (i+1)·w − 1, in two's complement, lowest bit first within each byte.
//! The last byte is padded with zeros. The width w depends on public numbers alone, never on the
//! values, because the length of an update must not reveal anything about it.

use crate::{integer::divide, noise::Sigma};

/// Returns the bits of an entry of an update on a grid of b bits, with or without the device's
/// noise.
///
/// Without noise b + 1: `Σq² ≤ 4^b` leaves −2^b to 2^b. The one value too many, +2^b, only occurs
/// in an update with all other entries 0. See [`crate::wire::message::UpdateChunk::negated`].
///
/// With noise, enough bits for 2^b + 12σ. Larger values wrap around, like any sum of integers on a
/// computer. The probability is 2·e^-72 per entry, and it costs no privacy.
// In the flash once, for updates and bits.
#[inline(never)]
pub const fn width(grid_bits: u32, noise: Option<Sigma>) -> u32 {
    match noise {
        None => grid_bits + 1,
        Some(sigma) => {
            let (numerator, denominator) = sigma.ratio();
            // σ < 2^53 and b ≤ 24: below 2^57. The denominator is not 0.
            let sigma = divide(numerator, 0, denominator).0 + 1;
            let largest = (1 << grid_bits) + 12 * sigma;
            65 - largest.leading_zeros()
        }
    }
}

/// Returns the bits of an entry of a sum of `count` vectors on a grid of b bits, with noise as in
/// [`width()`].
pub const fn width_of_sum(grid_bits: u32, count: u32, noise: Option<Sigma>) -> u32 {
    // count ≤ 2^20 and b ≤ 24: below 2^45, and 12σ below 2^57.
    let sum = (count as u64) << grid_bits;
    let noise = match noise {
        None => 0,
        Some(sigma) => {
            let (numerator, denominator) = sigma.ratio();
            12 * (divide(numerator, 0, denominator).0 + 1)
        }
    };
    65 - (sum + noise).leading_zeros()
}

/// Returns the number of values of `width` bits that fit in `bytes` bytes.
pub const fn capacity(width: u32, bytes: usize) -> usize {
    match (bytes * 8).checked_div(width as usize) {
        Some(count) => count,
        None => 0,
    }
}

/// Returns the number of bytes of `count` values of `width` bits.
pub const fn packed_bytes(width: u32, count: usize) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Packs values of `width` bits into `bytes`, and returns the bytes used, or `None` if they do not
/// fit.
///
/// Keeps the lowest `width` bits of each value, 1 to 57.
pub fn pack(values: impl Iterator<Item = i64>, width: u32, bytes: &mut [u8]) -> Option<usize> {
    let mask = mask(width)?;
    let mut used = 0;
    let mut places = bytes.iter_mut();
    let (mut waiting, mut bits) = (0_u64, 0);
    for value in values {
        // At most 7 bits are waiting: 64 in all.
        waiting |= (value as u64 & mask) << bits;
        bits += width;
        while bits >= 8 {
            *places.next()? = waiting as u8;
            used += 1;
            waiting >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        *places.next()? = waiting as u8;
        used += 1;
    }
    Some(used)
}

/// Unpacks values of `width` bits to fill `values`.
///
/// Returns `None` unless `bytes` has exactly the right length and is padded with zeros.
pub fn unpack(bytes: &[u8], width: u32, values: &mut [i64]) -> Option<()> {
    let mask = mask(width)?;
    if bytes.len() != packed_bytes(width, values.len()) {
        return None;
    }
    let mut bytes = bytes.iter();
    let (mut waiting, mut bits) = (0_u64, 0);
    for value in values {
        while bits < width {
            waiting |= u64::from(*bytes.next()?) << bits;
            bits += 8;
        }
        // The highest bit is the sign.
        let unused = 64 - width;
        *value = ((waiting & mask) << unused).cast_signed() >> unused;
        waiting >>= width;
        bits -= width;
    }
    (waiting == 0).then_some(())
}

fn mask(width: u32) -> Option<u64> {
    (1..=57).contains(&width).then(|| (1 << width) - 1)
}
