//! Sums of products of entries and vectors, several entries of a window side by side.

use super::vectors::{add, load, store};
use crate::lanes::unroll;

/// Windows, with a vector for each. A sum belongs to an entry of the window, and adds the entry
/// times the vector, window by window.
pub(super) struct Products<'a, const W: usize> {
    /// Entries from the first window on.
    pub(super) entries: &'a [f32],
    /// Distance in entries from a window to the next below, and to the next on the right.
    pub(super) steps: [usize; 2],
    /// Number of windows side by side.
    pub(super) columns: usize,
    pub(super) vectors: &'a [[f32; W]],
}

impl<const W: usize> Products<'_, W> {
    /// Adds to the sums of the first `count` entries of the windows. The sums begin at `at` and are
    /// `stride` apart.
    #[inline(always)]
    pub(super) fn add_to(&self, sums: &mut [f32], at: usize, stride: usize, count: usize) {
        let mut done = 0;
        while done < count {
            done += match count {
                8.. => self.add::<8>(sums, at, stride, [done, count]),
                5.. => self.add::<5>(sums, at, stride, [done, count]),
                3.. => self.add::<3>(sums, at, stride, [done, count]),
                _ => self.add::<1>(sums, at, stride, [done, count]),
            };
        }
    }

    /// Adds to the sums of the next `R` entries. If fewer are left, earlier ones are recomputed and
    /// not changed. Returns the number of new ones.
    #[inline(always)]
    fn add<const R: usize>(
        &self,
        sums: &mut [f32],
        at: usize,
        stride: usize,
        [done, count]: [usize; 2],
    ) -> usize {
        let first = done.min(count.saturating_sub(R));
        let at = at + first * stride;
        let mut own = [[0.0; W]; R];
        unroll!(r < R, {
            own[r] = load(sums, at + r * stride);
        });
        for (y, vectors) in self.vectors.chunks_exact(self.columns.max(1)).enumerate() {
            let start = y * self.steps[0] + first;
            let mut entries = self.entries.get(start..).unwrap_or_default();
            for vector in vectors {
                let Some(window) = entries.first_chunk::<R>() else {
                    break;
                };
                unroll!(r < R, {
                    add(&mut own[r], vector, window[r]);
                });
                entries = entries.get(self.steps[1]..).unwrap_or_default();
            }
        }
        unroll!(r < R, {
            if first + r >= done {
                store(own[r], sums, at + r * stride, W);
            }
        });
        R - (done - first)
    }
}

/// Returns the `W` columns from `first` of a matrix, copied to `memory` unless they are the whole
/// matrix.
#[inline(always)]
pub(super) fn column_of<'a, const W: usize>(
    matrix: &'a [f32],
    columns: usize,
    first: usize,
    memory: &'a mut [f32],
) -> &'a [[f32; W]] {
    if columns == W {
        return matrix.as_chunks().0;
    }
    let (vectors, _) = memory.as_chunks_mut();
    let rows = matrix.len() / columns.max(1);
    let vectors = vectors.get_mut(..rows).unwrap_or_default();
    for (row, vector) in vectors.iter_mut().enumerate() {
        *vector = load(matrix, row * columns + first);
    }
    vectors
}
