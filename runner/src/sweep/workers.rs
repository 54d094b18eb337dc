//! The runs of a sweep in parallel: each worker does one run at a time.
//!
//! A run is the same on any number of threads, so that workers only change how long a sweep takes.
//! Runs that share data follow each other: few federations are in memory at a time.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::SweepError;
use super::federations::Federations;
use super::file::Sweep;
use super::private::{secret, select};
use super::results::{Results, RunRecord};
use super::single::train;
use crate::config::Config;
use crate::data::DataFolders;

/// One run: a cell by its number, and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index into [`Sweep::cells`].
    pub cell: usize,
    /// The seed.
    pub seed: u64,
}

/// A run that has no result: its settings cannot be met, or it broke down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which run.
    pub run: Run,
    /// Why, in a sentence.
    pub reason: String,
}

/// What came of the runs that were to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// Runs without a result.
    pub refusals: Vec<Refusal>,
    /// Runs that were not started because of [`Watch::stop`].
    pub left: usize,
}

/// How a sweep is watched and stopped.
pub struct Watch<'a> {
    /// Set to start no further run.
    pub stop: &'a AtomicBool,
    /// Called with the number of runs to do, results that were there already left out.
    pub on_start: &'a (dyn Fn(usize) + Sync),
    /// Called after each run.
    pub on_run: &'a (dyn Fn() + Sync),
}

/// A run with its parsed configuration and its data.
struct Job {
    run: Run,
    work: Work,
    federation: usize,
}

/// What a run is.
enum Work {
    /// One experiment.
    Single(Box<Config>),
    /// A private selection among candidates, and where the chosen run is written.
    Select(Vec<Config>, PathBuf),
}

/// Does every run of `sweep` that `results` does not hold, on so many threads.
///
/// # Errors
/// [`SweepError::Data`] if data cannot be read, [`SweepError::Files`] if a result cannot be
/// written; what was done until then is in `results`. A run that cannot be done is no error.
pub fn execute(
    sweep: &Sweep,
    results: &mut Results,
    folders: &DataFolders,
    threads: NonZeroUsize,
    watch: &Watch<'_>,
) -> Result<RunOutcome, SweepError> {
    let mut federations = Federations::new(folders);
    let jobs = jobs(sweep, results, &mut federations)?;
    (watch.on_start)(jobs.len());
    let workers = threads.get().min(jobs.len());
    let queue = Queue {
        sweep,
        jobs: &jobs,
        federations: &federations,
        next: AtomicUsize::new(0),
        has_failed: AtomicBool::new(false),
        outcome: Mutex::new(Outcome {
            results,
            refusals: Vec::new(),
        }),
        watch,
    };
    // All threads are in use even when there are fewer runs than threads.
    let share = threads.get() / workers.max(1);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| queue.work(share)))
            .collect();
        started
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    let done = queue.next.load(Ordering::Relaxed).min(jobs.len());
    let outcome = queue.outcome.into_inner();
    let mut refusals = outcome.unwrap_or_else(PoisonError::into_inner).refusals;
    refusals.sort_by_key(|refusal: &Refusal| (refusal.run.cell, refusal.run.seed));
    Ok(RunOutcome {
        refusals,
        left: jobs.len() - done,
    })
}

/// The runs that are missing, those on the same data together.
fn jobs(
    sweep: &Sweep,
    results: &Results,
    federations: &mut Federations<'_>,
) -> Result<Vec<Job>, SweepError> {
    let mut jobs = Vec::new();
    for &seed in &sweep.seeds {
        for (index, cell) in sweep.cells.iter().enumerate() {
            let out = || results.dir().join(sweep.chosen_name(index, seed));
            if results.get(cell, seed).is_some() {
                // A kill may have come between the result and this.
                if sweep.candidates.is_some() {
                    secret::forget(&out())?;
                }
            } else {
                let mut config = sweep.config(cell, seed)?;
                let federation = federations.announce(&mut config)?;
                let run = Run { cell: index, seed };
                let work = match &sweep.candidates {
                    None => Work::Single(Box::new(config)),
                    Some(candidates) => {
                        let candidate = |candidate| -> Result<Config, SweepError> {
                            let data = config.data.clone();
                            let candidate = sweep.candidate(cell, candidate, seed)?;
                            Ok(Config { data, ..candidate })
                        };
                        let candidates = candidates.iter().map(candidate);
                        Work::Select(candidates.collect::<Result<_, _>>()?, out())
                    }
                };
                jobs.push(Job {
                    run,
                    work,
                    federation,
                });
            }
        }
    }
    jobs.sort_by_key(|job| job.federation);
    Ok(jobs)
}

/// What the workers share.
struct Queue<'a, 'b> {
    sweep: &'a Sweep,
    jobs: &'a [Job],
    federations: &'a Federations<'a>,
    next: AtomicUsize,
    has_failed: AtomicBool,
    outcome: Mutex<Outcome<'b>>,
    watch: &'a Watch<'a>,
}

/// What has come of the runs so far.
struct Outcome<'a> {
    results: &'a mut Results,
    refusals: Vec<Refusal>,
}

impl Queue<'_, '_> {
    /// Takes one job after the other; inside a run, works on `threads` threads.
    fn work(&self, threads: usize) -> Result<(), SweepError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| SweepError::Threads {
                threads,
                reason: error.to_string(),
            })?;
        let may_go_on =
            || !self.watch.stop.load(Ordering::Relaxed) && !self.has_failed.load(Ordering::Relaxed);
        while may_go_on() {
            let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let result = pool.install(|| self.finish(job));
            if result.is_err() {
                self.has_failed.store(true, Ordering::Relaxed);
                return result;
            }
            (self.watch.on_run)();
        }
        Ok(())
    }

    /// Does one job and writes down what came of it.
    fn finish(&self, job: &Job) -> Result<(), SweepError> {
        let federation = self.federations.take(job.federation)?;
        let trained = match &job.work {
            Work::Single(config) => train(config, &federation),
            Work::Select(candidates, out) => select(candidates, &federation, out),
        };
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match trained {
            Err(reason) => outcome.refusals.push(Refusal {
                run: job.run,
                reason,
            }),
            Ok(trained) => {
                outcome.results.add(RunRecord {
                    experiment: self.sweep.fingerprint.clone(),
                    settings: self.sweep.cells[job.run.cell].to_json(),
                    seed: job.run.seed,
                    devices: federation.device_count(),
                    evaluations: trained.evaluations,
                    privacy: trained.privacy,
                    seconds: trained.seconds,
                })?;
                if let Work::Select(_, out) = &job.work {
                    secret::forget(out)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
