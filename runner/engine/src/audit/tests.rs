//! Attacks every mechanism of smolfed. None loses more than its accountant says, and each injected
//! fault is found.

mod answers;
mod releases;
mod sources;
mod views;

use super::attack::Size;
use super::direct::cohorts::Cohorts;
use super::direct::noise::{Layout, Noise};
use super::target::Target;
use super::*;
use crate::config::Config;
use crate::experiment::Experiment;
use smolfed_accounting::accountant::Estimate;
use smolfed_data::{DataFolders, Federation};
use smolfed_release::Fault;

/// Maximum probability that a bound of one test is too high by chance.
const ERROR: f64 = 1e-7;

/// Builds an experiment on hardly any data, which the mechanism does not read.
fn experiment(devices: u32, rounds: u32, cohort: &str, privacy: &str) -> Audited {
    scaled("", devices, rounds, cohort, privacy)
}

/// Builds an experiment with a key for the scale of the features.
fn scaled(scale: &str, devices: u32, rounds: u32, cohort: &str, privacy: &str) -> Audited {
    // An adaptive clip norm has no number.
    let clip_norm = match privacy.contains("clip_norm") {
        true => "",
        false => "clip_norm = 0.5",
    };
    let text = format!(
        r#"
        name = "audited"
        method = "dp-fed"
        rounds = {rounds}
        [data]
        source = "digits"
        devices = {devices}
        samples_per_device = 1
        {scale}
        [cohort]
        {cohort}
        [privacy]
        {clip_norm}
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
    audit_with(audited, fault, pairs, 32)
}

fn audit_with(audited: &Audited, fault: Fault, pairs: u32, canaries: u32) -> Audit {
    let experiment = &audited.experiment;
    let target = Target::new(experiment, &audited.federation, fault).unwrap();
    let confidence = Confidence {
        delta: experiment.privacy.delta,
        error: ERROR,
    };
    let size = Size {
        seed: 1,
        pairs,
        canaries,
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
const POISSON: &str = "sampling = \"poisson\"\nsampling_rate = 0.5";
const UNIFORM: &str = "sampling = \"uniform\"\ncohort_size = 10";
const ADAPTIVE: &str = "noise_multiplier = 3.0\nclip_norm = \"adaptive\"";
const PRIVATE: &str = "scale = \"private\"\nscale_noise_multiplier = 1.5";
const FEATURES: &str = "scale = \"private-features\"\nscale_noise_multiplier = 4.0";
const ADAPTIVE_LOCAL: &str = "noise_multiplier = 1.0\nclip_norm = \"adaptive\"\ntrust = \"local\"";

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

/// Other releases are attacked together with the updates. Very large noise on the updates leaves
/// the proof to a private scale, or to the bits.
#[test]
fn a_private_scale_and_the_bits_are_attacked_with_the_updates() {
    let quiet = "noise_multiplier = 300.0";
    let bits = "noise_multiplier = 1.0\nclip_norm = \"adaptive\"\nadaptive.bit_noise = 0.501";
    for (scale, privacy, canaries) in [(PRIVATE, quiet, 32), ("", bits, 1)] {
        let local = format!("{privacy}\ntrust = \"local\"");
        for privacy in [privacy, local.as_str()] {
            let audited = scaled(scale, 20, 4, POISSON, privacy);
            let Audit { claim, low } = audit_with(&audited, Fault::None, 500, canaries);
            let claim = claim.epsilon;
            assert!(low <= claim, "{scale} {privacy}: {low} above {claim}");
            assert!(low > 0.1, "{scale} {privacy}: {low} of {claim}");
        }
    }
}

/// All devices of a user act together, so more is proved than single devices can lose.
#[test]
fn users_with_several_devices_are_attacked_as_users() {
    let local = "noise_multiplier = 5.0\ntrust = \"local\"";
    for (cohort, privacy) in [
        (POISSON, "noise_multiplier = 15.0"),
        (
            "sampling = \"uniform\"\ncohort_size = 50",
            "noise_multiplier = 30.0",
        ),
        ("sampling = \"full\"", local),
    ] {
        let users = format!("{privacy}\ndevices_per_user = 10");
        let Audit { claim, low } = audit(&experiment(100, 4, cohort, &users), Fault::None, 500);
        assert!(low <= claim.epsilon, "{cohort} {users}: {low} {claim:?}");
        let devices = experiment(100, 4, cohort, privacy).experiment.privacy;
        let of_one = devices.estimate(4).unwrap().epsilon;
        assert!(low > of_one, "{cohort} {users}: {low} of {claim:?}");
    }
}

/// The attack alone finds these faults, and finds nothing without them.
#[test]
fn the_attack_refutes_claims_that_a_fault_makes_false() {
    let full = experiment(100, 1, "sampling = \"full\"", "noise_multiplier = 4.0");
    let many = experiment(20, 10, POISSON, "noise_multiplier = 8.0");
    let local = experiment(20, 6, POISSON, "noise_multiplier = 8.0\ntrust = \"local\"");
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

/// The real rounds pass every direct test, with both kinds of sampling, and under local trust. Each
/// audit fails by chance with a probability below 1e-6. The seed is fixed.
#[test]
fn every_part_of_the_mechanism_is_what_is_claimed() {
    for (cohort, privacy) in [
        (POISSON, "noise_multiplier = 3.0"),
        (UNIFORM, "noise_multiplier = 3.0"),
        (POISSON, LOCAL),
    ] {
        let audited = experiment(30, 5, cohort, privacy);
        assert_eq!(failed(&audited, Fault::None), [""; 0], "{cohort} {privacy}");
    }
}

/// Covers all releases besides the updates, and δ at other ε. Families of the noise are tested at
/// two lengths of the model, each with the whole error.
#[test]
fn all_families_together_fail_by_chance_with_a_probability_below_1e_6() {
    let asking = format!("{ADAPTIVE}\n[[questions]]\nkind = \"count\"\nevery = 2\n");
    let audited = scaled(FEATURES, 30, 3, POISSON, &asking);
    let target = Target::new(&audited.experiment, &audited.federation, Fault::None).unwrap();
    let checks = direct::audit(&target, 1, 1 << 12).unwrap();
    let beside = ["bits", "moments", "answers"];
    let of_noise = |check: &&check::Check| {
        let is_beside = beside.iter().any(|channel| check.test.contains(channel));
        check.test.contains("noise") && !is_beside
    };
    let twice = checks.iter().filter(of_noise).count();
    // Two more sources have their own tests.
    let of_source = direct::of_source(&target, 1, 1 << 12).unwrap().len();
    let families = checks.len() + twice + 1 + 2 * of_source;
    assert!((18..=45).contains(&families), "{families}");
    assert!(families as f64 * check::ERROR < 1e-6, "{families}");
}

/// Returns the failed tests of releases besides the updates, and of the effect of one device.
fn failed_beside(audited: &Audited, fault: Fault, values: usize) -> Vec<&'static str> {
    let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
    let length = target.tensors().iter().sum();
    let mut checks = vec![sensitivity::check(&target, 1, length).unwrap()];
    let channels = channels::of_updates(&target);
    assert!(!channels.is_empty());
    for channel in channels {
        checks.extend(channel.checks(1, values).unwrap());
    }
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// Covers the releases besides the updates.
#[test]
fn what_is_released_beside_the_updates_is_what_is_claimed() {
    let quiet = "noise_multiplier = 3.0";
    for (scale, cohort, privacy) in [
        ("", POISSON, ADAPTIVE),
        ("", UNIFORM, ADAPTIVE),
        ("", POISSON, ADAPTIVE_LOCAL),
        (PRIVATE, POISSON, quiet),
        (FEATURES, UNIFORM, ADAPTIVE),
        (PRIVATE, POISSON, LOCAL),
    ] {
        let audited = scaled(scale, 30, 3, cohort, privacy);
        let failed = failed_beside(&audited, Fault::None, 1 << 14);
        assert_eq!(failed, [""; 0], "{scale} {cohort} {privacy}");
    }
}

/// Each fault fails its direct test.
#[test]
fn every_wiring_fault_fails_its_direct_test() {
    const STD: &str = "standard deviation of the noise";
    const ROUNDS: &str = "noise of different rounds";
    const REPEATED: &str = "noise is not repeated";
    const CHANGES: &str = "what one device changes";
    const RATE: &str = "rate of the cohorts";
    const CHARGES: &str = "charges of the ledger";
    let central = experiment(300, 5, POISSON, "noise_multiplier = 3.0");
    let local = experiment(30, 5, POISSON, LOCAL);
    for (fault, expected) in [
        (Fault::NoiseDividedTwice, &[STD][..]),
        (Fault::NoiseTooSmall, &[STD]),
        (Fault::NoiseStreamReused, &[ROUNDS, REPEATED]),
        (Fault::NoiseSharedByTwoRounds, &[ROUNDS, REPEATED]),
        (Fault::NoNoiseInOneRound, &[STD, REPEATED]),
        (Fault::NoNoiseInLastRound, &[STD, REPEATED]),
        (Fault::NoNoiseInOneBlock, &[STD, REPEATED]),
        (Fault::NoNoiseFrom20480, &[STD, REPEATED]),
        (Fault::NoiseBlocksRepeated, &[REPEATED]),
        (Fault::ClipSkipped, &[CHANGES]),
        (Fault::ClipSkippedForOneTensor, &[CHANGES]),
        (Fault::ClipSkippedFrom512, &[CHANGES]),
        (Fault::RealisedDenominator, &[STD, CHANGES]),
        (Fault::CohortKept, &["cohorts of different rounds"]),
        (Fault::DeviceAlwaysDrawn, &[RATE]),
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
    let apart = experiment(130, 5, POISSON, LOCAL);
    for (fault, audited, test) in [
        (Fault::NoNoiseAtOneDevice, &local, STD),
        (Fault::NoNoiseWithoutUpdate, &local, STD),
        (Fault::DeviceNoiseShared, &apart, REPEATED),
    ] {
        let found = failed(audited, fault);
        assert!(found.contains(&test), "{}: {found:?}", fault.name());
    }
    let weights = "weighting = \"samples\"\nweight_cap = 3";
    let weighted = experiment(
        30,
        3,
        &format!("{POISSON}\n{weights}"),
        "noise_multiplier = 3.0",
    );
    assert_eq!(failed(&weighted, Fault::None), [""; 0]);
    let found = failed(&weighted, Fault::DenominatorWeighted);
    assert!(found.contains(&STD), "{found:?}");
}

/// Devices are independent in all cohorts of the rounds. The test fails by chance with a
/// probability of at most 1e-7.
#[test]
fn two_devices_that_share_a_coin_are_found() {
    for cohort in [POISSON, UNIFORM] {
        let audited = experiment(30, 8, cohort, "noise_multiplier = 3.0");
        let failed = |fault| {
            let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
            let claim = target.event();
            let layout = Layout::new(&target, &claim, 1, 1 << 12);
            let mut cohorts = Cohorts::new(claim.sampling, target.rounds());
            Noise::observe(&target, &layout, 1, &mut cohorts).unwrap();
            let checks = cohorts.checks().into_iter();
            let failed = checks.filter(|check| !check.is_as_claimed);
            failed.map(|check| check.test).collect::<Vec<_>>()
        };
        assert_eq!(failed(Fault::None), [""; 0], "{cohort}");
        let found = failed(Fault::CoinShared);
        assert!(
            found.contains(&"coins of different devices"),
            "{cohort}: {found:?}"
        );
    }
}

/// Each fault of a release besides the updates fails its direct test.
#[test]
fn every_fault_beside_the_updates_fails_its_direct_test() {
    const MOMENTS: &str = "standard deviation of the noise on moments";
    const BITS: &str = "standard deviation of the noise on bits";
    const CHANGES: &str = "what one device changes";
    let quiet = "noise_multiplier = 3.0";
    let reused = "noise of moments and other noise";
    for (fault, scale, privacy, test) in [
        (Fault::NoNoiseOnMoments, PRIVATE, quiet, MOMENTS),
        (Fault::NoNoiseOnMoments, PRIVATE, LOCAL, MOMENTS),
        (Fault::MomentNoiseReused, PRIVATE, quiet, reused),
        (Fault::MomentNoiseReused, PRIVATE, LOCAL, reused),
        (Fault::NoNoiseOnBit, "", ADAPTIVE, BITS),
        (Fault::NoNoiseOnBit, "", ADAPTIVE_LOCAL, BITS),
        (
            Fault::BitNoiseReused,
            "",
            ADAPTIVE,
            "noise of bits and other noise",
        ),
        (Fault::WholeBit, "", ADAPTIVE, CHANGES),
        (Fault::WholeBit, "", ADAPTIVE_LOCAL, CHANGES),
    ] {
        let audited = scaled(scale, 30, 3, POISSON, privacy);
        let found = failed_beside(&audited, fault, 1 << 14);
        assert!(found.contains(&test), "{}: {found:?}", fault.name());
    }
    let audited = scaled(PRIVATE, 30, 1, POISSON, quiet);
    let found = failed_beside(&audited, Fault::MomentNoiseTooSmall, 1 << 16);
    assert!(found.contains(&MOMENTS), "{found:?}");
    let found = failed(&audited, Fault::MomentsNeverCharged);
    assert_eq!(found, ["charges of the ledger"]);
}

#[test]
fn an_experiment_without_noise_claims_nothing() {
    let open = experiment(20, 1, "sampling = \"full\"", "");
    assert!(Target::new(&open.experiment, &open.federation, Fault::None).is_err());
}
