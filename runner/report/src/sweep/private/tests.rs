//! Private selection: the chosen trial is the best and alone remains; what it states is verified.

use super::*;
use smolfed_data::DataFolders;
use smolfed_engine::run::RunResult;
use smolfed_engine::run::verify::verify;
use smolfed_engine::tables::privacy::{SelectionConfig, TrialsName};
use smolfed_release::origin::Origin;

const SELECTION: &str = r#"
name = "selection"
method = "dp-fed-ls"
seed = 5
rounds = 2
evaluate_every = 0
[data]
source = "digits"
devices = 60
samples_per_device = 10
device_validation = 0.3
scale = "unit"
[cohort]
sampling = "poisson"
sampling_rate = 0.5
[train]
epochs = 1
batch_size = 5
[privacy]
clip_norm = 0.5
noise_multiplier = 20
[privacy.selection]
mean = 6
shape = 1
seeded = true
"#;

fn candidates(clip_norms: &[f64], changes: &[&str]) -> (Vec<Config>, Federation) {
    let config = |clip_norm: &f64| {
        let mut changes: Vec<_> = changes.iter().map(|text| text.parse().unwrap()).collect();
        changes.push(format!("privacy.clip_norm={clip_norm}").parse().unwrap());
        Config::parse(SELECTION, "selection.toml", &changes).unwrap()
    };
    let configs: Vec<Config> = clip_norms.iter().map(config).collect();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&configs[0].data, &folders, configs[0].seed).unwrap();
    (configs, federation)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_chosen_run_has_the_largest_of_the_noisy_scores_and_nothing_else_remains() {
    let clip_norms = [0.05, 0.5, 5.0];
    let (configs, federation) = candidates(&clip_norms, &[]);
    let experiment = &experiments(&configs, &federation).unwrap()[0];
    let is_many = |seed: &u64| {
        let trials = draw(experiment, 3, &Root::from_seed(*seed));
        (5..9).contains(&trials.len())
    };
    let seed = (0..100).find(is_many).unwrap();
    let (configs, federation) = candidates(&clip_norms, &[&format!("seed={seed}")]);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("chosen");
    let selected = select(&configs, &federation, &out).unwrap();
    assert_eq!(names(place.path()), ["chosen"]);

    // All trials once more, each as a run of its own.
    let experiments = experiments(&configs, &federation).unwrap();
    let trials = draw(&experiments[0], configs.len(), &Root::from_seed(seed));
    let score = |trial: &Trial| {
        let mut config = configs[trial.candidate].clone();
        config.set_trial_seed(trial.seed);
        let experiment = Experiment::new(config, &federation).unwrap();
        let result = run_to_the_end(&experiment, &federation, None).unwrap();
        result.records.last().unwrap().score.unwrap()
    };
    let scores: Vec<f64> = trials.iter().map(score).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let place_of_largest = scores.iter().position(|score| *score >= largest).unwrap();
    let dir = RunDir::open(&out).unwrap();
    let selection = dir.config().unwrap().privacy.selection.unwrap();
    assert_eq!(selection.seed, Some(trials[place_of_largest].seed));
    let records = dir.records().unwrap();
    assert_eq!(records.last().unwrap().score, Some(largest));
    assert_eq!(records.len(), 2);

    // Neither the other scores nor the other seeds are in any file.
    let others = || (0..trials.len()).filter(|index| *index != place_of_largest);
    let secrets =
        others().flat_map(|index| [trials[index].seed.to_string(), scores[index].to_string()]);
    let secrets: Vec<String> = secrets.collect();
    for name in names(&out) {
        let Ok(text) = std::fs::read_to_string(out.join(&name)) else {
            continue;
        };
        let found = secrets.iter().find(|secret| text.contains(*secret));
        assert_eq!(found, None, "{name}");
    }

    // What it states is the cost of the selection, and follows from its ledger and configuration.
    let verification = verify(&dir, Origin::Simulation).unwrap();
    assert!(verification.agrees(), "{verification:?}");
    let statement = &selected.privacy[0];
    assert!(statement.selection.is_some());
    let epsilon = records.last().unwrap().epsilon.unwrap();
    assert!((epsilon - statement.epsilon).abs() < 1e-12);
    // Of the last round, and without the validation figures whose noisy mean is the score.
    let [last] = selected.evaluations.as_slice() else {
        panic!("{:?}", selected.evaluations)
    };
    let validation = records.last().unwrap().simulation_only.devices_validation;
    assert!(validation.is_some(), "the run has the figures");
    let shown: Vec<Metric> = last.figures.keys().copied().collect();
    assert_eq!(shown, [Metric::TestAccuracy, Metric::TestLoss]);
    assert!(selected.seconds.abs() < f64::MIN_POSITIVE);

    // A second selection would cost as much again.
    let again = select(&configs, &federation, &out).err().unwrap();
    assert!(again.contains("is there already"), "{again}");
}

