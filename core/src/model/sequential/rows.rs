//! Sums of the rows of a matrix.

use super::vectors::{WIDTH, add, load, store};
use crate::lanes::{self, WIDE, unroll};

/// Vectors side by side: enough to hide the time of an addition.
const VECTORS: usize = 4;

/// `y += Σ x_k·row_k`, the terms one after the other.
#[inline(always)]
pub(super) fn add_rows(x: &[f32], rows: &[f32], y: &mut [f32]) {
    let width = y.len().max(1);
    if !WIDE {
        for (x, row) in x.iter().zip(rows.chunks_exact(width)) {
            lanes::axpy(*x, row, y);
        }
        return;
    }
    let mut first = 0;
    while first < width {
        if first + VECTORS * WIDTH <= width {
            add_block::<VECTORS>(x, rows, y, first);
            first += VECTORS * WIDTH;
        } else if first + WIDTH <= width {
            add_block::<1>(x, rows, y, first);
            first += WIDTH;
        } else {
            let rest = y.get_mut(first..).unwrap_or_default();
            for (x, row) in x.iter().zip(rows.chunks_exact(width)) {
                lanes::axpy(*x, row.get(first..).unwrap_or_default(), rest);
            }
            return;
        }
    }
}

/// Adds to `V` vectors from `first`.
#[inline(always)]
fn add_block<const V: usize>(x: &[f32], rows: &[f32], y: &mut [f32], first: usize) {
    let width = y.len();
    let mut sums = [[0.0; WIDTH]; V];
    unroll!(v < V, {
        sums[v] = load(y, first + v * WIDTH);
    });
    for (x, row) in x.iter().zip(rows.chunks_exact(width.max(1))) {
        unroll!(v < V, {
            let row: [f32; WIDTH] = load(row, first + v * WIDTH);
            add(&mut sums[v], &row, *x);
        });
    }
    unroll!(v < V, {
        store(sums[v], y, first + v * WIDTH, WIDTH);
    });
}
