//! A network as a [`Model`]: loss, gradient and scores of batches.

use super::{
    super::{
        BatchPart, Model, ModelError, ModelKind, Parametric, Sums, Tensors, Then, affine, softmax,
    },
    Sequential,
    pass::last,
};
use crate::samples::Samples;

impl Parametric for Sequential {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.input.count()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.score_count()
    }

    fn network(&self) -> Option<&Sequential> {
        Some(self)
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        self.parameters
    }
}

impl Model for Sequential {
    type Target = u16;
    type Tensors = Tensors;

    const KIND: ModelKind = ModelKind::Sequential;
    /// Sizes are values, not types, so any tensor may be long.
    const LARGEST_TENSOR: usize = usize::MAX;

    /// Returns the tensors of all layers.
    fn tensors(&self) -> Tensors {
        let lengths = self
            .places()
            .flat_map(|place| place.layer.tensors(place.input));
        Tensors::of(lengths.filter(|length| *length > 0))
    }

    /// Returns the entries for the results of all layers for one sample, twice the longest of them,
    /// and working memory. The number of samples does not matter.
    #[inline(always)]
    fn scratch_count(&self, _: usize) -> usize {
        self.sample_scratch_count()
    }

    #[inline(always)]
    fn score_scratch_count(&self) -> usize {
        self.forward_count()
    }

    #[inline(always)]
    fn add_part<S: Samples<Target = u16>>(
        &self,
        parameters: &[f32],
        samples: &S,
        part: BatchPart<'_>,
        scratch: &mut [f32],
        Sums { gradient, loss }: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        self.check_parameters(parameters)?;
        self.check_parameters(gradient)?;
        affine::check_batch(self.feature_count(), samples, part.indices)?;
        if part.is_first {
            self.begin(parameters, scratch)?;
            gradient.fill(0.0);
        }
        let mean = part.mean();
        for index in part.indices {
            let mut parts = self.training_parts(scratch)?;
            let features = samples.features(*index as usize);
            self.forward(parameters, features, &mut parts)?;
            let scores = last(parts.tape, self.score_count());
            let [above, _] = &mut parts.derivatives;
            let residuals = above.get_mut(..scores.len()).unwrap_or_default();
            for (residual, score) in residuals.iter_mut().zip(scores) {
                *residual = *score;
            }
            *loss += self.loss_in_place(residuals, samples.target(*index as usize));
            for residual in residuals {
                *residual *= mean;
            }
            self.backward(parameters, features, parts, gradient);
        }
        if part.is_last() {
            self.end(scratch, gradient)?;
            then.complete(gradient, 0..parameters.len(), parameters.len());
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
        self.check_parameters(parameters)?;
        affine::check_batch(self.feature_count(), samples, batch)?;
        let count = self.score_count();
        let (expected, found) = (batch.len() * count, scores.len());
        if found != expected {
            return Err(ModelError::Scratch { expected, found });
        }
        let short = ModelError::Scratch {
            expected: self.forward_count(),
            found: scratch.len(),
        };
        let mut parts = self.parts(scratch, false).ok_or(short)?;
        self.prepare(parameters, parts.prepared);
        for (scores, index) in scores.chunks_exact_mut(count.max(1)).zip(batch) {
            let features = samples.features(*index as usize);
            self.forward(parameters, features, &mut parts)?;
            for (score, result) in scores.iter_mut().zip(last(parts.tape, count)) {
                *score = *result;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], target: u16) -> f32 {
        softmax::cross_entropy(scores, target)
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> u16 {
        softmax::most_likely(scores)
    }

    #[inline]
    fn probabilities_in_place(&self, scores: &mut [f32]) {
        softmax::probabilities_in_place(scores);
    }

    #[inline(always)]
    fn has_target(&self, target: u16) -> bool {
        usize::from(target) < self.output_count()
    }
}
