//! Every mechanism that smolfed runs is attacked; none loses more than its accountant says. Each
//! planted bug is found.

use super::target::Target;
use super::*;
use crate::config::Config;
use crate::data::{DataFolders, Federation};
use crate::experiment::Experiment;
use crate::release::Fault;
use smolfed_accounting::accountant::Estimate;

/// A bound of one test is too high by chance with at most this probability.
const ERROR: f64 = 1e-7;

/// An experiment on hardly any data: the mechanism does not look at them.
fn experiment(devices: u32, rounds: u32, cohort: &str, privacy: &str) -> Audited {
    let text = format!(
        r#"
        name = "audited"
        method = "dp-fed"
        rounds = {rounds}
        [data]
        source = "digits"
        devices = {devices}
        samples_per_device = 1
        [cohort]
        {cohort}
        [privacy]
        clip_norm = 0.5
        delta = 1e-5
        {privacy}
        "#
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    Audited {
        experiment: Experiment::new(config, &federation).unwrap(),
        federation,
    }
}

/// An experiment on its federation.
struct Audited {
    experiment: Experiment,
    federation: Federation,
}

struct Audit {
    claim: Estimate,
    low: f64,
}

fn audit(audited: &Audited, fault: Fault, runs: u32) -> Audit {
    let experiment = &audited.experiment;
    let target = Target::new(experiment, &audited.federation, fault).unwrap();
    let confidence = Confidence {
        delta: experiment.privacy.delta,
        error: ERROR / 2.0,
    };
    let mut findings = one_run::audit(&target, 1, 1000, confidence).unwrap();
    findings.extend(many_runs::audit(&target, 1, runs, confidence).unwrap());
    Audit {
        claim: experiment
            .privacy
            .estimate(u64::from(target.rounds()))
            .unwrap(),
        low: findings.iter().map(|f| f.epsilon_low).fold(0.0, f64::max),
    }
}

#[test]
fn no_mechanism_loses_more_than_is_claimed_and_the_attack_is_not_idle() {
    let local = "noise_multiplier = 0.7\ntrust = \"local\"";
    for (devices, rounds, cohort, privacy) in [
        (200, 1, "sampling = \"full\"", "noise_multiplier = 0.5"),
        (20, 4, "sampling = \"full\"", "noise_multiplier = 1.5"),
        (
            20,
            6,
            "sampling = \"poisson\"\nsampling_rate = 0.5",
            "noise_multiplier = 0.6",
        ),
        (
            20,
            3,
            "sampling = \"uniform\"\ncohort_size = 10",
            "noise_multiplier = 1.0",
        ),
        (20, 1, "sampling = \"full\"", local),
        (20, 2, "sampling = \"poisson\"\nsampling_rate = 0.5", local),
    ] {
        let experiment = experiment(devices, rounds, cohort, privacy);
        let Audit { claim, low } = audit(&experiment, Fault::None, 500);
        let claim = claim.epsilon;
        assert!(low <= claim, "{cohort} {privacy}: {low} above {claim}");
        assert!(low > 0.1, "{cohort} {privacy}: only {low} of {claim}");
    }
}

/// The bug is found where `experiment` has it, and nothing is found without it.
#[track_caller]
fn finds(fault: Fault, experiment: &Audited, runs: u32) {
    let honest = audit(experiment, Fault::None, runs);
    assert!(honest.low <= honest.claim.epsilon, "a false alarm");
    let broken = audit(experiment, fault, runs);
    assert!(
        broken.low > broken.claim.epsilon,
        "{}: {} is not above {}",
        fault.name(),
        broken.low,
        broken.claim.epsilon
    );
}

#[test]
fn noise_that_is_divided_twice_is_found() {
    let full = experiment(100, 1, "sampling = \"full\"", "noise_multiplier = 4.0");
    finds(Fault::NoiseDividedTwice, &full, 200);
}

#[test]
fn a_clipping_that_was_skipped_is_found() {
    let full = experiment(100, 1, "sampling = \"full\"", "noise_multiplier = 4.0");
    finds(Fault::ClipSkipped, &full, 200);
}

#[test]
fn a_denominator_that_counts_the_cohort_is_found() {
    let poisson = "sampling = \"poisson\"\nsampling_rate = 0.5";
    let tiny = experiment(3, 20, poisson, "noise_multiplier = 20.0");
    finds(Fault::RealisedDenominator, &tiny, 500);
}

#[test]
fn a_noise_stream_that_serves_twice_is_found() {
    let poisson = "sampling = \"poisson\"\nsampling_rate = 0.5";
    let many = experiment(20, 10, poisson, "noise_multiplier = 8.0");
    finds(Fault::NoiseStreamReused, &many, 200);
}

#[test]
fn an_experiment_without_noise_claims_nothing() {
    let open = experiment(20, 1, "sampling = \"full\"", "");
    assert!(Target::new(&open.experiment, &open.federation, Fault::None).is_err());
}
