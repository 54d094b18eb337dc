//! Runs with an adaptive clip norm.

use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;

use crate::config::{Config, Override};
use crate::experiment::Experiment;
use crate::round::{RoundRecord, Start, TrainingLoop};
use crate::source::Simulated;
use smolfed_data::{DataFolders, Federation};

const ROUNDS: u32 = 8;

/// Encoders diverge at the usual step size.
const SLOW: &str = "train.learning_rate=0.001";

fn experiment(settings: &[&str]) -> (Experiment, Federation) {
    let text = format!(
        "method = \"dp-fed\"\nrounds = {ROUNDS}\nevaluate_every = 0\n[data]\nsource = \"digits\"\n\
         devices = 40\n[cohort]\ncohort_size = 20\n[train]\nclip = \"final\"\n\
         [privacy]\nclip_norm = \"adaptive\"\ndelta = 1e-3\n"
    );
    let settings: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(&text, "a test", &settings).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    let experiment = Experiment::new(config, &federation).unwrap();
    (experiment, federation)
}

/// Runs to the end from a state; the records, and the state after `until` rounds.
fn run(
    (experiment, federation): &(Experiment, Federation),
    start: Start,
    clip_norm: Option<ClipNorm>,
    until: u32,
) -> (Vec<RoundRecord>, Vec<f32>, Option<ClipNorm>) {
    let learner = experiment.method.begin(federation, None).unwrap();
    let training = TrainingLoop::new(experiment, federation, learner, start);
    let mut training = training.at_clip_norm(clip_norm);
    let mut records = Vec::new();
    while training.round() < until {
        let mut record = training.step(&mut Simulated(federation)).unwrap().record;
        record.seconds = 0.0;
        records.push(record);
    }
    (records, training.global().to_vec(), training.clip_norm())
}

/// Without noise the share is that of the updates inside the ball, and the clip norm takes the
/// paper's step, from the key's value on.
#[test]
fn the_clip_norm_follows_the_share_of_updates_that_are_not_clipped() {
    let keys = [
        "privacy.adaptive.initial=0.02",
        "privacy.adaptive.quantile=0.7",
    ];
    let place = experiment(&keys);
    let (records, _, last) = run(&place, Start::simulation(&place.0), None, ROUNDS);
    let mut expected = 0.02_f64;
    for record in &records {
        let found = f64::from(record.clip_norm.unwrap());
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
        let share = record.unclipped_share.unwrap();
        assert!((share - (1.0 - record.simulation_only.clipped_share)).abs() < 1e-12);
        expected *= (-0.2 * (share - 0.7)).exp();
    }
    assert!((f64::from(last.unwrap().get()) / expected - 1.0).abs() < 1e-5);
    let norms = records.iter().map(|record| record.clip_norm.unwrap());
    assert!(norms.max_by(f32::total_cmp) > Some(0.02), "it moved");
}

#[test]
fn a_run_that_is_resumed_ends_with_the_same_bits() {
    for trust in ["privacy.trust=central", "privacy.trust=local"] {
        let place = experiment(&["privacy.noise_multiplier=1", trust]);
        let start = Start::simulation(&place.0);
        let (records, model, clip_norm) = run(&place, start.clone(), None, ROUNDS);
        let (_, global, at) = run(&place, start.clone(), None, 3);
        let resumed = Start {
            global,
            round: 3,
            ..start
        };
        let (rest, other, last) = run(&place, resumed.clone(), at, ROUNDS);
        assert_eq!(rest, records[3..]);
        assert_eq!((other, last), (model.clone(), clip_norm));
        // Without the clip norm of the checkpoint it would be another run.
        let (_, wrong, _) = run(&place, resumed, None, ROUNDS);
        assert_ne!(wrong, model);
    }
}

/// The clip norm is computed from what is released: with other noise it is another one.
#[test]
fn the_clip_norm_sees_the_share_with_its_noise_only() {
    let place = experiment(&["privacy.noise_multiplier=1"]);
    let start = Start::simulation(&place.0);
    let (records, ..) = run(&place, start.clone(), None, 1);
    let share = records[0].unclipped_share.unwrap();
    let exact = 1.0 - records[0].simulation_only.clipped_share;
    assert!((share - exact).abs() > 1e-9, "{share} {exact}");
    // σ_b is 2z here, 2 of 20 devices. Six of them: below 2e-9.
    assert!((share - exact).abs() < 12.0 / 20.0, "{share} {exact}");
    let other = Start {
        root: Root::from_seed(77),
        ..start
    };
    let (other, ..) = run(&place, other, None, 1);
    assert_ne!(other[0].unclipped_share, Some(share));
}

/// Every method whose devices send one update follows its norms.
#[test]
fn every_method_that_clips_one_update_adapts() {
    let methods: [&[&str]; 6] = [
        &["method=fedprox", "personalise.lambda=0.1"],
        &["method=pmtl"],
        &["method=pp-sgd"],
        &["method=dpfedmtl", "model.hidden=4"],
        &["method=fedavg-sc", "contrast.width=4", SLOW],
        &[
            "method=fedsc",
            "contrast.width=4",
            "contrast.privacy.epsilon=8",
            SLOW,
        ],
    ];
    for settings in methods {
        let place = experiment(settings);
        let (records, ..) = run(&place, Start::simulation(&place.0), None, 2);
        let share = records[0].unclipped_share.unwrap();
        let exact = 1.0 - records[0].simulation_only.clipped_share;
        assert!(
            (share - exact).abs() < 1e-12,
            "{settings:?}: {share} {exact}"
        );
        let expected = 0.1 * (-0.2 * (share - 0.5)).exp();
        let found = f64::from(records[1].clip_norm.unwrap());
        assert!(
            (found / expected - 1.0).abs() < 1e-6,
            "{settings:?}: {found}"
        );
        assert!(records[0].simulation_only.trained > 0);
    }
}
