//! Convolutions with vectors of output channels: several windows, or several weights, side by side.
//!
//! With the weights in panels (place by place of the kernel, channel by channel, a vector of
//! outputs each), a window adds a row of entries times vectors, and a weight adds an entry times a
//! vector of derivatives. No sum runs across a vector. Derivatives with respect to the input are a
//! convolution of the derivatives, with zeros around and between them, and the rotated kernel.

use super::{
    super::{
        panels::Places,
        pass::{Backward, Forward, copy},
        products::{Products, column_of},
        sweep::Sweep,
        vectors::{WIDTH, add, load, next_width, padded, store},
    },
    Convolution, volume,
};
use crate::lanes::LANES;

impl Convolution {
    /// Returns the number of entries of the panels: the weights and the rotated kernels.
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

    /// Returns the number of entries of the sums: the weights in their panels and the biases.
    pub(super) const fn wide_sums_count(&self) -> usize {
        let rows = self.patch().saturating_add(1);
        rows.saturating_mul(padded(self.outputs))
    }

    /// Returns the number of entries of both frames, and of the derivatives of one vector of
    /// outputs.
    pub(super) const fn frames_count(&self) -> usize {
        let input = volume([self.inputs, self.framed()[0], self.framed()[1]]);
        let [height, width] = self.turned_frame();
        let derivatives = volume([self.outputs, height, width]);
        let input = if self.is_framed() { input } else { 0 };
        let frames = input.saturating_add(if self.is_first { 0 } else { derivatives });
        frames.saturating_add(self.column_count())
    }

    /// Returns the number of entries of the derivatives of one vector of outputs, or 0 if these are
    /// all outputs.
    const fn column_count(&self) -> usize {
        match self.outputs {
            LANES | WIDTH => 0,
            outputs => volume([self.result[0], self.result[1], next_width(outputs)]),
        }
    }

    /// Returns whether there are zeros around the input.
    const fn is_framed(&self) -> bool {
        self.padding[0] > 0 || self.padding[1] > 0
    }

    /// Returns the sides of the input with zeros around it.
    const fn framed(&self) -> [usize; 2] {
        [
            self.image[0] + 2 * self.padding[0],
            self.image[1] + 2 * self.padding[1],
        ]
    }

    /// Returns the sides of the derivatives with zeros around and between them.
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

    /// Returns the input with zeros around it, in `work` if there is padding.
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
                copy(entries, row);
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
                    copy(entries, row);
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
        let vectors = column_of::<W>(derivatives, self.outputs, first, column);
        let (stride, count) = (padded(self.outputs), self.kernel[1] * self.inputs);
        let row = self.framed()[1] * self.inputs;
        let at = self.patch() * stride + first;
        let mut sum: [f32; W] = load(sums, at);
        for vector in vectors {
            add(&mut sum, vector, 1.0);
        }
        store(sum, sums, at, W);
        for kernel_row in 0..self.kernel[0] {
            let products = Products {
                entries: frame.get(kernel_row * row..).unwrap_or_default(),
                steps: [self.stride[0] * row, self.stride[1] * self.inputs],
                columns: self.result[1],
                vectors,
            };
            products.add_to(sums, kernel_row * count * stride + first, stride, count);
        }
    }
}
