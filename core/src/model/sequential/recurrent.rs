//! Sequences: the table of an embedding, and long short-term memories.
//!
//! With z = W x_t + U h_{t−1} + b, the gates i, f, o = σ(z) and g = tanh(z),
//! `c_t = f·c_{t−1} + i·g` and `h_t = o·tanh(c_t)`, h and c starting from 0
//! (Hochreiter and Schmidhuber 1997; with forget gates, Gers, Schmidhuber, Cummins 2000).
//!
//! A sum z adds its terms one after the other to 0, those of x, then those of h, then b.
//! Derivatives add their terms in the order of the gates' rows, and the gradient by a parameter
//! sample by sample, step by step.

use super::{
    super::error::ModelError,
    gates::{sigmoid_each, tanh_each},
    pass::{Backward, last, last_mut},
    shape::Shape,
};
use crate::lanes;

/// The row of the table for each symbol.
///
/// # Errors
/// [`ModelError::Symbol`].
#[inline(always)]
pub(super) fn embed(
    table: &[f32],
    vocabulary: u16,
    width: u16,
    symbols: &[f32],
    output: &mut [f32],
) -> Result<(), ModelError> {
    let width = usize::from(width);
    for (symbol, output) in symbols.iter().zip(output.chunks_exact_mut(width.max(1))) {
        let row = index(*symbol)
            .filter(|row| *row < usize::from(vocabulary))
            .and_then(|row| table.get(row * width..(row + 1) * width))
            .ok_or(ModelError::Symbol {
                vocabulary: vocabulary.into(),
            })?;
        for (y, x) in output.iter_mut().zip(row) {
            *y = *x;
        }
    }
    Ok(())
}

/// The row that a symbol names, if it is a whole number; larger ones than 65,535 are none.
#[inline(always)]
fn index(symbol: f32) -> Option<usize> {
    // Saturates; NaN becomes 0, which it does not equal.
    let row = symbol as u16;
    (f32::from(row).to_bits() == symbol.to_bits() || (row == 0 && symbol == 0.0))
        .then_some(row.into())
}

/// Adds the derivatives of each step to the row of its symbol.
#[inline(always)]
pub(super) fn embed_backward(width: u16, pass: &mut Backward<'_>) {
    let width = usize::from(width);
    let steps = pass.derivatives.chunks_exact(width.max(1));
    for (symbol, derivatives) in pass.input.iter().zip(steps) {
        let row = index(*symbol).and_then(|row| pass.gradient.get_mut(row * width..));
        for (sum, derivative) in row.unwrap_or_default().iter_mut().zip(derivatives) {
            *sum += derivative;
        }
    }
}

/// The sizes of an LSTM.
#[derive(Clone, Copy)]
pub(super) struct Lstm {
    length: usize,
    width: usize,
    hidden: usize,
}

/// What is kept of all steps: rows of gates, of cells, of their tanh, of hidden states.
struct Kept<'a> {
    gates: &'a mut [f32],
    cells: &'a mut [f32],
    tanh: &'a mut [f32],
    hidden: &'a mut [f32],
}

impl Lstm {
    #[inline(always)]
    pub(super) fn new(input: Shape, hidden: u16) -> Option<Self> {
        match input {
            Shape::Sequence { length, width } => Some(Self {
                length: length.into(),
                width: width.into(),
                hidden: hidden.into(),
            }),
            _ => None,
        }
    }

