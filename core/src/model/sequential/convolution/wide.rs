//! Convolutions with vectors of output channels: several windows, or several weights, side by side.
//!
//! With the weights in panels (place by place of the kernel, channel by channel, a vector of
//! outputs each), a window adds a row of entries times vectors, and a weight adds an entry times a
//! vector of derivatives; no sum runs across a vector. Derivatives by the input are a convolution
//! of the derivatives, zeros around and between them, with the kernel turned around.

use core::array;

use super::{
    super::{
        pass::{Backward, Forward},
        vectors::{WIDTH, load, next_width, padded, store},
    },
    Convolution, volume,
};
use crate::lanes::{LANES, unroll};

/// Windows side by side. With their vectors, six fill the registers of 256 bits, and hide the time
/// of an addition in those of 512.
const WINDOWS: usize = 6;

impl Convolution {
    /// Entries of the panels: of the weights, and of the kernels turned around.
    pub(super) const fn panels_count(&self) -> usize {
        self.wide_sums_count().saturating_add(self.turned_count())
    }

    const fn turned_count(&self) -> usize {
        let [height, width] = self.kernel;
        let rows = volume([height, width, self.outputs]).saturating_add(1);
        if self.is_first {
            0
        } else {
            rows.saturating_mul(padded(self.inputs))
        }
    }

    /// Entries of the sums: of the weights in their panels, and of the biases.
    pub(super) const fn wide_sums_count(&self) -> usize {
        let rows = self.patch().saturating_add(1);
        rows.saturating_mul(padded(self.outputs))
    }

    /// Entries of both frames, and of the derivatives by one vector of outputs.
    pub(super) const fn frames_count(&self) -> usize {
        let input = volume([self.inputs, self.framed()[0], self.framed()[1]]);
        let [height, width] = self.turned_frame();
        let derivatives = volume([self.outputs, height, width]);
        let input = if self.is_framed() { input } else { 0 };
        let frames = input.saturating_add(if self.is_first { 0 } else { derivatives });
        frames.saturating_add(self.column_count())
    }

    /// Entries of the derivatives by one vector of outputs, unless that is all.
    const fn column_count(&self) -> usize {
        match self.outputs {
            LANES | WIDTH => 0,
            outputs => volume([self.result[0], self.result[1], next_width(outputs)]),
        }
    }

    /// Whether there are zeros around the input.
    const fn is_framed(&self) -> bool {
        self.padding[0] > 0 || self.padding[1] > 0
    }

    /// Sides of the input with zeros around it.
    const fn framed(&self) -> [usize; 2] {
        [
            self.image[0] + 2 * self.padding[0],
            self.image[1] + 2 * self.padding[1],
        ]
    }

    /// Sides of the derivatives with zeros around and between them.
    const fn turned_frame(&self) -> [usize; 2] {
        [
            self.image[0] + self.kernel[0] - 1,
            self.image[1] + self.kernel[1] - 1,
        ]
    }

    /// Copies the weights to the panels.
    #[inline(always)]
    pub(super) fn fill_panels(&self, parameters: &[f32], panels: &mut [f32]) {
        let weights = parameters.split_at_checked(self.outputs * self.patch());
        let panels = panels.split_at_mut_checked(self.wide_sums_count());
        let (Some((weights, biases)), Some((panels, turned))) = (weights, panels) else {
            return;
        };
        let area = self.kernel[0] * self.kernel[1];
        let places = Places {
            area,
            inner: self.inputs,
            inner_step: area,
            outer: self.outputs,
            outer_step: self.patch(),
        };
        places.gather(weights, biases, panels, false);
        if !self.is_first {
            let places = Places {
                area,
                inner: self.outputs,
                inner_step: self.patch(),
                outer: self.inputs,
                outer_step: area,
            };
            places.gather(weights, &[], turned, true);
        }
    }

    /// Copies the sums to the gradient.
    #[inline(always)]
    pub(super) fn write_gradient(&self, sums: &[f32], gradient: &mut [f32]) {
        let weights = self.outputs * self.patch();
        let Some((gradient, biases)) = gradient.split_at_mut_checked(weights) else {
            return;
        };
        let area = self.kernel[0] * self.kernel[1];
        let mut rows = sums.chunks_exact(padded(self.outputs).max(1));
        for place in 0..area {
            for (channel, row) in (0..self.inputs).zip(&mut rows) {
                let weights = gradient.iter_mut().skip(channel * area + place);
                for (weight, sum) in weights.step_by(self.patch().max(1)).zip(row) {
                    *weight = *sum;
                }
            }
        }
        for (bias, sum) in biases.iter_mut().zip(rows.next().unwrap_or_default()) {
            *bias = *sum;
        }
    }

    #[inline(always)]
    pub(super) fn wide_forward(&self, pass: Forward<'_>) {
        let sweep = Sweep {
            frame: self.frame(pass.input, pass.work),
            row: self.framed()[1] * self.inputs,
            steps: [
                self.stride[0] * self.framed()[1] * self.inputs,
                self.stride[1] * self.inputs,
            ],
            windows: self.result,
            length: self.kernel[1] * self.inputs,
            panels: pass.prepared,
            rows: self.patch(),
            outputs: self.outputs,
        };
        sweep.run(pass.region);
    }

