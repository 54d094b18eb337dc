//! Models of labelled samples in `f32` in a session: training, personal models, and answers to
//! questions.

#[cfg(feature = "questions")]
use super::answer::{Case, Examiner, answer};
use super::{Course, Learned, LocalRound, Trainable};
#[cfg(feature = "questions")]
use crate::question::Judged;
use crate::{
    model::{Model, Parametric},
    personal::{PersonalRequest, PersonalRound, Steps},
    samples::{SampleError, Samples, check_features},
    session::{memory::Memory, policy::Policy},
    train::{Descent, Local, Report, Reported, TrainError},
    wire::message::{Decline, Invitation, ModelShape},
};

impl<M: Model> Trainable for M {
    type Target = M::Target;
    type Parts = ();
    type Descent = Reported<Descent, Report>;
    const HAS_REQUESTS: bool = false;
    #[cfg(feature = "questions")]
    const ANSWERS: bool = true;

    #[inline(always)]
    fn shape(&self) -> Option<ModelShape> {
        ModelShape::of(self)
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Parametric::parameter_count(self)
    }

    #[inline(always)]
    fn scratch_count(&self) -> usize {
        Model::scratch_count(self, 1)
    }

    /// Declines contrast requests, which are for encoders.
    #[inline(always)]
    fn accepts(&self, invitation: &Invitation, _: &Policy, _: &Memory<'_>) -> Result<(), Decline> {
        match invitation.contrast() {
            None => Ok(()),
            Some(_) => Err(Decline::Shape),
        }
    }

    #[inline(always)]
    fn check_sample<S>(&self, samples: &S, index: usize) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        check_features(samples.features(index), self.feature_count())?;
        match self.has_target(samples.target(index)) {
            true => Ok(()),
            false => Err(SampleError::Target),
        }
    }

    #[inline(always)]
    fn train<S>(
        &self,
        samples: &S,
        round: LocalRound<'_>,
        course: &mut Course<Reported<Descent, Report>>,
        most: usize,
    ) -> Result<Learned, Decline>
    where
        S: Samples<Target = M::Target>,
    {
        #[cfg(feature = "questions")]
        if let Some(question) = round.invitation.question() {
            return answer(self, samples, question, round, &mut course.words, most);
        }
        if let Some(request) = round.personal {
            let learned = personal(self, samples, request, round, course, most);
            return learned.map_err(|_| Decline::Diverged);
        }
        let LocalRound {
            streams,
            invitation,
            global,
            mut work,
            ..
        } = round;
        let training = &invitation.own_training();
        let local: Local<'_, _, _> = Local {
            model: self,
            samples,
            global,
            settings: training,
        };
        // Not a closure: the compiler then knows the lengths of the memory.
        let Reported { descent, report } = match &mut course.descent {
            Some(begun) => begun,
            empty => {
                let descent = local.begin(&mut work).map_err(|_| Decline::Diverged)?;
                empty.insert(Reported::new(descent))
            }
        };
        if !descent.is_complete(training) {
            let shuffle = |order: &mut [u32]| streams.shuffle(order, &mut course.words);
            let advanced =
                report.write(|report| local.advance(descent, shuffle, &mut work, most, report));
            advanced.map_err(|_| Decline::Diverged)?;
            return Ok(Learned::Unfinished);
        }
        // This is a separate piece.
        Ok(Learned::Update(report.write(|report| {
            local.finish(descent, work.update, report);
            report.train
        })))
    }
}

/// [`Trainable::train`] of a personal model.
#[inline(always)]
fn personal<M: Model, S: Samples<Target = M::Target>>(
    model: &M,
    samples: &S,
    request: &PersonalRequest,
    round: LocalRound<'_>,
    course: &mut Course<Reported<Descent, Report>>,
    most: usize,
) -> Result<Learned, TrainError> {
    let LocalRound {
        streams,
        invitation,
        global,
        mut work,
        ..
    } = round;
    let round = PersonalRound {
        request,
        training: &invitation.unsmoothed(),
        global,
    };
    let steps = Steps {
        model,
        samples,
        settings: &round.settings()?,
    };
    let Reported { descent, report } = match &mut course.descent {
        Some(begun) => begun,
        empty => {
            course.wants = round.wants_first(course.before);
            if course.wants.is_some() {
                return Ok(Learned::Unfinished);
            }
            let cursor = round.begin(&steps, course.before, &mut work)?;
            // Set even without steps, so that a later request for a state does not restart
            // training.
            empty.insert(Reported::new(Descent::at(cursor)))
        }
    };
    let cursor = &mut descent.cursor;
    if !steps.is_complete(cursor) {
        let shuffle = |order: &mut [u32]| streams.shuffle(order, &mut course.words);
        report.write(|report| round.advance(&steps, cursor, shuffle, &mut work, most, report))?;
        return Ok(Learned::Unfinished);
    }
    course.wants = round.wants_again(course.before);
    if course.wants.is_some() {
        return Ok(Learned::Unfinished);
    }
    let report =
        report.write(|report| round.finish(&steps, cursor, course.before, *report, work))?;
    Ok(Learned::Update(report))
}

#[cfg(feature = "questions")]
impl<M: Model, S: Samples<Target = M::Target>> Examiner<S> for M {
    #[inline(always)]
    fn judge(&self, case: &mut Case<'_, S>) -> Result<Judged, Decline> {
        let (samples, index) = (case.samples, case.index);
        let scores = case.local.get_mut(..self.output_count());
        let scores = scores.unwrap_or_default();
        let scored = self.scores(case.global, samples.features(index), case.scratch, scores);
        scored.map_err(|_| Decline::Diverged)?;
        let target = samples.target(index);
        let predicted = self.predict(scores);
        let loss = self.loss_in_place(scores, target);
        Ok(Judged::new(target.into(), predicted.into(), loss))
    }

    #[inline(always)]
    fn feature(&self, case: &Case<'_, S>, at: usize) -> f32 {
        let features = case.samples.features(case.index);
        features.get(at).copied().unwrap_or(f32::NAN)
    }
}
