//! The answers of simulated devices to a question: the vector of each device from its samples, and
//! their sum.

use smolfed_core::fixed_point::{
    Feature, FeatureFormat, FeatureScale, FixedPointJudge, FixedPointModel, IntegerTarget,
    round_weight,
};
use smolfed_core::model::{Model, ModelError};
use smolfed_core::question::{Judged, Sample, Target};
use smolfed_core::samples::Samples;
use smolfed_core::train::{TrainError, TrainReport};
use smolfed_simd::{Kernels, Rows};

use super::asked::Inquiry;
use crate::on_samples;
use crate::tables::question::AskedSamples;
use crate::task::{Task, rows};
use smolfed_data::dataset::{DatasetView, DeviceBuffer, SampleTarget};
use smolfed_data::federation::Federation;
use smolfed_release::masked::{Asked, DeviceMasks};
use smolfed_release::uploads::on_all_threads;
use smolfed_release::{Outcome, PrivateSum, Uploads};

/// Samples scored at once.
const PIECE: usize = 128;

/// Answers for devices on the threads of this process, with masks if the question has them.
pub fn answer_here(
    inquiry: &Inquiry<'_>,
    asked: Option<&Asked>,
    federation: &Federation,
    devices: &[u32],
) -> (PrivateSum, Vec<Outcome>) {
    collected(inquiry, asked, inquiry.asked.length(), devices, || {
        let mut buffer = DeviceBuffer::default();
        move |device, vector: &mut [f32]| {
            let written = write(inquiry, federation, device, &mut buffer, vector);
            written.map_err(|error| error.to_string())
        }
    })
}

/// Sums the vectors of `length` from devices. Each thread has its own writer.
pub(crate) fn collected<W>(
    inquiry: &Inquiry<'_>,
    asked: Option<&Asked>,
    length: usize,
    devices: &[u32],
    writer: impl Fn() -> W + Sync,
) -> (PrivateSum, Vec<Outcome>)
where
    W: FnMut(u32, &mut [f32]) -> Result<(), String>,
{
    let answer = |devices: &[u32]| {
        let (release, root, number) = (&inquiry.asked.release, inquiry.root, inquiry.number);
        let masks = asked.and_then(|asked| DeviceMasks::for_round(release, root, number, asked));
        let mut uploads = Uploads::new(release, root, number, length).masking(masks);
        let mut write = writer();
        let answer = |device: &u32| {
            uploads.device(*device, 1, |contribution| {
                write(*device, contribution.update())?;
                let mut report = TrainReport::default();
                let clipped = contribution.clip(&mut report);
                clipped.map_err(|error: TrainError| error.to_string())?;
                Ok(report)
            })
        };
        let times = |device: &u32| release.fault.answers_of(*device);
        let all = devices.iter();
        let all = all.flat_map(|device| std::iter::repeat_n(device, times(device)));
        let outcomes: Vec<Outcome> = all.map(answer).collect();
        (uploads.into_sum(), outcomes)
    };
    on_all_threads(length, devices, answer)
}

/// Returns the question to simulated devices with masks, as covered by their tags, or `None`
/// without masks.
#[must_use]
pub fn asked(inquiry: &Inquiry<'_>) -> Option<Asked> {
    inquiry.asked.release.masking.map(|_| {
        let numbers = [inquiry.number, inquiry.asked.index.into()];
        Asked {
            invitation: numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            model: inquiry.model.to_vec(),
        }
    })
}

/// Writes the vector of a device.
fn write(
    inquiry: &Inquiry<'_>,
    federation: &Federation,
    device: u32,
    buffer: &mut DeviceBuffer,
    vector: &mut [f32],
) -> Result<(), ModelError> {
    vector.fill(0.0);
    let view = match inquiry.asked.samples {
        AskedSamples::Local => Some(federation.device(device, buffer)),
        AskedSamples::Validation => federation.device_validation(device, buffer),
        AskedSamples::Test => federation.device_test(device, buffer),
    };
    match view {
        Some(view) => vector_of(inquiry, view, vector),
        // No device has such samples.
        None => Ok(()),
    }
}

