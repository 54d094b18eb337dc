//! Weighted sums of the rows of a matrix, the terms one after the other.

use super::vectors::{WIDTH, add};
use crate::lanes::{self, WIDE, unroll};

/// Vectors side by side: enough to hide the time of an addition.
const VECTORS: usize = 4;

/// Computes `y += Σ x_k·row_k`, the terms one after the other.
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
            add_block::<{ VECTORS * WIDTH }, VECTORS>(x, rows, y, first);
            first += VECTORS * WIDTH;
        } else if first + WIDTH <= width {
            add_block::<WIDTH, 1>(x, rows, y, first);
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

/// Adds to the `N` entries from `first`, which are `V` vectors.
#[inline(always)]
fn add_block<const N: usize, const V: usize>(x: &[f32], rows: &[f32], y: &mut [f32], first: usize) {
    let width = y.len().max(1);
    let Some(block) = y.get_mut(first..).and_then(|y| y.first_chunk_mut::<N>()) else {
        return;
    };
    let (block, _) = block.as_chunks_mut::<WIDTH>();
    let mut sums = [[0.0; WIDTH]; V];
    unroll!(v < V, {
        sums[v] = block[v];
    });
    for (x, row) in x.iter().zip(rows.chunks_exact(width)) {
        let Some(row) = row.get(first..).and_then(|row| row.first_chunk::<N>()) else {
            return;
        };
        let (row, _) = row.as_chunks::<WIDTH>();
        unroll!(v < V, {
            add(&mut sums[v], &row[v], *x);
        });
    }
    unroll!(v < V, {
        block[v] = sums[v];
    });
}
