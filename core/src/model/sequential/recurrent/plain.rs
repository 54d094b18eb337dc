//! Computation of an LSTM sum by sum, without memory, for boards and as a reference for tests of
//! vectors.

use super::{super::rows::add_rows, Lstm, Parameters};
use crate::lanes;

impl Lstm {
    /// Computes the sums of the gates from the input of a step and the previous state.
    #[inline(always)]
    pub(super) fn plain_sums(
        &self,
        Parameters {
            weights,
            recurrent,
            biases,
        }: Parameters<'_>,
        [x, state]: [&[f32]; 2],
        gates: &mut [f32],
    ) {
        let rows = weights.chunks_exact(self.width.max(1));
        let rows = rows.zip(recurrent.chunks_exact(self.hidden.max(1)));
        for ((gate, (row, recurrent)), bias) in gates.iter_mut().zip(rows).zip(biases) {
            let mut sum = 0.0;
            for (x, weight) in x.iter().zip(row).chain(state.iter().zip(recurrent)) {
                sum += x * weight;
            }
            *gate = sum + bias;
        }
    }

    /// Adds to the gradient the products of the derivatives of the gates' sums with inputs and
    /// states.
    #[inline(always)]
    pub(super) fn plain_gradient(&self, values: [&[f32]; 3], gradient: &mut [f32]) {
        let [derivatives, input, states] = values;
        let (gates, width, hidden) = (4 * self.hidden, self.width.max(1), self.hidden.max(1));
        let Some((weights, rest)) = gradient.split_at_mut_checked(gates * width) else {
            return;
        };
        let Some((recurrent, biases)) = rest.split_at_mut_checked(gates * hidden) else {
            return;
        };
        let inputs = input.chunks_exact(width).zip(states.chunks_exact(hidden));
        for (derivatives, (x, state)) in derivatives.chunks_exact(gates.max(1)).zip(inputs) {
            for (row, derivative) in weights.chunks_exact_mut(width).zip(derivatives) {
                lanes::axpy(*derivative, x, row);
            }
            for (row, derivative) in recurrent.chunks_exact_mut(hidden).zip(derivatives) {
                lanes::axpy(*derivative, state, row);
            }
            for (sum, derivative) in biases.iter_mut().zip(derivatives) {
                *sum += derivative;
            }
        }
    }

    /// Computes the derivatives with respect to the input.
    #[inline(always)]
    pub(super) fn plain_input_derivatives(
        &self,
        weights: &[f32],
        derivatives: &[f32],
        below: &mut [f32],
    ) {
        below.fill(0.0);
        let steps = derivatives.chunks_exact((4 * self.hidden).max(1));
        for (below, derivatives) in below.chunks_exact_mut(self.width.max(1)).zip(steps) {
            add_rows(derivatives, weights, below);
        }
    }
}
