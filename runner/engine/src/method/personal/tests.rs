//! Personal models in whole rounds.

use std::collections::BTreeMap;

use smolfed_core::stream::Root;

use crate::config::{Config, DEFAULT};
use crate::evaluation::devices::Which;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner, View};
use crate::run::{self, Control};
use crate::source::CohortSum;
use crate::source::simulated::train_cohort;
use smolfed_data::{DataFolders, Federation};
use smolfed_release::{Admitted, Outcome, ReleaseSettings};

/// Layers below a dense one to the classes.
const CNN: &str = "model.layers=[{type=\"convolution\",channels=2,kernel=3},{type=\"relu\"},\
                   {type=\"max-pool\",size=2}]";

fn prepared(settings: &[&str]) -> (Experiment, Federation) {
    let common = [
        "data.devices=20",
        "data.device_test=0.2",
        "rounds=4",
        "evaluate_every=2",
    ];
    let overrides: Vec<_> = common
        .iter()
        .chain(settings)
        .map(|text| text.parse().unwrap())
        .collect();
    let config = Config::parse(DEFAULT, "the test", &overrides).unwrap();
    run::prepare(config, &DataFolders::of_experiment(None)).unwrap()
}

fn learner<'a>(experiment: &'a Experiment, federation: &'a Federation) -> Box<dyn Learner + 'a> {
    experiment.method.begin(federation, None).unwrap()
}

/// Returns a digest of a device's personal model as an evaluation sees it.
fn digest(learner: &mut dyn Learner) -> String {
    learner.save("test").unwrap().entries["states"].clone()
}

fn collect(
    (experiment, federation): (&Experiment, &Federation),
    release: &ReleaseSettings,
    learner: &mut dyn Learner,
    global: &[f32],
    (round, cohort): (u32, &[u32]),
) -> CohortSum {
    let assignment = Assignment {
        training: experiment.training_in(round),
        release,
        admitted: &Admitted::All,
        root: &Root::from_seed(experiment.config.seed),
        global,
        round,
        number: round,
    };
    train_cohort(&assignment, learner, federation, cohort).unwrap()
}

/// Returns the sum without noise.
fn sum(
    of: (&Experiment, &Federation),
    learner: &mut dyn Learner,
    global: &[f32],
    who: (u32, &[u32]),
) -> Vec<i64> {
    let mut release = of.0.release.clone();
    release.mechanism.sampler = None;
    let found = collect(of, &release, learner, global, who);
    found.sum.integers().to_vec()
}

const METHODS: [&[&str]; 10] = [
    &["method=pmtl"],
    &["method=pmtl", "personalise.update=as-printed"],
    &[
        "method=pmtl",
        "personalise.update=mean-over-all",
        "model.hidden=4",
    ],
    &["method=pp-sgd"],
    &["method=dpfedmtl", "model.hidden=4"],
    &["method=dpfedmtl", "personalise.private=biases"],
    &["method=pmtl", CNN],
    &["method=pp-sgd", "model.hidden=4"],
    &["method=pp-sgd", CNN, "personalise.ratio=0.5"],
    &["method=dpfedmtl", CNN],
];

/// On its first selection, a device's message depends on the shared model alone, whoever was
/// selected before (a public implementation gives it another device's model).
#[test]
fn a_first_selection_starts_from_the_shared_model() {
    for settings in METHODS {
        let (experiment, federation) = prepared(settings);
        let of = (&experiment, &federation);
        let global: Vec<f32> = (0..experiment.method.properties().shared_count)
            .map(|i| (i % 7) as f32 * 0.01)
            .collect();
        let [mut fresh, mut used] = [(); 2].map(|()| learner(&experiment, &federation));
        for round in 0..3 {
            sum(of, &mut *used, &global, (round, &[0, 1, 2, 5]));
        }
        let first = (3, &[7][..]);
        let expected = sum(of, &mut *fresh, &global, first);
        assert_eq!(
            sum(of, &mut *used, &global, first),
            expected,
            "{settings:?}"
        );
        assert!(expected.iter().any(|q| *q != 0));
        // The second time it starts from its own state.
        let again = (4, &[7][..]);
        let found = sum(of, &mut *used, &global, again);
        assert_eq!(found, sum(of, &mut *fresh, &global, again));
        assert_ne!(found, expected);
        assert_ne!(digest(&mut *fresh), digest(&mut *used));
    }
}