#[test]
fn the_first_of_the_largest_scores_wins_and_a_trial_without_a_score_never_does() {
    let trial = |seed| Trial { candidate: 0, seed };
    let trials = [0, 1, 2, 3].map(trial);
    let pick = |scores: [Option<f64>; 4]| {
        let found = best(&trials, |trial| scores[trial.seed as usize]);
        found.map(|(trial, _)| trial.seed)
    };
    assert_eq!(pick([Some(0.1), Some(0.3), Some(0.2), None]), Some(1));
    assert_eq!(pick([None, Some(-1.0), Some(-1.0), Some(-2.0)]), Some(1));
    assert_eq!(pick([None, None, None, Some(-9.0)]), Some(3));
    assert_eq!(pick([None; 4]), None);
}

/// Of 6 trials on average, each draw of 2,000 has a candidate and a seed of its own; the share of
/// each of three candidates is within six standard errors of a third, which chance exceeds with a
/// probability below 1e-8.
#[test]
fn trials_are_drawn_uniformly_and_independently() {
    let (configs, federation) = candidates(&[0.1, 0.5, 1.0], &[]);
    let experiment = &experiments(&configs, &federation).unwrap()[0];
    let drawn = |seed| draw(experiment, 3, &Root::from_seed(seed));
    let trials: Vec<Trial> = (0..2_000).flat_map(drawn).collect();
    let count = trials.len() as f64;
    // The geometric distribution of mean 6 has a variance of 30.
    assert!(
        (count / 2_000.0 - 6.0).abs() < 6.0 * f64::sqrt(30.0 / 2_000.0),
        "{count}"
    );
    for candidate in 0..3 {
        let found = trials
            .iter()
            .filter(|trial| trial.candidate == candidate)
            .count();
        let error = f64::sqrt(count * 2.0 / 9.0);
        assert!(
            (found as f64 - count / 3.0).abs() < 6.0 * error,
            "{found} {count}"
        );
    }
    let seeds: std::collections::HashSet<u64> = trials.iter().map(|trial| trial.seed).collect();
    assert_eq!(seeds.len(), trials.len());
    assert!(seeds.iter().all(|seed| i64::try_from(*seed).is_ok()));
    assert_eq!(drawn(3), drawn(3));
}

#[test]
fn candidates_that_cost_differently_are_refused() {
    let (mut configs, federation) = candidates(&[0.1, 0.5], &[]);
    assert!(experiments(&configs, &federation).is_ok());
    configs[1].rounds = 3;
    let error = experiments(&configs, &federation).unwrap_err();
    assert!(
        error.contains("differ in rounds, cohorts, noise, delta"),
        "{error}"
    );
    configs[1].rounds = 2;
    configs[1].privacy.noise_multiplier = Some(21.0);
    assert!(experiments(&configs, &federation).is_err());
}

/// One number of trials is drawn for all candidates: each must state the distribution that it comes
/// from, and whether it is secret.
#[test]
fn candidates_of_different_numbers_of_trials_are_refused() {
    let (configs, federation) = candidates(&[0.1, 0.5], &[]);
    let changes: [fn(&mut SelectionConfig); 4] = [
        |selection| selection.mean = 100.0,
        |selection| selection.shape = Some(0.0),
        |selection| selection.trials = TrialsName::Poisson,
        |selection| selection.seeded = false,
    ];
    for change in changes {
        let mut configs = configs.clone();
        let selection = configs[1].privacy.selection.as_mut().unwrap();
        change(selection);
        if selection.trials == TrialsName::Poisson {
            selection.shape = None;
        }
        let error = experiments(&configs, &federation).unwrap_err();
        assert!(error.contains("or `privacy.selection`"), "{error}");
    }
}

