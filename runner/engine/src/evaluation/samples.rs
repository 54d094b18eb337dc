//! Loss and accuracy of a model on held-out samples, in parallel and with the same bits on any
//! number of threads.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use smolfed_core::model::{Model, ModelError, Parametric};
use smolfed_core::samples::Samples;
use smolfed_simd::bytes::Line;
use smolfed_simd::span::{InSpan, SpanBuffers};
use smolfed_simd::{Aligned, Kernels, Rows};

use crate::tables::simulation::ArithmeticName;
use crate::task::{Task, rows};
use crate::{of_linear_scores, on_samples};
use smolfed_data::dataset::{DatasetView, DeviceBuffer, SampleTarget};
use smolfed_data::held_out::HeldOut;

/// Samples per task of the thread pool, few enough for images to stay in the cache between
/// unpacking and scoring.
const PIECE: usize = 128;

/// Evaluation of a model on some samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss.
    pub loss: f64,
    /// Share of correctly predicted samples, or `None` for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Root of the mean squared error, in the target's own unit, or `None` for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
}

/// Evaluates `parameters` on `samples`, with the scores of this arithmetic. Returns `None` if there
/// are no samples.
///
/// `target_unit` is the size of an error of 1 in the target's own unit: the std by which targets
/// were divided.
///
/// # Errors
/// [`ModelError`] if the model does not fit the samples.
pub fn evaluate(
    task: &Task,
    arithmetic: ArithmeticName,
    parameters: &[f32],
    samples: HeldOut<'_>,
    target_unit: f64,
) -> Result<Option<Evaluation>, ModelError> {
    if samples.is_empty() {
        return Ok(None);
    }
    let direct = || {
        total(
            samples,
            |all, range, buffer| all.piece(range, buffer),
            |piece, _| on_samples!(task, piece, (model, rows) => tally(model, rows, parameters)),
        )
    };
    let tally = match arithmetic {
        // The coordinator predicts with the model before it is rounded for devices.
        ArithmeticName::F32 | ArithmeticName::Integer => direct(),
        ArithmeticName::Fast => of_linear_scores!(
            task,
            model => match samples.line() {
                Some(line) => {
                    let folded = fold(line, parameters, model.feature_count());
                    total(
                        samples,
                        |all, range, buffer| all.piece_of_bytes(range, buffer),
                        |piece, buffers| tally_fused(model, &folded, piece, buffers),
                    )
                }
                None => total(
                    samples,
                    |all, range, buffer| all.piece(range, buffer),
                    |piece, buffers| tally_fused(model, parameters, piece, buffers),
                ),
            },
            direct()
        ),
    }?;
    Ok(tally.evaluation(task, target_unit))
}

/// Returns the scores of samples, sample after sample, with `task.output_count()` numbers each.
///
/// # Errors
/// [`ModelError`] if the model does not fit the samples.
pub fn scores(
    task: &Task,
    parameters: &[f32],
    samples: DatasetView<'_>,
) -> Result<Vec<f32>, ModelError> {
    let outputs = task.output_count();
    let indices: Vec<u32> = (0..samples.len() as u32).collect();
    let mut scores = vec![0.0; samples.len() * outputs];
    let pieces = scores.par_chunks_mut(PIECE * outputs);
    let pieces = pieces.zip(indices.par_chunks(PIECE));
    on_samples!(task, samples, (model, rows) => {
        pieces
            .map(|(scores, batch)| {
                let mut scratch = vec![0.0; model.score_scratch_count()];
                model.row_scores(parameters, rows, batch, &mut scratch, scores)
            })
            .collect::<Result<(), ModelError>>()
    })?;
    Ok(scores)
}

/// Returns the loss of each sample under `parameters`, in order.
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
    let mut scratch = vec![0.0; model.score_scratch_count()];
    for batch in indices.chunks(PIECE) {
        let scores = scores.get_mut(..batch.len() * outputs).unwrap_or_default();
        model.row_scores(parameters, samples, batch, &mut scratch, scores)?;
        let rows = scores.chunks_exact_mut(outputs).zip(batch);
        losses.extend(
            rows.map(|(row, index)| model.loss_in_place(row, samples.target(*index as usize))),
        );
    }
    Ok(losses)
}

/// Sums over samples in parts, in order. Parts of whole pieces give the same sums, bit for bit, as
/// all samples at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    count: u64,
    loss: f64,
    /// Number of correct predictions, which matters for classes only.
    correct: u64,
}

impl Tally {
    /// Samples of a part, a whole number of pieces.
    pub const PART: usize = 16 * PIECE;

