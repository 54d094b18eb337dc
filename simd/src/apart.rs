//! A model whose batches are compiled once per instruction set, instead of in every loop that uses
//! them.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::model::{BatchPart, Model, ModelError, ModelKind, Parametric, Sums, Then};
use smolfed_core::samples::Samples;

/// Returns whether a model scores a sample as `Wx + b`. All such models have the same scores, and
/// the core's loop over blocks of their gradient takes the step of each block while it is at hand.
pub(crate) const fn is_affine<M: Model>() -> bool {
    matches!(
        M::KIND,
        ModelKind::Linear | ModelKind::Logistic | ModelKind::Softmax
    )
}

/// A model with the results of another, whose gradients are a separate function: a batch is called,
/// not inlined. If something is applied to the gradient block by block, the loop has its own
/// inlined batch.
#[derive(Clone, Copy)]
pub(crate) struct Apart<M>(pub(crate) M);

impl<M: Model> Parametric for Apart<M> {
    fn feature_count(&self) -> usize {
        self.0.feature_count()
    }

    fn output_count(&self) -> usize {
        self.0.output_count()
    }

    fn parameter_count(&self) -> usize {
        self.0.parameter_count()
    }
}

impl<M: Model> Model for Apart<M> {
    type Target = M::Target;
    type Tensors = M::Tensors;

    const KIND: ModelKind = M::KIND;
    const LARGEST_TENSOR: usize = M::LARGEST_TENSOR;

    fn tensors(&self) -> Self::Tensors {
        self.0.tensors()
    }

    fn scratch_count(&self, samples: usize) -> usize {
        self.0.scratch_count(samples)
    }

    fn score_scratch_count(&self) -> usize {
        self.0.score_scratch_count()
    }

    #[inline(always)]
    fn add_part<S: Samples<Target = Self::Target>>(
        &self,
        parameters: &[f32],
        samples: &S,
        part: BatchPart<'_>,
        scratch: &mut [f32],
        Sums { gradient, loss }: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        // The compiler knows the size, and removes one of the two branches.
        if const { is_affine::<M>() } && size_of_val(then) > 0 {
            let sums = Sums { gradient, loss };
            return (self.0).add_part(parameters, samples, part, scratch, sums, then);
        }
        call(Part {
            model: &self.0,
            parameters,
            samples,
            part,
            scratch,
            sums: Sums { gradient, loss },
        })?;
        if part.is_last() {
            then.complete(gradient, 0..gradient.len(), gradient.len());
        }
        Ok(())
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

    fn probabilities_in_place(&self, scores: &mut [f32]) {
        self.0.probabilities_in_place(scores);
    }

    fn has_target(&self, target: Self::Target) -> bool {
        self.0.has_target(target)
    }
}

/// Calls the function with the widest vectors of this machine.
#[inline(never)]
fn call<F: NullaryFnOnce>(function: F) -> F::Output {
    Arch::new().dispatch(function)
}

/// The arguments of [`Model::add_part`].
pub(crate) struct Part<'a, M, S> {
    pub(crate) model: &'a M,
    pub(crate) parameters: &'a [f32],
    pub(crate) samples: &'a S,
    pub(crate) part: BatchPart<'a>,
    pub(crate) scratch: &'a mut [f32],
    pub(crate) sums: Sums<'a>,
}

impl<M: Model, S: Samples<Target = M::Target>> NullaryFnOnce for Part<'_, M, S> {
    type Output = Result<(), ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self {
            model,
            parameters,
            samples,
            part,
            scratch,
            sums,
        } = self;
        model.add_part(parameters, samples, part, scratch, sums, &mut ())
    }
}
