//! Computation of an LSTM with vectors of gates, inputs and states. No sum runs across a vector.

use super::{
    super::{
        panels::Places,
        products::{Products, column_of},
        rows::add_rows,
        sweep::Sweep,
        vectors::{WIDTH, next_width, padded},
    },
    Lstm, Parameters,
};
use crate::lanes::LANES;

impl Lstm {
    /// Returns the number of entries of the recurrent weights, input by input, and of the panels of
    /// the input weights, for both passes.
    pub(super) const fn panels_count(&self) -> usize {
        let recurrent = self.hidden.saturating_mul(4 * self.hidden);
        let panels = self.up_count().saturating_add(self.back_count());
        recurrent.saturating_add(panels)
    }

    const fn up_count(&self) -> usize {
        padded(4 * self.hidden).saturating_mul(self.width + 1)
    }

    const fn back_count(&self) -> usize {
        if self.is_first {
            0
        } else {
            padded(self.width).saturating_mul(4 * self.hidden + 1)
        }
    }

    /// Returns the number of entries of the sums, row by row like the weights but in whole vectors,
    /// and of the biases.
    pub(super) const fn wide_sums_count(&self) -> usize {
        let columns = padded(self.width) + padded(self.hidden) + 1;
        (4 * self.hidden).saturating_mul(columns)
    }

    /// Returns the number of entries of one vector for each step.
    pub(super) const fn column_count(&self) -> usize {
        WIDTH.saturating_mul(self.length)
    }

    /// Copies weights into the layout of vectors.
    #[inline(always)]
    pub(super) fn fill_panels(&self, parameters: Parameters<'_>, prepared: &mut [f32]) {
        let Parameters {
            weights, recurrent, ..
        } = parameters;
        let gates = 4 * self.hidden;
        let Some((turned, rest)) = prepared.split_at_mut_checked(self.hidden * gates) else {
            return;
        };
        let Some((up, back)) = rest.split_at_mut_checked(self.up_count()) else {
            return;
        };
        for (input, row) in turned.chunks_exact_mut(gates.max(1)).enumerate() {
            let weights = recurrent.iter().skip(input).step_by(self.hidden.max(1));
            for (entry, weight) in row.iter_mut().zip(weights) {
                *entry = *weight;
            }
        }
        let places = Places {
            area: 1,
            inner: self.width,
            inner_step: 1,
            outer: gates,
            outer_step: self.width,
        };
        places.gather(weights, &[], up, false);
        if !self.is_first {
            let places = Places {
                area: 1,
                inner: gates,
                inner_step: self.width,
                outer: self.width,
                outer_step: 1,
            };
            places.gather(weights, &[], back, false);
        }
    }

    /// Copies the sums to the gradient.
    #[inline(always)]
    pub(super) fn write_gradient(&self, sums: &[f32], gradient: &mut [f32]) {
        let (mut sums, mut gradient) = (sums, gradient);
        for columns in [self.width, self.hidden] {
            let own = sums.split_at_checked(4 * self.hidden * padded(columns));
            let room = gradient.split_at_mut_checked(4 * self.hidden * columns);
            let (Some((own, others)), Some((room, after))) = (own, room) else {
                return;
            };
            let rows = own.chunks_exact(padded(columns).max(1));
            for (row, sums) in room.chunks_exact_mut(columns.max(1)).zip(rows) {
                for (entry, sum) in row.iter_mut().zip(sums) {
                    *entry = *sum;
                }
            }
            (sums, gradient) = (others, after);
        }
        for (entry, sum) in gradient.iter_mut().zip(sums) {
            *entry = *sum;
        }
    }

    /// Computes the inputs' part of the gates' sums for all steps.
    #[inline(always)]
    pub(super) fn project(&self, prepared: &[f32], input: &[f32], gates: &mut [f32]) {
        let recurrent = self.hidden * 4 * self.hidden;
        let sweep = Sweep {
            frame: input,
            row: 0,
            steps: [self.width, 0],
            windows: [self.length, 1],
            length: self.width,
            panels: prepared.get(recurrent..).unwrap_or_default(),
            rows: self.width,
            outputs: 4 * self.hidden,
        };
        sweep.run(gates);
    }

    /// Adds the part of the previous state.
    #[inline(always)]
    pub(super) fn add_recurrent(&self, prepared: &[f32], state: &[f32], gates: &mut [f32]) {
        let recurrent = prepared.get(..self.hidden * 4 * self.hidden);
        add_rows(state, recurrent.unwrap_or_default(), gates);
    }

    /// Computes the derivatives with respect to the input.
    #[inline(always)]
    pub(super) fn project_back(&self, prepared: &[f32], derivatives: &[f32], below: &mut [f32]) {
        let gates = 4 * self.hidden;
        let others = self.hidden * gates + self.up_count();
        let sweep = Sweep {
            frame: derivatives,
            row: 0,
            steps: [gates, 0],
            windows: [self.length, 1],
            length: gates,
            panels: prepared.get(others..).unwrap_or_default(),
            rows: gates,
            outputs: self.width,
        };
        sweep.run(below);
    }

    /// Adds to the sums the products of the derivatives of the gates' sums with inputs and states.
    #[inline(always)]
    pub(super) fn add_sums(&self, values: [&[f32]; 3], column: &mut [f32], sums: &mut [f32]) {
        let [derivatives, input, states] = values;
        let gates = 4 * self.hidden;
        let states = states.get(..self.length * self.hidden).unwrap_or_default();
        let mut sums = sums;
        for (inputs, columns) in [(input, self.width), (states, self.hidden)] {
            let Some((own, others)) = sums.split_at_mut_checked(gates * padded(columns)) else {
                return;
            };
            let mut first = 0;
            while first < columns {
                let width = next_width(columns - first);
                if width == WIDTH {
                    let vectors = column_of::<WIDTH>(inputs, columns, first, column);
                    self.add_column(derivatives, vectors, own, [first, padded(columns)]);
                } else {
                    let vectors = column_of::<LANES>(inputs, columns, first, column);
                    self.add_column(derivatives, vectors, own, [first, padded(columns)]);
                }
                first += width;
            }
            sums = others;
        }
        for derivatives in derivatives.chunks_exact(gates.max(1)) {
            for (sum, derivative) in sums.iter_mut().zip(derivatives) {
                *sum += derivative;
            }
        }
    }

    /// Adds to the sums of some columns, which begin at `at` and are `stride` apart.
    #[inline(always)]
    fn add_column<const W: usize>(
        &self,
        derivatives: &[f32],
        vectors: &[[f32; W]],
        sums: &mut [f32],
        [at, stride]: [usize; 2],
    ) {
        let gates = 4 * self.hidden;
        let products = Products {
            entries: derivatives,
            steps: [0, gates],
            columns: self.length,
            vectors,
        };
        products.add_to(sums, at, stride, gates);
    }
}
