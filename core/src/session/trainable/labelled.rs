//! Models of labelled samples.

#[cfg(feature = "questions")]
use super::answer::answer;
use super::{Course, Learned, LocalRound, Trainable};
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
