//! Matrix products over a device's samples, which are rows of a table in any order, without copies.
//!
//! A product is divided into tiles whose sums stay in registers. The widths of the tiles depend on
//! the number of registers, so the order of every sum, and therefore the bits, depends only on the
//! instruction set.
//!
//! This module uses only plain loops: a closure, even in an iterator or an array function, is
//! compiled for the oldest processor, and vectors do not stay in registers across it.
#![allow(
    clippy::needless_range_loop,
    reason = "the closures of iterators are compiled for the oldest of all processors"
)]

use pulp::Simd;

/// Number of vectors in a tile of [`combine`].
const TILE_VECTORS: usize = 4;

/// Returns `x_i · y_j` for the vectors of a tile, which all have the same length.
#[inline(always)]
fn dots<S: Simd, const N: usize, const M: usize>(
    simd: S,
    x: [&[f32]; N],
    y: [&[f32]; M],
) -> [[f32; M]; N] {
    let length = x.iter().chain(&y).map(|v| v.len()).min().unwrap_or(0);
    let whole = length / S::F32_LANES;
    let x_blocks = x.map(|v| &S::as_simd_f32s(v).0[..whole]);
    let y_blocks = y.map(|v| &S::as_simd_f32s(v).0[..whole]);
    let zero = simd.splat_f32s(0.0);
    let mut sums = [[zero; M]; N];
    let mut b = [zero; M];
    for k in 0..whole {
        for j in 0..M {
            b[j] = y_blocks[j][k];
        }
        for i in 0..N {
            let a = x_blocks[i][k];
            for j in 0..M {
                sums[i][j] = simd.mul_add_e_f32s(a, b[j], sums[i][j]);
            }
        }
    }
    let rest = whole * S::F32_LANES..length;
    if !rest.is_empty() {
        // Zeros after the end.
        for j in 0..M {
            b[j] = simd.partial_load_f32s(&y[j][rest.clone()]);
        }
        for i in 0..N {
            let a = simd.partial_load_f32s(&x[i][rest.clone()]);
            for j in 0..M {
                sums[i][j] = simd.mul_add_e_f32s(a, b[j], sums[i][j]);
            }
        }
    }
    let mut products = [[0.0; M]; N];
    for i in 0..N {
        for j in 0..M {
            products[i][j] = simd.reduce_sum_f32s(sums[i][j]);
        }
    }
    products
}

