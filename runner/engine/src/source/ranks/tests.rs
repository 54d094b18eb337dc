//! Any number of ranks leaves the same run directory, with any method and any way of adding noise.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use smolfed_core::stream::Root;
use tempfile::TempDir;

use super::*;
use crate::config::{Config, Override};
use crate::experiment::Experiment;
use crate::ranks::Alone;
use crate::run::directory::RunDir;
use crate::run::{self, Control, Ending, Run, RunError, RunResult};
use smolfed_data::DataFolders;
use smolfed_release::communicator::threads;
use smolfed_release::saved::Saved;

const TINY: &str = "name = \"tiny\"\nmethod = \"dp-fed\"\nrounds = 4\nseed = 7\n\
                    evaluate_every = 2\n[data]\nsource = \"digits\"\nscale = \"unit\"\n\
                    devices = 40\nsamples_per_device = 12\n\
                    device_test = 0.25\nvalidation = 0\n[cohort]\n\
                    sampling = \"poisson\"\nsampling_rate = 0.3\n[train]\nepochs = 1\n\
                    [privacy]\nclip_norm = 0.5\nnoise_multiplier = 1.0\ndelta = 1e-3\n";

/// Everything that depends on ranks: methods, their states and messages besides the updates, trust
/// models, mechanisms, cohorts.
const CASES: [&str; 22] = [
    "",
    "method=\"dp-fed-ls\" server.smoothing_factor=2 privacy.trust=\"local\"",
    "method=\"fedprox\" cohort.weighting=\"samples\" cohort.weight_cap=6",
    "cohort={sampling=\"uniform\",cohort_size=3}",
    "cohort={sampling=\"poisson\",sampling_rate=0.01}",
    "privacy={epsilon=inf}",
    "privacy.clip_norm=\"adaptive\"",
    "privacy.clip_norm=\"adaptive\" privacy.trust=\"local\"",
    "data.scale=\"private\"",
    "cohort={sampling=\"arrival\",cohort_size=4} privacy.mechanism=\"correlated\" \
     privacy.separation=2",
    "cohort={sampling=\"rotation\"} privacy.mechanism=\"correlated\" privacy.separation=2 \
     privacy.family=\"tree\"",
    "privacy.trust=\"distributed\"",
    "method=\"pp-sgd\" privacy.trust=\"distributed=3/2\"",
    "cohort={sampling=\"rotation\"} privacy.mechanism=\"correlated\" privacy.separation=2 \
     privacy.trust=\"distributed\"",
    "method=\"pmtl\"",
    "method=\"pp-sgd\" privacy.trust=\"local\"",
    "method=\"dpfedmtl\" model.hidden=3",
    "method=\"dpfedmtl\" model.hidden=3 personalise.noise=\"each-step\" \
     personalise.local_steps=3 privacy.trust=\"local\"",
    "method=\"local\" privacy={}",
    "method=\"fedsc\" contrast.width=3 contrast.privacy={epsilon=8,delta=1e-3}",
    "method=\"fedavg-sc\" contrast.width=3 contrast.norm_bound=4",
    "method=\"central-sc\" contrast.width=3 contrast.norm_bound=4 cohort={sampling=\"full\"} \
     privacy={}",
];

fn prepare(settings: &str) -> (Experiment, Federation) {
    let overrides = settings.split_whitespace().map(|text| text.parse());
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>().unwrap();
    let config = Config::parse(TINY, "a test", &overrides).unwrap();
    run::prepare(config, &DataFolders::new(Vec::new())).unwrap()
}

/// Runs in `dir` on this many ranks and threads per rank, optionally stopped after some rounds.
fn run_on(
    (experiment, federation): &(Experiment, Federation),
    dir: &Path,
    (count, pool): (usize, usize),
    stop_after: u32,
) -> Result<RunResult, RunError> {
    let work = |ranks: &dyn Communicator| {
        if ranks.rank() > 0 {
            follow(experiment, federation, ranks).unwrap();
            return None;
        }
        Some(lead(experiment, federation, dir, ranks, stop_after))
    };
    let results = threads::run(count, |ranks| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(pool).build();
        pool.unwrap().install(|| work(ranks))
    });
    results.into_iter().flatten().next().unwrap()
}

