//! The runs of a sweep in parallel: each worker does one run at a time.
//!
//! The number of threads does not change a run, so workers only change the duration of a sweep.
//! Runs that share data follow each other, so few federations are in memory at a time. Over several
//! ranks, rank 0 assigns the runs ([`super::execution`]).

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::SweepError;
use super::federations::Federations;
use super::file::Sweep;
use super::private::{secret, select};
use super::results::{Results, RunRecord};
use super::single::train;
use smolfed_engine::config::Config;

/// One run: a cell by its number, and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Index into [`Sweep::cells`].
    pub cell: usize,
    /// The seed.
    pub seed: u64,
}

/// A run without a result: its settings cannot be met, or it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The run.
    pub run: Run,
    /// The reason, in a sentence.
    pub reason: String,
}

/// The outcome of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// Runs without a result.
    pub refusals: Vec<Refusal>,
    /// Number of runs not started because of [`Watch::stop`].
    pub left: usize,
}

/// Callbacks and the stop flag of a sweep.
pub struct Watch<'a> {
    /// Set to prevent further runs from starting.
    pub stop: &'a AtomicBool,
    /// Called with the number of runs to do, without the ones that already have results.
    pub on_start: &'a (dyn Fn(usize) + Sync),
    /// Called after each run.
    pub on_run: &'a (dyn Fn() + Sync),
}

/// A run with its parsed configuration and its data.
pub(super) struct Job {
    pub(super) run: Run,
    work: Work,
    pub(super) federation: usize,
}

/// The kind of a run.
enum Work {
    /// One experiment.
    Single(Box<Config>),
    /// A private selection among candidates, and the path of the chosen run.
    Select(Vec<Config>, PathBuf),
}

/// The result of a run.
pub(super) type Done = Result<RunRecord, Refusal>;

/// Returns the runs without a result.
pub(super) fn missing(sweep: &Sweep, results: &Results) -> Result<Vec<Run>, SweepError> {
    let mut runs = Vec::new();
    for &seed in &sweep.seeds {
        for (index, cell) in sweep.cells.iter().enumerate() {
            if results.get(cell, seed).is_none() {
                runs.push(Run { cell: index, seed });
            } else if sweep.candidates.is_some() {
                // A kill may have come between the result and this.
                secret::forget(&results.dir().join(sweep.chosen_name(index, seed)))?;
            }
        }
    }
    Ok(runs)
}

/// Returns the jobs for these runs, grouped by data.
pub(super) fn jobs(
    sweep: &Sweep,
    runs: &[Run],
    out: &Path,
    federations: &mut Federations<'_>,
) -> Result<Vec<Job>, SweepError> {
    let mut jobs = Vec::new();
    for run in runs {
        let Some(cell) = sweep.cells.get(run.cell) else {
            continue;
        };
        let mut config = sweep.config(cell, run.seed)?;
        let federation = federations.announce(&mut config)?;
        let work = match &sweep.candidates {
            None => Work::Single(Box::new(config)),
            Some(candidates) => {
                let candidate = |candidate| -> Result<Config, SweepError> {
                    let data = config.data.clone();
                    let candidate = sweep.candidate(cell, candidate, run.seed)?;
                    Ok(Config { data, ..candidate })
                };
                let candidates = candidates.iter().map(candidate);
                let out = out.join(sweep.chosen_name(run.cell, run.seed));
                Work::Select(candidates.collect::<Result<_, _>>()?, out)
            }
        };
        jobs.push(Job {
            run: *run,
            work,
            federation,
        });
    }
    jobs.sort_by_key(|job| job.federation);
    Ok(jobs)
}

/// Assigns runs to workers.
pub(super) trait JobSource: Sync {
    /// Returns the number of the next run, for a worker that has begun or finished another. `None`
    /// if there is none.
    ///
    /// # Errors
    /// [`SweepError`] if the finished run cannot be stored.
    fn next(&self, done: Option<(usize, Done)>) -> Result<Option<usize>, SweepError>;

    /// Notes that a worker cannot continue, so that no further run begins.
    fn stop(&self, error: &SweepError);
}