/// Calls `write(i, j, x_i · y_j)` for all pairs in tiles of `N` by `M`. Tiles whose first row is
/// `i` start at column `wanted(i)`.
#[inline(always)]
fn tiled<'a, S: Simd, const N: usize, const M: usize>(
    simd: S,
    x: &[&'a [f32]],
    y: &[&'a [f32]],
    wanted: impl Fn(usize) -> usize,
    mut write: impl FnMut(usize, usize, f32),
) {
    for (tile, x) in x.chunks(N).enumerate() {
        let first = tile * N;
        let begin = wanted(first);
        let columns = y.get(begin..).unwrap_or_default();
        for (block, y) in columns.chunks(M).enumerate() {
            let column = begin + block * M;
            match (<[&[f32]; N]>::try_from(x), <[&[f32]; M]>::try_from(y)) {
                (Ok(x), Ok(y)) => {
                    let sums = dots(simd, x, y);
                    for (i, sums) in (first..).zip(&sums) {
                        for (j, sum) in (column..).zip(sums) {
                            write(i, j, *sum);
                        }
                    }
                }
                // The border.
                _ => {
                    for (i, x) in (first..).zip(x) {
                        for (j, y) in (column..).zip(y) {
                            let [[sum]] = dots(simd, [*x], [*y]);
                            write(i, j, sum);
                        }
                    }
                }
            }
        }
    }
}

/// Writes `w_c · x_s`, plus the bias of class c, from flat parameters to `scores[place(c, s)]`.
#[inline(always)]
pub(super) fn scores<S: Simd>(
    simd: S,
    samples: &[&[f32]],
    parameters: &[f32],
    place: impl Fn(usize, usize) -> usize,
    scores: &mut [f32],
) {
    let features = samples.first().map_or(0, |x| x.len());
    let (weights, biases) = parameters.split_at(parameters.len() / (features + 1) * features);
    let weights: Vec<_> = weights.chunks_exact(features.max(1)).collect();
    let mut write = |s: usize, c: usize, product: f32| scores[place(c, s)] = product + biases[c];
    match S::REGISTER_COUNT {
        32.. => tiled::<S, 4, 5>(simd, samples, &weights, |_| 0, &mut write),
        _ => tiled::<S, 2, 5>(simd, samples, &weights, |_| 0, &mut write),
    }
}

/// Writes `gram[r][s] = x_r · x_s + 1`, with 1 for the bias. A row has `stride` entries. The matrix
/// is symmetric, and only half of it is computed.
#[inline(always)]
pub(super) fn gram<S: Simd>(simd: S, samples: &[&[f32]], stride: usize, gram: &mut [f32]) {
    let mut write = |r: usize, s: usize, product: f32| {
        gram[r * stride + s] = product + 1.0;
        gram[s * stride + r] = product + 1.0;
    };
    match S::REGISTER_COUNT {
        32.. => tiled::<S, 4, 5>(simd, samples, samples, |r| r, &mut write),
        _ => tiled::<S, 2, 5>(simd, samples, samples, |r| r, &mut write),
    }
}

/// Terms and factors of [`combine`].
#[derive(Clone, Copy)]
pub(super) struct Combination<'a> {
    /// A vector as long as the result, and its factor.
    pub(super) base: (f32, &'a [f32]),
    /// A row of factors for each output. The first factors of each row belong to the samples.
    pub(super) factors: &'a [f32],
    /// Length of a row of factors.
    pub(super) stride: usize,
    /// Common multiplier of the factors.
    pub(super) scale: f32,
}

/// Writes `out[c] = t · base[c] + scale · Σ_s factors[c][s] · x_s`.
#[inline(always)]
pub(super) fn combine<S: Simd>(simd: S, samples: &[&[f32]], sum: Combination<'_>, out: &mut [f32]) {
    let features = samples.first().map_or(0, |x| x.len());
    if features == 0 {
        return;
    }
    let mut first = 0;
    let mut rest = out;
    while !rest.is_empty() {
        let left = rest.len() / features;
        // Few widths, because each one is compiled.
        let width = match left {
            5.. => 5,
            2.. => 2,
            _ => 1,
        };
        let (rows, after) = rest.split_at_mut(width * features);
        match width {
            5 => combine_rows::<S, 5>(simd, samples, sum, first, rows),
            2 => combine_rows::<S, 2>(simd, samples, sum, first, rows),
            _ => combine_rows::<S, 1>(simd, samples, sum, first, rows),
        }
        first += width;
        rest = after;
    }
}

/// Computes `R` rows of [`combine`], from the row `first`.
#[inline(always)]
fn combine_rows<S: Simd, const R: usize>(
    simd: S,
    samples: &[&[f32]],
    sum: Combination<'_>,
    first: usize,
    out: &mut [f32],
) {
    let features = out.len() / R;
    if features >= TILE_VECTORS * S::F32_LANES {
        combine_tiles::<S, R, TILE_VECTORS>(simd, samples, sum, first, out);
    } else if features >= S::F32_LANES {
        combine_tiles::<S, R, 1>(simd, samples, sum, first, out);
    } else {
        for r in 0..R {
            let factors = &sum.factors[(first + r) * sum.stride..][..samples.len()];
            for i in 0..features {
                let mut total = 0.0;
                for (x, a) in samples.iter().zip(factors) {
                    total += a * x[i];
                }
                let row = r * features + i;
                out[row] = sum.base.0 * sum.base.1[first * features + row] + sum.scale * total;
            }
        }
    }
}

/// Computes [`combine_rows`] for at least `V` vectors of features. The last tile ends where the
/// features end, and rewrites its overlap with the previous tile with the same bits.
#[inline(always)]
fn combine_tiles<S: Simd, const R: usize, const V: usize>(
    simd: S,
    samples: &[&[f32]],
    sum: Combination<'_>,
    first: usize,
    out: &mut [f32],
) {
    let last = out.len() / R - V * S::F32_LANES;
    let mut start = 0;
    while start < last {
        combine_tile::<S, R, V>(simd, samples, sum, first, start, out);
        start += V * S::F32_LANES;
    }
    combine_tile::<S, R, V>(simd, samples, sum, first, last, out);
}

/// Computes `V` vectors of features of [`combine_rows`], from the feature `start`.
#[inline(always)]
fn combine_tile<S: Simd, const R: usize, const V: usize>(
    simd: S,
    samples: &[&[f32]],
    sum: Combination<'_>,
    first: usize,
    start: usize,
    out: &mut [f32],
) {
    let features = out.len() / R;
    let span = V * S::F32_LANES;
    let factors: [&[f32]; R] =
        std::array::from_fn(|r| &sum.factors[(first + r) * sum.stride..][..samples.len()]);
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for (s, x) in samples.iter().enumerate() {
        let x = S::as_simd_f32s(&x[start..start + span]).0;
        for r in 0..R {
            let a = simd.splat_f32s(factors[r][s]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(a, x[v], sums[r][v]);
            }
        }
    }
    let (t, base) = (simd.splat_f32s(sum.base.0), sum.base.1);
    let scale = simd.splat_f32s(sum.scale);
    for r in 0..R {
        let row = r * features + start;
        let base = S::as_simd_f32s(&base[first * features + row..][..span]).0;
        let out = S::as_mut_simd_f32s(&mut out[row..row + span]).0;
        for v in 0..V {
            out[v] = simd.mul_add_e_f32s(scale, sums[r][v], simd.mul_f32s(t, base[v]));
        }
    }
}
