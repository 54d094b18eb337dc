//! Private selection: only the best trial remains, and its statement is verified.

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

fn seed_of(trial: &Trial) -> u64 {
    match &trial.randomness {
        Randomness::Seed(seed) => *seed,
        Randomness::Secret(_) => panic!("no seed determines this trial"),
    }
}

/// Returns the candidate of each trial, and the first word of a stream of its root.
fn names_of(trials: &[Trial]) -> Vec<(usize, u64)> {
    let id = StreamId {
        purpose: Purpose::ServerNoise,
        round: 0,
        device: 0,
    };
    let name = |trial: &Trial| {
        let root = match &trial.randomness {
            Randomness::Seed(seed) => Root::from_seed(*seed),
            Randomness::Secret(root) => root.clone(),
        };
        (trial.candidate, root.stream(id).next_u64())
    };
    trials.iter().map(name).collect()
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
        let trials = draw(experiment, 3, &Root::from_seed(*seed), true);
        (5..9).contains(&trials.len())
    };
    let seed = (0..100).find(is_many).unwrap();
    let (configs, federation) = candidates(&clip_norms, &[&format!("seed={seed}")]);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("chosen");
    let selected = select(&configs, &federation, &out).unwrap();
    assert_eq!(names(place.path()), ["chosen"]);

    // All trials again, each as a separate run.
    let experiments = experiments(&configs, &federation).unwrap();
    let trials = draw(&experiments[0], configs.len(), &Root::from_seed(seed), true);
    let score = |trial: &Trial| {
        let mut config = configs[trial.candidate].clone();
        config.set_trial_seed(TrialSeed::Known(seed_of(trial)));
        let experiment = Experiment::new(config, &federation).unwrap();
        let result = run_to_the_end(&experiment, &federation, None).unwrap();
        result.records.last().unwrap().score.unwrap()
    };
    let scores: Vec<f64> = trials.iter().map(score).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let place_of_largest = scores.iter().position(|score| *score >= largest).unwrap();
    let dir = RunDir::open(&out).unwrap();
    let selection = dir.config().unwrap().privacy.selection.unwrap();
    let chosen = seed_of(&trials[place_of_largest]);
    assert_eq!(selection.seed, Some(TrialSeed::Known(chosen)));
    let records = dir.records().unwrap();
    assert_eq!(records.last().unwrap().score, Some(largest));
    assert_eq!(records.len(), 2);

    // No file has the other scores or the other seeds.
    let others = || (0..trials.len()).filter(|index| *index != place_of_largest);
    let secrets = others().flat_map(|index| {
        let seed = seed_of(&trials[index]);
        [seed.to_string(), scores[index].to_string()]
    });
    let secrets: Vec<String> = secrets.collect();
    for name in names(&out) {
        let Ok(text) = std::fs::read_to_string(out.join(&name)) else {
            continue;
        };
        let found = secrets.iter().find(|secret| text.contains(*secret));
        assert_eq!(found, None, "{name}");
    }

    // It states the cost of the selection, which follows from its ledger and configuration.
    let verification = verify(&dir, Origin::Simulation).unwrap();
    assert!(verification.agrees(), "{verification:?}");
    let statement = &selected.privacy[0];
    assert!(statement.selection.is_some());
    let epsilon = records.last().unwrap().epsilon.unwrap();
    assert!((epsilon - statement.epsilon).abs() < 1e-12);
    // Only the last round, and without the validation figures whose noisy mean is the score.
    let [last] = selected.evaluations.as_slice() else {
        panic!("{:?}", selected.evaluations)
    };
    let validation = records.last().unwrap().simulation_only.devices_validation;
    assert!(validation.is_some(), "the run has the figures");
    let shown: Vec<Metric> = last.figures.keys().copied().collect();
    assert_eq!(shown, [Metric::TestAccuracy, Metric::TestLoss]);
    assert!(selected.seconds.abs() < f64::MIN_POSITIVE);

    // A second selection would cost the same again.
    let again = select(&configs, &federation, &out).err().unwrap();
    assert!(again.contains("already exists"), "{again}");
}

