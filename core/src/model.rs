//! Models of fixed or run-time size over flat `f32` parameters: their interface for loss, gradient,
//! scores and predictions.
//!
//! Three of them score a sample as `Wx + b` and differ in the number of scores and in the loss:
//! [`Linear`] (squared error), [`Logistic`] (two classes), [`Softmax`] (C classes). [`Encoder`] has
//! a hidden layer below a softmax, [`Sequential`] any layers. Parameters are one slice, for each
//! layer W class-major (row c = class c over features), then the biases. A size is
//! [`Const<N>`](Const) on devices and `usize` on desktops. A network on a device is also a type,
//! [`Fixed`]. The code is the same.
//!
//! To add a model, add a file here, a `mod` and a `pub use` below, a [`ModelKind`], and a line in
//! [`each_model`](crate::each_model), which generates the desktop kernels.

mod affine;
mod dim;
mod distilled;
mod encoder;
mod error;
mod linear;
mod logistic;
mod pass;
mod sequential;
mod softmax;
mod tensors;

use crate::{question, samples::Samples};
use affine::{Affine, PartOf};
use pass::Losses;

pub use affine::BATCH_GROUP;
pub use dim::{Const, Dim};
pub use distilled::{Distilled, Labelled, WithRow, log_probabilities};
pub use encoder::{Activation, Encoder};
pub use error::ModelError;
pub use linear::Linear;
pub use logistic::Logistic;
pub use pass::{BatchPart, Sums, Then};
pub use sequential::{
    Architecture, DIGEST_BYTES, Fixed, Layer, LayerError, MAX_LAYERS, Sequential, SequentialError,
    Shape,
};
pub use softmax::Softmax;
pub use tensors::{MAX_TENSORS, Tensors};

/// Calls a macro with the type of each model, with run-time sizes.
#[macro_export]
macro_rules! each_model {
    ($call:ident) => {
        $call!($crate::model::Linear<usize>);
        $call!($crate::model::Logistic<usize>);
        $call!($crate::model::Softmax<usize, usize>);
        $call!($crate::model::Encoder<usize, usize, usize>);
        $call!($crate::model::Sequential);
    };
}

/// A function of a sample over borrowed flat parameters: the common part of models and
/// [representations](crate::contrast::Representation).
pub trait Parametric {
    /// Returns the number of features of a sample.
    fn feature_count(&self) -> usize;

    /// Returns the number of results of a sample: the scores of a model (1, or the number of
    /// classes), or the numbers of a representation.
    fn output_count(&self) -> usize;

    /// Returns the number of parameters.
    fn parameter_count(&self) -> usize;

    /// Returns the layers, if the kind does not fix them.
    fn network(&self) -> Option<&Sequential> {
        None
    }
}

/// A model: loss, gradient and scores.
pub trait Model: Parametric {
    /// A class (`u16`) or a value (`f32`).
    type Target: Copy + Into<question::Target>;

    /// Lengths of parameter tensors: a [`Tensors`] with room for the largest number of them.
    type Tensors: AsRef<[usize]>;

    /// Kind of the model.
    const KIND: ModelKind;

    /// Length of the largest possible tensor, from the types alone.
    const LARGEST_TENSOR: usize;

    /// Whether [`Self::add_part`] can compute the scores of a sample and its gradient in two calls,
    /// as the provided method can. It must stay `false` in a model that overrides the method, which
    /// would count every sample twice.
    const HAS_HALVES: bool = false;

    /// Returns the lengths of the parameter tensors, layer by layer: W, then b in affine layers.
    fn tensors(&self) -> Self::Tensors;

    /// Returns the scratch entries with which [`Self::loss_and_gradient`] processes `samples`
    /// samples at a time.
    fn scratch_count(&self, samples: usize) -> usize {
        samples.saturating_mul(self.output_count())
    }

    /// Returns the scratch entries of [`Self::scores`] and [`Self::batch_scores`]: none if scores
    /// are computed one by one.
    fn score_scratch_count(&self) -> usize {
        0
    }

