//! A layer in its place between the layers below and above: memory, forward, backward.

use super::{
    super::error::ModelError,
    convolution::Convolution,
    dense, embedding,
    layer::Layer,
    pass::{Backward, Forward, copy, interleave, last, last_mut, separate},
    pool::{self, Windows},
    recurrent::Lstm,
    shape::Shape,
};

/// A layer with its input and output.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) layer: Layer,
    /// The layer below, if it is not the first.
    pub(super) below: Option<Layer>,
    pub(super) input: Shape,
    pub(super) output: Shape,
}

impl Place {
    /// Returns whether it overwrites the results of the layer below, which does not need them for
    /// its derivatives.
    pub(super) const fn is_in_place(&self) -> bool {
        match (self.layer, self.below) {
            (Layer::Relu, None | Some(Layer::Lstm { .. })) => false,
            (Layer::Relu, Some(_)) => true,
            _ => false,
        }
    }

    /// Returns whether it is the first layer and needs the features of an image pixel by pixel.
    pub(super) const fn interleaves(&self) -> bool {
        let is_dense = matches!(self.layer, Layer::Dense { .. });
        self.below.is_none() && !is_dense && self.input.is_interleaved()
    }

    /// Returns whether it needs the results of the layer below channel by channel.
    const fn separates(&self) -> bool {
        let is_dense = matches!(self.layer, Layer::Dense { .. });
        self.below.is_some() && is_dense && self.input.is_interleaved()
    }

    /// Returns the number of parameters.
    pub(super) const fn parameter_count(&self) -> usize {
        self.layer.parameter_count(self.input)
    }

    /// Returns the number of entries computed once for all samples.
    pub(super) const fn prepared_count(&self) -> usize {
        match (self.convolution(), self.lstm()) {
            (Some(convolution), _) => convolution.prepared_count(),
            (_, Some(lstm)) => lstm.prepared_count(),
            _ => 0,
        }
    }

    /// Returns the number of entries of the gradient in another order.
    pub(super) const fn sums_count(&self) -> usize {
        match (self.convolution(), self.lstm()) {
            (Some(convolution), _) => convolution.sums_count(),
            (_, Some(lstm)) => lstm.sums_count(),
            _ => 0,
        }
    }

    /// Returns the number of entries of working memory.
    pub(super) const fn work_count(&self) -> usize {
        match (self.convolution(), self.lstm()) {
            (Some(convolution), _) => convolution.work_count(),
            (_, Some(lstm)) => lstm.work_count(),
            _ if self.separates() => self.input.count(),
            _ => 0,
        }
    }

    /// Returns the number of entries kept for a sample.
    pub(super) const fn tape_count(&self) -> usize {
        let output = self.output.count();
        let input = self.input.count();
        match self.lstm() {
            _ if self.is_in_place() => 0,
            Some(lstm) => lstm.tape_count(),
            _ if self.interleaves() || self.separates() => output.saturating_add(input),
            _ => output,
        }
    }

    const fn convolution(&self) -> Option<Convolution> {
        match self.layer {
            Layer::Convolution {
                kernel,
                stride,
                padding,
                ..
            } => {
                let (sizes, is_first) = ([kernel, stride, padding], self.below.is_none());
                let convolution = Convolution::new(self.input, self.output, sizes, is_first);
                Some(convolution)
            }
            _ => None,
        }
    }

    const fn lstm(&self) -> Option<Lstm> {
        match self.layer {
            Layer::Lstm { hidden } => Some(Lstm::new(self.input, hidden, self.below.is_none())),
            _ => None,
        }
    }

    /// Computes values from the parameters, once for all samples.
    #[inline(always)]
    pub(super) fn prepare(&self, parameters: &[f32], prepared: &mut [f32]) {
        if let Some(convolution) = self.convolution() {
            convolution.prepare(parameters, prepared);
        }
        if let Some(lstm) = self.lstm() {
            lstm.prepare(parameters, prepared);
        }
    }

