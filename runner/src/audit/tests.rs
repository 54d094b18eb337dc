//! Every mechanism that smolfed runs is attacked; none loses more than its accountant says. Each
//! planted bug is found.

use super::attack::Size;
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

fn audit(audited: &Audited, fault: Fault, pairs: u32) -> Audit {
    let experiment = &audited.experiment;
    let target = Target::new(experiment, &audited.federation, fault).unwrap();
    let confidence = Confidence {
        delta: experiment.privacy.delta,
        error: ERROR,
    };
    let size = Size {
        seed: 1,
        pairs,
        canaries: 32,
    };
    let attack = attack::audit(&target, size, confidence).unwrap();
    Audit {
        claim: experiment
            .privacy
            .estimate(u64::from(target.rounds()))
            .unwrap(),
        low: attack
            .findings
            .iter()
            .map(|f| f.epsilon_low)
            .fold(0.0, f64::max),
    }
}

const LOCAL: &str = "noise_multiplier = 0.7\ntrust = \"local\"";

#[test]
fn no_mechanism_loses_more_than_is_claimed_and_the_attack_is_not_idle() {
    for (devices, rounds, cohort, privacy) in [
        (50, 1, "sampling = \"full\"", "noise_multiplier = 0.8"),
        (20, 4, "sampling = \"full\"", "noise_multiplier = 1.5"),
        (
            20,
            6,
            "sampling = \"poisson\"\nsampling_rate = 0.5",
            "noise_multiplier = 0.9",
        ),
        (
            20,
            3,
            "sampling = \"uniform\"\ncohort_size = 10",
            "noise_multiplier = 2.0",
        ),
        (20, 1, "sampling = \"full\"", LOCAL),
        (20, 2, "sampling = \"poisson\"\nsampling_rate = 0.5", LOCAL),
    ] {
        let experiment = experiment(devices, rounds, cohort, privacy);
        let Audit { claim, low } = audit(&experiment, Fault::None, 500);
        let claim = claim.epsilon;
        assert!(low <= claim, "{cohort} {privacy}: {low} above {claim}");
        assert!(low > 0.1, "{cohort} {privacy}: only {low} of {claim}");
    }
}

/// The attack alone finds these faults, and finds nothing without them.
#[test]
fn the_attack_refutes_claims_that_a_fault_makes_false() {
    let full = experiment(100, 1, "sampling = \"full\"", "noise_multiplier = 4.0");
    let poisson = "sampling = \"poisson\"\nsampling_rate = 0.5";
    let many = experiment(20, 10, poisson, "noise_multiplier = 8.0");
    let local = experiment(20, 6, poisson, "noise_multiplier = 8.0\ntrust = \"local\"");
    for (fault, audited) in [
        (Fault::NoiseDividedTwice, &full),
        (Fault::ClipSkipped, &full),
        (Fault::NoiseStreamReused, &many),
        (Fault::NoNoiseInLastRound, &many),
        (Fault::NoNoiseAtOneDevice, &local),
    ] {
        let honest = audit(audited, Fault::None, 500);
        assert!(honest.low <= honest.claim.epsilon, "a false alarm");
        let Audit { claim, low } = audit(audited, fault, 500);
        let claim = claim.epsilon;
        assert!(low > claim, "{}: {low} is not above {claim}", fault.name());
    }
}

fn failed(audited: &Audited, fault: Fault) -> Vec<&'static str> {
    let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
    let checks = direct::audit(&target, 1, 1 << 16).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// The real rounds pass every direct test, with both trust models and both kinds of sampling. Each
/// audit fails by chance with a probability below 1e-6; the seed is fixed.
#[test]
fn every_part_of_the_mechanism_is_what_is_claimed() {
    let poisson = "sampling = \"poisson\"\nsampling_rate = 0.5";
    let uniform = "sampling = \"uniform\"\ncohort_size = 10";
    let local = "noise_multiplier = 0.7\ntrust = \"local\"";
    for (cohort, privacy) in [
        (poisson, "noise_multiplier = 3.0"),
        (uniform, "noise_multiplier = 3.0"),
        (poisson, local),
    ] {
        let audited = experiment(30, 5, cohort, privacy);
        assert_eq!(failed(&audited, Fault::None), [""; 0], "{cohort} {privacy}");
    }
}

/// Each fault fails the direct test that looks for it.
#[test]
fn every_wiring_fault_fails_its_direct_test() {
    const STD: &str = "standard deviation of the noise";
    const ROUNDS: &str = "noise of different rounds";
    const REPEATED: &str = "noise is not repeated";
    const CHANGES: &str = "what one device changes";
    const RATE: &str = "rate of the cohorts";
    const CHARGES: &str = "charges of the ledger";
    let poisson = "sampling = \"poisson\"\nsampling_rate = 0.5";
    let central = experiment(300, 5, poisson, "noise_multiplier = 3.0");
    let local = experiment(30, 5, poisson, LOCAL);
    for (fault, expected) in [
        (Fault::NoiseDividedTwice, &[STD][..]),
        (Fault::NoiseTooSmall, &[STD]),
        (Fault::NoiseStreamReused, &[ROUNDS, REPEATED]),
        (Fault::NoiseSharedByTwoRounds, &[ROUNDS, REPEATED]),
        (Fault::NoNoiseInOneRound, &[STD, REPEATED]),
        (Fault::NoNoiseInLastRound, &[STD, REPEATED]),
        (Fault::NoNoiseInOneBlock, &[STD, REPEATED]),
        (Fault::ClipSkipped, &[CHANGES]),
        (Fault::ClipSkippedForOneTensor, &[CHANGES]),
        (Fault::ClipSkippedFrom512, &[CHANGES]),
        (Fault::RealisedDenominator, &[STD, CHANGES]),
        (Fault::CohortKept, &["cohorts of different rounds"]),
        (Fault::SamplingRateTooLarge, &[RATE]),
        (Fault::EventNeverCharged, &[CHARGES]),
        (Fault::EventChargedTwice, &[]),
        (Fault::EventWithAnotherRate, &[RATE, CHARGES]),
    ] {
        let found = failed(&central, fault);
        let is_found = expected.iter().all(|test| found.contains(test));
        let is_nothing = expected.is_empty() && !found.is_empty();
        assert!(is_found && !is_nothing, "{}: {found:?}", fault.name());
    }
    let found = failed(&local, Fault::NoNoiseAtOneDevice);
    assert!(found.contains(&STD), "{found:?}");
}

#[test]
fn an_experiment_without_noise_claims_nothing() {
    let open = experiment(20, 1, "sampling = \"full\"", "");
    assert!(Target::new(&open.experiment, &open.federation, Fault::None).is_err());
}