    #[inline(always)]
    pub(super) fn wide_backward(&self, pass: Backward<'_>) {
        let [height, width] = self.turned_frame();
        let size = if self.is_first {
            0
        } else {
            height * width * self.outputs
        };
        let Some((frame, work)) = pass.work.split_at_mut_checked(size) else {
            return;
        };
        let Some((column, work)) = work.split_at_mut_checked(self.column_count()) else {
            return;
        };
        let input = self.frame(pass.input, work);
        self.add_sums(input, pass.derivatives, column, pass.sums);
        let Some(below) = pass.input_derivatives else {
            return;
        };
        self.turn(pass.derivatives, frame);
        let panels = self.wide_sums_count();
        let sweep = Sweep {
            frame,
            row: width * self.outputs,
            steps: [width * self.outputs, self.outputs],
            windows: self.image,
            length: self.kernel[1] * self.outputs,
            panels: pass.prepared.get(panels..).unwrap_or_default(),
            rows: self.kernel[0] * self.kernel[1] * self.outputs,
            outputs: self.inputs,
        };
        sweep.run(below);
    }

    /// The input with zeros around it, in `work` if there are to be any.
    #[inline(always)]
    fn frame<'a>(&self, input: &'a [f32], work: &'a mut [f32]) -> &'a [f32] {
        if !self.is_framed() {
            return input;
        }
        let width = self.framed()[1] * self.inputs;
        let frame = work.get_mut(..self.framed()[0] * width).unwrap_or_default();
        frame.fill(0.0);
        let rows = frame.chunks_exact_mut(width.max(1)).skip(self.padding[0]);
        let length = (self.image[1] * self.inputs).max(1);
        for (row, entries) in rows.zip(input.chunks_exact(length)) {
            let start = self.padding[1] * self.inputs;
            if let Some(row) = row.get_mut(start..start + length) {
                row.copy_from_slice(entries);
            }
        }
        frame
    }

    /// Writes derivatives with zeros around and between them.
    #[inline(always)]
    fn turn(&self, derivatives: &[f32], frame: &mut [f32]) {
        frame.fill(0.0);
        let width = self.turned_frame()[1] * self.outputs;
        let [top, left] = [0, 1].map(|axis| self.kernel[axis] - 1 - self.padding[axis]);
        let rows = frame.chunks_exact_mut(width.max(1)).skip(top);
        let length = (self.result[1] * self.outputs).max(1);
        for (row, entries) in
            (rows.step_by(self.stride[0].max(1))).zip(derivatives.chunks_exact(length))
        {
            let row = row.get_mut(left * self.outputs..).unwrap_or_default();
            if self.stride[1] == 1 {
                if let Some(row) = row.get_mut(..length) {
                    row.copy_from_slice(entries);
                }
                continue;
            }
            let pixels = row.chunks_mut((self.stride[1] * self.outputs).max(1));
            for (pixel, entries) in pixels.zip(entries.chunks_exact(self.outputs.max(1))) {
                for (x, entry) in pixel.iter_mut().zip(entries) {
                    *x = *entry;
                }
            }
        }
    }

    /// Adds the terms of a sample to the sums.
    #[inline(always)]
    fn add_sums(&self, frame: &[f32], derivatives: &[f32], column: &mut [f32], sums: &mut [f32]) {
        let mut first = 0;
        while first < self.outputs {
            let width = next_width(self.outputs - first);
            if width == WIDTH {
                self.add_column::<WIDTH>(frame, derivatives, column, sums, first);
            } else {
                self.add_column::<LANES>(frame, derivatives, column, sums, first);
            }
            first += width;
        }
    }

    /// Adds to the sums of the `W` outputs from `first`.
    #[inline(always)]
    fn add_column<const W: usize>(
        &self,
        frame: &[f32],
        derivatives: &[f32],
        column: &mut [f32],
        sums: &mut [f32],
        first: usize,
    ) {
        let derivatives = if self.outputs == W {
            derivatives
        } else {
            let (places, _) = column.as_chunks_mut::<W>();
            for (pixel, place) in places.iter_mut().enumerate() {
                *place = load(derivatives, pixel * self.outputs + first);
            }
            column
        };
        let (derivatives, _) = derivatives.as_chunks::<W>();
        let (stride, length) = (padded(self.outputs), self.kernel[1] * self.inputs);
        let at = self.patch() * stride + first;
        let mut sum: [f32; W] = load(sums, at);
        for derivatives in derivatives {
            for l in 0..W {
                sum[l] += derivatives[l];
            }
        }
        store(sum, sums, at, W);
        for row in 0..self.kernel[0] {
            let row = Row {
                entries: frame
                    .get(row * self.framed()[1] * self.inputs..)
                    .unwrap_or_default(),
                derivatives,
                sums: row * length * stride + first,
            };
            let mut done = 0;
            while done < length {
                done += match length {
                    8.. => self.add_row::<8, W>(&row, sums, done),
                    5.. => self.add_row::<5, W>(&row, sums, done),
                    3.. => self.add_row::<3, W>(&row, sums, done),
                    _ => self.add_row::<1, W>(&row, sums, done),
                };
            }
        }
    }