fn lead(
    experiment: &Experiment,
    federation: &Federation,
    path: &Path,
    ranks: &dyn Communicator,
    stop_after: u32,
) -> Result<RunResult, RunError> {
    let mut source = Ranks::lead(federation, ranks);
    let dir = match path.is_dir() {
        true => RunDir::open(path)?,
        false => RunDir::create(path, &experiment.config)?,
    };
    let run = Run {
        experiment,
        federation,
        dir: Some(&dir),
        root: experiment.root().unwrap(),
        helpers: None,
    };
    let stop = AtomicBool::new(false);
    let control = Control {
        stop: &stop,
        checkpoint_every: Duration::ZERO,
        on_round: &mut |record| stop.store(record.round + 1 >= stop_after, Ordering::Relaxed),
    };
    run.execute(&mut source, control)
}

/// Returns the files of a run by name, without the parts that may differ between equal runs.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    let mut files: BTreeMap<String, Vec<u8>> = files
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            let mut bytes = std::fs::read(entry.path()).unwrap();
            if name == "metrics.jsonl" {
                let text = String::from_utf8(bytes).unwrap();
                let lines = text
                    .lines()
                    .map(|line| line.split(",\"seconds\"").next().unwrap());
                bytes = lines.collect::<Vec<_>>().join("\n").into_bytes();
            }
            (name, bytes)
        })
        .collect();
    // Its entries have no order in the file.
    let checkpoint = std::fs::read(dir.join("checkpoint/state.safetensors")).unwrap();
    let checkpoint = format!("{:?}", Saved::decode(&checkpoint).unwrap());
    files.insert("checkpoint".to_owned(), checkpoint.into_bytes());
    files
}

/// Returns the files of a whole run.
fn whole(run: &(Experiment, Federation), on: (usize, usize)) -> BTreeMap<String, Vec<u8>> {
    let place = TempDir::new().unwrap();
    let dir = place.path().join("run");
    run_on(run, &dir, on, u32::MAX).unwrap();
    files(&dir)
}

#[track_caller]
fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>, of: &str) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{of}");
    for (name, bytes) in found {
        assert!(*bytes == expected[name], "{of}: {name} differs");
    }
}

/// Runs without ranks, as in all other tests.
fn by_itself((experiment, federation): &(Experiment, Federation)) -> BTreeMap<String, Vec<u8>> {
    let place = TempDir::new().unwrap();
    let dir = RunDir::create(&place.path().join("run"), &experiment.config).unwrap();
    let control = Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::ZERO,
        on_round: &mut |_| {},
    };
    run::execute(experiment, federation, Some(&dir), control).unwrap();
    files(dir.path())
}

