//! Devices that train in several processes: each rank has a part of the cohort.
//!
//! Rank 0 leads: it runs the round loop like a single process, and is the only one that releases,
//! keeps the ledger and the history of correlated noise, evaluates, prints and writes. The other
//! ranks follow: they hold the same data, wait for an order, train their part of its cohort, and
//! wait for the next.
//!
//! ```text
//! rank 0   draw -> order: cohort, model -> train a part -> exact sum -> noise -> apply -> evaluate
//! others                  (broadcast)      train a part -> (reduce)
//! ```
//!
//! **Same bytes for any number of ranks.** Every device trains from the same bits with its own
//! streams on any rank. Sums are of integers. Outcomes, messages and device states are concatenated
//! in the order of the cohort. No rank draws noise for another: a device's noise is added where the
//! device trains, and the server's on rank 0, once.
//!
//! **Errors.** An error on rank 0 ends its run, and with it the source, whose last order ends the
//! others. An error on another rank reaches rank 0 with the next exchange. MPI must notice a rank
//! that dies, and end all: the run resumes from its checkpoint, with any number of ranks.

mod follower;
mod order;

use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;

use super::contract::{CohortSum, Draw, Source, SourceError, Step};
use super::simulated::{Simulated, train_part};
use crate::attendance::Attendance;
use crate::method::contract::{Assignment, Learner, Store};
use crate::method::state::StateError;
use crate::question::Inquiry;
use crate::ranks::{Communicator, RankError, gather_parts};
use order::{Begin, Order, Round};
use smolfed_data::federation::Federation;
use smolfed_release::Admitted;

pub use follower::follow;

/// Devices that train in several processes. This one is rank 0.
pub struct Ranks<'a> {
    federation: &'a Federation,
    ranks: &'a dyn Communicator,
}

impl std::fmt::Debug for Ranks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ranks", self.ranks.count())
    }
}

impl<'a> Ranks<'a> {
    /// Leads the other ranks. Each of them has called [`follow`] or is about to.
    #[must_use]
    pub const fn lead(federation: &'a Federation, ranks: &'a dyn Communicator) -> Self {
        Self { federation, ranks }
    }
}

impl Drop for Ranks<'_> {
    fn drop(&mut self) {
        // A rank that panics ends the job.
        if !std::thread::panicking() {
            Order::End.give(self.ranks);
        }
    }
}

impl Source for Ranks<'_> {
    fn begin(&mut self, store: Option<&Store<'_>>) -> Result<(), SourceError> {
        let begin = store.map(Begin::from_store).transpose();
        let begin = begin.map_err(|reason| RankError { rank: 0, reason });
        Order::Begin(begin.map_err(StateError::from)?).give(self.ranks);
        Ok(wait(self.ranks)?)
    }

    fn before_checkpoint(&mut self, rounds: u32) -> Result<(), SourceError> {
        Order::Save(rounds).give(self.ranks);
        Ok(wait(self.ranks)?)
    }

    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        Simulated(self.federation).draw(attendance, root, step)
    }

    /// Answers for all devices on rank 0, which has the data of all devices.
    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        Simulated(self.federation).answers(inquiry, cohort)
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let grid = assignment.release.encoding.grid();
        let round = Round {
            round: assignment.round,
            number: assignment.number,
            clip_norm: grid.map(|grid| grid.clip_norm()).map(ClipNorm::get),
            admitted: match assignment.admitted {
                Admitted::All => None,
                Admitted::Only(devices) => Some(devices.clone()),
            },
            cohort: cohort.to_vec(),
            global: assignment.global.to_vec(),
        };
        Order::Round(round).give(self.ranks);
        Ok(train_part(
            self.ranks,
            assignment,
            learner,
            self.federation,
            cohort,
        )?)
    }
}

/// Waits until all ranks have carried out the order.
///
/// # Errors
/// The error of the first rank that failed.
fn wait(ranks: &dyn Communicator) -> Result<(), StateError> {
    done(ranks, Ok(()))
}

/// Tells all ranks whether this one has carried out the order.
fn done(ranks: &dyn Communicator, mine: Result<(), StateError>) -> Result<(), StateError> {
    gather_parts(ranks, mine.map(|()| Vec::<()>::new())).map(drop)
}

/// Compares the inputs of the ranks before anything is written. `mine` names the experiment, its
/// data and the version of smolfed on this rank, or says why it has none.
///
/// # Errors
/// On all ranks, a sentence that names the first rank that differs or failed.
pub fn compare(ranks: &dyn Communicator, mine: Result<String, String>) -> Result<(), String> {
    let names = gather_parts(ranks, mine.map(|name| vec![name]))?;
    let first = names.first();
    match names.iter().position(|name| Some(name) != first) {
        None => Ok(()),
        Some(rank) => Err(format!(
            "rank {rank} has other data, another configuration or another version of smolfed than \
             rank 0: all ranks need the same"
        )),
    }
}

#[cfg(test)]
mod tests;
