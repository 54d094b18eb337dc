//! The runs of a sweep in parallel: each worker does one run at a time.
//!
//! A run is the same on any number of threads, so that workers only change how long a sweep takes.
//! Runs that share data follow each other: few federations are in memory at a time.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::SweepError;
use super::federations::Federations;
use super::file::Sweep;
use super::metric::Metric;
use super::results::{Figures, Results, RunRecord};
use crate::config::Config;
use crate::data::{DataFolders, Federation};
use crate::experiment::Experiment;
use crate::run::{self, Control, Ending};

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
    config: Config,
    federation: usize,
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
            if results.get(cell, seed).is_none() {
                let mut config = sweep.config(cell, seed)?;
                jobs.push(Job {
                    run: Run { cell: index, seed },
                    federation: federations.announce(&mut config)?,
                    config,
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
        let trained = train(job, &federation);
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match trained {
            Err(reason) => outcome.refusals.push(Refusal {
                run: job.run,
                reason,
            }),
            Ok(trained) => outcome.results.add(RunRecord {
                experiment: self.sweep.fingerprint.clone(),
                settings: self.sweep.cells[job.run.cell].to_json(),
                seed: job.run.seed,
                devices: federation.device_count(),
                evaluations: trained.evaluations,
                privacy: trained.privacy,
                seconds: trained.seconds,
            })?,
        }
        Ok(())
    }
}

struct Trained {
    evaluations: Vec<Figures>,
    privacy: Vec<crate::privacy::statement::PrivacyStatement>,
    seconds: f64,
}

/// One run from its configuration to its figures, or the reason why there are none.
fn train(job: &Job, federation: &Federation) -> Result<Trained, String> {
    let started = Instant::now();
    let experiment =
        Experiment::new(job.config.clone(), federation).map_err(|error| error.to_string())?;
    let federation = &*experiment.scaled(federation);
    let control = Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    let result =
        run::execute(&experiment, federation, None, control).map_err(|error| error.to_string())?;
    match result.ending {
        Ending::Done => {}
        Ending::Interrupted => return Err("the run was interrupted".to_owned()),
        Ending::OverBudget(error) => return Err(error.to_string()),
    }
    let evaluated = result.records.iter().map(|record| Figures {
        rounds: record.round + 1,
        figures: Metric::of_round(record),
    });
    Ok(Trained {
        evaluations: evaluated
            .filter(|round| !round.figures.is_empty())
            .collect(),
        privacy: result.statements,
        seconds: started.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests;
