//! Models of fixed or run-time size over flat `f32` parameters.
//!
//! Three of them score a sample as `Wx + b` and differ in the number of scores and in the loss:
//! [`Linear`] (squared error), [`Logistic`] (two classes), [`Softmax`] (C classes). [`Encoder`] has a
//! hidden layer below a softmax. Parameters are one slice, for each layer W class-major (row c =
//! class c over features), then the biases. A size is
//! [`Const<N>`](Const) on devices and `usize` on desktops; the code is the same.

mod affine;
mod dim;
mod distilled;
mod encoder;
mod linear;
mod logistic;
mod softmax;

use crate::samples::Samples;

pub use affine::BATCH_GROUP;
pub use dim::{Const, Dim};
pub use distilled::{Distilled, Labelled, WithRow, log_probabilities};
pub use encoder::{Activation, Encoder};
pub use linear::Linear;
pub use logistic::Logistic;
pub use softmax::Softmax;

/// A model was given slices whose lengths do not fit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// The parameters or the gradient have another length than the model.
    Parameters {
        /// Parameters of the model.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// A sample has another number of features than the model.
    Features {
        /// Features of the model.
        expected: usize,
        /// Features of the sample.
        found: usize,
    },
    /// The scratch memory holds less than the scores of one sample.
    Scratch {
        /// Scores of one sample.
        expected: usize,
        /// Length of the slice.
        found: usize,
    },
    /// The model has no features or no outputs.
    Empty,
    /// A batch names a sample that does not exist, or none at all.
    Batch,
}

impl core::fmt::Display for ModelError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Parameters { expected, found } => {
                write!(f, "{found} parameters for a model of {expected}")
            }
            Self::Features { expected, found } => {
                write!(f, "a sample of {found} features for a model of {expected}")
            }
            Self::Scratch { expected, found } => {
                write!(
                    f,
                    "scratch memory for {found} scores: at least {expected} are needed"
                )
            }
            Self::Empty => f.write_str("a model needs at least one feature and one output"),
            Self::Batch => f.write_str("a batch is empty or names a sample that does not exist"),
        }
    }
}

impl core::error::Error for ModelError {}

/// Lengths of the parameter tensors of a model, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensors {
    lengths: [usize; Self::MOST],
    count: usize,
}

impl Tensors {
    /// Most tensors that a model can have.
    const MOST: usize = 4;

    /// The two tensors of an affine layer: weights and biases.
    pub const fn affine(features: usize, outputs: usize) -> Self {
        // A product that does not fit names a model that no slice can match: refused at its use.
        Self {
            lengths: [features.saturating_mul(outputs), outputs, 0, 0],
            count: 2,
        }
    }

    /// The lengths.
    pub fn as_slice(&self) -> &[usize] {
        self.lengths.get(..self.count).unwrap_or_default()
    }

    /// The four tensors of two affine layers, one above the other.
    pub const fn two_layers(features: usize, hidden: usize, outputs: usize) -> Self {
        Self {
            lengths: [
                features.saturating_mul(hidden),
                hidden,
                hidden.saturating_mul(outputs),
                outputs,
            ],
            count: 4,
        }
    }

    /// Sum of the lengths.
    pub const fn total(&self) -> usize {
        let [a, b, c, d] = self.lengths;
        a.saturating_add(b).saturating_add(c).saturating_add(d)
    }
}

/// A model: loss, gradient and scores over flat parameters that it does not own.
pub trait Model {
    /// A class (`u16`) or a value (`f32`).
    type Target: Copy;

    /// Which model.
    const KIND: ModelKind;

    /// The largest tensor that it can have, from the types alone.
    const LARGEST_TENSOR: usize;

    /// Features of a sample.
    fn feature_count(&self) -> usize;

    /// Scores of a sample: 1, or the number of classes.
    fn output_count(&self) -> usize;

    /// Lengths of the parameter tensors: W, then b, layer by layer.
    fn tensors(&self) -> Tensors;

    /// Scratch entries with which [`Self::loss_and_gradient`] works on so many samples at a time.
    fn scratch_count(&self, samples: usize) -> usize {
        samples.saturating_mul(self.output_count())
    }

    /// Number of parameters.
    fn parameter_count(&self) -> usize {
        self.tensors().total()
    }

    /// Mean loss over the samples that `batch` names, and its gradient into `gradient`.
    ///
    /// * Shape: `parameters` and `gradient` have [`Self::parameter_count`] entries; `scratch`
    ///   at least [`Self::scratch_count`] of one sample, best of [`BATCH_GROUP`]. Its length does not
    ///   change the result.
    /// * Cost: 4 · batch · parameters flop; reduces in the order of [`crate::lanes`] over features,
    ///   and in the order of `batch` over samples.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit or `batch` is empty; what is written to `gradient`
    /// is then meaningless.
    #[inline(always)]
    fn loss_and_gradient<S: Samples<Target = Self::Target>>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
    ) -> Result<f32, ModelError> {
        affine::loss_and_gradient(self, parameters, samples, batch, scratch, gradient)
    }

    /// Scores of one sample into `scores`: the predicted value ([`Linear`]), the logit of class 1
    /// ([`Logistic`]), the logits ([`Softmax`]).
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    fn scores(
        &self,
        parameters: &[f32],
        features: &[f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        self.batch_scores(parameters, &One(features), &[0], scores)
    }

    /// Scores of the samples that `batch` names, one row of [`Self::output_count`] after the other.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit or `batch` is empty.
    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        affine::checked_scores(self, parameters, samples, batch, scores)
    }

    /// Loss of one sample from its scores, which become the derivatives of the loss by the scores.
    fn loss_in_place(&self, scores: &mut [f32], target: Self::Target) -> f32;

    /// The prediction from the scores: a value, or the most likely class (the first among equals).
    fn predict(&self, scores: &[f32]) -> Self::Target;
}

/// Which model, as a closed choice that travels on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelKind {
    /// [`Linear`].
    Linear,
    /// [`Logistic`].
    Logistic,
    /// [`Softmax`].
    Softmax,
    /// [`Encoder`]. Version 1 of the protocol cannot describe it.
    Encoder,
}

impl ModelKind {
    /// The number of this kind in messages; never given again to another.
    pub const fn code(self) -> u8 {
        match self {
            Self::Linear => 1,
            Self::Logistic => 2,
            Self::Softmax => 3,
            Self::Encoder => 4,
        }
    }

    /// The kind with this number, if it can travel: an encoder's shape has a third number.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Linear),
            2 => Some(Self::Logistic),
            3 => Some(Self::Softmax),
            _ => None,
        }
    }
}

/// A model whose size is known to the compiler, for clients that own their arrays.
pub trait FixedModel: Model {
    /// Number of parameters.
    const PARAMETERS: usize;
    /// Scores of a sample.
    const OUTPUTS: usize;
    /// Least scratch entries; see [`Model::scratch_count`].
    const SCRATCH: usize = Self::OUTPUTS;
}

/// A single sample without a target, to score.
struct One<'a>(&'a [f32]);

impl Samples for One<'_> {
    type Target = ();

    fn len(&self) -> usize {
        1
    }

    #[inline(always)]
    fn features(&self, _: usize) -> &[f32] {
        self.0
    }

    fn target(&self, _: usize) {}
}

#[cfg(test)]
mod tests;