    /// Writes the sums of a batch to the gradient.
    #[inline(always)]
    pub(super) fn finish(&self, sums: &[f32], gradient: &mut [f32]) {
        if let Some(convolution) = self.convolution() {
            convolution.finish(sums, gradient);
        }
        if let Some(lstm) = self.lstm() {
            lstm.finish(sums, gradient);
        }
    }

    /// Computes the results from the input, and keeps them in `region`.
    #[inline(always)]
    pub(super) fn forward(&self, pass: Forward<'_>) -> Result<(), ModelError> {
        let Forward {
            parameters,
            prepared,
            mut input,
            work,
            mut region,
        } = pass;
        if self.interleaves() || self.separates() {
            let Some((copy, rest)) = region.split_at_mut_checked(input.len()) else {
                return Ok(());
            };
            let channels = self.input.channels();
            if self.interleaves() {
                interleave(channels, input, copy);
            } else {
                separate(channels, input, copy);
            }
            (input, region) = (copy, rest);
        }
        match self.layer {
            Layer::Convolution { .. } => {
                if let Some(convolution) = self.convolution() {
                    convolution.forward(Forward {
                        parameters,
                        prepared,
                        input,
                        work,
                        region,
                    });
                }
            }
            Layer::Relu => {
                copy(input, region);
                pool::rectify(region);
            }
            Layer::MaxPool { size, stride } => {
                Windows::new(self.input, self.output, size, stride).forward(input, region);
            }
            Layer::GlobalAverage => pool::average(input, region),
            Layer::Dense { .. } => dense::forward(parameters, input, region),
            Layer::Embedding { vocabulary, width } => {
                embedding::forward(parameters, vocabulary, width, input, region)?;
            }
            Layer::Lstm { .. } => {
                if let Some(lstm) = self.lstm() {
                    lstm.forward(Forward {
                        parameters,
                        prepared,
                        input,
                        work,
                        region,
                    });
                }
            }
            Layer::Last => copy(last(input, region.len()), region),
        }
        Ok(())
    }

    /// Adds to the gradient, and writes the derivatives with respect to the input.
    #[inline(always)]
    pub(super) fn backward(&self, mut pass: Backward<'_>) {
        let mut pixels = None;
        if self.interleaves() || self.separates() {
            let count = pass.input.len();
            let Some((copy, region)) = pass.region.split_at_mut_checked(count) else {
                return;
            };
            (pass.input, pass.region) = (copy, region);
            if let Some(below) = pass.input_derivatives.take() {
                pixels = Some(below);
                pass.input_derivatives = pass.work.get_mut(..count);
                pass.work = &mut [];
            }
        }
        match self.layer {
            Layer::Convolution { .. } => {
                if let Some(convolution) = self.convolution() {
                    convolution.backward(pass);
                }
            }
            Layer::Relu => {
                pool::rectify_backward(pass.region, pass.derivatives);
                if let Some(below) = pass.input_derivatives {
                    copy(pass.derivatives, below);
                }
            }
            Layer::MaxPool { size, stride } => {
                let windows = Windows::new(self.input, self.output, size, stride);
                if let Some(below) = pass.input_derivatives {
                    windows.backward(pass.input, pass.derivatives, below);
                }
            }
            Layer::GlobalAverage => {
                if let Some(below) = pass.input_derivatives {
                    pool::average_backward(pass.derivatives, below);
                }
            }
            Layer::Dense { .. } => {
                dense::backward(&mut pass);
                if let (Some(planar), Some(pixels)) = (pass.input_derivatives, pixels) {
                    interleave(self.input.channels(), planar, pixels);
                }
            }
            Layer::Embedding { width, .. } => embedding::backward(width, &mut pass),
            Layer::Lstm { .. } => {
                if let Some(lstm) = self.lstm() {
                    lstm.backward(pass);
                }
            }
            Layer::Last => {
                if let Some(below) = pass.input_derivatives {
                    below.fill(0.0);
                    copy(pass.derivatives, last_mut(below, pass.derivatives.len()));
                }
            }
        }
    }
}
