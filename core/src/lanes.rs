//! Sums, norms and dot products over parameters, in one fixed order, so that every machine gets the
//! same bits.
//!
//! Floating-point addition is not associative, so the order of summation is part of a result. Here
//! term `i` is added to lane `i mod 8`, each lane from its first term to its last, and the eight
//! lanes are then summed as a tree: `((l0 + l4) + (l2 + l6)) + ((l1 + l5) + (l3 + l7))`. Eight
//! lanes are one AVX register, two SSE or NEON registers, or eight scalar registers of a
//! Cortex-M4F. The bits are the same on all of them. Products are rounded before they are added,
//! without fused multiply-add.
//!
//! The number of dot products side by side ([`dots_of_pair`]) changes the speed but never the bits.

use core::array;

use crate::math;

/// Whether there are vector registers for many sums side by side. The bits do not depend on it.
pub(crate) const WIDE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Whether there are registers for single sums, such as the 32 of a Cortex-M4F.
pub(crate) const REGISTERS: bool = !WIDE && cfg!(any(target_abi = "eabihf", target_feature = "f"));

/// Whether an addition is a function call, as far as known here: processors without a
/// floating-point unit, where a pass over the parameters takes as long as a sample.
pub(crate) const SOFT: bool = !WIDE && !REGISTERS;

/// Number of interleaved partial sums.
pub const LANES: usize = 8;

/// Repeats a block for each number below a constant, at most eight.
///
/// A loop has the same effect, but the compiler only keeps sums in registers if it unrolls all
/// loops over them, which it does not do for large ones.
macro_rules! unroll {
    ($i:ident < $count:expr, $body:block) => {
        unroll!($i = 0, $count, $body);
        unroll!($i = 1, $count, $body);
        unroll!($i = 2, $count, $body);
        unroll!($i = 3, $count, $body);
        unroll!($i = 4, $count, $body);
        unroll!($i = 5, $count, $body);
        unroll!($i = 6, $count, $body);
        unroll!($i = 7, $count, $body);
    };
    ($i:ident = $value:literal, $count:expr, $body:block) => {
        if $value < $count {
            let $i = $value;
            $body
        }
    };
}

/// Repeats a block for each lane, unrolled if each lane is a register: even in programs optimised
/// for size, the innermost loops should have no counter. If every addition is a function call, a
/// counter costs little, and unrolled calls cost flash.
macro_rules! each_lane {
    ($l:ident, $body:block) => {
        if crate::lanes::REGISTERS {
            each_lane!($l, $body; 0 1 2 3 4 5 6 7);
        } else {
            for $l in 0..crate::lanes::LANES $body
        }
    };
    ($l:ident, $body:block; $($lane:literal)*) => {
        $({
            let $l = $lane;
            $body
        })*
    };
}
pub(crate) use {each_lane, unroll};

/// Sums the eight lanes in the order of the fixed tree.
#[inline(always)]
fn tree(l: [f32; LANES]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// Returns Σ f(aᵢ) in lane order.
#[inline(always)]
fn reduce(v: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    tree(add_terms([0.0; LANES], v, f))
}

/// Adds f(aᵢ) to lane `i mod 8`.
#[inline(always)]
fn add_terms(mut lanes: [f32; LANES], v: &[f32], f: impl Fn(f32) -> f32) -> [f32; LANES] {
    let (blocks, rest) = v.as_chunks::<LANES>();
    for block in blocks {
        each_lane!(l, {
            lanes[l] += f(block[l]);
        });
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += f(*x);
    }
    lanes
}

/// Returns the sum of the entries.
#[inline]
pub fn sum(v: &[f32]) -> f32 {
    reduce(v, |x| x)
}

/// Returns the sum of squares, infinite on overflow.
#[inline(always)]
pub fn squared_norm(v: &[f32]) -> f32 {
    reduce(v, |x| x * x)
}

/// Computes `v[i] ← f(v[i], a[i], b[i])` over the common length, and returns the sum of squares of
/// the result, in lane order and in the same pass.
#[inline(always)]
pub fn rewrite(v: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32, f32) -> f32) -> f32 {
    if !WIDE {
        for ((v, a), b) in v.iter_mut().zip(a).zip(b) {
            *v = f(*v, *a, *b);
        }
        return squared_norm(v);
    }
    let mut lanes = [0.0; LANES];
    let (v_blocks, v_rest) = v.as_chunks_mut::<LANES>();
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for ((v, a), b) in v_blocks.iter_mut().zip(a_blocks).zip(b_blocks) {
        let mut result = [0.0; LANES];
        each_lane!(l, {
            result[l] = f(v[l], a[l], b[l]);
        });
        each_lane!(l, {
            lanes[l] += result[l] * result[l];
        });
        *v = result;
    }
    for (lane, ((v, a), b)) in lanes
        .iter_mut()
        .zip(v_rest.iter_mut().zip(a_rest).zip(b_rest))
    {
        *v = f(*v, *a, *b);
        *lane += *v * *v;
    }
    tree(lanes)
}

