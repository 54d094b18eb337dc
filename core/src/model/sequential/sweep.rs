//! Sums of products of windows with panels of weights: several windows side by side.

use core::array;

use super::vectors::{WIDTH, add, next_width, store};
use crate::lanes::{LANES, unroll};

/// Windows side by side. With their vectors, six fill the registers of 256 bits, and hide the time
/// of an addition in those of 512.
const WINDOWS: usize = 6;

/// The windows of a frame, and the panels with which their entries are multiplied.
pub(super) struct Sweep<'a> {
    pub(super) frame: &'a [f32],
    /// Entries of a row of the frame.
    pub(super) row: usize,
    /// Distance in entries from a window to the next below, and to the next on the right.
    pub(super) steps: [usize; 2],
    pub(super) windows: [usize; 2],
    /// Number of contiguous entries of a window.
    pub(super) length: usize,
    pub(super) panels: &'a [f32],
    /// Rows of a panel without its biases: the entries of a window.
    pub(super) rows: usize,
    pub(super) outputs: usize,
}

impl Sweep<'_> {
    #[inline(always)]
    pub(super) fn run(&self, output: &mut [f32]) {
        let mut panels = self.panels;
        let mut first = 0;
        while first < self.outputs {
            let width = next_width(self.outputs - first);
            let Some((panel, after)) = panels.split_at_checked(width * (self.rows + 1)) else {
                return;
            };
            if width == WIDTH {
                self.outputs::<WIDTH>(panel, first, output);
            } else {
                self.outputs::<LANES>(panel, first, output);
            }
            panels = after;
            first += width;
        }
    }

    /// Computes the `W` outputs from `first` of all windows.
    #[inline(always)]
    fn outputs<const W: usize>(&self, panel: &[f32], first: usize, output: &mut [f32]) {
        let (panel, _) = panel.as_chunks::<W>();
        let Some((&biases, panel)) = panel.split_last() else {
            return;
        };
        let [height, width] = self.windows;
        let (mut start, mut column) = (0, 0);
        let mut pixel = 0;
        while pixel < height * width {
            let count = WINDOWS.min(height * width - pixel);
            // If there are fewer, repeats the first one.
            let mut starts = [start + column * self.steps[1]; WINDOWS];
            for place in starts.iter_mut().take(count) {
                *place = start + column * self.steps[1];
                column += 1;
                if column == width {
                    (start, column) = (start + self.steps[0], 0);
                }
            }
            let sums = self.tile(panel, starts);
            let at = pixel * self.outputs + first;
            unroll!(w < WINDOWS, {
                if w < count {
                    let results: [f32; W] = array::from_fn(|l| sums[w][l] + biases[l]);
                    let at = at + w * self.outputs;
                    store(results, output, at, self.outputs - first);
                }
            });
            pixel += count;
        }
    }

    /// Computes the sums of some windows, which begin at `starts`.
    #[inline(always)]
    fn tile<const W: usize>(&self, panel: &[[f32; W]], starts: [usize; WINDOWS]) -> [[f32; W]; 6] {
        let [mut s0, mut s1, mut s2, mut s3, mut s4, mut s5] = [[0.0; W]; 6];
        for (row, weights) in panel.chunks_exact(self.length.max(1)).enumerate() {
            let [a, b, c, d, e, f] = starts.map(|start| {
                let row = self.frame.get(start + row * self.row..).unwrap_or_default();
                row.get(..self.length).unwrap_or_default().iter()
            });
            let windows = a.zip(b).zip(c.zip(d)).zip(e.zip(f));
            for (weights, (((a, b), (c, d)), (e, f))) in weights.iter().zip(windows) {
                add(&mut s0, weights, *a);
                add(&mut s1, weights, *b);
                add(&mut s2, weights, *c);
                add(&mut s3, weights, *d);
                add(&mut s4, weights, *e);
                add(&mut s5, weights, *f);
            }
        }
        [s0, s1, s2, s3, s4, s5]
    }
}
