//! The two cyclic recursions with an `f64` running value, for a large sigma.
//!
//! A large sigma has a small `1 - r`, and an `f32` that moves by `1 - r` of itself per step would
//! lose it. The elements between the passes stay `f32`: their roundings are averaged like any other
//! noise. Each pass takes half of the gain, so both results have the size of the input for every
//! sigma. Most microcontrollers compute this in software, and rarely need it.

use core::num::NonZeroUsize;

use super::{
    columns::{column, column_mut},
    power::one_minus_power,
};

/// As in `recursion`, for a running value of higher precision: to a weight of `2^-30`.
const LOG_FORGOTTEN: f64 = 30.0 * core::f64::consts::LN_2;

/// Coefficients of `y = g v + r y` and `u = g y + r u`, g = 1 - r.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WideRecursion {
    /// q = sqrt(1 + 4 sigma).
    root: f64,
}

impl WideRecursion {
    pub const fn new(sigma: f32) -> Self {
        Self {
            root: sqrt(1.0 + 4.0 * sigma as f64),
        }
    }

    /// Returns q = sqrt(1 + 4 sigma), at least 1.
    pub const fn root(&self) -> f64 {
        self.root
    }

    /// Returns g = 1 - r = 2 / (q + 1), without cancellation.
    pub const fn gap(&self) -> f64 {
        2.0 / (self.root + 1.0)
    }

    /// Returns `1 - r^d`, in (0, 1] for d > 0.
    pub fn fading(&self, d: usize) -> f64 {
        one_minus_power(self.gap(), d)
    }

    /// Runs both passes along the outermost axis of `slab`, whose elements are `stride` apart.
    pub fn apply(&self, slab: &mut [f32], stride: NonZeroUsize) {
        let d = slab.len() / stride;
        let gap = self.gap();
        let decay = 1.0 - gap;
        let terms = d.min(reach(self.root, LOG_FORGOTTEN));
        // Contribution of the elements across the seam, counted once or as a geometric series.
        let start = if terms < d { gap } else { gap / self.fading(d) };
        let step = |state: &mut f64, x: f32| {
            *state = gap * f64::from(x) + decay * *state;
            *state as f32
        };
        let weigh = |sum: f64, x: f32| f64::from(x) + decay * sum;
        for index in 0..stride.get() {
            let elements = column(slab, index, stride);
            let mut y = start * elements.skip(d - terms).fold(0.0, weigh);
            for x in column_mut(slab, index, stride) {
                *x = step(&mut y, *x);
            }
            let elements = column(slab, index, stride);
            let mut u = start * elements.take(terms).rev().fold(0.0, weigh);
            for x in column_mut(slab, index, stride).rev() {
                *x = step(&mut u, *x);
            }
        }
    }
}

/// Returns the steps after which `r^k` has fallen to `exp(-log)`, rounded up.
/// `-ln r = 2 artanh(1 / q)`, and two terms of the series `1/q + 1/(3 q^3) + ..` are a good bound.
/// Saturates.
const fn reach(root: f64, log: f64) -> usize {
    let x = 1.0 / root;
    (0.5 * log / (x + x * x * x / 3.0) + 1.0) as usize
}

/// Returns the square root of a normal number by Heron's method, at compile time or at run time.
const fn sqrt(x: f64) -> f64 {
    // Half of the exponent gives a first guess within 7 %. Every step squares its error.
    let mut root = f64::from_bits((x.to_bits() + 1.0_f64.to_bits()) / 2);
    let mut step = 0;
    while step < 5 {
        root = 0.5 * (root + x / root);
        step += 1;
    }
    root
}