    /// Adds to the sums of the next `R` weights of a kernel's row, of which `done` are done; at its
    /// end, some are computed once more and left as they are. Returns how many are new.
    #[inline(always)]
    fn add_row<const R: usize, const W: usize>(
        &self,
        row: &Row<'_, W>,
        sums: &mut [f32],
        done: usize,
    ) -> usize {
        let length = self.kernel[1] * self.inputs;
        let first = done.min(length.saturating_sub(R));
        let (stride, step) = (padded(self.outputs), self.stride[1] * self.inputs);
        let at = row.sums + first * stride;
        let mut own = [[0.0; W]; R];
        unroll!(r < R, {
            own[r] = load(sums, at + r * stride);
        });
        let below = self.stride[0] * self.framed()[1] * self.inputs;
        let rows = row.derivatives.chunks_exact(self.result[1].max(1));
        for (y, derivatives) in rows.enumerate() {
            let mut entries = row.entries.get(y * below + first..).unwrap_or_default();
            for derivatives in derivatives {
                let Some(window) = entries.first_chunk::<R>() else {
                    break;
                };
                unroll!(r < R, {
                    add(&mut own[r], derivatives, window[r]);
                });
                entries = entries.get(step..).unwrap_or_default();
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

/// What the sums of a row of the kernel are made of.
struct Row<'a, const W: usize> {
    /// The frame, from the row that the first windows see.
    entries: &'a [f32],
    derivatives: &'a [[f32; W]],
    /// Where the sums begin.
    sums: usize,
}

/// Where the entries of panels are among the weights.
struct Places {
    /// Places of the kernel.
    area: usize,
    /// The channels along a panel.
    inner: usize,
    inner_step: usize,
    /// The channels of a vector.
    outer: usize,
    outer_step: usize,
}

impl Places {
    /// Copies weights to panels, with the kernel turned around or not, and below each its biases.
    #[inline(always)]
    fn gather(&self, weights: &[f32], biases: &[f32], panels: &mut [f32], is_turned: bool) {
        let mut panels = panels;
        let mut first = 0;
        while first < self.outer {
            let width = next_width(self.outer - first);
            let size = width * (self.area * self.inner + 1);
            let Some((panel, after)) = panels.split_at_mut_checked(size) else {
                return;
            };
            let count = width.min(self.outer - first);
            let mut rows = panel.chunks_exact_mut(width);
            for place in 0..self.area {
                let place = if is_turned {
                    self.area - 1 - place
                } else {
                    place
                };
                for (inner, row) in (0..self.inner).zip(&mut rows) {
                    let start = place + inner * self.inner_step + first * self.outer_step;
                    let weights = weights.get(start..).unwrap_or_default();
                    row.fill(0.0);
                    let weights = weights.iter().step_by(self.outer_step.max(1));
                    for (entry, weight) in row.iter_mut().take(count).zip(weights) {
                        *entry = *weight;
                    }
                }
            }
            if let Some(row) = rows.next() {
                row.fill(0.0);
                for (entry, bias) in row.iter_mut().zip(biases.iter().skip(first)) {
                    *entry = *bias;
                }
            }
            panels = after;
            first += width;
        }
    }
}

/// The windows of a frame, and the panels that their entries are multiplied with.
struct Sweep<'a> {
    frame: &'a [f32],
    /// Entries of a row of the frame.
    row: usize,
    /// Entries from a window to the next below, and to the next on the right.
    steps: [usize; 2],
    windows: [usize; 2],
    /// Entries of a window that lie side by side.
    length: usize,
    panels: &'a [f32],
    /// Rows of a panel without its biases: entries of a window.
    rows: usize,
    outputs: usize,
}

impl Sweep<'_> {
    #[inline(always)]
    fn run(&self, output: &mut [f32]) {
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

    /// The `W` outputs from `first` of all windows.
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
            // Where there are fewer, the first one several times.
            let mut starts = [start + column * self.steps[1]; WINDOWS];
            for place in starts.iter_mut().take(count) {
                *place = start + column * self.steps[1];
                column += 1;
                if column == width {
                    (start, column) = (start + self.steps[0], 0);
                }
            }
            let sums = self.tile(panel, starts);
            let mut at = pixel * self.outputs + first;
            unroll!(w < WINDOWS, {
                if w < count {
                    let results: [f32; W] = array::from_fn(|l| sums[w][l] + biases[l]);
                    store(results, output, at, self.outputs - first);
                    at += self.outputs;
                }
            });
            pixel += count;
        }
    }

    /// The sums of some windows, which begin at `starts`.
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

#[inline(always)]
fn add<const W: usize>(sums: &mut [f32; W], weights: &[f32; W], x: f32) {
    for l in 0..W {
        sums[l] += weights[l] * x;
    }
}
