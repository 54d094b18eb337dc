//! A trial of a private selection: the sensitivity and the noise of its score, the total ε, and
//! refusals.

use smolfed_accounting::selection::Selection;
use smolfed_accounting::trade_off::TradeOff;
use smolfed_accounting::{Accountant, Delta, Epsilon, PrivacyEvent};

use super::*;
use crate::config::Override;
use crate::experiment::Experiment;
use smolfed_data::DataFolders;
use smolfed_release::ledger::Spent;
use smolfed_release::origin::Origin;

const TRIAL: &str = r#"
name = "trial"
method = "dp-fed-ls"
seed = 5
rounds = 3
[data]
source = "digits"
devices = 40
samples_per_device = 10
device_validation = 0.2
scale = "unit"
[cohort]
sampling = "full"
[train]
epochs = 1
batch_size = 5
[privacy]
clip_norm = 0.5
epsilon = 2
[privacy.selection]
seeded = true
seed = 11
"#;

fn config(changes: &[&str]) -> Config {
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().unwrap()).collect();
    Config::parse(TRIAL, "trial.toml", &changes).unwrap()
}

fn build(changes: &[&str]) -> (Result<Experiment, ExperimentError>, Federation) {
    let config = config(changes);
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    (Experiment::new(config, &federation), federation)
}

fn trial(changes: &[&str]) -> Trial {
    build(changes).0.unwrap().trial.unwrap()
}

/// One bound under add-remove, two under replace-one, exactly in the released integers.
#[test]
fn one_device_moves_the_score_by_at_most_what_is_charged() {
    let trial = trial(&[]);
    let bound = 1i64 << DEFAULT_BITS;
    let root = Root::from_seed(1);
    let sum = |accuracies: &[Option<f64>]| trial.sum(accuracies, &root).integers()[0];
    let values = [None, Some(0.0), Some(1.0 / 3.0), Some(0.5), Some(1.0)];
    let of_others = [Some(0.25), Some(1.0)];
    let with = |value: Option<f64>| sum(&[of_others[0], of_others[1], value]);
    for value in values {
        assert!((with(value) - sum(&of_others)).abs() <= bound, "{value:?}");
        for other in values {
            assert!((with(value) - with(other)).abs() <= 2 * bound);
        }
    }
    assert_eq!(with(Some(1.0)) - with(Some(0.0)), 2 * bound);
    assert_eq!(with(None), sum(&of_others));
    // Invalid accuracies move it by no more: the release path has the last word.
    for wrong in [1.5, -0.5, 1e9, f64::NAN, f64::INFINITY] {
        assert!(
            (with(Some(wrong)) - sum(&of_others)).abs() <= bound,
            "{wrong}"
        );
    }
}

/// 2,000 scores: the relative error of their std has a std of 1.6 %, and exceeds six of them with a
/// probability below 2e-9. The mean is as close to the exact one.
#[test]
fn scores_have_the_noise_that_is_charged() {
    let trial = trial(&["privacy.selection.score_noise_multiplier=7"]);
    let z = trial.side.event.mechanism.noise_multiplier().get();
    assert!((z - 7.0).abs() < 1e-12);
    let accuracies: Vec<Option<f64>> = (0..20).map(|k| Some(f64::from(k) / 40.0)).collect();
    let exact = 19.0 / 80.0;
    let claimed = z / (2.0 * 20.0);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut known = std::collections::HashSet::new();
    for seed in 0..2_000 {
        let error = trial.release(&accuracies, &Root::from_seed(seed)) - exact;
        sum += error;
        squares += error * error;
        known.insert(error.to_bits());
    }
    let std = f64::sqrt(squares / 2_000.0);
    assert!((std / claimed - 1.0).abs() < 6.0 * 0.016, "{std} {claimed}");
    assert!(
        sum.abs() / 2_000.0 < 6.0 * claimed / f64::sqrt(2_000.0),
        "{sum}"
    );
    assert!(known.len() > 1_900, "each trial has noise of its own");
}