/// Weights by samples are at most 1, so noise for the largest weight suffices, and a note says that
/// they are capped.
#[test]
fn weights_are_capped_and_said() {
    let weights = [
        "method=pmtl",
        "cohort.weighting=samples",
        "cohort.weight_cap=8",
    ];
    let weighed = [weights.as_slice(), &["server.smoothing_factor=0"]].concat();
    let (experiment, federation) = prepared(&weighed);
    let (plain, _) = prepared(&["method=pmtl", "server.smoothing_factor=0"]);
    let words = experiment
        .privacy
        .statements(1)
        .unwrap()
        .remove(0)
        .in_words();
    assert!(words.contains("with weight 1 from 8 samples on"), "{words}");
    assert_eq!(experiment.privacy.multiplier(), plain.privacy.multiplier());
    let global = vec![0.0; experiment.method.properties().shared_count];
    let norm = |sum: Vec<i64>| (sum.iter().map(|q| q * q).sum::<i64>() as f64).sqrt();
    let of = |experiment: &Experiment| {
        let mut learner = learner(experiment, &federation);
        let of = (experiment, &federation);
        norm(sum(of, &mut *learner, &global, (0, &[3])))
    };
    // Four training samples of eight count half.
    assert_eq!(federation.sample_count(3), 4);
    assert!((of(&experiment) / of(&plain) - 0.5).abs() < 1e-3);
}

/// For any data, a device's contribution to the sum is bounded.
#[test]
fn every_update_is_clipped() {
    for settings in METHODS {
        let (experiment, federation) = prepared(&[settings, &["train.learning_rate=2"]].concat());
        let global = experiment.method.initial(&Root::from_seed(1));
        let mut learner = learner(&experiment, &federation);
        let of = (&experiment, &federation);
        for round in 0..2 {
            for device in 0..3 {
                let sum = sum(of, &mut *learner, &global, (round, &[device]));
                let squares: i64 = sum.iter().map(|q| q * q).sum();
                assert!(squares <= 1 << 40, "{settings:?}");
            }
        }
    }
}

/// All layers of a network are shared except the last one, which is the device's state.
#[test]
fn the_private_head_of_a_network_is_its_last_layer() {
    let (experiment, federation) = prepared(&["method=dpfedmtl", CNN]);
    let task = experiment.task();
    let (shared, count) = (
        experiment.method.properties().shared_count,
        task.parameter_count(),
    );
    let mut before = 0;
    let private = task.layout().into_iter().filter(|tensor| {
        before += tensor.length();
        before > shared
    });
    let names: Vec<String> = private.map(|tensor| tensor.name).collect();
    assert_eq!(names, ["layer_4.weights", "layer_4.biases"]);
    assert_eq!(count - shared, 10 * (2 * 3 * 3 + 1));

    let global = experiment.method.initial(&Root::from_seed(1));
    let mut learner = learner(&experiment, &federation);
    let of = (&experiment, &federation);
    let sent = sum(of, &mut *learner, &global, (0, &[3]));
    assert_eq!((sent.len(), global.len()), (shared, shared));
    assert!(sent.iter().any(|entry| *entry != 0));
    let state = experiment.method.properties().personal_state.unwrap();
    assert_eq!(state.length(count, shared), count - shared);
}

