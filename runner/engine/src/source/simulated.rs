//! Devices that train in this process: the cohort of a round in parallel, with the code of boards.
//!
//! Devices read the shared data through their row numbers. Each worker thread has one working
//! memory and one partial sum. Sums are integers, so their order cannot matter, and every random
//! draw comes from the device's own stream: one thread and eight give the same bits.

use smolfed_core::stream::Root;

use super::contract::{CohortSum, Draw, Source, SourceError, Step};
use crate::attendance::Attendance;
use crate::method::contract::{Assignment, Learner};
use crate::method::remote::{NoRemoteDevices, RemoteDevices, RoundContext};
use crate::method::state::StateError;
use crate::question::Inquiry;
use crate::question::answers::{self, answer_here};
use crate::ranks::{Alone, Communicator, gather_parts, part};
use smolfed_data::federation::Federation;
use smolfed_release::masked::{Asked, DeviceMasks};
use smolfed_release::uploads::on_all_threads;
use smolfed_release::{Outcome, PrivateSum, Uploads};

/// Devices that train in this process.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'a>(pub &'a Federation);

impl Source for Simulated<'_> {
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        let Step { round, number } = step;
        Ok(Some(Draw::of(
            number,
            attendance.arrivals(root, round, number),
        )))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        Ok(train_cohort(assignment, learner, self.0, cohort)?)
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        Ok(answer_cohort(inquiry, self.0, cohort))
    }
}

/// Answers for the devices of `cohort`, on the threads of the current pool.
#[must_use]
pub fn answer_cohort(inquiry: &Inquiry<'_>, federation: &Federation, cohort: &[u32]) -> CohortSum {
    let asked = answers::asked(inquiry);
    let (sum, outcomes) = answer_here(inquiry, asked.as_ref(), federation, cohort);
    CohortSum {
        sum,
        outcomes,
        left_out_messages: Vec::new(),
        asked,
    }
}

/// Trains the devices of `cohort`, on the threads of the current pool.
///
/// * Memory: a few vectors of parameters per thread. No part of it grows with the federation.
///
/// # Errors
/// [`StateError`] if the states of devices cannot be read or written.
pub fn train_cohort(
    assignment: &Assignment<'_>,
    learner: &mut dyn Learner,
    federation: &Federation,
    cohort: &[u32],
) -> Result<CohortSum, StateError> {
    train_part(&Alone, assignment, learner, federation, cohort)
}

/// Runs [`train_cohort`] with remote devices that do not train, but may send messages.
///
/// # Errors
/// As [`train_cohort`].
pub fn train_with_remote(
    remote: &mut dyn RemoteDevices,
    assignment: &Assignment<'_>,
    learner: &mut dyn Learner,
    federation: &Federation,
    cohort: &[u32],
    local: &[u32],
) -> Result<CohortSum, StateError> {
    let ranks = &Alone;
    let context = &mut RoundContext { ranks, remote };
    let mut left_out_messages = learner.before(assignment, cohort, context)?;
    let asked = asked(assignment);
    let (sum, outcomes) = train_masked(assignment, asked.as_ref(), learner, federation, local);
    left_out_messages.extend(learner.after(assignment, cohort, context)?);
    Ok(CohortSum {
        sum,
        outcomes,
        left_out_messages,
        asked,
    })
}

/// Trains over several ranks, all of which call it with the same cohort. Each trains its part, on
/// the threads of its pool. All of them return the outcomes of the cohort, and rank 0 has the sum.
///
/// # Errors
/// As [`train_cohort`], and if another rank fails: then all do.
pub fn train_part(
    ranks: &dyn Communicator,
    assignment: &Assignment<'_>,
    learner: &mut dyn Learner,
    federation: &Federation,
    cohort: &[u32],
) -> Result<CohortSum, StateError> {
    let remote = &mut NoRemoteDevices;
    let context = &mut RoundContext { ranks, remote };
    let before = learner.before(assignment, cohort, context);
    let devices = part(ranks, cohort, |device| federation.sample_count(device));
    let devices = assignment.release.fault.part(cohort, devices);
    // A rank that failed has nothing to train, and reports the failure where the others wait for
    // it.
    let devices = if before.is_ok() { devices } else { &[] };
    let asked = asked(assignment);
    let (mut sum, outcomes) =
        train_masked(assignment, asked.as_ref(), learner, federation, devices);
    let mut left_out_messages = Vec::new();
    let outcomes = gather_parts(
        ranks,
        before.map(|reasons| {
            left_out_messages = reasons;
            outcomes
        }),
    )?;
    sum.reduce(ranks);
    if asked.is_some() {
        let attendees = std::mem::take(sum.attendees_mut());
        *sum.attendees_mut() = gather_parts(ranks, Ok::<_, StateError>(attendees))?;
    }
    left_out_messages.extend(learner.after(assignment, cohort, context)?);
    Ok(CohortSum {
        sum,
        outcomes,
        left_out_messages,
        asked,
    })
}

/// Returns the question to simulated devices with masks, as covered by their tags: the round and
/// the varying numbers of its training. `None` without masks.
fn asked(assignment: &Assignment<'_>) -> Option<Asked> {
    assignment.release.masking.map(|_| {
        let training = &assignment.training;
        let numbers = [
            assignment.number,
            training.learning_rate.get().to_bits(),
            training.epochs,
            training.batch_size.get(),
        ];
        Asked {
            invitation: numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            model: assignment.global.to_vec(),
        }
    })
}

/// Trains devices on the threads of this process, without masks.
pub fn train_here(
    assignment: &Assignment<'_>,
    learner: &dyn Learner,
    federation: &Federation,
    devices: &[u32],
) -> (PrivateSum, Vec<Outcome>) {
    train_masked(assignment, None, learner, federation, devices)
}

/// Trains devices on the threads of this process, and masks their updates if requested.
fn train_masked(
    assignment: &Assignment<'_>,
    asked: Option<&Asked>,
    learner: &dyn Learner,
    federation: &Federation,
    devices: &[u32],
) -> (PrivateSum, Vec<Outcome>) {
    let length = assignment.global.len();
    let train = |devices: &[u32]| {
        let Assignment {
            release,
            root,
            number,
            admitted,
            ..
        } = assignment;
        let masks = asked.and_then(|asked| DeviceMasks::for_round(release, root, *number, asked));
        let mut uploads = Uploads::new(release, root, *number, length)
            .admitting(admitted)
            .masking(masks);
        let mut trainer = learner.trainer(assignment);
        let train = |device: &u32| {
            let samples = federation.sample_count(*device);
            let outcome = uploads.device(*device, samples, |contribution| {
                trainer.train(*device, contribution)
            });
            if outcome.is_trained() {
                trainer.store_state(*device);
            }
            outcome
        };
        let outcomes: Vec<_> = devices.iter().map(train).collect();
        drop(trainer);
        (uploads.into_sum(), outcomes)
    };
    on_all_threads(length, devices, train)
}

#[cfg(test)]
mod tests;
