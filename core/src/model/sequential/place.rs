//! A layer between the one below and the one above: its memory, forward, backward.

use super::{
    super::error::ModelError,
    convolution::Convolution,
    dense,
    layer::Layer,
    pass::{Backward, last, last_mut},
    pool::{self, Windows},
    recurrent::{self, Lstm},
    shape::Shape,
};

/// A layer with what it is given and what it gives.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) layer: Layer,
    /// The layer below, if it is not the first.
    pub(super) below: Option<Layer>,
    pub(super) input: Shape,
    pub(super) output: Shape,
}

impl Place {
    /// Whether it overwrites the results of the layer below, which that layer does not need for its
    /// own derivatives.
    pub(super) const fn is_in_place(&self) -> bool {
        match (self.layer, self.below) {
            (Layer::Relu, None | Some(Layer::Lstm { .. })) => false,
            (Layer::Relu, Some(_)) => true,
            _ => false,
        }
    }

    /// Number of parameters.
    pub(super) const fn parameter_count(&self) -> usize {
        self.layer.parameter_count(self.input)
    }

    /// Entries computed once for all samples.
    pub(super) const fn prepared_count(&self) -> usize {
        0
    }

    /// Entries needed while it works.
    pub(super) const fn work_count(&self) -> usize {
        match self.layer {
            Layer::Lstm { hidden } => hidden as usize,
            _ => 0,
        }
    }

    /// Entries that it keeps of a sample.
    pub(super) const fn tape_count(&self) -> usize {
        let output = self.output.count();
        match self.layer {
            _ if self.is_in_place() => 0,
            // Gates, cells and their tanh; then the results.
            Layer::Lstm { .. } => output.saturating_mul(7),
            _ => output,
        }
    }

    /// What it computes from its parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, _parameters: &[f32], _prepared: &mut [f32]) {}

    /// Its results from its input; `region` keeps them.
    #[inline(always)]
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        _prepared: &[f32],
        input: &[f32],
        _work: &mut [f32],
        region: &mut [f32],
    ) -> Result<(), ModelError> {
        match self.layer {
            Layer::Convolution {
                kernel,
                stride,
                padding,
                ..
            } => {
                if let Some(layer) =
                    Convolution::new(self.input, self.output, kernel, stride, padding)
                {
                    layer.forward(parameters, input, region);
                }
            }
            Layer::Relu => {
                for (y, x) in region.iter_mut().zip(input) {
                    *y = *x;
                }
                pool::rectify(region);
            }
            Layer::MaxPool { size, stride } => {
                if let Some(windows) = Windows::new(self.input, self.output, size, stride) {
                    windows.forward(input, region);
                }
            }
            Layer::GlobalAverage => pool::average(input, region),
            Layer::Dense { .. } => dense::forward(parameters, input, region),
            Layer::Embedding { vocabulary, width } => {
                recurrent::embed(parameters, vocabulary, width, input, region)?;
            }
            Layer::Lstm { hidden } => {
                if let Some(lstm) = Lstm::new(self.input, hidden) {
                    lstm.forward(parameters, input, region);
                }
            }
            Layer::Last => {
                let last = last(input, region.len());
                for (y, x) in region.iter_mut().zip(last) {
                    *y = *x;
                }
            }
        }
        Ok(())
    }

    /// Adds to the gradient, and writes the derivatives by the input.
    #[inline(always)]
    pub(super) fn backward(&self, mut pass: Backward<'_>) {
        match self.layer {
            Layer::Convolution {
                kernel,
                stride,
                padding,
                ..
            } => {
                if let Some(layer) =
                    Convolution::new(self.input, self.output, kernel, stride, padding)
                {
                    layer.backward(pass);
                }
            }
            Layer::Relu => {
                pool::rectify_backward(pass.region, pass.derivatives);
                if let Some(below) = pass.input_derivatives {
                    for (y, x) in below.iter_mut().zip(pass.derivatives) {
                        *y = *x;
                    }
                }
            }
            Layer::MaxPool { size, stride } => {
                let windows = Windows::new(self.input, self.output, size, stride);
                if let (Some(windows), Some(below)) = (windows, pass.input_derivatives) {
                    windows.backward(pass.input, pass.derivatives, below);
                }
            }
            Layer::GlobalAverage => {
                if let Some(below) = pass.input_derivatives {
                    pool::average_backward(pass.derivatives, below);
                }
            }
            Layer::Dense { .. } => dense::backward(&mut pass),
            Layer::Embedding { width, .. } => recurrent::embed_backward(width, &mut pass),
            Layer::Lstm { hidden } => {
                if let Some(lstm) = Lstm::new(self.input, hidden) {
                    lstm.backward(pass);
                }
            }
            Layer::Last => {
                if let Some(below) = pass.input_derivatives {
                    below.fill(0.0);
                    let last = last_mut(below, pass.derivatives.len());
                    for (y, x) in last.iter_mut().zip(pass.derivatives) {
                        *y = *x;
                    }
                }
            }
        }
    }
}