#[test]
fn any_number_of_ranks_leaves_the_same_files() {
    for settings in CASES {
        let run = prepare(settings);
        let expected = by_itself(&run);
        assert!(expected.contains_key("privacy.json"), "{settings}");
        for on in [(2, 1), (3, 2), (7, 1)] {
            let of = format!("{settings} on {on:?}");
            assert_same(&whole(&run, on), &expected, &of);
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    for settings in CASES {
        let run = prepare(settings);
        let place = TempDir::new().unwrap();
        let dir = place.path().join("run");
        for (count, stop_after) in [(3, 1), (1, 2), (2, u32::MAX)] {
            let result = run_on(&run, &dir, (count, 1), stop_after).unwrap();
            let is_stopped = matches!(result.ending, Ending::Interrupted);
            assert_eq!(is_stopped, stop_after < 4, "{settings}");
        }
        assert_same(&files(&dir), &by_itself(&run), settings);
    }
}

#[test]
fn a_limit_on_epsilon_ends_all_ranks() {
    let place = TempDir::new().unwrap();
    let dir = place.path().join("run");
    let run = prepare("privacy.max_epsilon=3.0 privacy.noise_multiplier=0.8");
    let result = run_on(&run, &dir, (3, 1), u32::MAX).unwrap();
    assert!(matches!(result.ending, Ending::OverBudget(_)));
    assert!((1..4).contains(&result.records.len()));
}

#[test]
fn an_error_of_rank_0_ends_all_ranks() {
    let place = TempDir::new().unwrap();
    let dir = place.path().join("run");
    std::fs::create_dir_all(dir.join("config.toml")).unwrap();
    let error = run_on(&prepare(""), &dir, (3, 1), u32::MAX).unwrap_err();
    assert!(matches!(error, RunError::RunDir(_)), "{error}");
}

#[test]
fn an_error_of_another_rank_is_named() {
    let place = TempDir::new().unwrap();
    let dir = place.path().join("run");
    let results = threads::run(3, |ranks| {
        // The last rank has another model, and its states do not fit the file.
        let hidden = if ranks.rank() == 2 { 4 } else { 3 };
        let settings = format!("method=\"dpfedmtl\" model.hidden={hidden}");
        let (experiment, federation) = prepare(&settings);
        if ranks.rank() > 0 {
            follow(&experiment, &federation, ranks).unwrap();
            return None;
        }
        Some(lead(&experiment, &federation, &dir, ranks, u32::MAX))
    });
    let error = results.into_iter().flatten().next().unwrap().unwrap_err();
    let words = error.to_string();
    assert!(words.starts_with("rank 2: the personal models"), "{words}");
    assert!(!dir.join("metrics.jsonl").exists(), "{words}");
}

/// Correlated noise relies on it, whichever rank a device trains on.
#[test]
fn a_device_that_is_not_admitted_adds_nothing_on_any_rank() {
    let (experiment, federation) = prepare("privacy.trust=\"local\"");
    let sum = |source: &mut dyn Source, admitted: &Admitted| {
        source.begin(None).unwrap();
        let mut learner = experiment.method.begin(&federation, None).unwrap();
        let (training, release) = experiment.terms_in(1, None);
        let global = vec![0.0; experiment.task().parameter_count()];
        let assignment = Assignment {
            training,
            release: &release,
            admitted,
            root: &Root::from_seed(experiment.config.seed),
            global: &global,
            round: 1,
            number: 1,
        };
        let cohort = [2, 3, 5, 7, 11, 13];
        let sum = source.sum(&assignment, &mut *learner, &cohort).unwrap();
        (sum.sum.integers().to_vec(), sum.outcomes)
    };
    let only = Admitted::Only(vec![3, 13]);
    let expected = sum(&mut Simulated(&federation), &only);
    let of_all = sum(&mut Simulated(&federation), &Admitted::All);
    assert_ne!(expected, of_all);
    let found = threads::run(3, |ranks| {
        if ranks.rank() > 0 {
            follow(&experiment, &federation, ranks).unwrap();
            return None;
        }
        Some(sum(&mut Ranks::lead(&federation, ranks), &only))
    });
    assert_eq!(found[0], Some(expected));
}

#[test]
fn ranks_that_differ_are_refused() {
    let results = threads::run(3, |ranks| {
        let name = if ranks.rank() == 1 { "other" } else { "same" };
        compare(ranks, Ok(name.to_owned()))
    });
    for result in results {
        let sentence = result.unwrap_err();
        assert!(sentence.starts_with("rank 1 has other data"), "{sentence}");
    }
    let results = threads::run(3, |ranks| match ranks.rank() {
        2 => compare(ranks, Err("no such file".to_owned())),
        _ => compare(ranks, Ok("same".to_owned())),
    });
    assert_eq!(results[0], Err("rank 2: no such file".to_owned()));
    assert!(results[2].is_err());
    assert_eq!(compare(&Alone, Ok("any".to_owned())), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// For any cohort, number of ranks and number of threads.
    #[test]
    fn ranks_and_threads_change_nothing(
        rate in 0.0f64..1.0,
        seed in 0u32..1000,
        on in (1usize..9, 1usize..4),
    ) {
        let settings = format!(
            "seed={seed} rounds=2 cohort={{sampling=\"poisson\",sampling_rate={}}}",
            rate.max(0.01),
        );
        let run = prepare(&settings);
        prop_assert!(whole(&run, on) == by_itself(&run));
    }
}
