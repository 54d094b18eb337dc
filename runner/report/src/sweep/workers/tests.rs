use std::path::Path;

use super::*;
use crate::sweep::execution::execute;
use crate::sweep::fixture::{EXPERIMENT, sweep};
use crate::sweep::{Summaries, SweepError};
use smolfed_data::DataFolders;
use smolfed_engine::ranks::Alone;

const GRID: &str = "[sweep]\nseeds = 2\n[sweep.grid]\n\"train.epochs\" = [1, 2]";

fn run(sweep: &Sweep, results: &mut Results, threads: usize) -> Result<RunOutcome, SweepError> {
    let watch = Watch {
        stop: &AtomicBool::new(false),
        on_start: &|_| {},
        on_run: &|| {},
    };
    let threads = NonZeroUsize::new(threads).unwrap();
    execute(
        sweep,
        results,
        &DataFolders::new(Vec::new()),
        &Alone,
        threads,
        &watch,
    )
}

/// Returns every result of a sweep without its wall time.
fn records(sweep: &Sweep, results: &Results) -> Vec<RunRecord> {
    let cells = sweep.cells.iter();
    let all = cells.flat_map(|cell| sweep.seeds.iter().map(move |seed| (cell, *seed)));
    let all = all.filter_map(|(cell, seed)| results.get(cell, seed).cloned());
    all.map(|record| RunRecord {
        seconds: 0.0,
        ..record
    })
    .collect()
}

fn swept(sweep: &Sweep, dir: &Path, threads: usize) -> Vec<RunRecord> {
    let mut results = Results::open(dir, &sweep.fingerprint).unwrap();
    let outcome = run(sweep, &mut results, threads).unwrap();
    assert_eq!(
        outcome,
        RunOutcome {
            refusals: Vec::new(),
            left: 0
        }
    );
    records(sweep, &results)
}

#[test]
fn one_thread_and_two_give_the_same_results() {
    let sweep = sweep(GRID);
    let dirs = [1, 2, 9].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        swept(&sweep, dir.path(), threads)
    });
    assert_eq!(dirs[0].len(), 4);
    assert_ne!(
        dirs[0][0].evaluations, dirs[0][1].evaluations,
        "seeds differ"
    );
    assert_eq!(dirs[0], dirs[1]);
    assert_eq!(dirs[0], dirs[2]);
}

#[test]
fn a_sweep_that_was_stopped_goes_on_and_ends_the_same() {
    let sweep = sweep(GRID);
    let (broken, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut results = Results::open(broken.path(), &sweep.fingerprint).unwrap();
    let stop = AtomicBool::new(false);
    let watch = Watch {
        stop: &stop,
        on_start: &|missing| assert_eq!(missing, 4),
        on_run: &|| stop.store(true, Ordering::Relaxed),
    };
    let folders = DataFolders::new(Vec::new());
    let outcome = execute(
        &sweep,
        &mut results,
        &folders,
        &Alone,
        NonZeroUsize::MIN,
        &watch,
    );
    let outcome = outcome.unwrap();
    assert_eq!(outcome.left, 3);
    assert_eq!(records(&sweep, &results).len(), 1);
    assert_eq!(
        swept(&sweep, broken.path(), 2),
        swept(&sweep, whole.path(), 2)
    );
}

#[test]
fn what_is_there_is_not_done_again_and_a_grown_sweep_adds_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    swept(&sweep(GRID), dir.path(), 2);
    let lines = || {
        let text = std::fs::read_to_string(dir.path().join("results.jsonl")).unwrap();
        text.lines().count()
    };
    swept(&sweep(GRID), dir.path(), 2);
    assert_eq!(lines(), 4);
    let grown = sweep(
        &GRID
            .replace("[1, 2]", "[1, 2, 3]")
            .replace("seeds = 2", "seeds = 3"),
    );
    assert_eq!(swept(&grown, dir.path(), 2).len(), 9);
    assert_eq!(lines(), 9);
}

#[test]
fn a_cell_that_cannot_be_settled_does_not_stop_the_others() {
    let sweep = sweep(
        "[sweep]\nseeds = 2\n[sweep.grid]\n\"privacy.accountant\" = [\"theorem-2\", \"rdp\"]",
    );
    let mut results = Results::fresh(tempfile::tempdir().unwrap().path());
    let outcome = run(&sweep, &mut results, 2).unwrap();
    let cells: Vec<_> = outcome
        .refusals
        .iter()
        .map(|refusal| refusal.run.cell)
        .collect();
    assert_eq!(cells, [0, 0]);
    let summaries = Summaries::new(&sweep, &results, &outcome.refusals).unwrap();
    assert!(
        summaries.cells[0].refusals[&5].contains("theorem-2"),
        "{:?}",
        summaries.cells[0]
    );
    assert!(summaries.cells[0].mean.is_none() && summaries.cells[1].mean.is_some());
}

#[test]
fn a_budget_that_ends_a_run_early_leaves_no_figure() {
    let sweep = sweep("[sweep.grid]\n\"privacy.max_epsilon\" = [0.001, 1000]");
    let mut results = Results::fresh(tempfile::tempdir().unwrap().path());
    let outcome = run(&sweep, &mut results, 1).unwrap();
    assert_eq!(outcome.refusals.len(), 1);
    assert!(
        outcome.refusals[0]
            .reason
            .contains("above the limit of 0.001")
    );
}

#[test]
fn a_sweep_of_which_nothing_can_run_writes_nothing() {
    let sweep = sweep("[sweep.grid]\nrounds = [0]");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut results = Results::open(&out, &sweep.fingerprint).unwrap();
    let outcome = run(&sweep, &mut results, 1).unwrap();
    let error = Summaries::new(&sweep, &results, &outcome.refusals).unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(
        error.to_string(),
        "no cell of the sweep can be run, the first because `rounds` is 0: it must be at least 1"
    );
    assert!(!out.exists());
}

#[test]
fn data_that_are_not_there_end_the_sweep() {
    let text = EXPERIMENT
        .replace("\"digits\"", "\"mnist\"\npath = \"no/such/folder\"")
        .replace("test = 0.2\n", "");
    let sweep = Sweep::parse(&format!("{text}[sweep]"), "small.toml", &[], None).unwrap();
    let mut results = Results::fresh(tempfile::tempdir().unwrap().path());
    let error = run(&sweep, &mut results, 1).unwrap_err();
    assert!(error.is_bad_input());
    assert!(error.to_string().contains("no/such/folder"), "{error}");
}

#[test]
fn a_metric_that_the_runs_lack_is_refused_with_those_there_are() {
    let sweep = sweep("[sweep]\nmetric = \"test_rmse\"");
    let mut results = Results::fresh(tempfile::tempdir().unwrap().path());
    run(&sweep, &mut results, 1).unwrap();
    let error = Summaries::new(&sweep, &results, &[])
        .unwrap_err()
        .to_string();
    let expected =
        "`sweep.metric` is \"test_rmse\", but the runs only have test_accuracy, test_loss";
    assert_eq!(error, expected);
}

#[test]
fn rounds_on_the_way_are_kept_when_they_are_evaluated() {
    let sweep = sweep("[sweep]\nevaluate_every = 1");
    let mut results = Results::fresh(tempfile::tempdir().unwrap().path());
    run(&sweep, &mut results, 1).unwrap();
    let rounds: Vec<_> = results
        .get(&sweep.cells[0], 5)
        .unwrap()
        .evaluations
        .iter()
        .map(|e| e.rounds)
        .collect();
    assert_eq!(rounds, [1, 2]);
}