/// Computes Theorem 2 for Gaussian releases of all devices: each round costs α/(2z²), the score
/// α/(2z_s²), and ε follows from the improved conversion.
fn by_hand(z: f64, rounds: f64, score: f64, shape: f64, rate: f64, mean: f64, delta: f64) -> f64 {
    let rho = |order: f64| order / 2.0 * (rounds / (z * z) + 1.0 / (score * score));
    let orders = || (5..3_000).map(|k| f64::from(k) / 4.0);
    let second = |b: f64| (1.0 - 1.0 / b) * rho(b) - rate.ln() / b;
    let least = orders().map(second).fold(f64::INFINITY, f64::min);
    let epsilon = |order: f64| {
        let rdp = rho(order) + (1.0 + shape) * least + mean.ln() / (order - 1.0);
        rdp + f64::ln_1p(-1.0 / order) - (delta.ln() + order.ln()) / (order - 1.0)
    };
    orders().map(epsilon).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_calibrated_whole_costs_the_target_by_the_theorem() {
    for (changes, shape) in [
        (&["privacy.selection.mean=5"][..], 0.0),
        (
            &["privacy.selection.mean=20", "privacy.selection.shape=1"],
            1.0,
        ),
    ] {
        let experiment = build(changes).0.unwrap();
        let (privacy, trial) = (&experiment.privacy, experiment.trial.as_ref().unwrap());
        let Trials::NegativeBinomial { rate, .. } = trial.trials else {
            panic!("{:?}", trial.trials)
        };
        let z = privacy.multiplier().get();
        let (mean, delta) = (trial.trials.mean(), privacy.delta);
        let exact = by_hand(z, 3.0, 10.0, shape, rate, mean, delta.get());
        // The exact value has a finer grid of orders, so it is slightly less. Rounding adds 1e-6.
        let stated = privacy.estimate(3).unwrap().epsilon;
        assert!(stated <= 2.0 && stated > 1.999, "{stated}");
        assert!(
            exact <= stated && stated < 1.01 * exact + 2e-6,
            "{exact} {stated}"
        );
        let selection = Selection {
            trials: trial.trials,
            trial: vec![experiment.privacy.event().with_count(3), trial.side.event],
        };
        let again = selection.epsilon(delta).unwrap();
        assert!((stated - again - 1e-6).abs() < 1e-12, "{stated} {again}");
        // One trial alone costs much less, and is never the stated ε.
        let alone = Accountant::Rdp.epsilon(&selection.trial, delta).unwrap();
        assert!(alone.epsilon < 0.75 * stated, "{alone:?}");
    }
}

#[test]
fn everything_that_is_stated_is_of_the_selection() {
    let (experiment, _) = build(&[]);
    let experiment = experiment.unwrap();
    let statements = experiment.statements(3, &[]).unwrap();
    let [statement] = statements.as_slice() else {
        panic!("{statements:?}")
    };
    let epsilon = experiment.privacy.estimate(3).unwrap().epsilon;
    assert!(statement.is_upper_bound() && (statement.epsilon - epsilon).abs() < 1e-15);
    let curve = TradeOff::new(epsilon, experiment.privacy.delta);
    assert!((statement.advantage - curve.advantage()).abs() < 1e-15);
    assert!((statement.hit_rate_at_1_percent - curve.true_positive_rate(0.01)).abs() < 1e-15);
    let selection = statement.selection.unwrap();
    assert_eq!(selection.theorem, 2);
    assert!((selection.mean_trials - 8.0).abs() < 1e-9);
    assert!((selection.score_noise_multiplier - 10.0).abs() < 1e-12);
    let words = statement.in_words();
    for part in [
        "best of a random number of trials, 8.0 on average",
        "Theorem 2",
        "stay secret",
    ] {
        assert!(words.contains(part), "{words}");
    }
    // A stopped run states the whole selection as planned. Its score is charged with the last
    // round.
    let stopped = &experiment.statements(2, &[]).unwrap()[0];
    assert!(
        stopped
            .epsilon_planned
            .is_some_and(|planned| (planned - epsilon).abs() < 1e-12)
    );
    let scores = |round| {
        let events = experiment.events_in(round).into_iter();
        events.filter(PrivacyEvent::is_score).count()
    };
    assert_eq!([0, 1, 2].map(scores), [0, 0, 1]);
}

#[test]
fn more_noise_on_the_score_leaves_more_for_the_updates() {
    let of = |noise: &str| {
        let noise = format!("privacy.selection.score_noise_multiplier={noise}");
        let (experiment, _) = build(&[&noise]);
        experiment.map(|experiment| experiment.privacy.multiplier().get())
    };
    assert!(of("8").unwrap() > of("80").unwrap());
    // A score that costs more than the target leaves nothing.
    let error = of("0.5").unwrap_err().to_string();
    assert!(
        error.contains("no noise multiplier of the trials keeps epsilon"),
        "{error}"
    );
    assert!(of("0").is_err() && of("-1").is_err());
}

/// Changes to the experiment, and words of the refusal.
const REFUSED: &[(&[&str], &str)] = &[
    (&["privacy.trust=local"], "`privacy.trust` contradict"),
    (&["privacy.ledger=a.jsonl"], "`privacy.ledger` contradict"),
    (
        &["privacy.accountant=pld"],
        "`privacy.accountant` contradict",
    ),
    (
        &[
            "cohort.sampling=rotation",
            "privacy.mechanism=correlated",
            "privacy.separation=2",
        ],
        "`privacy.mechanism` contradict",
    ),
    (&["method=local"], "`method` contradict"),
    (
        &["method=dpfedmtl", "model.hidden=8"],
        "`method` contradict",
    ),
    (
        &["data.device_validation=0"],
        "`data.device_validation` is missing",
    ),
    (&["privacy.epsilon=inf"], "`privacy.epsilon` is missing"),
    (
        &["privacy.selection.mean=1.5"],
        "`privacy.selection.mean` is 1.5",
    ),
    (&["privacy.selection.mean=101"], "from 2 to 100"),
    (
        &["privacy.selection.shape=-0.5"],
        "`privacy.selection.shape` is -0.5",
    ),
    (
        &[
            "privacy.selection.trials=poisson",
            "privacy.selection.shape=1",
        ],
        "has no shape",
    ),
];

#[test]
fn what_a_selection_does_not_cover_is_refused() {
    for (changes, words) in REFUSED {
        let error = build(changes).0.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(words), "{changes:?} {error}");
    }
    let mut config = config(&[]);
    config.privacy.epsilon = None;
    config.privacy.noise_multiplier = Some(20.0);
    config.privacy.max_epsilon = Some(3.0);
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    let refused = |config: &Config, origin| {
        let found = Experiment::with_spent(config.clone(), &federation, &Spent::default(), origin);
        found.map(|_| ()).unwrap_err().to_string()
    };
    let error = refused(&config, Origin::Simulation);
    assert!(
        error.contains("`privacy.max_epsilon` contradict"),
        "{error}"
    );
    config.privacy.max_epsilon = None;
    let replay = Origin::Replay {
        id: "abc".to_owned(),
    };
    let error = refused(&config, replay);
    assert!(
        error.contains("`privacy.selection` and `--participation` contradict"),
        "{error}"
    );
    config.privacy.selection.as_mut().unwrap().seed = None;
    let error = refused(&config, Origin::Simulation);
    assert!(
        error.contains("`privacy.selection.seed` is missing"),
        "{error}"
    );
}

