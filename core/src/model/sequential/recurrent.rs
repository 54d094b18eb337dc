//! Long short-term memories (LSTM), the recurrent layers for sequences and text.
//!
//! With z = W x_t + U h_{t−1} + b, the gates i, f, o = σ(z) and g = tanh(z),
//! `c_t = f·c_{t−1} + i·g` and `h_t = o·tanh(c_t)`, h and c starting from 0 (Hochreiter and
//! Schmidhuber 1997, with forget gates as in Gers, Schmidhuber, Cummins 2000).
//!
//! A sum z adds its terms one after the other to 0: first from x, then from h, then b. Derivatives
//! add their terms in the order of the gates' rows, and the gradient of a parameter adds its terms
//! one after the other to 0, sample by sample, step by step.

mod plain;
mod wide;

use super::{
    gates::{sigmoid_each, tanh_each},
    pass::{Backward, Forward, last_mut},
    rows::add_rows,
    shape::Shape,
};
use crate::lanes::WIDE;

/// The sizes of an LSTM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lstm {
    length: usize,
    width: usize,
    hidden: usize,
    is_first: bool,
}

/// Values kept for all steps: rows of gates, of cells, of their tanh, and of hidden states. Cells
/// and hidden states start before the first step.
struct Kept<'a> {
    gates: &'a mut [f32],
    cells: &'a mut [f32],
    tanh: &'a mut [f32],
    states: &'a mut [f32],
}

/// The parameters of all gates.
#[derive(Clone, Copy)]
struct Parameters<'a> {
    /// Input weights, one row for each gate.
    weights: &'a [f32],
    /// Recurrent weights, one row for each gate.
    recurrent: &'a [f32],
    biases: &'a [f32],
}

impl Lstm {
    /// Creates an LSTM of this size on a sequence. The first layer does not need derivatives with
    /// respect to its input.
    pub(super) const fn new(input: Shape, hidden: u16, is_first: bool) -> Self {
        let (length, width) = match input {
            Shape::Sequence { length, width } => (length as usize, width as usize),
            _ => (0, 0),
        };
        Self {
            length,
            width,
            hidden: hidden as usize,
            is_first,
        }
    }

    /// Returns the number of kept entries: four gates, cells, their tanh and states, and the
    /// initial values.
    pub(super) const fn tape_count(&self) -> usize {
        let kept = self.hidden.saturating_mul(7).saturating_mul(self.length);
        kept.saturating_add(2 * self.hidden)
    }

    /// Returns the number of entries computed once for all samples.
    pub(super) const fn prepared_count(&self) -> usize {
        if WIDE { self.panels_count() } else { 0 }
    }

    /// Returns the number of entries of the gradient in another order.
    pub(super) const fn sums_count(&self) -> usize {
        if WIDE { self.wide_sums_count() } else { 0 }
    }

    /// Returns the number of entries of working memory: derivatives with respect to cells, and a
    /// vector for each step.
    pub(super) const fn work_count(&self) -> usize {
        let columns = if WIDE { self.column_count() } else { 0 };
        self.hidden.saturating_add(columns)
    }

