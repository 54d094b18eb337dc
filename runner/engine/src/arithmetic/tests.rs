//! Whole runs in `fast` arithmetic against those in `f32`.

mod counts;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::config::{Config, DEFAULT};
use crate::run::{self, Control, RunResult};
use smolfed_data::DataFolders;

/// Runs the built-in experiment on 100 devices with five samples each.
fn run(settings: &[&str]) -> RunResult {
    let common = ["data.devices=100", "rounds=6", "evaluate_every=0"];
    let overrides = common.iter().chain(settings);
    let overrides: Vec<_> = overrides.map(|text| text.parse().unwrap()).collect();
    let config = Config::parse(DEFAULT, "the test", &overrides).unwrap();
    let folders = DataFolders::of_experiment(None);
    let (experiment, federation) = run::prepare(config, &folders).unwrap();
    let control = Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    run::execute(&experiment, &federation, None, control).unwrap()
}

fn fast(settings: &[&str]) -> RunResult {
    run(&[settings, &["simulation.arithmetic=fast"]].concat())
}

fn bits(result: &RunResult) -> Vec<u32> {
    result.model.iter().map(|x| x.to_bits()).collect()
}

/// The noise is the same, so only rounding separates the models.
#[test]
fn runs_in_both_arithmetics_differ_by_rounding() {
    for settings in [
        &[][..],
        &[
            "privacy={}",
            "server={}",
            "method=dp-fed",
            "train.proximal=0.2",
        ],
        &["train.clip=final", "train.weight_decay=0.01"],
        &["method=fedprox", "server={}", "personalise.lambda=0.1"],
        &["method=pmtl", "server={}"],
        &["method=pp-sgd", "server={}"],
    ] {
        let (exact, fast) = (run(settings), fast(settings));
        for (exact, fast) in exact.model.iter().zip(&fast.model) {
            assert!((exact - fast).abs() <= 1e-5, "{settings:?}: {exact} {fast}");
        }
        assert!(bits(&exact) != bits(&fast), "{settings:?}");
        let accuracy = |result: &RunResult| result.records.last()?.test?.accuracy;
        let [exact, fast] = [accuracy(&exact), accuracy(&fast)].map(Option::unwrap_or_default);
        assert!(
            (exact - fast).abs() <= 0.005,
            "{settings:?}: {exact} {fast}"
        );
    }
}

/// Personal models alone, with nothing shared.
#[test]
fn personal_models_of_both_arithmetics_are_equally_good() {
    let settings = [
        "method=local",
        "server={}",
        "privacy={}",
        "data.device_test=0.3",
    ];
    let mean = |result: RunResult| result.devices.unwrap().means().models.result().unwrap();
    let (exact, fast) = (mean(run(&settings)), mean(fast(&settings)));
    assert!((exact - fast).abs() <= 0.005, "{exact} {fast}");
}

/// Over seeds, the mean accuracy equals that of `f32`.
#[test]
fn accuracy_is_the_same_over_seeds() {
    let mean = |run: fn(&[&str]) -> RunResult| {
        let accuracy = |seed: u32| {
            let result = run(&[&format!("seed={seed}")]);
            result
                .records
                .last()
                .unwrap()
                .test
                .unwrap()
                .accuracy
                .unwrap()
        };
        (0..4).map(accuracy).sum::<f64>() / 4.0
    };
    let (exact, fast) = (mean(run), mean(fast));
    assert!((exact - fast).abs() <= 0.002, "{exact} {fast}");
}

#[test]
fn matrices_kept_or_made_anew_and_any_number_of_threads_give_the_same_bits() {
    let with_threads = |threads: usize, settings: &[&str]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| bits(&fast(settings)))
    };
    let kept = with_threads(1, &[]);
    assert!(kept == with_threads(8, &[]));
    assert!(kept == with_threads(1, &["simulation.memory=0"]));
    assert!(kept == with_threads(3, &["simulation.memory=40 KiB"]));
}

/// If no device trains in the span, all have the bits of boards.
#[test]
fn the_direct_way_has_the_bits_of_boards() {
    let settings = [
        "train.epochs=1",
        "train.batch_size=100",
        "data.devices=20",
        "data.samples_per_device=40",
    ];
    assert!(bits(&run(&settings)) == bits(&fast(&settings)));
}

#[test]
fn runs_of_other_arithmetics_have_other_names() {
    let name = |settings: &[&str]| {
        let overrides: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let config = Config::parse(DEFAULT, "the test", &overrides).unwrap();
        let folders = DataFolders::of_experiment(None);
        let (experiment, federation) = run::prepare(config, &folders).unwrap();
        run::name(&experiment.config, &federation, &experiment.origin).unwrap()
    };
    let (exact, fast) = (name(&[]), name(&["simulation.arithmetic=fast"]));
    let lanes = smolfed_simd::span::lanes();
    assert!(fast.ends_with(&format!("-fast{lanes}")), "{fast}");
    assert!(!exact.contains("fast"), "{exact}");
}