/// An incremental [`squared_norm`] of a vector.
///
/// A lane is a chain of dependent additions. Adding one [`SPAN`] at a time between other work hides
/// their latency.
pub(crate) struct Squares {
    lanes: [f32; LANES],
    counted: usize,
}

impl Squares {
    pub(crate) const fn new() -> Self {
        Self {
            lanes: [0.0; LANES],
            counted: 0,
        }
    }

    /// Adds the next [`SPAN`] entries of `v` if they are among the first `complete`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, v: &[f32], complete: usize) {
        let next = v.get(self.counted..complete).unwrap_or_default();
        if let Some(span) = next.first_chunk::<SPAN>() {
            self.add(span);
        }
    }

    /// Adds the remaining entries, and returns the sum.
    #[inline(always)]
    pub(crate) fn finish(mut self, v: &[f32]) -> f32 {
        self.add(v.get(self.counted..).unwrap_or_default());
        self.total()
    }

    /// Not inlined, because the compiler would split the lanes into the first pairs of the tree.
    #[inline(never)]
    fn total(&self) -> f32 {
        tree(self.lanes)
    }

    /// Adds entries. All calls but the last add whole blocks of [`LANES`].
    #[inline(always)]
    fn add(&mut self, entries: &[f32]) {
        self.lanes = add_terms(self.lanes, entries, |x| x * x);
        self.counted += entries.len();
    }
}

/// Returns the L2 norm, safe against overflow and underflow of the squares. Not finite if an entry
/// is not.
///
/// Cost: one pass, and two more if the plain sum of squares leaves the normal range.
#[inline]
pub fn norm(v: &[f32]) -> f32 {
    norm_from(squared_norm(v), v)
}

/// Returns [`norm`] of a vector with a known [`squared_norm`].
#[inline]
pub(crate) fn norm_from(squares: f32, v: &[f32]) -> f32 {
    // Below 2⁻¹⁰⁰, single squares may have been lost to underflow.
    if squares.is_finite() && squares > f32::from_bits(0x0d80_0000) {
        math::sqrt(squares)
    } else {
        norm_by_scaling(v)
    }
}

/// Returns [`norm`] if squares overflow or underflow. Rare, so the code is as small as possible.
#[cold]
#[inline(never)]
fn norm_by_scaling(v: &[f32]) -> f32 {
    let mut largest = 0.0;
    for x in v {
        let magnitude = math::abs(*x);
        // Comparisons with NaN are false: it is kept once found.
        if magnitude > largest || magnitude.is_nan() {
            largest = magnitude;
        }
    }
    if !(largest.is_finite() && largest > 0.0) {
        return largest;
    }
    // 2^−exponent of the largest entry, kept in the normal range, scales without rounding.
    let exponent = (largest.to_bits() >> 23).clamp(1, 253);
    let down = f32::from_bits((254 - exponent) << 23);
    let up = f32::from_bits(exponent << 23);
    let mut lanes = [0.0; LANES];
    for (i, x) in v.iter().enumerate() {
        lanes[i % LANES] += (x * down) * (x * down);
    }
    math::sqrt(tree(lanes)) * up
}

