//! The columns of a slab: elements `stride` apart.

use core::num::NonZeroUsize;

/// Returns one column of a slab, from its first row to its last.
pub(super) fn column(
    slab: &[f32],
    index: usize,
    stride: NonZeroUsize,
) -> impl DoubleEndedIterator<Item = f32> + ExactSizeIterator {
    slab.chunks_exact(stride.get())
        .map(move |row| row.get(index).copied().unwrap_or_default())
}

/// Returns one column of a slab, mutably.
pub(super) fn column_mut(
    slab: &mut [f32],
    index: usize,
    stride: NonZeroUsize,
) -> impl DoubleEndedIterator<Item = &mut f32> {
    slab.chunks_exact_mut(stride.get())
        .filter_map(move |row| row.get_mut(index))
}