/// A choice by the accuracy without noise costs more than is charged. Here the two choices differ:
/// the noise, for four devices in sixty, is larger than the differences between the trials.
#[test]
fn the_choice_follows_the_noisy_scores_and_not_the_accuracies() {
    let place = tempfile::tempdir().unwrap();
    let differs = |seed: u64| {
        let changes = [
            &*format!("seed={seed}"),
            "privacy.selection.score_noise_multiplier=100",
        ];
        let (configs, federation) = candidates(&[0.05, 5.0], &changes);
        let experiments = experiments(&configs, &federation).unwrap();
        let trials = draw(&experiments[0], 2, &Root::from_seed(seed), true);
        let figures = |trial: &Trial| {
            let experiment = of_trial(&experiments[trial.candidate], trial);
            let result = run_to_the_end(&experiment, &federation, None).unwrap();
            let last = result.records.last().unwrap();
            let exact = last.simulation_only.devices_validation.unwrap();
            (last.score.unwrap(), exact.models.shared.unwrap())
        };
        let figures: Vec<(f64, f64)> = trials.iter().map(figures).collect();
        let best_of = |key: fn(&(f64, f64)) -> f64| {
            let best = figures.iter().map(key).fold(f64::NEG_INFINITY, f64::max);
            figures
                .iter()
                .position(|figure| key(figure) >= best)
                .unwrap()
        };
        let (noisy, exact) = (best_of(|x| x.0), best_of(|x| x.1));
        if noisy == exact {
            return false;
        }
        let out = place.path().join(seed.to_string());
        select(&configs, &federation, &out).unwrap();
        let dir = RunDir::open(&out).unwrap();
        let chosen = dir.config().unwrap().privacy.selection.unwrap().seed;
        assert_eq!(chosen, Some(TrialSeed::Known(seed_of(&trials[noisy]))));
        let score = dir.records().unwrap().last().unwrap().score;
        assert_eq!(score, Some(figures[noisy].0));
        true
    };
    assert!((0..20).any(differs), "no selection tells the two apart");
}

#[test]
fn the_first_of_the_largest_scores_wins_and_a_trial_without_a_score_never_does() {
    let trial = |seed| Trial {
        candidate: 0,
        randomness: Randomness::Seed(seed),
    };
    let trials = [0, 1, 2, 3].map(trial);
    let pick = |scores: [Option<f64>; 4]| {
        let found = best(&trials, |trial| scores[seed_of(trial) as usize]);
        found.map(|(trial, _)| seed_of(trial))
    };
    assert_eq!(pick([Some(0.1), Some(0.3), Some(0.2), None]), Some(1));
    assert_eq!(pick([None, Some(-1.0), Some(-1.0), Some(-2.0)]), Some(1));
    assert_eq!(pick([None, None, None, Some(-9.0)]), Some(3));
    assert_eq!(pick([None; 4]), None);
}

/// Of 2,000 draws with 6 trials on average, each trial has an independent candidate and seed. The
/// share of each of three candidates is within six standard errors of a third, which chance exceeds
/// with probability below 1e-8.
#[test]
fn trials_are_drawn_uniformly_and_independently() {
    let (configs, federation) = candidates(&[0.1, 0.5, 1.0], &[]);
    let experiment = &experiments(&configs, &federation).unwrap()[0];
    let drawn = |seed| draw(experiment, 3, &Root::from_seed(seed), true);
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
    let seeds: std::collections::HashSet<u64> = trials.iter().map(seed_of).collect();
    assert_eq!(seeds.len(), trials.len());
    assert!(seeds.iter().all(|seed| i64::try_from(*seed).is_ok()));
    assert_eq!(names_of(&drawn(3)), names_of(&drawn(3)));
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

/// One number of trials is drawn for all candidates: each must state its distribution, and whether
/// it is secret.
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

/// A Poisson number with mean 2 is 0 in one of seven selections. The result is then the initial
/// model, and nothing is written.
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
    let is_empty = |seed: &u64| draw(experiment, 2, &Root::from_seed(*seed), true).is_empty();
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
    // All ten classes are equally likely under the initial model, which predicts one of them.
    assert!(
        figures.figures[&Metric::TestAccuracy].value < 0.2,
        "{figures:?}"
    );
    assert_eq!(figures.rounds, 0);
    assert!(selected.privacy[0].selection.is_some());
}

