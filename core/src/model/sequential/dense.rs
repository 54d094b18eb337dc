//! Dense layers: `Wx + b`.

use super::{pass::Backward, rows::add_rows};
use crate::lanes;

/// Computes each result as a dot product in the order of [`lanes`], plus its bias.
#[inline(always)]
pub(super) fn forward(parameters: &[f32], input: &[f32], output: &mut [f32]) {
    let weights = output.len() * input.len();
    let Some((weights, biases)) = parameters.split_at_checked(weights) else {
        return;
    };
    let rows = weights.chunks_exact(input.len().max(1));
    for ((result, row), bias) in output.iter_mut().zip(rows).zip(biases) {
        *result = lanes::dot(input, row) + bias;
    }
}

/// Adds to the gradient. The derivatives with respect to the input are sums over the results in
/// order.
#[inline(always)]
pub(super) fn backward(pass: &mut Backward<'_>) {
    let (input, derivatives) = (pass.input, &*pass.derivatives);
    let weights = derivatives.len() * input.len();
    let Some((sums, bias_sums)) = pass.gradient.split_at_mut_checked(weights) else {
        return;
    };
    let width = input.len().max(1);
    for (row, derivative) in sums.chunks_exact_mut(width).zip(derivatives) {
        lanes::axpy(*derivative, input, row);
    }
    for (sum, derivative) in bias_sums.iter_mut().zip(derivatives) {
        *sum += derivative;
    }
    if let Some(below) = &mut pass.input_derivatives {
        below.fill(0.0);
        add_rows(derivatives, pass.parameters, below);
    }
}
