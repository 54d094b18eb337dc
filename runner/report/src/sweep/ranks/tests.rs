use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::sweep::execution::execute;
use crate::sweep::fixture::sweep;
use crate::sweep::workers::{RunOutcome, Watch};
use crate::sweep::{Results, RunRecord};
use smolfed_release::communicator::threads;

const GRID: &str = "[sweep]\nseeds = 3\n[sweep.grid]\n\"train.epochs\" = [1, 2]";

/// Returns the outcome of a sweep on this many ranks and threads per rank, and its results.
fn swept(
    sweep: &Sweep,
    out: &Path,
    (count, workers): (usize, usize),
    stop_after: usize,
) -> (Result<RunOutcome, SweepError>, Vec<RunRecord>) {
    let workers = NonZeroUsize::new(workers).unwrap();
    let folders = DataFolders::new(Vec::new());
    let outcomes = threads::run(count, |ranks| {
        if ranks.rank() > 0 {
            let _ = help(sweep, &folders, ranks, workers);
            return None;
        }
        let mut results = Results::open(out, &sweep.fingerprint).unwrap();
        let done = Mutex::new(0);
        let stop = AtomicBool::new(false);
        let watch = Watch {
            stop: &stop,
            on_start: &|_| {},
            on_run: &|| {
                let mut done = done.lock().unwrap();
                *done += 1;
                stop.store(*done >= stop_after, Ordering::Relaxed);
            },
        };
        let outcome = execute(sweep, &mut results, &folders, ranks, workers, &watch);
        let cells = sweep.cells.iter();
        let all = cells.flat_map(|cell| sweep.seeds.iter().map(move |seed| (cell, *seed)));
        let records = all.filter_map(|(cell, seed)| results.get(cell, seed).cloned());
        let records = records.map(|record| RunRecord {
            seconds: 0.0,
            ..record
        });
        Some((outcome, records.collect()))
    });
    outcomes.into_iter().flatten().next().unwrap()
}

#[test]
fn any_number_of_ranks_gives_the_same_results() {
    let sweep = sweep(GRID);
    let on = [(1, 1), (2, 1), (3, 2), (7, 1)].map(|on| {
        let place = tempfile::tempdir().unwrap();
        let (outcome, records) = swept(&sweep, place.path(), on, usize::MAX);
        let outcome = outcome.unwrap();
        assert_eq!((outcome.refusals.len(), outcome.left), (0, 0), "{on:?}");
        assert_eq!(records.len(), 6);
        records
    });
    assert!(on.iter().all(|records| *records == on[0]));
}

#[test]
fn a_sweep_that_is_stopped_goes_on_with_other_ranks() {
    let sweep = sweep(GRID);
    let place = tempfile::tempdir().unwrap();
    let (outcome, records) = swept(&sweep, place.path(), (3, 1), 1);
    assert_eq!(outcome.unwrap().left, 6 - records.len());
    assert!((1..6).contains(&records.len()));
    let (outcome, records) = swept(&sweep, place.path(), (2, 1), usize::MAX);
    assert_eq!((outcome.unwrap().left, records.len()), (0, 6));
}

#[test]
fn a_run_that_cannot_be_done_is_refused_by_any_rank() {
    let sweep = sweep("[sweep.grid]\n\"cohort.cohort_size\" = [10, 1000, 2000]");
    let place = tempfile::tempdir().unwrap();
    let (outcome, records) = swept(&sweep, place.path(), (3, 1), usize::MAX);
    assert_eq!((outcome.unwrap().refusals.len(), records.len()), (2, 1));
}

/// Rank 0 does no run with missing data here. Other ranks find the error.
#[test]
fn an_error_of_any_rank_ends_the_sweep() {
    let sweep = sweep("[sweep]\nseeds = 8\n[sweep.grid]\n\"data.devices\" = [40, 1000000]");
    let place = tempfile::tempdir().unwrap();
    let (outcome, _) = swept(&sweep, place.path(), (3, 1), usize::MAX);
    assert!(outcome.is_err(), "{outcome:?}");
}