    /// Computes values from the parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        if let (true, Some(parameters)) = (WIDE, self.split(parameters)) {
            self.fill_panels(parameters, prepared);
        }
    }

    /// Writes the sums of a batch to the gradient.
    #[inline(always)]
    pub(super) fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        if WIDE {
            self.write_gradient(sums, gradient);
        }
    }

    /// Computes the hidden states of all steps, the last entries of the region. The region keeps
    /// all other values.
    #[inline(always)]
    pub(super) fn forward(&self, pass: Forward<'_>) {
        let hidden = self.hidden;
        let (Some(parameters), Some(kept)) = (self.split(pass.parameters), self.kept(pass.region))
        else {
            return;
        };
        if WIDE {
            self.project(pass.prepared, pass.input, kept.gates);
        }
        kept.states.get_mut(..hidden).unwrap_or_default().fill(0.0);
        kept.cells.get_mut(..hidden).unwrap_or_default().fill(0.0);
        let steps = kept.gates.chunks_exact_mut((4 * hidden).max(1));
        for (t, (gates, tanh)) in steps
            .zip(kept.tanh.chunks_exact_mut(hidden.max(1)))
            .enumerate()
        {
            let states = kept.states.split_at_mut_checked((t + 1) * hidden);
            let cells = kept.cells.split_at_mut_checked((t + 1) * hidden);
            let (Some((states, state)), Some((cells, cell))) = (states, cells) else {
                return;
            };
            let before = states.get(t * hidden..).unwrap_or_default();
            if WIDE {
                self.add_recurrent(pass.prepared, before, gates);
                for (gate, bias) in gates.iter_mut().zip(parameters.biases) {
                    *gate += bias;
                }
            } else {
                let x = pass.input.get(t * self.width..(t + 1) * self.width);
                self.plain_sums(parameters, [x.unwrap_or_default(), before], gates);
            }
            activate(gates, hidden);
            step(
                gates,
                cells.get(t * hidden..).unwrap_or_default(),
                [cell, tanh, state],
            );
        }
    }

    /// Adds to the gradient, or to its sums, and writes the derivatives with respect to the input.
    #[inline(always)]
    pub(super) fn backward(&self, pass: Backward<'_>) {
        let hidden = self.hidden;
        let work = pass.work.split_at_mut_checked(hidden);
        let (Some(parameters), Some(kept), Some((cell_derivatives, column))) =
            (self.split(pass.parameters), self.kept(pass.region), work)
        else {
            return;
        };
        cell_derivatives.fill(0.0);
        for t in (0..self.length).rev() {
            let Some((below, above)) = pass.derivatives.split_at_mut_checked(t * hidden) else {
                return;
            };
            let past = kept.cells.get(t * hidden..).unwrap_or_default();
            let tanh = kept.tanh.get(t * hidden..).unwrap_or_default();
            let Some(gates) = kept.gates.get_mut(t * 4 * hidden..(t + 1) * 4 * hidden) else {
                return;
            };
            step_backward(gates, [past, tanh, above], cell_derivatives);
            if t > 0 {
                add_rows(gates, parameters.recurrent, last_mut(below, hidden));
            }
        }
        let (derivatives, states) = (&*kept.gates, &*kept.states);
        if WIDE {
            self.add_sums([derivatives, pass.input, states], column, pass.sums);
        } else {
            self.plain_gradient([derivatives, pass.input, states], pass.gradient);
        }
        if let Some(below) = pass.input_derivatives {
            if WIDE {
                self.project_back(pass.prepared, derivatives, below);
            } else {
                self.plain_input_derivatives(parameters.weights, derivatives, below);
            }
        }
    }

    #[inline(always)]
    fn split<'a>(&self, parameters: &'a [f32]) -> Option<Parameters<'a>> {
        let gates = 4 * self.hidden;
        let (weights, rest) = parameters.split_at_checked(gates * self.width)?;
        let (recurrent, biases) = rest.split_at_checked(gates * self.hidden)?;
        Some(Parameters {
            weights,
            recurrent,
            biases,
        })
    }

    #[inline(always)]
    fn kept<'a>(&self, region: &'a mut [f32]) -> Option<Kept<'a>> {
        let steps = self.length * self.hidden;
        let (gates, rest) = region.split_at_mut_checked(4 * steps)?;
        let (cells, rest) = rest.split_at_mut_checked(steps + self.hidden)?;
        let (tanh, states) = rest.split_at_mut_checked(steps)?;
        Some(Kept {
            gates,
            cells,
            tanh,
            states,
        })
    }
}

/// Computes the gates from their sums.
#[inline(always)]
fn activate(gates: &mut [f32], hidden: usize) {
    let each = gates.chunks_exact_mut(hidden.max(1));
    for (gates, is_candidate) in each.zip([false, false, true, false]) {
        if is_candidate {
            tanh_each(gates);
        } else {
            sigmoid_each(gates);
        }
    }
}

/// Computes cells, their tanh and states from the gates and the previous cells.
#[inline(always)]
fn step(gates: &[f32], before: &[f32], results: [&mut [f32]; 3]) {
    let [cells, tanh, states] = results;
    let mut each = gates.chunks_exact(tanh.len().max(1));
    let (Some(i), Some(f), Some(g), Some(o)) = (each.next(), each.next(), each.next(), each.next())
    else {
        return;
    };
    let products = i.iter().zip(g).zip(f.iter().zip(before));
    for ((cell, tanh), ((i, g), (f, before))) in cells.iter_mut().zip(&mut *tanh).zip(products) {
        *cell = f * before + i * g;
        *tanh = *cell;
    }
    tanh_each(tanh);
    for (state, (o, tanh)) in states.iter_mut().zip(o.iter().zip(&*tanh)) {
        *state = o * tanh;
    }
}

/// Replaces the gates by the derivatives with respect to their sums. `values` are the cells of the
/// previous step, the tanh of the current cells and the derivatives with respect to the current
/// state. The derivatives with respect to the current cells become those for the previous cells.
#[inline(always)]
fn step_backward(gates: &mut [f32], values: [&[f32]; 3], cell_derivatives: &mut [f32]) {
    let [before, tanh, derivatives] = values;
    let mut each = gates.chunks_exact_mut(cell_derivatives.len().max(1));
    let (Some(i), Some(f), Some(g), Some(o)) = (each.next(), each.next(), each.next(), each.next())
    else {
        return;
    };
    let entries = i.iter_mut().zip(f).zip(g.iter_mut().zip(o));
    let values = before
        .iter()
        .zip(tanh)
        .zip(derivatives)
        .zip(cell_derivatives);
    for (((i, f), (g, o)), (((before, tanh), d), dc)) in entries.zip(values) {
        let cell = *dc + d * *o * (1.0 - tanh * tanh);
        *dc = cell * *f;
        *o = d * tanh * (*o * (1.0 - *o));
        *f = cell * before * (*f * (1.0 - *f));
        let input = cell * *g * (*i * (1.0 - *i));
        *g = cell * *i * (1.0 - *g * *g);
        *i = input;
    }
}

#[cfg(test)]
mod tests;
