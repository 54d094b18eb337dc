//! The work of all ranks except the first: training their part of each cohort as rank 0 orders, and
//! saving device states.

use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;

use super::done;
use super::order::{Begin, Order, Round};
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner};
use crate::method::state::StateError;
use crate::ranks::{Communicator, RankError};
use crate::source::simulated::train_part;
use smolfed_data::federation::Federation;
use smolfed_release::Admitted;

/// Follows rank 0 to the end of a run: trains the devices of this rank. Writes only the states of
/// these devices.
///
/// Errors here are reported to rank 0, which then ends the run.
///
/// # Errors
/// [`RankError`] if an order of rank 0 is not readable: this rank cannot know what the others wait
/// for, and must end the job. Also if the run's randomness was not kept.
pub fn follow(
    experiment: &Experiment,
    federation: &Federation,
    ranks: &dyn Communicator,
) -> Result<(), RankError> {
    let root = experiment.root().map_err(|error| RankError {
        rank: ranks.rank(),
        reason: error.to_string(),
    })?;
    let mut follower = Follower {
        experiment,
        federation,
        ranks,
        learner: None,
        run: String::new(),
        root,
    };
    loop {
        let order = Order::next(ranks).map_err(|reason| RankError {
            rank: ranks.rank(),
            reason,
        })?;
        // All ranks know of an error, and rank 0 ends the run: its next order is the last.
        let _ = match order {
            Order::Begin(begin) => follower.begin(begin.as_ref()),
            Order::Round(round) => follower.train(round),
            Order::Save(rounds) => follower.save(rounds),
            Order::End => return Ok(()),
        };
    }
}

/// A rank at work.
struct Follower<'a> {
    experiment: &'a Experiment,
    federation: &'a Federation,
    ranks: &'a dyn Communicator,
    /// The method, once the run has started.
    learner: Option<Box<dyn Learner + 'a>>,
    /// Name of the run.
    run: String,
    root: Root,
}

impl Follower<'_> {
    fn begin(&mut self, begin: Option<&Begin>) -> Result<(), StateError> {
        let method = &self.experiment.method;
        self.run = begin.map(|begin| begin.run.clone()).unwrap_or_default();
        let learner = method.begin(self.federation, begin.map(Begin::store));
        let begun = learner.map(|learner| self.learner = Some(learner));
        done(self.ranks, begun)
    }

    fn train(&mut self, order: Round) -> Result<(), StateError> {
        let Some(learner) = &mut self.learner else {
            return Ok(());
        };
        // L comes from the experiment, unless it is adaptive.
        let clip_norm = order.clip_norm.and_then(|value| ClipNorm::new(value).ok());
        let clip_norm = clip_norm.filter(|_| self.experiment.adaptive.is_some());
        let (training, release) = self.experiment.terms_in(order.round, clip_norm);
        let assignment = Assignment {
            training,
            release: &release,
            admitted: &order.admitted.map_or(Admitted::All, Admitted::Only),
            root: &self.root,
            global: &order.global,
            round: order.round,
            number: order.number,
        };
        let cohort = &order.cohort;
        let learner = &mut **learner;
        train_part(self.ranks, &assignment, learner, self.federation, cohort).map(drop)
    }

    fn save(&mut self, rounds: u32) -> Result<(), StateError> {
        let Some(learner) = &mut self.learner else {
            return Ok(());
        };
        done(self.ranks, learner.save(&self.run).map(drop))?;
        // Nothing is written before rank 0 has the checkpoint, or has ended the run.
        learner.committed(rounds);
        Ok(())
    }
}