/// On the same data, so that all differences come from the streams: cohorts in the numbers of
/// devices of the rounds, noise in the released scores and model.
#[test]
fn one_trial_seed_under_two_seeds_gives_other_cohorts_and_noise() {
    let (configs, federation) = candidates(&[0.5], &["rounds=6"]);
    let run = |seed| {
        let mut config = Config {
            seed,
            ..configs[0].clone()
        };
        config.set_trial_seed(TrialSeed::Known(11));
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

/// A kill leaves the secret, and perhaps part of the chosen run. A repeated selection has the same
/// trials every time. A selection among other candidates or on other data is refused.
#[test]
fn an_interrupted_selection_is_repeated_with_the_same_trials() {
    let (configs, federation) = candidates(&[0.1, 1.0], &["privacy.selection.seeded=false"]);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("new/chosen");
    let trials = || {
        let experiments = experiments(&configs, &federation).unwrap();
        let root = secret::root(&out, &configs, &federation).unwrap();
        names_of(&draw(&experiments[0], configs.len(), &root, false))
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

    let folders = DataFolders::new(Vec::new());
    let other = Federation::new(&configs[0].data, &folders, configs[0].seed + 1).unwrap();
    for (configs, federation) in [(&configs[..1], &federation), (&configs[..], &other)] {
        let error = select(configs, federation, &out).err().unwrap();
        assert!(
            error.contains("among other candidates or on other data"),
            "{error}"
        );
        assert!(out.join("metrics.jsonl").exists());
    }

    let chosen = || {
        select(&configs, &federation, &out).unwrap();
        let dir = RunDir::open(&out).unwrap();
        let model = std::fs::read(out.join("model.safetensors")).unwrap();
        (model, dir.records().unwrap().last().unwrap().score)
    };
    let once = chosen();
    assert_eq!(chosen(), once);
    assert_eq!(trials(), before);

    // Once the result is recorded, the place is taken, and nothing reveals the number of trials.
    secret::forget(&out).unwrap();
    secret::forget(&out).unwrap();
    assert_eq!(names(&place.path().join("new")), ["chosen"]);
    assert!(select(&configs, &federation, &out).is_err());
}

/// No file has the secret of the selection or of a trial, in hexadecimal, in decimal or as bytes.
/// The run's statement follows from its directory, and nothing repeats it.
#[test]
fn secret_randomness_is_in_no_file_and_the_run_can_be_read_but_not_repeated() {
    let changes = ["privacy.selection.seeded=false", "evaluate_every=1"];
    let (configs, federation) = candidates(&[0.1, 1.0], &changes);
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("chosen");
    let root = secret::root(&out, &configs, &federation).unwrap();
    let text = std::fs::read_to_string(secret::path(&out)).unwrap();
    let hexadecimal = text.lines().last().unwrap().to_owned();
    let mut secrets = vec![hex::decode(&hexadecimal).unwrap()];
    let experiment = &experiments(&configs, &federation).unwrap()[0];
    let mut stream = root.stream(StreamId {
        purpose: Purpose::Trials,
        round: 0,
        device: 0,
    });
    let count = draw(experiment, 2, &root, false).len();
    assert!(count > 0);
    // All words of the stream behind the trials, at every offset.
    let mut bytes = vec![0; 64 * (count + 8)];
    stream.fill_bytes(&mut bytes);
    secrets.extend(bytes.chunks(8).map(<[u8]>::to_vec));
    let trained = select(&configs, &federation, &out).unwrap();
    secret::forget(&out).unwrap();

    let result = serde_json::to_vec(&trained.privacy).unwrap();
    let mut files = vec![("the result".to_owned(), result)];
    let mut folders = vec![place.path().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.display().to_string(), std::fs::read(&path).unwrap())),
            }
        }
    }
    assert!(files.len() > 8, "{}", files.len());
    for (name, content) in &files {
        for secret in &secrets {
            for form in forms(secret) {
                let found = content.windows(form.len()).any(|part| part == form);
                assert!(!found, "{name} has a secret");
            }
        }
    }

    let dir = RunDir::open(&out).unwrap();
    let config = dir.config().unwrap();
    let selection = config.privacy.selection.as_ref().unwrap();
    assert_eq!(selection.seed, Some(TrialSeed::SECRET));
    assert!(config.to_toml().unwrap().contains("seed = \"secret\""));
    let ledger = std::fs::read_to_string(dir.ledger()).unwrap();
    assert!(!ledger.contains("\"seed\""), "{ledger}");
    let statement = std::fs::read_to_string(out.join("privacy.json")).unwrap();
    assert!(statement.contains("which was not kept"), "{statement}");
    let verification = verify(&dir, Origin::Simulation).unwrap();
    assert!(verification.agrees(), "{verification:?}");
    report::write(&dir).unwrap();
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("This run cannot be repeated: a private selection"));
    assert!(!html.contains("bit for bit"));

    let experiment = Experiment::new(config, &federation).unwrap();
    let refused = run_to_the_end(&experiment, &federation, Some(&dir)).err();
    let refused = refused.unwrap();
    assert!(refused.contains("its randomness was not kept"), "{refused}");
    let before = dir.records().unwrap();
    assert_eq!(before.len(), 2);
}

/// Returns the possible forms of a secret in a file.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec(), hex::encode(secret).into_bytes()];
    for word in secret.chunks_exact(8) {
        let word = u64::from_le_bytes(word.try_into().unwrap());
        // Also as a seed of 63 bits, as for trials of a known seed.
        forms.extend([word, word >> 1].map(|word| word.to_string().into_bytes()));
    }
    forms
}
