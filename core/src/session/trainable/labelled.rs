//! Models of labelled samples.

use super::{Learned, LocalRound, Trainable};
use crate::{
    model::Model,
    personal::{PersonalError, PersonalRound, store::PersonalStore},
    samples::Samples,
    session::{memory::Memory, policy::Policy},
    stream::Purpose,
    train::local_update,
    wire::message::{Decline, Invitation, Shape},
};

impl<M: Model> Trainable for M {
    type Target = M::Target;
    type Parts = ();
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
    fn train<S, K>(&self, samples: &S, round: LocalRound<'_, K>) -> Result<Learned, Decline>
    where
        S: Samples<Target = M::Target>,
        K: PersonalStore,
    {
        let LocalRound {
            participation,
            invitation,
            owner,
            global,
            work,
            store,
        } = round;
        let order = &mut participation.stream(Purpose::BatchShuffle);
        let training = &invitation.training();
        let report = match invitation.personal().filter(|_| K::IS_PRESENT) {
            None => local_update(self, samples, global, training, order, work)
                .map_err(|_| Decline::Diverged)?,
            Some(request) => {
                let round = PersonalRound {
                    request,
                    training,
                    global,
                    owner,
                };
                let report = round.train(self, samples, order, work, store);
                report.map_err(|error| match error {
                    PersonalError::Train(_) => Decline::Diverged,
                    PersonalError::Store => Decline::Storage,
                })?
            }
        };
        Ok(Learned::Update(report))
    }
}