    /// Returns the mean loss over the samples in `batch`, and writes its gradient to `gradient`.
    ///
    /// * Shape: `parameters` and `gradient` have [`Parametric::parameter_count`] entries, `scratch`
    ///   at least [`Self::scratch_count`] of one sample, ideally of [`BATCH_GROUP`]. Its length
    ///   does not change the result.
    /// * Cost: 4 · batch · parameters flop. Reduces in the order of [`crate::lanes`] over features,
    ///   and in the order of `batch` over samples.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit or `batch` is empty. The contents of `gradient` are
    /// then meaningless.
    #[inline(always)]
    fn loss_and_gradient<S: Samples<Target = Self::Target>>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
    ) -> Result<f32, ModelError> {
        self.loss_and_gradient_then(parameters, samples, batch, scratch, gradient, &mut ())
    }

    /// Like [`Self::loss_and_gradient`], and calls `then` on each block of the gradient as soon as
    /// it is complete.
    ///
    /// # Errors
    /// Those of [`Self::loss_and_gradient`].
    #[inline(always)]
    fn loss_and_gradient_then<S: Samples<Target = Self::Target>>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        gradient: &mut [f32],
        then: &mut impl Then,
    ) -> Result<f32, ModelError> {
        let (all, loss) = (BatchPart::of(batch, 0, batch.len()), &mut 0.0);
        let sums = Sums { gradient, loss };
        self.add_part(parameters, samples, all, scratch, sums, then)?;
        Ok(*loss * all.mean())
    }

    /// Adds the contribution of some samples of a batch to its mean gradient and to the sum of its
    /// losses. `then` sees the gradient with the last part.
    ///
    /// The parts of a batch in order give the bits of [`Self::loss_and_gradient`]. Parameters,
    /// gradient and scratch memory must not change until the last part.
    ///
    /// # Errors
    /// Those of [`Self::loss_and_gradient`].
    #[inline(always)]
    fn add_part<S: Samples<Target = Self::Target>>(
        &self,
        parameters: &[f32],
        samples: &S,
        part: BatchPart<'_>,
        scratch: &mut [f32],
        sums: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        let layer = Affine::of(self.feature_count(), self.output_count());
        layer.add_part(
            &LossesOf(self),
            parameters,
            PartOf { samples, part },
            scratch,
            sums,
            then,
        )
    }

    /// Writes the scores of one sample to `scores`: the predicted value ([`Linear`]), the logit of
    /// class 1 ([`Logistic`]), the logits (the others).
    ///
    /// * Shape: `scores` has [`Parametric::output_count`] entries, `scratch` at least
    ///   [`Self::score_scratch_count`].
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit.
    fn scores(
        &self,
        parameters: &[f32],
        features: &[f32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        self.batch_scores(parameters, &One(features), &[0], scratch, scores)
    }

    /// Writes the scores of the samples in `batch`, one row of [`Parametric::output_count`] after
    /// the other.
    ///
    /// * Shape: `scratch` has at least [`Self::score_scratch_count`] entries.
    ///
    /// # Errors
    /// [`ModelError`] if a length does not fit or `batch` is empty.
    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        _scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        let layer = Affine::of(self.feature_count(), self.output_count());
        layer.scores(parameters, samples, batch, scores)
    }

    /// Returns the loss of one sample from its scores, and replaces the scores by the derivatives
    /// of the loss with respect to them.
    fn loss_in_place(&self, scores: &mut [f32], target: Self::Target) -> f32;

    /// Calls `each` with the losses of a batch, one after the other. See [`Self::loss_in_place`].
    #[inline(always)]
    fn losses_in_place(
        &self,
        scores: &mut [f32],
        targets: impl Iterator<Item = Self::Target>,
        mut each: impl FnMut(f32),
    ) {
        for (scores, target) in scores.chunks_exact_mut(self.output_count()).zip(targets) {
            each(self.loss_in_place(scores, target));
        }
    }

    /// Returns the prediction from the scores: a value, or the most likely class (the first among
    /// equals).
    fn predict(&self, scores: &[f32]) -> Self::Target;

    /// Turns the scores of one sample into probabilities: of each class, or of class 1
    /// ([`Logistic`]). A predicted value ([`Linear`]) stays as it is.
    fn probabilities_in_place(&self, scores: &mut [f32]);

    /// Returns whether a target is one of the model's classes, or a finite value.
    fn has_target(&self, target: Self::Target) -> bool;
}

/// The losses of a model.
struct LossesOf<'a, M: ?Sized>(&'a M);

impl<M: Model + ?Sized> Losses for LossesOf<'_, M> {
    type Target = M::Target;

    #[inline(always)]
    fn add_in_place(
        &self,
        scores: &mut [f32],
        targets: impl Iterator<Item = Self::Target>,
        sum: &mut f32,
    ) {
        self.0.losses_in_place(scores, targets, |loss| *sum += loss);
    }
}

/// Kind of a model, as encoded in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum ModelKind {
    /// [`Linear`].
    Linear = 1,
    /// [`Logistic`].
    Logistic = 2,
    /// [`Softmax`].
    Softmax = 3,
    /// [`Encoder`], which messages cannot describe.
    Encoder = 4,
    /// [`Sequential`], also as [`Fixed`].
    Sequential = 5,
    /// [`Projection`](crate::contrast::Projection), trained without labels.
    Projection = 6,
    /// [`Sequential`] whose results are a representation, trained without labels.
    Representation = 7,
}

impl ModelKind {
    /// Returns the number of this kind in messages. Numbers are never reused.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind with this number, if messages can describe it. An encoder cannot be
    /// described, because its shape has a third number.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Linear),
            2 => Some(Self::Logistic),
            3 => Some(Self::Softmax),
            5 => Some(Self::Sequential),
            6 => Some(Self::Projection),
            7 => Some(Self::Representation),
            _ => None,
        }
    }
}

/// A model with a compile-time size, for clients that own their arrays.
pub trait FixedModel: Model {
    /// Number of parameters.
    const PARAMETERS: usize;
    /// Number of scores of a sample.
    const OUTPUTS: usize;
    /// Minimum number of scratch entries. See [`Model::scratch_count`].
    const SCRATCH: usize = Self::OUTPUTS;
    /// Bytes of RAM for local training: global model, local model, gradient, and scratch memory.
    /// The samples come on top, with four bytes each for their order in an epoch.
    const TRAINING_BYTES: usize = Self::PARAMETERS
        .saturating_mul(3)
        .saturating_add(Self::SCRATCH)
        .saturating_mul(size_of::<f32>());
}

/// A single sample to score, without a target.
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
