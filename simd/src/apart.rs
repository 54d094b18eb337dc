//! A model whose batches are compiled once, not in every loop that takes steps with them.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::model::{Model, ModelError, ModelKind, Then};
use smolfed_core::samples::Samples;

/// A model with the results of another, whose gradients and scores are functions.
#[derive(Clone, Copy)]
pub(crate) struct Apart<M>(pub(crate) M);

impl<M: Model> Model for Apart<M> {
    type Target = M::Target;
    type Tensors = M::Tensors;

    const KIND: ModelKind = M::KIND;
    const LARGEST_TENSOR: usize = M::LARGEST_TENSOR;

    fn feature_count(&self) -> usize {
        self.0.feature_count()
    }

    fn output_count(&self) -> usize {
        self.0.output_count()
    }

    fn tensors(&self) -> Self::Tensors {
        self.0.tensors()
    }

    fn scratch_count(&self, samples: usize) -> usize {
        self.0.scratch_count(samples)
    }

    fn score_scratch_count(&self) -> usize {
        self.0.score_scratch_count()
    }

    fn parameter_count(&self) -> usize {
        self.0.parameter_count()
    }

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
        let loss = call(Gradient {
            model: &self.0,
            parameters,
            samples,
            batch,
            scratch,
            gradient,
        })?;
        then.complete(gradient, 0..gradient.len(), gradient.len());
        Ok(loss)
    }

    #[inline(always)]
    fn batch_scores<S: Samples>(
        &self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        self.0
            .batch_scores(parameters, samples, batch, scratch, scores)
    }

    fn loss_in_place(&self, scores: &mut [f32], target: Self::Target) -> f32 {
        self.0.loss_in_place(scores, target)
    }

    fn predict(&self, scores: &[f32]) -> Self::Target {
        self.0.predict(scores)
    }
}

/// With the widest vectors of this machine.
#[inline(never)]
fn call<F: NullaryFnOnce>(function: F) -> F::Output {
    Arch::new().dispatch(function)
}

/// The arguments of [`Model::loss_and_gradient`].
pub(crate) struct Gradient<'a, M, S> {
    pub(crate) model: &'a M,
    pub(crate) parameters: &'a [f32],
    pub(crate) samples: &'a S,
    pub(crate) batch: &'a [u32],
    pub(crate) scratch: &'a mut [f32],
    pub(crate) gradient: &'a mut [f32],
}

impl<M: Model, S: Samples<Target = M::Target>> NullaryFnOnce for Gradient<'_, M, S> {
    type Output = Result<f32, ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.model.loss_and_gradient(
            self.parameters,
            self.samples,
            self.batch,
            self.scratch,
            self.gradient,
        )
    }
}
