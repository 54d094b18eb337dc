//! The common part of linear scores: scores `Wx + b` of a batch, and the gradient from their
//! residuals.

mod batch;
mod gradient;
mod scores;

use super::{
    error::ModelError,
    pass::{BatchPart, Half, Losses, Sums, Then},
    tensors::Tensors,
};
use crate::samples::Samples;

pub use batch::BATCH_GROUP;
pub(super) use batch::{Batch, Layer};
pub(super) use gradient::OuterProducts;
pub(super) use scores::batch_scores;

/// The sizes of an affine layer.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    features: usize,
    outputs: usize,
}

/// A part of a batch, with its samples.
pub(super) struct PartOf<'a, S> {
    pub(super) samples: &'a S,
    pub(super) part: BatchPart<'a>,
}

impl Affine {
    #[inline(always)]
    pub(super) const fn of(features: usize, outputs: usize) -> Self {
        Self { features, outputs }
    }

    /// Splits the parameters into weights and biases, after checking all lengths.
    #[inline(always)]
    fn split(self, parameters: &[f32]) -> Result<Layer<'_>, ModelError> {
        let Self { features, outputs } = self;
        if features == 0 || outputs == 0 {
            return Err(ModelError::Empty);
        }
        let expected = Tensors::affine_total(features, outputs);
        let wrong = ModelError::Parameters {
            expected,
            found: parameters.len(),
        };
        if parameters.len() != expected {
            return Err(wrong);
        }
        let (weights, biases) = parameters
            .split_at_checked(features.saturating_mul(outputs))
            .ok_or(wrong)?;
        Ok(Layer { weights, biases })
    }

    /// Implements [`Model::add_part`](super::Model::add_part) for the loss of any model with the
    /// scores `Wx + b`.
    #[inline(always)]
    pub(super) fn add_part<L: Losses, S: Samples<Target = L::Target>>(
        self,
        losses: &L,
        parameters: &[f32],
        PartOf { samples, part }: PartOf<'_, S>,
        scratch: &mut [f32],
        Sums { gradient, loss }: Sums<'_>,
        then: &mut impl Then,
    ) -> Result<(), ModelError> {
        let layer = self.split(parameters)?;
        let outputs = self.outputs;
        if gradient.len() != parameters.len() {
            let (expected, found) = (parameters.len(), gradient.len());
            return Err(ModelError::Parameters { expected, found });
        }
        let group = (scratch.len() / outputs).min(BATCH_GROUP);
        if group == 0 {
            return Err(ModelError::Scratch {
                expected: outputs,
                found: scratch.len(),
            });
        }
        check_batch(self.features, samples, part.indices)?;

        let weights = layer.weights.len();
        let mean = part.mean();
        let mut left = part.indices.len();
        // The part of the first group, and its first sample, overwrites the gradient.
        let (mut fresh, mut fresh_biases) = (part.is_first, part.is_first);
        for indices in part.indices.chunks(group) {
            let Some(residuals) = scratch.get_mut(..indices.len() * outputs) else {
                return Err(ModelError::Scratch {
                    expected: outputs,
                    found: 0,
                });
            };
            let batch = Batch { samples, indices };
            if part.half != Half::Gradient {
                batch_scores(layer, &batch, residuals);
                let bias_gradient = gradient.get_mut(weights..).unwrap_or_default();
                let targets = (indices.iter()).map(|index| samples.target(*index as usize));
                losses.add_in_place(residuals, targets, loss);
                for row in residuals.chunks_exact_mut(outputs) {
                    for (residual, sum) in row.iter_mut().zip(bias_gradient.iter_mut()) {
                        *residual *= mean;
                        *sum = if fresh_biases {
                            *residual
                        } else {
                            *sum + *residual
                        };
                    }
                    fresh_biases = false;
                }
            }
            if part.half == Half::Scores {
                continue;
            }
            let sum = OuterProducts {
                residuals,
                outputs,
                batch: &batch,
                fresh,
            };
            fresh = false;
            left -= indices.len();
            let then = (part.is_last() && left == 0).then_some(&mut *then);
            sum.add_to(gradient, weights, then);
        }
        if part.is_last() {
            then.complete(gradient, weights..gradient.len(), gradient.len());
        }
        Ok(())
    }

    /// Computes the scores of a batch, after checking all lengths.
    #[inline(always)]
    pub(super) fn scores<S: Samples>(
        self,
        parameters: &[f32],
        samples: &S,
        batch: &[u32],
        scores: &mut [f32],
    ) -> Result<(), ModelError> {
        let layer = self.split(parameters)?;
        check_batch(self.features, samples, batch)?;
        let (expected, found) = (batch.len() * self.outputs, scores.len());
        if found != expected {
            return Err(ModelError::Scratch { expected, found });
        }
        let indices = batch;
        batch_scores(layer, &Batch { samples, indices }, scores);
        Ok(())
    }
}

/// Checks that the samples of `batch` exist and have this many features.
pub(super) fn check_batch<S: Samples>(
    expected: usize,
    samples: &S,
    batch: &[u32],
) -> Result<(), ModelError> {
    let count = samples.len();
    if batch.is_empty() {
        return Err(ModelError::Batch);
    }
    for index in batch {
        let index = *index as usize;
        if index >= count {
            return Err(ModelError::Batch);
        }
        let found = samples.features(index).len();
        if found != expected {
            return Err(ModelError::Features { expected, found });
        }
    }
    Ok(())
}
