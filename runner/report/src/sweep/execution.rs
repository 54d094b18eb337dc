//! All runs of a sweep, led by this process: its own workers and other ranks' workers, if any.

use std::num::NonZeroUsize;

use super::SweepError;
use super::federations::Federations;
use super::file::Sweep;
use super::ranks::{answer, propose};
use super::results::Results;
use super::workers::{JobQueue, RunOutcome, Watch, jobs, missing, work};
use smolfed_data::DataFolders;
use smolfed_engine::ranks::Communicator;

/// Does every run of `sweep` missing in `results`, on this many threads of this rank, and on the
/// other ranks' threads if there are any.
///
/// # Errors
/// [`SweepError::Data`] if data cannot be read, [`SweepError::Files`] if a result cannot be
/// written, and [`SweepError::Rank`] if another rank fails. Earlier results stay in `results`. A
/// run that cannot be done is not an error.
pub fn execute(
    sweep: &Sweep,
    results: &mut Results,
    folders: &DataFolders,
    ranks: &dyn Communicator,
    threads: NonZeroUsize,
    watch: &Watch<'_>,
) -> Result<RunOutcome, SweepError> {
    let mut federations = Federations::new(folders);
    let jobs = missing(sweep, results)
        .and_then(|runs| jobs(sweep, &runs, results.dir(), &mut federations));
    // The others wait for it in any case.
    let (jobs, begun) = match jobs {
        Ok(jobs) => (jobs, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    propose(ranks, &jobs);
    if begun.is_ok() {
        (watch.on_start)(jobs.len());
    }
    let queue = JobQueue::new(&jobs, &federations, results, watch);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| answer(&queue, ranks));
        let own = work(sweep, &jobs, &federations, &queue, threads);
        let others = others
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        begun.and(own).and(others)
    })?;
    Ok(queue.outcome())
}