    /// The hidden states of all steps, the last entries of `region`, which keeps the rest.
    #[inline(always)]
    pub(super) fn forward(&self, parameters: &[f32], input: &[f32], region: &mut [f32]) {
        let (width, hidden) = (self.width, self.hidden);
        let Some((weights, recurrent, biases)) = self.split(parameters) else {
            return;
        };
        let Some(kept) = self.kept(region) else {
            return;
        };
        for t in 0..self.length {
            let (past, states) = kept.hidden.split_at_mut(t * hidden);
            let past_state = last(past, hidden);
            let (past, cells) = kept.cells.split_at_mut(t * hidden);
            let past_cells = last(past, hidden);
            let x = input.get(t * width..(t + 1) * width).unwrap_or_default();
            let Some(gates) = kept.gates.get_mut(t * 4 * hidden..(t + 1) * 4 * hidden) else {
                return;
            };
            let rows = weights
                .chunks_exact(width)
                .zip(recurrent.chunks_exact(hidden));
            for ((gate, (row, recurrent)), bias) in gates.iter_mut().zip(rows).zip(biases) {
                let mut sum = 0.0;
                for (x, weight) in x.iter().zip(row) {
                    sum += x * weight;
                }
                for (x, weight) in past_state.iter().zip(recurrent) {
                    sum += x * weight;
                }
                *gate = sum + bias;
            }
            activate(gates, hidden);
            let Some(tanh) = kept.tanh.get_mut(t * hidden..(t + 1) * hidden) else {
                return;
            };
            step(gates, past_cells, [cells, tanh, states], hidden);
        }
    }

    /// Adds to the gradient, and writes the derivatives by the input.
    #[inline(always)]
    pub(super) fn backward(&self, pass: Backward<'_>) {
        let (width, hidden) = (self.width, self.hidden);
        let Some((weights, recurrent, _)) = self.split(pass.parameters) else {
            return;
        };
        let (Some(kept), Some(cell_derivatives)) =
            (self.kept(pass.region), pass.work.get_mut(..hidden))
        else {
            return;
        };
        cell_derivatives.fill(0.0);
        for t in (0..self.length).rev() {
            let (below, above) = pass.derivatives.split_at_mut(t * hidden);
            let past = t.saturating_sub(1) * hidden..t * hidden;
            let past = kept.cells.get(past).unwrap_or_default();
            let tanh = kept.tanh.get(t * hidden..).unwrap_or_default();
            let Some(gates) = kept.gates.get_mut(t * 4 * hidden..(t + 1) * 4 * hidden) else {
                return;
            };
            step_backward(gates, [past, tanh, above], cell_derivatives, hidden);
            let below = last_mut(below, hidden);
            for (row, derivative) in recurrent.chunks_exact(hidden).zip(gates.iter()) {
                lanes::axpy(*derivative, row, below);
            }
        }

        let Some((sums, rest)) = pass.gradient.split_at_mut_checked(weights.len()) else {
            return;
        };
        let Some((recurrent_sums, bias_sums)) = rest.split_at_mut_checked(recurrent.len()) else {
            return;
        };
        let steps = kept.gates.chunks_exact(4 * hidden);
        for (t, derivatives) in steps.enumerate() {
            let x = pass.input.get(t * width..(t + 1) * width);
            let x = x.unwrap_or_default();
            for (row, derivative) in sums.chunks_exact_mut(width).zip(derivatives) {
                lanes::axpy(*derivative, x, row);
            }
            let state = kept.hidden.get(t.saturating_sub(1) * hidden..t * hidden);
            let state = state.unwrap_or_default();
            for (row, derivative) in recurrent_sums.chunks_exact_mut(hidden).zip(derivatives) {
                lanes::axpy(*derivative, state, row);
            }
            for (sum, derivative) in bias_sums.iter_mut().zip(derivatives) {
                *sum += derivative;
            }
        }
        if let Some(below) = pass.input_derivatives {
            below.fill(0.0);
            let steps = kept.gates.chunks_exact(4 * hidden);
            for (below, derivatives) in below.chunks_exact_mut(width).zip(steps) {
                for (row, derivative) in weights.chunks_exact(width).zip(derivatives) {
                    lanes::axpy(*derivative, row, below);
                }
            }
        }
    }

