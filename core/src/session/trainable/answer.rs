//! The answer to a question instead of training: the clipped vector of a device.

use super::{Learned, LocalRound};
use crate::{
    clip::clip_l2,
    model::Model,
    question::{Judged, Question, Sample},
    samples::Samples,
    train::TrainReport,
    wire::message::Decline,
};

/// Counts up to `most` more samples. Once all are counted, clips the resulting vector.
///
/// The model is evaluated as received, and its scores lie in place of the local model.
#[inline(never)]
pub(super) fn answer<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    question: &Question,
    round: LocalRound<'_>,
    done: &mut u64,
    most: usize,
) -> Result<Learned, Decline> {
    let LocalRound {
        invitation,
        global,
        work,
        ..
    } = round;
    let of = &invitation.shape.dimensions();
    let vector = work.update.get_mut(..question.length(of));
    let vector = vector.ok_or(Decline::LONG_ANSWER)?;
    let scores = work.local.get_mut(..model.output_count());
    let scores = scores.unwrap_or_default();
    // At most as many samples as there are.
    let first = *done as usize;
    if first == 0 {
        vector.fill(0.0);
    }
    let end = samples.len().min(first.saturating_add(most));
    for index in first..end {
        let (features, target) = (samples.features(index), samples.target(index));
        let judged = match question.needs_model() {
            false => None,
            true => {
                let scored = model.scores(global, features, work.scratch, scores);
                scored.map_err(|_| Decline::Diverged)?;
                let predicted = model.predict(scores);
                let loss = model.loss_in_place(scores, target);
                Some(Judged::new(target.into(), predicted.into(), loss))
            }
        };
        let sample = Sample {
            features: |at: usize| features.get(at).copied().unwrap_or(f32::NAN),
            target: target.into(),
            judged,
        };
        question.add(of, &sample, vector);
    }
    *done = end as u64;
    if first < end {
        return Ok(Learned::Unfinished);
    }
    // This is a separate piece.
    question.finish(of, end as u32, vector);
    let norm = clip_l2(vector, 1.0).map_err(|_| Decline::Diverged)?;
    Ok(Learned::Update(TrainReport {
        norm,
        ..TrainReport::default()
    }))
}
