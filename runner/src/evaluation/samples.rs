//! Loss and accuracy of a model on held-out samples, in parallel and with the same bits on any
//! number of threads.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use smolfed_core::model::ModelError;
use smolfed_core::samples::Samples;
use smolfed_simd::{Kernels, Rows};

use crate::data::dataset::DatasetView;
use crate::on_samples;
use crate::task::Task;

/// Samples that one task of the thread pool scores.
const PIECE: usize = 512;

/// How good a model is on some samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss.
    pub loss: f64,
    /// Part of the samples whose class is predicted; `None` for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Root of the mean squared error, in the target's own unit; `None` for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
}

/// Evaluates `parameters` on `samples`; `None` if there are no samples.
///
/// `target_unit` is what an error of 1 stands for in the target's own unit: the std that targets
/// were divided by.
///
/// # Errors
/// [`ModelError`] if the model does not fit the samples.
pub fn evaluate(
    task: &Task,
    parameters: &[f32],
    samples: DatasetView<'_>,
    target_unit: f64,
) -> Result<Option<Evaluation>, ModelError> {
    if samples.is_empty() {
        return Ok(None);
    }
    let count = samples.len() as f64;
    let tally = on_samples!(task, samples, (model, rows) => total(model, parameters, rows)?);
    let is_value = task.predicts_values();
    // The loss of a value is half its squared error.
    let rmse = (2.0 * tally.loss / count).sqrt() * target_unit;
    Ok(Some(Evaluation {
        loss: tally.loss / count,
        accuracy: (!is_value).then_some(tally.correct as f64 / count),
        rmse: is_value.then_some(rmse),
    }))
}

/// The loss of each sample under `parameters`, in order.
///
/// # Errors
/// [`ModelError`] if the model does not fit the samples.
pub fn sample_losses(
    task: &Task,
    parameters: &[f32],
    samples: DatasetView<'_>,
) -> Result<Vec<f32>, ModelError> {
    on_samples!(task, samples, (model, rows) => losses(model, parameters, rows))
}

fn losses<M: Kernels<Target: Default>>(
    model: &M,
    parameters: &[f32],
    samples: &Rows<'_, M::Target>,
) -> Result<Vec<f32>, ModelError> {
    let outputs = model.output_count();
    let mut losses = Vec::with_capacity(samples.len());
    let indices: Vec<u32> = (0..samples.len() as u32).collect();
    let mut scores = vec![0.0; PIECE * outputs];
    for batch in indices.chunks(PIECE) {
        let scores = scores.get_mut(..batch.len() * outputs).unwrap_or_default();
        model.row_scores(parameters, samples, batch, scores)?;
        let rows = scores.chunks_exact_mut(outputs).zip(batch);
        losses.extend(
            rows.map(|(row, index)| model.loss_in_place(row, samples.target(*index as usize))),
        );
    }
    Ok(losses)
}

#[derive(Clone, Copy, Default)]
struct Tally {
    loss: f64,
    /// Predictions that are the target: of interest for classes only.
    correct: u64,
}

fn total<M: Kernels<Target: Default + PartialEq + Sync> + Sync>(
    model: &M,
    parameters: &[f32],
    samples: &Rows<'_, M::Target>,
) -> Result<Tally, ModelError> {
    let indices: Vec<u32> = (0..samples.len() as u32).collect();
    let pieces: Vec<Result<Tally, ModelError>> = indices
        .par_chunks(PIECE)
        .map(|batch| {
            let mut scores = vec![0.0; batch.len() * model.output_count()];
            model.row_scores(parameters, samples, batch, &mut scores)?;
            let mut tally = Tally::default();
            for (scores, index) in scores.chunks_exact_mut(model.output_count()).zip(batch) {
                let target = samples.target(*index as usize);
                tally.correct += u64::from(model.predict(scores) == target);
                tally.loss += f64::from(model.loss_in_place(scores, target));
            }
            Ok(tally)
        })
        .collect();
    // In the order of the samples, whichever thread came first.
    let mut tally = Tally::default();
    for piece in pieces {
        let piece = piece?;
        tally.loss += piece.loss;
        tally.correct += piece.correct;
    }
    Ok(tally)
}

impl std::fmt::Display for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(accuracy) = self.accuracy {
            write!(f, "accuracy {:.2} %, ", 100.0 * accuracy)?;
        }
        if let Some(rmse) = self.rmse {
            write!(f, "rmse {rmse:.4}, ")?;
        }
        write!(f, "loss {:.4}", self.loss)
    }
}
