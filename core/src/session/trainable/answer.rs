//! The answer to a question instead of training: the clipped vector of a device.

use super::{Learned, LocalRound};
use crate::{
    clip::clip_l2,
    question::{Judged, Question, Sample},
    samples::Samples,
    train::TrainReport,
    wire::message::Decline,
};

/// A sample with the received model and the memory to evaluate it.
pub(super) struct Case<'a, S> {
    pub(super) samples: &'a S,
    pub(super) index: usize,
    pub(super) global: &'a [f32],
    /// An entry for each parameter.
    pub(super) local: &'a mut [f32],
    pub(super) scratch: &'a mut [f32],
}

/// A model of one arithmetic that answers about samples and itself.
pub(super) trait Examiner<S: Samples> {
    /// Reads the sample, before any other function.
    fn read(&self, _: &mut Case<'_, S>) -> Result<(), Decline> {
        Ok(())
    }

    /// Returns the model's result for the sample.
    fn judge(&self, case: &mut Case<'_, S>) -> Result<Judged, Decline>;

    /// Returns a feature of the sample.
    fn feature(&self, case: &Case<'_, S>, at: usize) -> f32;
}

/// Counts up to `most` more samples. Once all are counted, clips the resulting vector.
///
/// The model is evaluated as received. Its scores in `f32` lie in place of the local model, and
/// those in integers in the scratch memory.
#[inline(never)]
pub(super) fn answer<S>(
    examiner: &impl Examiner<S>,
    samples: &S,
    question: &Question,
    round: LocalRound<'_>,
    done: &mut u64,
    most: usize,
) -> Result<Learned, Decline>
where
    S: Samples<Target: Into<crate::question::Target>>,
{
    let LocalRound {
        invitation,
        global,
        work,
        ..
    } = round;
    let of = &invitation.shape.dimensions();
    let vector = work.update.get_mut(..question.length(of));
    let vector = vector.ok_or(Decline::LONG_ANSWER)?;
    // At most as many samples as there are.
    let first = *done as usize;
    if first == 0 {
        vector.fill(0.0);
    }
    let end = samples.len().min(first.saturating_add(most));
    for index in first..end {
        let case = &mut Case {
            samples,
            index,
            global,
            local: work.local,
            scratch: work.scratch,
        };
        examiner.read(case)?;
        let judged = match question.needs_model() {
            true => Some(examiner.judge(case)?),
            false => None,
        };
        let sample = Sample {
            features: |at: usize| examiner.feature(case, at),
            target: samples.target(index).into(),
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