    /// Adds samples with their [`scores`], which it consumes.
    pub fn add(&mut self, task: &Task, samples: DatasetView<'_>, mut scores: Vec<f32>) {
        let indices: Vec<u32> = (0..samples.len() as u32).collect();
        let outputs = task.output_count();
        on_samples!(task, samples, (model, rows) => {
            for (batch, scores) in indices.chunks(PIECE).zip(scores.chunks_mut(PIECE * outputs)) {
                self.include(piece(model, rows, batch, scores));
            }
        });
    }

    fn include(&mut self, piece: Self) {
        self.count += piece.count;
        self.loss += piece.loss;
        self.correct += piece.correct;
    }

    /// Returns the number of samples so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the evaluation on these samples, or `None` if there are none. See [`evaluate`] for
    /// the unit.
    #[must_use]
    pub fn evaluation(&self, task: &Task, target_unit: f64) -> Option<Evaluation> {
        let count = self.count as f64;
        let is_value = task.predicts_values();
        // The loss of a value is half its squared error.
        let rmse = (2.0 * self.loss / count).sqrt() * target_unit;
        (self.count > 0).then(|| Evaluation {
            loss: self.loss / count,
            accuracy: (!is_value).then_some(self.correct as f64 / count),
            rmse: is_value.then_some(rmse),
        })
    }
}

/// Returns parameters that score bytes as `parameters` score the numbers on a line: weights times
/// the slope, with the intercept times their sum in the biases.
fn fold(line: Line, parameters: &[f32], features: usize) -> Aligned {
    let outputs = parameters.len() / (features + 1);
    let (weights, biases) = parameters.split_at(outputs * features);
    let sums = weights
        .chunks_exact(features)
        .map(|row| row.iter().copied().map(f64::from).sum::<f64>());
    let of_numbers = weights.iter().map(|w| (f64::from(*w) * line.slope) as f32);
    let moved = biases
        .iter()
        .zip(sums)
        .map(|(bias, sum)| (f64::from(*bias) + line.intercept * sum) as f32);
    let mut folded = Aligned::default();
    folded.resize(parameters.len());
    for (place, number) in folded.iter_mut().zip(of_numbers.chain(moved)) {
        *place = number;
    }
    folded
}

