//! Whole runs, as an observer of every released average sees them.

use smolfed_core::stream::Root;

use crate::audit::target::Target;
use crate::config::Config;
use crate::data::{DataFolders, Federation};
use crate::experiment::Experiment;
use crate::release::Fault;
use crate::round::{RoundError, Training};
use crate::source::Simulated;

/// Coordinates of the observed releases: more than two blocks of noise streams.
const COORDINATES: usize = 9_000;
const ROUNDS: usize = 6;

/// What is released in a run whose devices all send zeros, in units of the std that is claimed.
fn noise(fault: Fault) -> Vec<Vec<f64>> {
    let text = format!(
        "method = \"dp-fed\"\nrounds = {ROUNDS}\n[data]\nsource = \"digits\"\ndevices = 20\n\
         samples_per_device = 1\n[cohort]\nsampling = \"poisson\"\nsampling_rate = 0.5\n\
         [privacy]\nclip_norm = 0.5\ndelta = 1e-5\nnoise_multiplier = 3.0\n"
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    let experiment = Experiment::new(config, &federation).unwrap();
    let std = experiment.privacy.noise_std() / experiment.server.denominator(0).unwrap();
    let target = Target::new(&experiment, &federation, fault).unwrap();
    let root = Root::from_seed(4);
    let observed = target.observe(&root, &[], COORDINATES).unwrap();
    let scaled = |x: &f32| f64::from(*x) / std;
    let rounds = observed.iter();
    rounds
        .map(|round| round.average.iter().map(scaled).collect())
        .collect()
}

fn mean_product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() / a.len() as f64
}

/// Every round, the last included, and every block of coordinates has noise of the claimed std, and
/// no two of them share it.
///
/// A block of 1,000 coordinates: its mean square has a std of √(2/1000) = 0.045, and the mean
/// product of two blocks one of 0.032. Seven of them are exceeded with a probability below 3e-12
/// each, in 54 blocks and 1,431 pairs below 1e-8 together.
fn is_sound(rounds: &[Vec<f64>]) -> bool {
    let blocks: Vec<&[f64]> = rounds
        .iter()
        .flat_map(|round| round.chunks(1_000))
        .collect();
    let has_its_std = |block: &&[f64]| (mean_product(block, block) - 1.0).abs() < 0.315;
    let is_independent =
        |first: usize, second: usize| mean_product(blocks[first], blocks[second]).abs() < 0.224;
    let pairs = (0..blocks.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let all: Vec<f64> = rounds.concat();
    rounds.len() == ROUNDS
        && (mean_product(&all, &all) - 1.0).abs() < 0.043
        && blocks.iter().all(has_its_std)
        && pairs.into_iter().all(|(a, b)| is_independent(a, b))
}

#[test]
fn every_round_and_block_has_noise_of_the_claimed_std_and_its_own() {
    assert!(is_sound(&noise(Fault::None)));
}

#[test]
fn noise_that_is_reused_or_divided_is_seen() {
    for fault in [Fault::NoiseStreamReused, Fault::NoiseDividedTwice] {
        assert!(!is_sound(&noise(fault)), "{}", fault.name());
    }
}

/// Whether devices can train depends on their data. Here none can: with noise, rounds go on and
/// release noise alone, as if all had sent zeros.
#[test]
fn nobody_trained_is_not_observable() {
    let run = |more: &str| {
        let text = format!(
            "method = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"synthetic\"\ndevices = 8\n\
             samples_per_device = 4\nfeatures = 4\n[cohort]\nsampling = \"full\"\n[train]\n\
             learning_rate = 3e38\nclip = \"final\"\n[privacy]\nclip_norm = 0.5\n{more}"
        );
        let config = Config::parse(&text, "a test", &[]).unwrap();
        let folders = DataFolders::new(Vec::new());
        let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
        let experiment = Experiment::new(config, &federation).unwrap();
        let mut training = Training::simulation(&experiment, &federation).unwrap();
        let trained = |training: &mut Training<'_>| {
            let round = training.step(&mut Simulated(&federation))?;
            let is_noisy = training.global().iter().all(|x| *x != 0.0);
            Ok::<_, RoundError>((round.record.simulation_only.trained, is_noisy))
        };
        Ok((trained(&mut training)?, trained(&mut training)?))
    };
    for trust in ["central", "local"] {
        let noise = format!("noise_multiplier = 3.0\ntrust = \"{trust}\"\ndelta = 1e-5\n");
        assert_eq!(run(&noise).unwrap(), ((0, true), (0, true)), "{trust}");
    }
    let error = run("noise_multiplier = 0.0\n").unwrap_err();
    assert!(
        matches!(error, RoundError::NobodyTrained { round: 0, .. }),
        "{error}"
    );
}
