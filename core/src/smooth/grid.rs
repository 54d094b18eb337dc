//! The two recursions along the outer axis of a grid: all columns side by side, row by row.
//!
//! Neighbours in memory belong to different chains here, so that plain loops vectorise.

use super::recursion::{Recursion, Wrap};

/// Smooths `slab` along its outermost axis: two or more rows of `stride` elements each.
pub(super) fn apply_outermost(recursion: &Recursion, slab: &mut [f32], stride: usize) {
    let wrap = Wrap::new(recursion, slab.len() / stride);
    forward(recursion, wrap, slab, stride);
    backward(recursion, wrap, slab, stride);
}

fn forward(recursion: &Recursion, wrap: Wrap, slab: &mut [f32], stride: usize) {
    let step = |x: &mut f32, y: f32| *x = recursion.gain * *x + recursion.decay * y;
    for column in 0..stride {
        let y = wrap.before_first(recursion, elements(slab, column, stride));
        slab.iter_mut()
            .skip(column)
            .take(1)
            .for_each(|x| step(x, y));
    }
    let mut rows = slab.chunks_exact_mut(stride);
    let mut before = rows.next();
    for row in rows {
        for (x, y) in row.iter_mut().zip(before.iter().flat_map(|row| row.iter())) {
            step(x, *y);
        }
        before = Some(row);
    }
}

fn backward(recursion: &Recursion, wrap: Wrap, slab: &mut [f32], stride: usize) {
    let step = |x: &mut f32, u: f32| *x += recursion.decay * u;
    for column in 0..stride {
        let u = wrap.after_last(recursion, elements(slab, column, stride));
        let last = slab.iter_mut().skip(column).step_by(stride).rev().take(1);
        last.for_each(|x| step(x, u));
    }
    let mut rows = slab.rchunks_exact_mut(stride);
    let mut after = rows.next();
    for row in rows {
        for (x, u) in row.iter_mut().zip(after.iter().flat_map(|row| row.iter())) {
            step(x, *u);
        }
        after = Some(row);
    }
}

/// One column of the slab, from its first row to its last.
fn elements(
    slab: &[f32],
    column: usize,
    stride: usize,
) -> impl DoubleEndedIterator<Item = f32> + ExactSizeIterator {
    slab.iter().skip(column).step_by(stride).copied()
}