/// PP-SGD trains the sum of both parts with their steps added, and splits the displacement, for a
/// network as for one layer.
#[test]
fn an_offset_and_the_shared_network_move_together() {
    let settings = [
        "method=pp-sgd",
        CNN,
        "personalise.ratio=3",
        "privacy.clip_norm=1000",
        "train.learning_rate=0.02",
    ];
    let (experiment, federation) = prepared(&settings);
    // The same device with a ratio of 0 and four times the rate moves only the shared part.
    let plain = [
        "personalise.ratio=0",
        "privacy.clip_norm=1000",
        "train.learning_rate=0.08",
    ];
    let (alone, _) = prepared(&[&settings[..2], &plain].concat());
    let global = experiment.method.initial(&Root::from_seed(1));
    let update = |experiment: &Experiment| {
        let mut learner = learner(experiment, &federation);
        let of = (experiment, &federation);
        sum(of, &mut *learner, &global, (0, &[3]))
    };
    let (split, whole) = (update(&experiment), update(&alone));
    assert!(whole.iter().any(|entry| entry.abs() > 100));
    for (split, whole) in split.iter().zip(&whole) {
        assert!((4 * split - whole).abs() <= 8, "{split} {whole}");
    }
}

fn finished(settings: &[&str]) -> run::RunResult {
    let (experiment, federation) = prepared(settings);
    let control = Control {
        stop: &false.into(),
        checkpoint_every: std::time::Duration::MAX,
        on_round: &mut |_| {},
    };
    run::execute(&experiment, &federation, None, control).unwrap()
}

/// Every method and every kind of fine-tuning produces its figures.
#[test]
fn every_method_runs_and_is_judged_by_device() {
    let cases = [
        (&["method=fedprox"][..], "shared alone"),
        (&["method=pmtl"], "shared own alone"),
        (&["method=pp-sgd"], "shared own alone"),
        (&["method=local"], "own"),
        (&["method=pp-sgd", CNN], "shared own alone"),
        (&["method=dpfedmtl", "model.hidden=4"], "own alone"),
        (&["method=dpfedmtl", CNN], "own alone"),
        (
            &["method=dp-fed-ls", "personalise.fine_tune=plain"],
            "shared tuned alone",
        ),
        (
            &["method=pmtl", "personalise.fine_tune=ewc"],
            "shared own tuned alone",
        ),
        (
            &["method=dp-fed", "personalise.fine_tune=symmetrised-kl"],
            "shared tuned alone",
        ),
        (
            &["method=dp-fed", "personalise.fine_tune=mean-regularised"],
            "shared tuned alone",
        ),
    ];
    for (settings, expected) in cases {
        let settings = [settings, &["server.smoothing_factor=0"]].concat();
        let result = finished(&settings);
        let report = result.devices.unwrap();
        assert_eq!(report.devices.len(), 20, "{settings:?}");
        let found: BTreeMap<&str, f64> = Which::ALL
            .into_iter()
            .filter_map(|which| Some((which.name(), report.spread(which)?.mean)))
            .collect();
        let mut names: Vec<&str> = expected.split(' ').collect();
        names.sort_unstable();
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            names,
            "{settings:?}"
        );
        assert!(
            found.values().all(|mean| (0.0..=1.0).contains(mean)),
            "{settings:?} {found:?}"
        );
    }
}

/// If nothing is shared, nothing is spent, for any target.
#[test]
fn local_training_costs_nothing() {
    let result = finished(&["method=local", "server.smoothing_factor=0"]);
    let statement = result.statements.first().unwrap();
    assert!(statement.epsilon <= 0.0 && statement.releases_per_round == Some(0));
    assert!(statement.in_words().contains("sends nothing"));
}

