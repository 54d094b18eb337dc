//! An in-place real Fourier transform of integers of 16 bits, in which all values of a block share
//! an exponent (block floating point).
//!
//! The algorithm is the same as in `spectrum`, with sines of 14 fraction bits. Nothing overflows:
//!
//! * Let all parts of the values be at most `peak` in magnitude before a stage. A sum a + b has
//!   parts of at most 2 peak. So has a difference a − b, and its modulus and therefore all parts of
//!   its rotation are at most 2√2 peak · (1 + 2⁻¹⁴), as the sines are rounded. The stage shifts its
//!   results to the right, with rounding, until 2√2 · 11,584 < 32,765 bounds them ([`shift_of`]),
//!   so they fit 16 bits.
//! * The parts of a − b are at most 2¹⁶, sines at most 2¹⁴. The two products of a part add up to at
//!   most √2 · 2³⁰ · (1 + 2⁻¹⁴) < 2³¹ − 2¹⁵ (Cauchy and Schwarz), so they fit 32 bits, before and
//!   after the rounding term is added.
//!
//! Each stage rounds to half a unit of the block, whose largest value has 13 bits or more.

use super::sine::{self, CIRCLE, FRACTION, QUARTER};

/// Bits of the largest loaded deviation.
const BITS: i32 = 14;

/// Replaces samples by length · sample − sum, their deviations from the mean times their number,
/// divided by two to the power of the returned exponent. They are at most 2¹⁴ in magnitude.
pub(super) fn load(samples: &mut [i16], sum: i32) -> i32 {
    // Below 2²⁶: at most 2¹⁰ samples of 16 bits.
    let length = samples.len() as i32;
    let deviation = |x: i16| length * i32::from(x) - sum;
    let peak = samples.iter().map(|x| deviation(*x).unsigned_abs()).max();
    let exponent = (u32::BITS - peak.unwrap_or(0).leading_zeros()) as i32 - BITS;
    for x in samples {
        let deviation = deviation(*x);
        *x = match exponent {
            // All deviations are below 2¹⁴, and so are their multiples.
            ..=0 => (deviation << -exponent) as i16,
            shift => rounded(deviation, shift as u32) as i16,
        };
    }
    exponent
}

/// Transforms pairs of a real and an imaginary part in place. Their number is a power of two.
/// Returns the exponent: the pairs are the result divided by two to its power.
pub(super) fn transform(pairs: &mut [[i16; 2]]) -> i32 {
    let mut peak = pairs
        .iter()
        .fold(0, |peak, pair| peak.max(magnitude(*pair)));
    let (mut half, mut exponent) = (pairs.len() / 2, 0);
    while half > 0 {
        let shift = shift_of(peak);
        peak = stage(pairs, half, shift);
        exponent += shift as i32;
        half /= 2;
    }
    exponent
}

/// Returns the number of bits by which the results of a stage are shifted to fit 16 bits.
const fn shift_of(peak: u16) -> u32 {
    match peak {
        0..=11_584 => 0,
        11_585..=23_168 => 1,
        _ => 2,
    }
}

/// Runs a stage of the transform, and returns the largest magnitude of a part.
fn stage(pairs: &mut [[i16; 2]], half: usize, shift: u32) -> u16 {
    let (step, mut peak) = (CIRCLE / 2 / half.max(1), 0);
    for block in pairs.chunks_exact_mut(2 * half.max(1)) {
        let Some((low, high)) = block.split_at_mut_checked(half) else {
            return peak;
        };
        for (at, (a, b)) in low.iter_mut().zip(high).enumerate() {
            let ([a_re, a_im], [b_re, b_im]) = (wide(*a), wide(*b));
            let turned = turned_back([a_re - b_re, a_im - b_im], at * step, shift);
            // They fit: see the top of the file.
            *a = narrow([rounded(a_re + b_re, shift), rounded(a_im + b_im, shift)]);
            *b = narrow(turned);
            peak = peak.max(magnitude(*a)).max(magnitude(*b));
        }
    }
    peak
}

/// Returns the energy of the frequency `at` of 2 · `pairs.len()` real values, from 0 to
/// `pairs.len()`, times 4n: below 2³⁸.
pub(super) fn energy(pairs: &[[i16; 2]], at: usize) -> u64 {
    let [re, im] = doubled(pairs, at);
    let (re, im) = (u64::from(re.unsigned_abs()), u64::from(im.unsigned_abs()));
    let energy = re * re + im * im;
    if at == 0 || at == pairs.len() {
        energy
    } else {
        2 * energy
    }
}

/// As in `spectrum`. Parts are at most (1 + √2) · 2¹⁶.
fn doubled(pairs: &[[i16; 2]], at: usize) -> [i32; 2] {
    let count = pairs.len();
    let of = |at: usize| {
        let place = sine::reversed(at & count.wrapping_sub(1), count);
        wide(pairs.get(place).copied().unwrap_or_default())
    };
    let (a, b) = (of(at), of(count.wrapping_sub(at)));
    let step = CIRCLE.checked_div(2 * count).unwrap_or(0);
    let odd = turned_back([a[1] + b[1], b[0] - a[0]], at * step, 0);
    [a[0] + b[0] + odd[0], a[1] - b[1] + odd[1]]
}

/// Returns z · e^(−2πi at / CIRCLE), shifted to the right. The parts of z are at most 2¹⁶.
#[inline(always)]
fn turned_back([re, im]: [i32; 2], at: usize, shift: u32) -> [i32; 2] {
    match at {
        0 => [rounded(re, shift), rounded(im, shift)],
        QUARTER => [rounded(im, shift), rounded(-re, shift)],
        _ => {
            let [cos, sin] = wide(sine::turn(&sine::FIXED, at));
            let shift = FRACTION + shift;
            [
                rounded(re * cos + im * sin, shift),
                rounded(im * cos - re * sin, shift),
            ]
        }
    }
}

// Written out, because `map` of two values is a loop in programs optimised for size.

#[inline(always)]
fn wide([re, im]: [i16; 2]) -> [i32; 2] {
    [re.into(), im.into()]
}

#[inline(always)]
const fn narrow([re, im]: [i32; 2]) -> [i16; 2] {
    [re as i16, im as i16]
}

/// Returns the larger magnitude of both parts.
#[inline(always)]
fn magnitude([re, im]: [i16; 2]) -> u16 {
    re.unsigned_abs().max(im.unsigned_abs())
}

/// Returns x / 2^shift, rounded to the nearest integer, halves up.
#[inline(always)]
const fn rounded(x: i32, shift: u32) -> i32 {
    (x + ((1 << shift) >> 1)) >> shift
}
