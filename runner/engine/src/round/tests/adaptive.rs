//! Runs with an adaptive clip norm.

use smolfed_core::stream::Root;

use crate::config::{Config, Override};
use crate::experiment::Experiment;
use crate::round::{RoundRecord, TrainingLoop, TrainingState};
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

/// Runs to the end from a state. Returns the records, and the state after `until` rounds.
fn run(
    (experiment, federation): &(Experiment, Federation),
    state: &TrainingState,
    until: u32,
) -> (Vec<RoundRecord>, TrainingState) {
    let root = experiment.root().unwrap();
    let mut training = TrainingLoop::new(experiment, federation, root, state, None, None).unwrap();
    let mut records = Vec::new();
    while training.round() < until {
        let mut record = training.step(&mut Simulated(federation)).unwrap().record;
        record.seconds = 0.0;
        records.push(record);
    }
    (records, training.state("").unwrap())
}

/// Without noise, the share counts the updates inside the ball, and the clip norm takes the paper's
/// step, starting from the key's value.
#[test]
fn the_clip_norm_follows_the_share_of_updates_that_are_not_clipped() {
    let keys = [
        "privacy.adaptive.initial=0.02",
        "privacy.adaptive.quantile=0.7",
    ];
    let place = experiment(&keys);
    let (records, last) = run(&place, &TrainingState::new(&place.0), ROUNDS);
    let mut expected = 0.02_f64;
    for record in &records {
        let found = f64::from(record.clip_norm.unwrap());
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
        let share = record.unclipped_share.unwrap();
        assert!((share - (1.0 - record.simulation_only.clipped_share)).abs() < 1e-12);
        expected *= (-0.2 * (share - 0.7)).exp();
    }
    assert!((f64::from(last.clip_norm.unwrap().get()) / expected - 1.0).abs() < 1e-5);
    let norms = records.iter().map(|record| record.clip_norm.unwrap());
    assert!(norms.max_by(f32::total_cmp) > Some(0.02), "it moved");
}

#[test]
fn a_run_that_is_resumed_ends_with_the_same_bits() {
    for trust in ["privacy.trust=central", "privacy.trust=local"] {
        let place = experiment(&["privacy.noise_multiplier=1", trust]);
        let start = TrainingState::new(&place.0);
        let (records, whole) = run(&place, &start, ROUNDS);
        let (_, state) = run(&place, &start, 3);
        let (rest, end) = run(&place, &state, ROUNDS);
        assert_eq!(rest, records[3..]);
        assert_eq!(end, whole);
        // Another clip norm would make another run.
        let clip_norm = start.clip_norm;
        let (_, wrong) = run(&place, &TrainingState { clip_norm, ..state }, ROUNDS);
        assert_ne!(wrong.global, whole.global);
    }
}

/// The clip norm is computed from releases: other noise gives another one.
#[test]
fn the_clip_norm_sees_the_share_with_its_noise_only() {
    let place = experiment(&["privacy.noise_multiplier=1"]);
    let start = TrainingState::new(&place.0);
    let (records, _) = run(&place, &start, 1);
    let share = records[0].unclipped_share.unwrap();
    let exact = 1.0 - records[0].simulation_only.clipped_share;
    assert!((share - exact).abs() > 1e-9, "{share} {exact}");
    // σ_b is 2z here, 2 of 20 devices. Six deviations are exceeded with a probability below 2e-9.
    assert!((share - exact).abs() < 12.0 / 20.0, "{share} {exact}");
    let root = Root::from_seed(77);
    let other = TrainingLoop::new(&place.0, &place.1, root, &start, None, None);
    let other = other.unwrap().step(&mut Simulated(&place.1)).unwrap();
    assert_ne!(other.record.unclipped_share, Some(share));
}

/// With noise, the next clip norm follows the released share, and not the exact one: every clip
/// norm of the run can be computed from the public records alone.
#[test]
fn the_next_clip_norm_follows_from_what_was_released() {
    for trust in ["privacy.trust=central", "privacy.trust=local"] {
        let place = experiment(&["privacy.noise_multiplier=1", trust]);
        let (records, last) = run(&place, &TrainingState::new(&place.0), ROUNDS);
        let mut expected = 0.1_f64;
        for record in &records {
            let found = f64::from(record.clip_norm.unwrap());
            assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
            let share = record.unclipped_share.unwrap();
            let exact = 1.0 - record.simulation_only.clipped_share;
            assert!((share - exact).abs() > 1e-6, "{share} {exact}");
            expected *= (-0.2 * (share.clamp(0.0, 1.0) - 0.5)).exp();
        }
        let found = f64::from(last.clip_norm.unwrap().get());
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
    }
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
        let (records, _) = run(&place, &TrainingState::new(&place.0), 2);
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