/// The statement says whether the trial came from a known seed.
#[test]
fn a_trial_has_the_seed_that_its_statement_tells_of() {
    for change in [
        "privacy.selection.seeded=false",
        "privacy.selection.seed=secret",
    ] {
        let error = build(&[change]).0.unwrap_err().to_string();
        let both = "`privacy.selection.seeded` and `privacy.selection.seed` contradict";
        assert!(error.starts_with(both), "{error}");
    }
    let secret = [
        "privacy.selection.seeded=false",
        "privacy.selection.seed=secret",
    ];
    build(&secret).0.unwrap();
}

#[test]
fn a_poisson_number_of_trials_is_charged_by_its_own_theorem() {
    let (experiment, _) = build(&["privacy.selection.trials=poisson"]);
    let experiment = experiment.unwrap();
    let statement = &experiment.statements(3, &[]).unwrap()[0];
    assert_eq!(statement.selection.unwrap().theorem, 6);
    let trial = vec![
        experiment.privacy.event().with_count(3),
        experiment.trial.as_ref().unwrap().side.event,
    ];
    let trials = Trials::poisson(8.0).unwrap();
    let delta = Delta::new(experiment.privacy.delta.get()).unwrap();
    let epsilon = Selection { trials, trial }.epsilon(delta).unwrap();
    assert!((statement.epsilon - epsilon - 1e-6).abs() < 1e-12);
    let target = Epsilon::new(2.0).unwrap();
    assert!(statement.epsilon <= target.get());
}
