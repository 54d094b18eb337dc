//! The two recursions along the outer axis of a grid: all columns side by side, row by row.
//!
//! Neighbours in memory belong to different chains, so plain loops vectorise.

use core::num::NonZeroUsize;

use super::{
    columns::{column, column_mut},
    recursion::{Recursion, Wrap},
};

/// Smooths `slab` along its outermost axis: two or more rows of `stride` elements each.
pub(super) fn apply_outermost(recursion: &Recursion, slab: &mut [f32], stride: NonZeroUsize) {
    let wrap = Wrap::new(recursion, slab.len() / stride);
    forward(recursion, wrap, slab, stride);
    backward(recursion, wrap, slab, stride);
}

fn forward(recursion: &Recursion, wrap: Wrap, slab: &mut [f32], stride: NonZeroUsize) {
    let step = |x: &mut f32, y: f32| *x = recursion.gain * *x + recursion.decay * y;
    for index in 0..stride.get() {
        let y = wrap.before_first(recursion, column(slab, index, stride));
        column_mut(slab, index, stride)
            .take(1)
            .for_each(|x| step(x, y));
    }
    let mut rows = slab.chunks_exact_mut(stride.get());
    let mut before = rows.next().unwrap_or_default();
    for row in rows {
        row.iter_mut()
            .zip(before.iter())
            .for_each(|(x, y)| step(x, *y));
        before = row;
    }
}

fn backward(recursion: &Recursion, wrap: Wrap, slab: &mut [f32], stride: NonZeroUsize) {
    let step = |x: &mut f32, u: f32| *x += recursion.decay * u;
    for index in 0..stride.get() {
        let u = wrap.after_last(recursion, column(slab, index, stride));
        column_mut(slab, index, stride)
            .rev()
            .take(1)
            .for_each(|x| step(x, u));
    }
    let mut rows = slab.chunks_exact_mut(stride.get()).rev();
    let mut after = rows.next().unwrap_or_default();
    for row in rows {
        row.iter_mut()
            .zip(after.iter())
            .for_each(|(x, u)| step(x, *u));
        after = row;
    }
}
