//! Devices that train in this process: the cohort of a round in parallel, over the code that boards
//! run.
//!
//! Devices read the shared data through their row numbers; each worker thread has one working
//! memory and one partial sum. Sums are integers, so their order cannot matter, and every random
//! draw comes from the device's own stream: one thread and eight give the same bits.

use rayon::prelude::*;
use smolfed_core::stream::Root;

use super::attendance::Attendance;
use super::contract::{CohortSum, Draw, Source, SourceError};
use crate::data::federation::Federation;
use crate::method::contract::{Assignment, Learner};
use crate::method::state::StateError;
use crate::release::{PrivateSum, Uploads};

/// Devices that train in this process.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'a>(pub &'a Federation);

impl Source for Simulated<'_> {
    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        round: u32,
    ) -> Result<Option<Draw>, SourceError> {
        Ok(Some(Draw {
            number: round,
            cohort: attendance.cohort(root, round, round),
            begins_anew: false,
        }))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        Ok(train_cohort(assignment, learner, self.0, cohort)?)
    }
}

/// Has the devices of `cohort` train, on the threads of the current pool.
///
/// * Memory: a few vectors of parameters a thread; nothing grows with the federation.
///
/// # Errors
/// [`StateError`] if what devices keep cannot be read or written.
pub fn train_cohort(
    assignment: &Assignment<'_>,
    learner: &mut dyn Learner,
    federation: &Federation,
    cohort: &[u32],
) -> Result<CohortSum, StateError> {
    let mut left_out_messages = learner.before(assignment, cohort)?;
    let length = assignment.global.len();
    let trained = &*learner;
    let train = |devices: &[u32]| {
        let Assignment {
            release,
            root,
            number,
            admitted,
            ..
        } = assignment;
        let mut uploads = Uploads::new(release, root, *number, length).admitting(admitted);
        let mut trainer = trained.trainer(assignment);
        let train = |device: &u32| {
            let samples = federation.sample_count(*device);
            let outcome = uploads.device(*device, samples, |contribution| {
                trainer.train(*device, contribution)
            });
            if outcome.is_trained() {
                trainer.keep(*device);
            }
            outcome
        };
        let outcomes: Vec<_> = devices.iter().map(train).collect();
        drop(trainer);
        (uploads.into_sum(), outcomes)
    };
    // Four pieces a thread even out devices of different size without a sum for each device.
    let piece = cohort
        .len()
        .div_ceil(4 * rayon::current_num_threads())
        .max(1);
    let pieces: Vec<_> = cohort.par_chunks(piece).map(train).collect();
    let mut sum = PrivateSum::zero(length);
    let mut outcomes = Vec::with_capacity(cohort.len());
    for (part, of_part) in pieces {
        sum.absorb(&part);
        outcomes.extend(of_part);
    }
    left_out_messages.extend(learner.after(assignment, cohort)?);
    Ok(CohortSum {
        sum,
        outcomes,
        left_out_messages,
    })
}

#[cfg(test)]
mod tests;