/// Returns the dot product over the common length.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    if WIDE {
        let [value] = dots(a, [b]);
        value
    } else {
        dot_by_blocks(a, b)
    }
}

/// Computes [`dot`] without vectors: the lanes are eight registers, and each iteration is a block.
#[inline(always)]
fn dot_by_blocks(a: &[f32], b: &[f32]) -> f32 {
    let length = a.len().min(b.len());
    let (a_blocks, a_rest) = tail(a, 0, length).as_chunks::<LANES>();
    let (b_blocks, b_rest) = tail(b, 0, length).as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        each_lane!(l, {
            sums[l] += a[l] * b[l];
        });
    }
    total(sums, a_rest, b_rest)
}

/// Computes [`dots`] of two rows as long as `x` without vectors. Each value of `x` is read once,
/// and the lanes are sixteen of the 32 registers of a Cortex-M4F.
#[inline(always)]
pub(crate) fn two_dots_by_blocks(x: &[f32], [first, second]: [&[f32]; 2]) -> [f32; 2] {
    let (x_blocks, x_rest) = x.as_chunks::<LANES>();
    let (first_blocks, first_rest) = first.as_chunks::<LANES>();
    let (second_blocks, second_rest) = second.as_chunks::<LANES>();
    let (mut first, mut second) = ([0.0; LANES], [0.0; LANES]);
    for ((x, a), b) in x_blocks.iter().zip(first_blocks).zip(second_blocks) {
        each_lane!(l, {
            first[l] += x[l] * a[l];
            second[l] += x[l] * b[l];
        });
    }
    [
        total(first, x_rest, first_rest),
        total(second, x_rest, second_rest),
    ]
}

/// Returns the sum of the lanes and of the products of the last entries, fewer than [`LANES`].
#[inline(always)]
fn total(sums: [f32; LANES], a_rest: &[f32], b_rest: &[f32]) -> f32 {
    if a_rest.is_empty() {
        tree(sums)
    } else {
        finish(sums, a_rest, b_rest)
    }
}

/// Adds the products of the last entries, fewer than [`LANES`], and returns the sum of the lanes. A
/// separate function, because a lane with a run-time index cannot be in a register.
#[inline(never)]
fn finish(mut sums: [f32; LANES], a_rest: &[f32], b_rest: &[f32]) -> f32 {
    for (lane, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * b;
    }
    tree(sums)
}

/// Returns the dot products of a vector with `R` rows over their common length.
///
/// Each product is summed separately in lane order, so the number of products side by side does not
/// affect the result, only the number of memory reads.
///
/// Without vectors it is a separate function: inlined into the loop over rows, it would keep all
/// values of `x` across the loop, with too few registers.
#[inline(always)]
pub fn dots<const R: usize>(x: &[f32], w: [&[f32]; R]) -> [f32; R] {
    let length = w.iter().map(|w| w.len()).min().unwrap_or(0).min(x.len());
    let mut lanes = [[0.0; LANES]; R];
    let mut start = 0;
    // Long spans first, whose inner loop has no bounds checks. The order is the same as with single
    // blocks.
    while start + SPAN <= length {
        add_products::<R, SPAN>(&mut lanes, x, w, start);
        start += SPAN;
    }
    while start + LANES <= length {
        add_products::<R, LANES>(&mut lanes, x, w, start);
        start += LANES;
    }
    let mut result = [0.0; R];
    for r in 0..R {
        let rest = tail(x, start, length).iter().zip(tail(w[r], start, length));
        for (lane, (a, b)) in lanes[r].iter_mut().zip(rest) {
            *lane += a * b;
        }
        result[r] = tree(lanes[r]);
    }
    result
}

