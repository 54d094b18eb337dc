//! The importance of a model's parameters for elastic weight consolidation: the diagonal of its
//! Fisher information.

use crate::{
    math::exp,
    model::{Dim, Model, Parametric, Softmax, log_probabilities},
    samples::Samples,
    train::TrainError,
};

/// Computes the diagonal of the Fisher information at `parameters`, for elastic weight
/// consolidation: the mean over samples of `Σ_y P(y)·(∂ ln P(y)/∂w)²`, with labels from the model
/// and not from the data (papers.md P11). For softmax this is `p_c (1 − p_c) x_j²` for the weight
/// of class c and feature j.
///
/// # Errors
/// As [`Model::batch_scores`], and [`TrainError::NoSamples`] without samples.
#[inline(always)]
pub fn fisher_diagonal<D: Dim, C: Dim, S: Samples>(
    model: &Softmax<D, C>,
    parameters: &[f32],
    samples: &S,
    scratch: &mut [f32],
    fisher: &mut [f32],
) -> Result<(), TrainError> {
    let (features, classes) = (model.feature_count(), model.output_count());
    let (expected, found) = (model.parameter_count(), fisher.len());
    if found != expected {
        return Err(TrainError::Workspace { expected, found });
    }
    let count = samples.len();
    if count == 0 {
        return Err(TrainError::NoSamples);
    }
    let found = scratch.len();
    let Some(scores) = scratch.get_mut(..classes) else {
        return Err(TrainError::Workspace {
            expected: classes,
            found,
        });
    };
    fisher.fill(0.0);
    let mean = 1.0 / count as f32;
    for index in 0..count {
        model.batch_scores(parameters, samples, &[index as u32], &mut [], scores)?;
        log_probabilities(scores);
        let sample = samples.features(index);
        let (weights, biases) = fisher.split_at_mut(features * classes);
        for ((row, bias), score) in weights
            .chunks_exact_mut(features)
            .zip(biases)
            .zip(scores.iter())
        {
            let p = exp(*score);
            let variance = p * (1.0 - p) * mean;
            for (entry, x) in row.iter_mut().zip(sample) {
                *entry += variance * (x * x);
            }
            *bias += variance;
        }
    }
    Ok(())
}
