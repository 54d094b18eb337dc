//! The runs of a sweep over several ranks: rank 0 assigns whole runs to workers of all ranks, one
//! at a time, so that a slow run delays no other, and records their results.
//!
//! ```text
//! rank 0   propose: the runs that are missing -> answer each report by the next run
//! others   (broadcast) the same list          -> report what came of a run, do the next
//! ```

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::SweepError;
use super::federations::Federations;
use super::file::Sweep;
use super::workers::{Done, Job, JobQueue, JobSource, Run, jobs, work};
use smolfed_data::DataFolders;
use smolfed_engine::ranks::{Communicator, RankError, decode, encode};

/// A message of a rank to rank 0.
#[derive(Serialize, Deserialize)]
enum Report {
    /// A worker is ready for a run, and reports its last one.
    Ready(Option<(usize, Done)>),
    /// The rank cannot continue.
    Failed(String),
    /// Its workers have stopped asking. It needs no answer.
    Left,
}

/// Tells the other ranks the runs to do, or none if rank 0 itself cannot begin.
pub(super) fn propose(ranks: &dyn Communicator, jobs: &[Job]) {
    let runs: Vec<Run> = jobs.iter().map(|job| job.run).collect();
    ranks.broadcast(encode(&runs));
}

/// Answers the workers of the other ranks until all have left.
///
/// # Errors
/// [`SweepError`] of the first failed rank, or if a result cannot be stored.
pub(super) fn answer(queue: &JobQueue<'_, '_>, ranks: &dyn Communicator) -> Result<(), SweepError> {
    let mut outcome = Ok(());
    let mut working = ranks.count() - 1;
    while working > 0 {
        let (rank, report) = ranks.receive();
        let report = decode(&report).unwrap_or_else(Report::Failed);
        let next = match report {
            Report::Left => {
                working -= 1;
                continue;
            }
            Report::Ready(done) => queue.next_for_rank(done),
            Report::Failed(reason) => Err(RankError { rank, reason }.into()),
        };
        let next = next.unwrap_or_else(|error| {
            queue.stop(&error);
            outcome = std::mem::replace(&mut outcome, Ok(())).and(Err(error));
            None
        });
        ranks.send(rank, encode(&next));
    }
    outcome
}

/// Does the runs that rank 0 assigns to this rank, on this many threads, until there are no more.
///
/// Errors are reported to rank 0, which ends the sweep.
///
/// # Errors
/// [`SweepError`] of this rank.
pub fn help(
    sweep: &Sweep,
    folders: &DataFolders,
    ranks: &dyn Communicator,
    threads: NonZeroUsize,
) -> Result<(), SweepError> {
    let runs: Vec<Run> = decode(&ranks.broadcast(Vec::new())).unwrap_or_default();
    let mut federations = Federations::new(folders);
    // Only rank 0 writes results.
    let jobs = jobs(sweep, &runs, Path::new(""), &mut federations);
    let helped = match jobs {
        Err(error) => {
            report_failure(ranks, &error);
            Err(error)
        }
        Ok(jobs) => {
            let line = Line {
                ranks,
                jobs: &jobs,
                federations: &federations,
                last: Mutex::new(0),
            };
            work(sweep, &jobs, &federations, &line, threads)
        }
    };
    ranks.send(0, encode(&Report::Left));
    helped
}

/// Reports to rank 0 that this rank cannot continue, and waits for its acknowledgement.
fn report_failure(ranks: &dyn Communicator, error: &SweepError) {
    ranks.send(0, encode(&Report::Failed(error.to_string())));
    ranks.receive();
}

/// The line to rank 0, used by one worker at a time.
struct Line<'a> {
    ranks: &'a dyn Communicator,
    jobs: &'a [Job],
    federations: &'a Federations<'a>,
    /// Runs up to this number are done or belong to other ranks.
    last: Mutex<usize>,
}

impl JobSource for Line<'_> {
    fn next(&self, done: Option<(usize, Done)>) -> Result<Option<usize>, SweepError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.ranks.send(0, encode(&Report::Ready(done)));
        let (rank, answer) = self.ranks.receive();
        let next: Option<usize> = decode(&answer).map_err(|reason| RankError { rank, reason })?;
        // Data needed only by runs of other ranks must not stay in memory.
        let upto = next.unwrap_or(self.jobs.len());
        for job in self.jobs.get(*last..upto).unwrap_or_default() {
            self.federations.skip(job.federation);
        }
        *last = next.map_or(upto, |next| next + 1);
        Ok(next)
    }

    /// Makes rank 0 stop the others.
    fn stop(&self, error: &SweepError) {
        let _turn = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        report_failure(self.ranks, error);
    }
}

#[cfg(test)]
mod tests;