/// A Poisson number of mean 2 is 0 in one of seven selections: the initial model is the result
/// then, and nothing is written.
#[test]
fn no_trial_gives_the_initial_model() {
    let (configs, federation) = candidates(
        &[0.1, 0.5],
        &[
            "privacy.selection.trials=poisson",
            "privacy.selection.mean=2",
        ],
    );
    // `shape` cannot be unset by an override.
    let without_shape = |mut config: Config| {
        config.privacy.selection.as_mut().unwrap().shape = None;
        config
    };
    let mut configs: Vec<Config> = configs.into_iter().map(without_shape).collect();
    let experiment = &experiments(&configs, &federation).unwrap()[0];
    let is_empty = |seed: &u64| draw(experiment, 2, &Root::from_seed(*seed)).is_empty();
    let seed = (0..100).find(is_empty).unwrap();
    for config in &mut configs {
        config.seed = seed;
    }
    let place = tempfile::tempdir().unwrap();
    let selected = select(&configs, &federation, &place.path().join("chosen")).unwrap();
    assert_eq!(names(place.path()), [""; 0]);
    let [figures] = selected.evaluations.as_slice() else {
        panic!("{:?}", selected.evaluations)
    };
    // All ten classes are as likely under the initial model, which says one of them.
    assert!(
        figures.figures[&Metric::TestAccuracy].value < 0.2,
        "{figures:?}"
    );
    assert_eq!(figures.rounds, 0);
    assert!(selected.privacy[0].selection.is_some());
}

/// On the same data, so that all that differs comes from the streams: cohorts in the numbers of
/// devices of the rounds, noise in the released scores and model.
#[test]
fn one_trial_seed_under_two_seeds_gives_other_cohorts_and_noise() {
    let (configs, federation) = candidates(&[0.5], &["rounds=6"]);
    let run = |seed| {
        let mut config = Config {
            seed,
            ..configs[0].clone()
        };
        config.set_trial_seed(11);
        let experiment = Experiment::new(config, &federation).unwrap();
        run_to_the_end(&experiment, &federation, None).unwrap()
    };
    let [one, other, again] = [5, 6, 5].map(run);
    let cohorts = |result: &RunResult| -> Vec<usize> {
        result.records.iter().map(|record| record.cohort).collect()
    };
    let score = |result: &RunResult| result.records.last().unwrap().score;
    assert_ne!(cohorts(&one), cohorts(&other));
    assert_ne!(score(&one), score(&other));
    assert_ne!(one.model, other.model);
    assert_eq!(
        (cohorts(&one), score(&one)),
        (cohorts(&again), score(&again))
    );
    assert_eq!(one.model, again.model);
}

/// A kill leaves the secret, and perhaps a part of the chosen run: repeated, the selection has the
/// same trials, however often; a selection among other candidates is refused.
#[test]
fn an_interrupted_selection_is_repeated_with_the_same_trials() {
    let (configs, federation) = candidates(&[0.1, 1.0], &["privacy.selection.seeded=false"]);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("new/chosen");
    let trials = || {
        let experiments = experiments(&configs, &federation).unwrap();
        let root = secret::root(&out, &configs).unwrap();
        draw(&experiments[0], configs.len(), &root)
    };
    let before = trials();
    let metadata = std::fs::metadata(secret::path(&out)).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777,
        0o600
    );
    assert_eq!(trials(), before);
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("metrics.jsonl"), "{").unwrap();

    let error = select(&configs[..1], &federation, &out).err().unwrap();
    assert!(
        error.contains("of an interrupted selection among other candidates"),
        "{error}"
    );
    assert!(out.join("metrics.jsonl").exists());

    let chosen = || {
        select(&configs, &federation, &out).unwrap();
        let dir = RunDir::open(&out).unwrap();
        let seed = dir.config().unwrap().privacy.selection.unwrap().seed;
        (seed, dir.records().unwrap().last().unwrap().score)
    };
    let once = chosen();
    assert!(before.iter().any(|trial| Some(trial.seed) == once.0));
    assert_eq!(chosen(), once);
    assert_eq!(trials(), before);

    // Once the result is recorded, the place is taken, and nothing tells the number of trials.
    secret::forget(&out).unwrap();
    secret::forget(&out).unwrap();
    assert_eq!(names(&place.path().join("new")), ["chosen"]);
    assert!(select(&configs, &federation, &out).is_err());
}