/// Tallies all samples in pieces, which `read` returns.
fn total<R, T>(samples: HeldOut<'_>, read: R, tally: T) -> Result<Tally, ModelError>
where
    R: for<'a> Fn(HeldOut<'a>, Range<usize>, &'a mut DeviceBuffer) -> DatasetView<'a> + Sync,
    T: Fn(DatasetView<'_>, &mut SpanBuffers) -> Result<Tally, ModelError> + Sync,
{
    let pieces: Vec<Result<Tally, ModelError>> = (0..samples.len().div_ceil(PIECE))
        .into_par_iter()
        .map_init(Default::default, |(samples_of, buffers), piece| {
            let start = piece * PIECE;
            let end = samples.len().min(start + PIECE);
            tally(read(samples, start..end, samples_of), buffers)
        })
        .collect();
    // In the order of the samples, whichever thread was first.
    let mut all = Tally::default();
    for piece in pieces {
        all.include(piece?);
    }
    Ok(all)
}

/// Scores and tallies some samples.
fn tally<M: Kernels<Target: Default + PartialEq>>(
    model: &M,
    samples: &Rows<'_, M::Target>,
    parameters: &[f32],
) -> Result<Tally, ModelError> {
    let batch: Vec<u32> = (0..samples.len() as u32).collect();
    let mut scores = vec![0.0; batch.len() * model.output_count()];
    let mut scratch = vec![0.0; model.score_scratch_count()];
    model.row_scores(parameters, samples, &batch, &mut scratch, &mut scores)?;
    Ok(piece(model, samples, &batch, &mut scores))
}

/// Runs [`tally`] with fused scores and losses.
fn tally_fused<M: InSpan<Target: SampleTarget + PartialEq> + Kernels>(
    model: &M,
    parameters: &[f32],
    piece: DatasetView<'_>,
    buffers: &mut SpanBuffers,
) -> Result<Tally, ModelError> {
    let samples = &rows(model, &piece);
    let batch: Vec<u32> = (0..samples.len() as u32).collect();
    let mut scores = vec![0.0; batch.len() * model.output_count()];
    model.fused_scores(parameters, samples, &batch, &mut scores)?;
    let (targets, correct) = predictions(model, samples, &batch, &scores);
    Ok(Tally {
        count: batch.len() as u64,
        loss: f64::from(model.fused_loss(&scores, &targets, buffers)),
        correct,
    })
}

/// Returns the targets of samples, and the number of targets that their scores predict.
fn predictions<M: Kernels<Target: Default + PartialEq>>(
    model: &M,
    samples: &Rows<'_, M::Target>,
    batch: &[u32],
    scores: &[f32],
) -> (Vec<M::Target>, u64) {
    let targets: Vec<_> = batch.iter().map(|s| samples.target(*s as usize)).collect();
    let rows = scores.chunks_exact(model.output_count());
    let predictions = rows.map(|row| model.predict(row));
    let correct = predictions.zip(&targets).filter(|(p, t)| p == *t).count();
    (targets, correct as u64)
}

/// Tallies some samples by their scores, which it consumes.
fn piece<M: Kernels<Target: Default + PartialEq>>(
    model: &M,
    samples: &Rows<'_, M::Target>,
    batch: &[u32],
    scores: &mut [f32],
) -> Tally {
    let (targets, correct) = predictions(model, samples, batch, scores);
    let mut losses = vec![0.0; batch.len()];
    model.row_losses(scores, &targets, &mut losses);
    Tally {
        count: batch.len() as u64,
        loss: losses.into_iter().map(f64::from).sum(),
        correct,
    }
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

#[cfg(test)]
mod tests {
    use smolfed_core::model::Softmax;

    use super::*;
    use smolfed_data::dataset::{Dataset, Features, Targets};

    /// Bytes on a line are evaluated as the numbers themselves, in both arithmetics.
    #[test]
    fn bytes_are_evaluated_as_their_numbers() {
        const WIDTH: usize = 20;
        const ROWS: usize = 300;
        let task = Task::Softmax(Softmax::new(WIDTH, 3));
        let parameters: Vec<f32> = (0..63u8).map(|i| f32::from(i).sin() * 0.2).collect();
        let bytes: Vec<u8> = (0..WIDTH * ROWS).map(|i| (i * i % 251) as u8).collect();
        let labels: Vec<u32> = (0..ROWS as u32).map(|i| i % 3).collect();
        let targets = Targets::classes(&labels, 3).unwrap();
        let mut packed = Features::of_bytes(bytes);
        // In double precision, as for scaled data.
        packed.map(&[127.5; WIDTH], |mean, number| {
            ((f64::from(number) - mean) / 64.0) as f32
        });
        assert!(packed.line().is_some());
        let plain = Features::from(packed.to_vec());
        let rows: Vec<u32> = (0..ROWS as u32).rev().collect();
        let evaluated = [packed, plain].map(|features| {
            let data = Dataset::new(features, WIDTH, targets.clone()).unwrap();
            [ArithmeticName::F32, ArithmeticName::Fast].map(|arithmetic| {
                let samples = HeldOut::new(&data, &rows);
                let found = evaluate(&task, arithmetic, &parameters, samples, 1.0);
                found.unwrap().unwrap()
            })
        });
        let [[packed, packed_fast], [plain, plain_fast]] = evaluated;
        assert_eq!(packed, plain);
        for fast in [packed_fast, plain_fast] {
            assert!((fast.loss - plain.loss).abs() < 1e-6, "{fast:?} {plain:?}");
            assert_eq!(fast.accuracy, plain.accuracy);
        }
    }

    #[test]
    fn parts_of_whole_pieces_have_the_sums_of_all_samples_at_once() {
        let rows = 3 * PIECE + 7;
        let features: Vec<f32> = (0..2 * rows)
            .map(|at| (at * 37 % 101) as f32 / 50.0)
            .collect();
        let labels: Vec<u32> = (0..rows as u32).map(|row| row * 7 % 3).collect();
        let data = Dataset::new(features, 2, Targets::classes(&labels, 3).unwrap()).unwrap();
        let task = Task::Softmax(Softmax::new(2, 3));
        let parameters: Vec<f32> = (0..9).map(|at| 0.3 - at as f32 / 10.0).collect();
        let all: Vec<u32> = (0..rows as u32).collect();
        let view = |rows| data.shared_view(rows).unwrap();
        let whole = evaluate(
            &task,
            ArithmeticName::F32,
            &parameters,
            view(&all).into(),
            1.0,
        );
        let mut tally = Tally::default();
        for part in all.chunks(2 * PIECE) {
            let scores = scores(&task, &parameters, view(part)).unwrap();
            tally.add(&task, view(part), scores);
        }
        assert_eq!(tally.evaluation(&task, 1.0), whole.unwrap());
        assert_eq!(Tally::default().evaluation(&task, 1.0), None);
    }
}
