//! An in-place real Fourier transform in `f32`, for power-of-two lengths.
//!
//! The n real values are treated as n/2 complex ones, which are transformed by decimation in
//! frequency (Gentleman and Sande 1966, "Fast Fourier transforms: for fun and profit"). Each
//! frequency of the real values follows from two of the n/2, on request ([`doubled`]). Frequencies
//! stay in bit-reversed order. Products are rounded before they are added, and the order of all
//! operations is fixed.

use super::sine::{self, CIRCLE, QUARTER};

/// Transforms pairs of a real and an imaginary part in place. Their number is a power of two.
pub(super) fn transform(pairs: &mut [[f32; 2]]) {
    let mut half = pairs.len() / 2;
    while half > 0 {
        let step = CIRCLE / 2 / half;
        for block in pairs.chunks_exact_mut(2 * half) {
            let Some((low, high)) = block.split_at_mut_checked(half) else {
                return;
            };
            for (at, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let difference = [a[0] - b[0], a[1] - b[1]];
                *a = [a[0] + b[0], a[1] + b[1]];
                *b = turned_back(difference, at * step);
            }
        }
        half /= 2;
    }
}

/// Returns the energy of the frequency `at` of 2 · `pairs.len()` real values, from 0 to
/// `pairs.len()`, times 4n.
pub(super) fn energy(pairs: &[[f32; 2]], at: usize) -> f32 {
    let [re, im] = doubled(pairs, at);
    let energy = re * re + im * im;
    // Between the ends, the frequency n − at has the same energy.
    if at == 0 || at == pairs.len() {
        energy
    } else {
        2.0 * energy
    }
}

/// Returns 2Xₖ = (Zₖ + Z*₋ₖ) − i e^(−2πik/n) (Zₖ − Z*₋ₖ), where Z is the transform of the pairs.
fn doubled(pairs: &[[f32; 2]], at: usize) -> [f32; 2] {
    let count = pairs.len();
    let of = |at: usize| {
        let place = sine::reversed(at & count.wrapping_sub(1), count);
        pairs.get(place).copied().unwrap_or_default()
    };
    let (a, b) = (of(at), of(count.wrapping_sub(at)));
    let step = CIRCLE.checked_div(2 * count).unwrap_or(0);
    let odd = turned_back([a[1] + b[1], b[0] - a[0]], at * step);
    [a[0] + b[0] + odd[0], a[1] - b[1] + odd[1]]
}

/// Returns z · e^(−2πi at / CIRCLE). Rotations by 0 and by a right angle need no product, which
/// saves time without a floating-point unit.
#[inline(always)]
fn turned_back([re, im]: [f32; 2], at: usize) -> [f32; 2] {
    match at {
        0 => [re, im],
        QUARTER => [im, -re],
        _ => {
            let [cos, sin] = sine::turn(&sine::FLOAT, at);
            [re * cos + im * sin, im * cos - re * sin]
        }
    }
}
