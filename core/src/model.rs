//! Models of fixed or run-time size over flat `f32` parameters.
//!
//! Three of them score a sample as `Wx + b` and differ in the number of scores and in the loss:
//! [`Linear`] (squared error), [`Logistic`] (two classes), [`Softmax`] (C classes). [`Encoder`] has
//! a hidden layer below a softmax, [`Sequential`] any layers. Parameters are one slice, for each
//! layer W class-major (row c = class c over features), then the biases. A size is
//! [`Const<N>`](Const) on devices and `usize` on desktops; a network on a device is a type as well,
//! [`Fixed`]. The code is the same.
//!
//! A new model is a file here, with a `mod` and a `pub use` below, a [`ModelKind`] and a line in
//! [`each_model`](crate::each_model), from which the desktop's kernels are made.

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

/// Calls a macro with the type of each model, sizes known at run time.
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

/// A function of a sample over flat parameters that it does not own: what models and
/// [representations](crate::contrast::Representation) have in common.
pub trait Parametric {
    /// Features of a sample.
    fn feature_count(&self) -> usize;

    /// Results of a sample: the scores of a model (1, or the number of classes), or the numbers of
    /// a representation.
    fn output_count(&self) -> usize;

    /// Number of parameters.
    fn parameter_count(&self) -> usize;

    /// The layers, if its kind leaves them open.
    fn network(&self) -> Option<&Sequential> {
        None
    }
}

/// A model: loss, gradient and scores.
pub trait Model: Parametric {
    /// A class (`u16`) or a value (`f32`).
    type Target: Copy + Into<question::Target>;

    /// Lengths of parameter tensors: a [`Tensors`] with room for as many as there can be.
    type Tensors: AsRef<[usize]>;

    /// Which model.
    const KIND: ModelKind;

    /// The largest tensor that it can have, from the types alone.
    const LARGEST_TENSOR: usize;

    /// Whether [`Self::add_part`] can do the scores of a sample and its gradient in two calls, as
    /// the one that is provided can. It must stay `false` where a model has one of its own, which
    /// would count every sample twice.
    const HAS_HALVES: bool = false;

    /// Lengths of the parameter tensors, layer by layer: W, then b where a layer is affine.
    fn tensors(&self) -> Self::Tensors;

    /// Scratch entries with which [`Self::loss_and_gradient`] works on that many samples at a time.
    fn scratch_count(&self, samples: usize) -> usize {
        samples.saturating_mul(self.output_count())
    }

    /// Scratch entries that [`Self::scores`] and [`Self::batch_scores`] need: none where scores are
    /// computed one by one.
    fn score_scratch_count(&self) -> usize {
        0
    }

    /// Mean loss over the samples that `batch` names, and its gradient into `gradient`.
    ///
    /// * Shape: `parameters` and `gradient` have [`Parametric::parameter_count`] entries; `scratch`
    ///   at least [`Self::scratch_count`] of one sample, best of [`BATCH_GROUP`]. Its length does
    ///   not change the result.
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
        self.loss_and_gradient_then(parameters, samples, batch, scratch, gradient, &mut ())
    }

    /// [`Self::loss_and_gradient`], with something done to the gradient while it is at hand.
    ///
    /// # Errors
    /// As there.
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

    /// Adds what some samples of a batch contribute to its mean gradient and to the sum of its
    /// losses. `then` sees the gradient with the last of them.
    ///
    /// The parts of a batch in their order give the bits of [`Self::loss_and_gradient`]; until the
    /// last one, parameters, gradient and scratch memory must stay as they are.
    ///
    /// # Errors
    /// As there.
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

    /// Scores of one sample into `scores`: the predicted value ([`Linear`]), the logit of class 1
    /// ([`Logistic`]), the logits (the others).
    ///
    /// * Shape: `scores` has [`Parametric::output_count`] entries; `scratch` at least
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

    /// Scores of the samples that `batch` names, one row of [`Parametric::output_count`] after the
    /// other.
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

    /// Loss of one sample from its scores, which become the derivatives of the loss by the scores.
    fn loss_in_place(&self, scores: &mut [f32], target: Self::Target) -> f32;

    /// Calls `each` with the losses of a batch, one after the other; see [`Self::loss_in_place`].
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

    /// The prediction from the scores: a value, or the most likely class (the first among equals).
    fn predict(&self, scores: &[f32]) -> Self::Target;

    /// Turns the scores of one sample into probabilities: of each class, or of class 1
    /// ([`Logistic`]). A predicted value ([`Linear`]) stays as it is.
    fn probabilities_in_place(&self, scores: &mut [f32]);

    /// Whether a target is one of the model's classes, or a finite value.
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

/// Which model, as a closed choice that travels on the wire.
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
    /// [`Encoder`]. The protocol cannot describe it.
    Encoder = 4,
    /// [`Sequential`], also as [`Fixed`].
    Sequential = 5,
    /// [`Projection`](crate::contrast::Projection): learned without labels.
    Projection = 6,
    /// [`Sequential`], whose results are a representation: learned without labels.
    Representation = 7,
}

impl ModelKind {
    /// The number of this kind in messages; it is never reused for another.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this number, if it can travel: an encoder's shape has a third number.
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

/// A model whose size is known to the compiler, for clients that own their arrays.
pub trait FixedModel: Model {
    /// Number of parameters.
    const PARAMETERS: usize;
    /// Scores of a sample.
    const OUTPUTS: usize;
    /// Scratch entries at least; see [`Model::scratch_count`].
    const SCRATCH: usize = Self::OUTPUTS;
    /// Bytes of RAM for local training: global model, local model, gradient, and scratch memory.
    /// Beside them come the samples, and four bytes for the place of each in the order of an epoch.
    const TRAINING_BYTES: usize = Self::PARAMETERS
        .saturating_mul(3)
        .saturating_add(Self::SCRATCH)
        .saturating_mul(size_of::<f32>());
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
