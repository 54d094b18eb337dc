//! Models of labelled samples.

use super::{Course, Learned, LocalRound, Trainable};
use crate::{
    model::Model,
    personal::{PersonalError, PersonalRound, store::PersonalStore},
    samples::Samples,
    session::{memory::Memory, policy::Policy},
    stream::Purpose,
    train::{Descent, Local, Report},
    wire::message::{Decline, Invitation, Shape},
};

impl<M: Model> Trainable for M {
    type Target = M::Target;
    type Parts = ();
    type Descent = Descent;
    const HAS_REQUESTS: bool = false;

    #[inline(always)]
    fn shape(&self) -> Option<Shape> {
        Shape::of(self)
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        Model::parameter_count(self)
    }

    #[inline(always)]
    fn scratch_count(&self) -> usize {
        Model::scratch_count(self, 1)
    }

    /// No coordinator asks a model for anything else: it names an encoder.
    #[inline(always)]
    fn accepts(&self, invitation: &Invitation, _: &Policy, _: &Memory<'_>) -> Result<(), Decline> {
        match invitation.contrast() {
            None => Ok(()),
            Some(_) => Err(Decline::Shape),
        }
    }

    #[inline(always)]
    fn train<S, K>(
        &self,
        samples: &S,
        round: LocalRound<'_, K>,
        course: &mut Course<Descent>,
        most: usize,
    ) -> Result<Learned, Decline>
    where
        S: Samples<Target = M::Target>,
        K: PersonalStore,
    {
        let LocalRound {
            streams,
            invitation,
            owner,
            global,
            mut work,
            store,
        } = round;
        let training = &invitation.training();
        if let Some(request) = invitation.personal().filter(|_| K::IS_PRESENT) {
            let order = &mut streams.open(Purpose::BatchShuffle);
            let round = PersonalRound {
                request,
                training,
                global,
                owner,
            };
            let report = round.train(self, samples, order, work, store);
            let norm = report.map(|report| report.norm);
            return norm
                .map(|norm| Learned::Update { norm })
                .map_err(|error| match error {
                    PersonalError::Train(_) => Decline::Diverged,
                    PersonalError::Store => Decline::Storage,
                });
        }
        let local: Local<'_, _, _> = Local {
            model: self,
            samples,
            global,
            settings: training,
        };
        // On a device nobody reads it.
        let report = &mut Report::default();
        // Not by a closure: the compiler then knows the lengths of the memory.
        let mut descent = match course.descent {
            Some(descent) => descent,
            None => local.begin(&mut work).map_err(|_| Decline::Diverged)?,
        };
        if !descent.is_complete(training) {
            let shuffle = |order: &mut [u32]| streams.shuffle(order, &mut course.words);
            let advanced = local.advance(&mut descent, shuffle, &mut work, most, report);
            advanced.map_err(|_| Decline::Diverged)?;
            course.descent = Some(descent);
            return Ok(Learned::Unfinished);
        }
        // A piece of its own.
        local.finish(&descent, work.update, report);
        let norm = descent.norm();
        Ok(Learned::Update { norm })
    }
}