/// Adds the products of elements `start..start + N` to the lanes. `N` is a multiple of [`LANES`].
#[inline(always)]
fn add_products<const R: usize, const N: usize>(
    lanes: &mut [[f32; LANES]; R],
    x: &[f32],
    w: [&[f32]; R],
    start: usize,
) {
    let x: &[f32; N] = span(x, start);
    let w: [&[f32; N]; R] = w.map(|v| span(v, start));
    let mut sums = *lanes;
    for block in 0..N / LANES {
        unroll!(r < R, {
            let (sums, w) = (&mut sums[r], &w[r]);
            each_lane!(l, {
                sums[l] += x[block * LANES + l] * w[block * LANES + l];
            });
        });
    }
    *lanes = sums;
}

/// Computes [`dots`] of two vectors: `result[v][r] = xᵥ·wᵣ`.
///
/// The lanes of both are side by side: in one register of 512 bits, or two of 256.
#[inline(always)]
pub fn dots_of_pair<const R: usize>(x: [&[f32]; 2], w: [&[f32]; R]) -> [[f32; R]; 2] {
    let length = x.iter().chain(&w).map(|v| v.len()).min().unwrap_or(0);
    let mut lanes = [[0.0; 2 * LANES]; R];
    let mut start = 0;
    while start + SPAN <= length {
        add_products_of_pair::<R, SPAN>(&mut lanes, x, w, start);
        start += SPAN;
    }
    while start + LANES <= length {
        add_products_of_pair::<R, LANES>(&mut lanes, x, w, start);
        start += LANES;
    }
    let mut result = [[0.0; R]; 2];
    for r in 0..R {
        let (lanes, _) = lanes[r].as_chunks_mut();
        for ((lanes, x), result) in lanes.iter_mut().zip(x).zip(&mut result) {
            let rest = tail(x, start, length).iter().zip(tail(w[r], start, length));
            for (lane, (a, b)) in lanes.iter_mut().zip(rest) {
                *lane += a * b;
            }
            result[r] = tree(*lanes);
        }
    }
    result
}

/// Like [`add_products`], for two vectors.
#[inline(always)]
fn add_products_of_pair<const R: usize, const N: usize>(
    lanes: &mut [[f32; 2 * LANES]; R],
    x: [&[f32]; 2],
    w: [&[f32]; R],
    start: usize,
) {
    let x: [&[f32; N]; 2] = x.map(|v| span(v, start));
    let w: [&[f32; N]; R] = w.map(|v| span(v, start));
    let mut sums = *lanes;
    for block in 0..N / LANES {
        let at = |l: usize| block * LANES + l % LANES;
        let pair: [f32; 2 * LANES] = array::from_fn(|l| x[l / LANES][at(l)]);
        unroll!(r < R, {
            let twice: [f32; 2 * LANES] = array::from_fn(|l| w[r][at(l)]);
            for l in 0..2 * LANES {
                sums[r][l] += pair[l] * twice[l];
            }
        });
    }
    *lanes = sums;
}

/// Number of elements processed without a bounds check in between.
pub(crate) const SPAN: usize = 8 * LANES;

/// Returns the `N` elements from `start`. The caller has checked that they exist.
#[inline(always)]
pub(crate) fn span<const N: usize>(v: &[f32], start: usize) -> &[f32; N] {
    v.get(start..)
        .and_then(|v| v.first_chunk())
        .unwrap_or(&[0.0; N])
}

#[inline(always)]
fn tail(v: &[f32], start: usize, end: usize) -> &[f32] {
    v.get(start..end).unwrap_or_default()
}

/// Computes `y += a·x` over the common length.
///
/// There is no reduction across entries, so any vector width gives the same bits.
#[inline(always)]
pub fn axpy(a: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// Computes `v *= factor`.
#[inline(always)]
pub fn scale(v: &mut [f32], factor: f32) {
    for x in v {
        *x *= factor;
    }
}

#[cfg(test)]
mod tests;
