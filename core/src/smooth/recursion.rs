//! The two cyclic recursions in `f32`, one plain pass each: the path of short vectors.
//!
//! Five flops an element and no division: on a Cortex-M4F a load, a multiply, a multiply-add and a
//! store forward, one less backward. Both passes are one chain of dependent operations, which costs
//! a microcontroller nothing and a desktop processor most of its speed. Hence `segments`.

use super::{positive::Positive, power::one_minus_power};
use crate::lanes;

/// Largest sigma whose recursions run in `f32`: the roundings of one pass add up to at most
/// `2^-24 / (1 - r)`, which is 1e-6 of the largest entry here and grows as `sqrt(sigma)`.
pub const NARROW_SIGMA: f32 = 256.0;

/// Weight at which a start value stops counting: half of the rounding error of the largest entry.
const LOG_FORGOTTEN: f64 = 26.0 * core::f64::consts::LN_2;

/// Elements per iteration of a pass. Unrolling gains nothing on targets where additions are calls.
const UNROLL: usize = if lanes::SOFT { 1 } else { 8 };

/// Coefficients of `y = s v + r y` and `u = y + r u`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recursion {
    /// r, the share of the previous value that a step keeps.
    pub decay: f32,
    /// s = (1 - r)^2, squared from the rounded r: a constant vector stays constant to about the
    /// last bit.
    pub gain: f32,
    /// Steps after which a value is forgotten: `r^reach < 2^-26`.
    pub reach: usize,
}

impl Recursion {
    /// Creates the coefficients from sigma, finite and 0 or more.
    pub const fn new(sigma: f32) -> Self {
        if sigma <= 0.0 {
            // The identity, which is never applied.
            return Self {
                decay: 0.0,
                gain: 1.0,
                reach: 1,
            };
        }
        let one = Positive::new(1.0);
        let four_sigma = Positive::new(4.0).times(Positive::from_f32(sigma));
        let root = one.plus(four_sigma).root();
        // r = sigma s = 4 sigma / (q + 1)^2: no cancellation for any sigma.
        let more = root.plus(one);
        let decay = four_sigma.over(more).over(more).to_f32();
        let gain = if decay > 0.0 {
            let gap = Positive::from_f32(decay).one_minus();
            gap.times(gap).to_f32()
        } else {
            1.0
        };
        Self {
            decay,
            gain,
            reach: reach(root),
        }
    }

    /// Runs both passes over a whole tensor of two elements or more.
    pub fn apply(&self, v: &mut [f32]) {
        let wrap = Wrap::new(self, v.len());
        let y = wrap.before_first(self, v.iter().copied());
        self.forward(v, y);
        let u = wrap.after_last(self, v.iter().copied());
        self.backward(v, u);
    }

    /// Runs a quarter of [`Self::apply`]: half of the forward or of the backward pass. All four in
    /// order have the same result. Each continues from the last value of the one before.
    // Not inlined: boards that split steps have little flash.
    #[inline(never)]
    pub fn apply_quarter(&self, v: &mut [f32], quarter: usize) {
        let wrap = Wrap::new(self, v.len());
        let start = match quarter {
            0 => wrap.before_first(self, v.iter().copied()),
            2 => wrap.after_last(self, v.iter().copied()),
            _ => 0.0,
        };
        let (first, second) = v.split_at_mut(v.len() / 2);
        match quarter {
            0 => self.forward(first, start),
            1 => self.forward(second, first.last().copied().unwrap_or(0.0)),
            2 => self.backward(second, start),
            _ => self.backward(first, second.first().copied().unwrap_or(0.0)),
        };
    }

    /// Runs the forward pass from `y`, the value before the first, and returns the last value.
    #[inline(always)]
    pub fn forward(&self, v: &mut [f32], mut y: f32) -> f32 {
        let mut step = |x: &mut f32| {
            y = self.gain * *x + self.decay * y;
            *x = y;
        };
        let (chunks, rest) = v.as_chunks_mut::<UNROLL>();
        for chunk in chunks {
            chunk.iter_mut().for_each(&mut step);
        }
        rest.iter_mut().for_each(step);
        y
    }

    /// Runs the backward pass from `u`, the value after the last, and returns the first value.
    #[inline(always)]
    pub fn backward(&self, v: &mut [f32], mut u: f32) -> f32 {
        let mut step = |x: &mut f32| {
            u = *x + self.decay * u;
            *x = u;
        };
        let (chunks, rest) = v.as_chunks_mut::<UNROLL>();
        rest.iter_mut().rev().for_each(&mut step);
        for chunk in chunks.iter_mut().rev() {
            chunk.iter_mut().rev().for_each(&mut step);
        }
        u
    }

    /// Returns `sum_k r^k x[k]` by Horner's rule, for elements from the farthest to the nearest.
    #[inline(always)]
    pub fn weigh(&self, farthest_first: impl Iterator<Item = f32>) -> f32 {
        farthest_first.fold(0.0, |sum, x| x + self.decay * sum)
    }
}

/// Returns the steps after which `r^k` has fallen to `exp(-LOG_FORGOTTEN)`, rounded up.
/// `-ln r = 2 artanh(1 / q)`, and two terms of the series `1/q + 1/(3 q^3) + ..` are a good bound.
const fn reach(root: Positive) -> usize {
    let one = Positive::new(1.0);
    let x = one.over(root);
    let cube = x.times(x).times(x);
    let series = x.plus(cube.over(Positive::new(3.0)));
    let steps = Positive::new(0.5 * LOG_FORGOTTEN).over(series).plus(one);
    steps.floor() as usize
}

/// Start values of the passes over a cycle of d elements, from the nearest `reach` elements across
/// the seam. A shorter cycle repeats, each time weaker by `r^d`: a geometric series.
#[derive(Clone, Copy)]
pub(super) struct Wrap {
    /// Number of elements that count.
    terms: usize,
    /// Number of elements that do not count.
    skipped: usize,
    /// The sum of the series, `1 / (1 - r^d)`.
    series: f32,
}

impl Wrap {
    /// Creates the wrap-around of a cycle of `d` elements.
    pub fn new(recursion: &Recursion, d: usize) -> Self {
        let terms = recursion.reach.min(d);
        let series = if terms < d {
            1.0
        } else {
            1.0 / one_minus_power(1.0 - recursion.decay, d)
        };
        Self {
            terms,
            skipped: d - terms,
            series,
        }
    }

    /// Returns y before the first element, from the elements before the forward pass.
    #[inline(always)]
    pub fn before_first(&self, recursion: &Recursion, v: impl Iterator<Item = f32>) -> f32 {
        self.series * recursion.weigh(v.skip(self.skipped).map(|x| recursion.gain * x))
    }

    /// Returns u after the last element, from the elements after the forward pass.
    #[inline(always)]
    pub fn after_last(
        &self,
        recursion: &Recursion,
        y: impl DoubleEndedIterator<Item = f32> + ExactSizeIterator,
    ) -> f32 {
        self.series * recursion.weigh(y.take(self.terms).rev())
    }
}