/// Lets workers on this many threads do one run after the other.
pub(super) fn work(
    sweep: &Sweep,
    jobs: &[Job],
    federations: &Federations<'_>,
    source: &dyn JobSource,
    threads: NonZeroUsize,
) -> Result<(), SweepError> {
    let workers = threads.get().min(jobs.len());
    // Uses all threads even if there are fewer runs than threads.
    let share = threads.get() / workers.max(1);
    let worker = || {
        let mut done = None;
        let pool = pool(share)?;
        while let Some(number) = source.next(done.take())? {
            let Some(job) = jobs.get(number) else {
                break;
            };
            done = Some((number, pool.install(|| train_job(sweep, job, federations))?));
        }
        Ok(())
    };
    let worker = || worker().inspect_err(|error| source.stop(error));
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        started
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

fn pool(threads: usize) -> Result<rayon::ThreadPool, SweepError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| SweepError::Threads {
        threads,
        reason: error.to_string(),
    })
}

/// Does one job.
fn train_job(sweep: &Sweep, job: &Job, federations: &Federations<'_>) -> Result<Done, SweepError> {
    let federation = federations.take(job.federation)?;
    let trained = match &job.work {
        Work::Single(config) => train(config, &federation),
        Work::Select(candidates, out) => select(candidates, &federation, out),
    };
    let refusal = |reason| Refusal {
        run: job.run,
        reason,
    };
    Ok(trained.map_err(refusal).map(|trained| RunRecord {
        experiment: sweep.fingerprint.clone(),
        settings: sweep.cells[job.run.cell].to_json(),
        seed: job.run.seed,
        devices: federation.device_count(),
        evaluations: trained.evaluations,
        privacy: trained.privacy,
        seconds: trained.seconds,
    }))
}

/// All pending runs of a sweep, and the destination of their results.
pub(super) struct JobQueue<'a, 'b> {
    jobs: &'a [Job],
    federations: &'a Federations<'a>,
    next: AtomicUsize,
    has_failed: AtomicBool,
    outcome: Mutex<Outcome<'b>>,
    watch: &'a Watch<'a>,
}

/// The results so far.
struct Outcome<'a> {
    results: &'a mut Results,
    refusals: Vec<Refusal>,
}

impl<'a, 'b> JobQueue<'a, 'b> {
    /// Returns a queue before the first run.
    pub(super) fn new(
        jobs: &'a [Job],
        federations: &'a Federations<'a>,
        results: &'b mut Results,
        watch: &'a Watch<'a>,
    ) -> Self {
        Self {
            jobs,
            federations,
            next: AtomicUsize::new(0),
            has_failed: AtomicBool::new(false),
            outcome: Mutex::new(Outcome {
                results,
                refusals: Vec::new(),
            }),
            watch,
        }
    }

    /// Returns the outcome, after the last run.
    pub(super) fn outcome(self) -> RunOutcome {
        let done = self.next.load(Ordering::Relaxed).min(self.jobs.len());
        let outcome = self.outcome.into_inner();
        let mut refusals = outcome.unwrap_or_else(PoisonError::into_inner).refusals;
        refusals.sort_by_key(|refusal: &Refusal| (refusal.run.cell, refusal.run.seed));
        RunOutcome {
            refusals,
            left: self.jobs.len() - done,
        }
    }

    /// As [`JobSource::next`], for a worker of another rank, which has the data of the run.
    pub(super) fn next_for_rank(
        &self,
        done: Option<(usize, Done)>,
    ) -> Result<Option<usize>, SweepError> {
        let next = self.next(done)?;
        if let Some(job) = next.and_then(|number| self.jobs.get(number)) {
            self.federations.skip(job.federation);
        }
        Ok(next)
    }

    /// Records the result of a job.
    fn record(&self, number: usize, done: Done) -> Result<(), SweepError> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Err(refusal) => outcome.refusals.push(refusal),
            Ok(record) => {
                outcome.results.add(record)?;
                let job = self.jobs.get(number);
                if let Some(Work::Select(_, out)) = job.map(|job| &job.work) {
                    secret::forget(out)?;
                }
            }
        }
        Ok(())
    }
}

impl JobSource for JobQueue<'_, '_> {
    fn next(&self, done: Option<(usize, Done)>) -> Result<Option<usize>, SweepError> {
        if let Some((number, done)) = done {
            self.record(number, done)?;
            (self.watch.on_run)();
        }
        let is_over =
            self.watch.stop.load(Ordering::Relaxed) || self.has_failed.load(Ordering::Relaxed);
        if is_over {
            return Ok(None);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok((number < self.jobs.len()).then_some(number))
    }

    fn stop(&self, _: &SweepError) {
        self.has_failed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