fn vector_of(
    inquiry: &Inquiry<'_>,
    view: DatasetView<'_>,
    vector: &mut [f32],
) -> Result<(), ModelError> {
    match inquiry.format {
        None => {
            on_samples!(inquiry.task, view, (model, rows) => add_all(inquiry, model, rows, vector))
        }
        Some(format) if format.is_wide() => in_integers::<i16>(inquiry, format, &view, vector),
        Some(format) => in_integers::<i8>(inquiry, format, &view, vector),
    }
}

/// Adds all samples of a device that stores features as integers of type `X`.
fn in_integers<X: Feature>(
    inquiry: &Inquiry<'_>,
    format: FeatureFormat,
    view: &DatasetView<'_>,
    vector: &mut [f32],
) -> Result<(), ModelError> {
    let scale = format.scale();
    match inquiry.task {
        Task::Linear(model) => add_integers::<X, _>(inquiry, scale, model, view, vector),
        Task::Logistic(model) => add_integers::<X, _>(inquiry, scale, model, view, vector),
        Task::Softmax(model) => add_integers::<X, _>(inquiry, scale, model, view, vector),
        // The configuration refuses these before a run.
        Task::Encoder(_) | Task::Sequential(_) => Ok(()),
    }
}

fn add_integers<X, M>(
    inquiry: &Inquiry<'_>,
    scale: FeatureScale,
    model: &M,
    view: &DatasetView<'_>,
    vector: &mut [f32],
) -> Result<(), ModelError>
where
    X: Feature,
    M: FixedPointModel<Target: SampleTarget + IntegerTarget<Integer = M::FixedPointTarget>>,
{
    let (question, of) = (&inquiry.asked.question, &inquiry.asked.dimensions);
    let rows = rows(model, view);
    let weights: Vec<i32> = inquiry.model.iter().map(|w| round_weight(*w).0).collect();
    let judge = FixedPointJudge {
        model,
        scale,
        weights: &weights,
    };
    let mut features = vec![0; model.feature_count()];
    let mut scores = vec![0; model.output_count()];
    for index in 0..rows.len() {
        rows.read_integers::<X>(index, scale, &mut features);
        let target = rows.target(index);
        let judged = match question.needs_model() {
            true => Some(judge.judge::<X>(&features, target, &mut scores)?),
            false => None,
        };
        let sample = Sample {
            features: |at: usize| features.get(at).map_or(f32::NAN, |x| scale.value(*x)),
            target: target.into(),
            judged,
        };
        question.add(of, &sample, vector);
    }
    question.finish(of, rows.len() as u32, vector);
    Ok(())
}

/// Adds all samples of a device.
fn add_all<M>(
    inquiry: &Inquiry<'_>,
    model: &M,
    rows: &Rows<'_, M::Target>,
    vector: &mut [f32],
) -> Result<(), ModelError>
where
    M: Kernels<Target: Into<Target> + Default>,
{
    let question = &inquiry.asked.question;
    let of = &inquiry.asked.dimensions;
    let indices: Vec<u32> = (0..rows.len() as u32).collect();
    let outputs = model.output_count();
    let mut scores = vec![0.0; PIECE.min(rows.len()) * outputs];
    let mut scratch = vec![0.0; model.score_scratch_count()];
    for batch in indices.chunks(PIECE) {
        let scores = scores.get_mut(..batch.len() * outputs).unwrap_or_default();
        if question.needs_model() {
            model.row_scores(inquiry.model, rows, batch, &mut scratch, scores)?;
        }
        for (index, scores) in batch.iter().zip(scores.chunks_exact_mut(outputs)) {
            let target = rows.target(*index as usize);
            let features = rows.features(*index as usize);
            let sample = Sample {
                features: |at: usize| features.get(at).copied().unwrap_or(f32::NAN),
                target: target.into(),
                judged: question
                    .needs_model()
                    .then(|| judged(model, scores, target)),
            };
            question.add(of, &sample, vector);
        }
    }
    question.finish(of, rows.len() as u32, vector);
    Ok(())
}

/// Returns a model's judgement of a sample, from its scores.
fn judged<M: Model<Target: Into<Target>>>(
    model: &M,
    scores: &mut [f32],
    target: M::Target,
) -> Judged {
    let predicted = model.predict(scores);
    let loss = model.loss_in_place(scores, target);
    Judged::new(target.into(), predicted.into(), loss)
}