    /// Input weights, recurrent weights, biases.
    #[inline(always)]
    fn split<'a>(&self, parameters: &'a [f32]) -> Option<(&'a [f32], &'a [f32], &'a [f32])> {
        let gates = 4 * self.hidden;
        let (weights, rest) = parameters.split_at_checked(gates * self.width)?;
        let (recurrent, biases) = rest.split_at_checked(gates * self.hidden)?;
        Some((weights, recurrent, biases))
    }

    #[inline(always)]
    fn kept<'a>(&self, region: &'a mut [f32]) -> Option<Kept<'a>> {
        let states = self.length * self.hidden;
        let (gates, rest) = region.split_at_mut_checked(4 * states)?;
        let (cells, rest) = rest.split_at_mut_checked(states)?;
        let (tanh, hidden) = rest.split_at_mut_checked(states)?;
        Some(Kept {
            gates,
            cells,
            tanh,
            hidden,
        })
    }
}

/// The gates from their sums.
#[inline(always)]
fn activate(gates: &mut [f32], hidden: usize) {
    for (gates, is_candidate) in gates
        .chunks_exact_mut(hidden.max(1))
        .zip([false, false, true, false])
    {
        if is_candidate {
            tanh_each(gates);
        } else {
            sigmoid_each(gates);
        }
    }
}

/// Cells, their tanh and hidden states from the gates. Without past cells, those were 0.
#[inline(always)]
fn step(gates: &[f32], past: &[f32], results: [&mut [f32]; 3], hidden: usize) {
    let Some([i, f, g, o]) = quarters(gates, hidden) else {
        return;
    };
    let [cells, tanh, states] = results;
    for (c, (i, g)) in cells.iter_mut().zip(i.iter().zip(g)) {
        *c = i * g;
    }
    for (c, (f, past)) in cells.iter_mut().zip(f.iter().zip(past)) {
        *c += f * past;
    }
    for (tanh, c) in tanh.iter_mut().zip(&*cells) {
        *tanh = *c;
    }
    tanh_each(tanh);
    for (h, (o, tanh)) in states.iter_mut().zip(o.iter().zip(&*tanh)) {
        *h = o * tanh;
    }
}

/// The gates become the derivatives by their sums. `values` are the cells of the step before, the
/// tanh of this step's and the derivatives by its hidden state; the derivatives by its cells become
/// those by the cells before.
#[inline(always)]
fn step_backward(
    gates: &mut [f32],
    values: [&[f32]; 3],
    cell_derivatives: &mut [f32],
    hidden: usize,
) {
    let [past, tanh, derivatives] = values;
    let Some([i, f, g, o]) = quarters_mut(gates, hidden) else {
        return;
    };
    let entries = i.iter_mut().zip(f).zip(g.iter_mut().zip(o));
    let values = tanh.iter().zip(derivatives).zip(cell_derivatives);
    // Without past cells, those were 0.
    let past = past.iter().copied().chain(core::iter::repeat(0.0));
    for ((((i, f), (g, o)), ((tanh, d), dc)), past) in entries.zip(values).zip(past) {
        let cell = *dc + d * *o * (1.0 - tanh * tanh);
        *dc = cell * *f;
        *o = d * tanh * (*o * (1.0 - *o));
        *f = cell * past * (*f * (1.0 - *f));
        let input = cell * *g * (*i * (1.0 - *i));
        *g = cell * *i * (1.0 - *g * *g);
        *i = input;
    }
}

/// The four gates.
#[inline(always)]
fn quarters(gates: &[f32], hidden: usize) -> Option<[&[f32]; 4]> {
    let mut each = gates.chunks_exact(hidden.max(1));
    Some([each.next()?, each.next()?, each.next()?, each.next()?])
}

/// The four gates.
#[inline(always)]
fn quarters_mut(gates: &mut [f32], hidden: usize) -> Option<[&mut [f32]; 4]> {
    let mut each = gates.chunks_exact_mut(hidden.max(1));
    Some([each.next()?, each.next()?, each.next()?, each.next()?])
}