/// Each local step is a release, and the paper's scale gives another amount of noise.
#[test]
fn steps_with_noise_are_counted_one_by_one() {
    let steps = [
        "method=dpfedmtl",
        "model.hidden=4",
        "personalise.noise=each-step",
        "personalise.local_steps=3",
        "privacy.trust=local",
        "privacy.noise_multiplier=5",
    ];
    let epsilon = |more: &[&str]| {
        let mut overrides: Vec<&str> = steps.to_vec();
        overrides.extend(["server.smoothing_factor=0"]);
        overrides.extend(more);
        let text = DEFAULT.replace("epsilon = ", "max_epsilon = 1e9 # ");
        let overrides: Vec<_> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        let config = Config::parse(&text, "the test", &overrides).unwrap();
        let (experiment, _) = run::prepare(config, &DataFolders::of_experiment(None)).unwrap();
        let statement = experiment.privacy.statements(4).unwrap().remove(0);
        assert_eq!(
            (statement.rounds, statement.releases_per_round),
            (4, Some(3))
        );
        assert!(statement.in_words().contains("makes 3 releases in a round"));
        (statement.epsilon, statement.noise_multiplier)
    };
    let (sound, multiplier) = epsilon(&[]);
    assert!((multiplier - 5.0).abs() < 1e-12);
    // 2K/M at a sampling rate of 0.2.
    let (printed, multiplier) = epsilon(&["personalise.noise_scale=as-printed"]);
    assert!((multiplier - 2.0).abs() < 1e-12);
    assert!(printed > sound);
}

/// A device whose training diverges is left out of rounds and has no figure for it. The run and the
/// others continue.
#[test]
fn a_device_that_diverges_ends_nothing() {
    for method in ["pmtl", "dp-fed"] {
        let method = format!("method={method}");
        let settings = [
            method.as_str(),
            "train.learning_rate=1e30",
            "server.smoothing_factor=0",
            "personalise.fine_tune=plain",
            "privacy.trust=local",
        ];
        let (experiment, federation) = prepared(&settings);
        let mut learner = learner(&experiment, &federation);
        // With its own noise, a device sends only that, and nobody can tell.
        let global = vec![0.0; experiment.method.properties().shared_count];
        let of = (&experiment, &federation);
        let found = collect(of, &experiment.release, &mut *learner, &global, (0, &[1]));
        assert!(matches!(found.outcomes[0], Outcome::LeftOut { .. }));
        let noisy = found.sum.integers().iter().filter(|q| **q != 0);
        assert!(noisy.count() > 600);
        let figures = learner.evaluate(&View {
            federation: &federation,
            global: &global,
            training: &experiment.training,
            root: &Root::from_seed(1),
            is_last: true,
        });
        let report = figures.unwrap().devices.unwrap();
        let means = report.means();
        assert!(means.models.shared.is_some());
        assert_eq!(report.diverged, [Which::Tuned, Which::Alone]);
    }
}

/// The std given to denoisers matches the actual noise. Here noise dominates the gradients, which
/// the step size scales.
#[test]
fn noise_in_each_step_has_the_std_that_is_said() {
    let text = DEFAULT.replace("epsilon = ", "max_epsilon = 1e9 # ");
    let settings = [
        "data.devices=20",
        "cohort.sampling=full",
        "method=dpfedmtl",
        "model.hidden=4",
        "train.learning_rate=0.1",
        "personalise.noise=each-step",
        "personalise.local_steps=4",
        "privacy.trust=local",
        "privacy.noise_multiplier=1000",
        "server.smoothing_factor=0",
    ];
    let text = text.replace("sampling_rate = 0.2", "");
    let overrides: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let config = Config::parse(&text, "the test", &overrides).unwrap();
    let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(None)).unwrap();
    let mut learner = learner(&experiment, &federation);
    let cohort: Vec<u32> = (0..20).collect();
    let global = vec![0.0; experiment.method.properties().shared_count];
    let of = (&experiment, &federation);
    let found = collect(
        of,
        &experiment.release,
        &mut *learner,
        &global,
        (0, &cohort),
    );
    let sum = found.sum.integers();
    let rate = experiment.training_in(0).learning_rate.get();
    let step = experiment.release.step(rate);
    let squares: f64 = sum.iter().map(|q| (*q as f64 * step).powi(2)).sum();
    let found = (squares / sum.len() as f64).sqrt();
    let said = experiment.release.noise_std_of_sum(rate, 20);
    // 260 draws have a relative standard error of 4.4 %. The tolerance is five of them.
    assert!((found / said - 1.0).abs() < 0.22, "{found} {said}");
}
