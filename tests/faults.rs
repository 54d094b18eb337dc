//! `smolfed audit --fault`: faults detected by the audit.
//!
//! These tests belong to the package `smolfed`, whose program Cargo builds for them with the
//! feature `faults`. The program of the other tests and of packages does not have it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[expect(dead_code, reason = "the end-to-end tests use the rest")]
mod program;

use serde_json::Value;

use program::Place;

const TRUST: &str = "--set privacy.trust=distributed";
/// Shows the faults of masks and helpers in a third of the time of the built-in experiment.
const SMALL: &str = "--set data.devices=80 --set rounds=4 --runs 10";
const FEDSC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/fedsc.toml");

fn is_as_claimed(audit: &Value, test: &str) -> bool {
    let checks = audit["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["test"] == test);
    found.unwrap_or_else(|| panic!("no `{test}`: {audit}"))["is_as_claimed"] == true
}

/// Faults in the round loop, which an audit with a separate loop would not detect.
#[test]
fn the_audit_attacks_the_round() {
    const STD: &str = "standard deviation of the noise";
    const ROUNDS: &str = "noise of different rounds";
    const CHANGES: &str = "what one device changes";
    const RATE: &str = "rate of the cohorts";
    const REPEATED: &str = "noise is not repeated";
    const LOCAL: &str = "--set privacy.trust=local";
    const WEIGHTED: &str = "--set cohort.weighting=samples --set cohort.weight_cap=100";
    let place = Place::new();
    let audit = |fault: &str, settings: &str| {
        let call = format!("audit --set rounds=8 --runs 20 --fault {fault} {settings} --json");
        place.smolfed(&call)
    };
    for settings in ["", LOCAL, "--set cohort.sampling=uniform"] {
        audit("none", settings).success();
    }
    for (fault, settings, test) in [
        ("noise-divided-twice", "", STD),
        ("noise-too-small", "", STD),
        ("noise-stream-reused", "", ROUNDS),
        ("noise-shared-by-two-rounds", "", ROUNDS),
        ("no-noise-in-one-round", "", STD),
        ("no-noise-in-one-round", LOCAL, STD),
        ("no-noise-in-last-round", "", STD),
        ("no-noise-in-one-block", "", STD),
        ("no-noise-at-one-device", LOCAL, STD),
        ("clip-skipped", "", CHANGES),
        ("clip-skipped-for-one-tensor", "", CHANGES),
        ("clip-skipped-from512", LOCAL, CHANGES),
        ("realised-denominator", "", CHANGES),
        ("cohort-kept", "", "cohorts of different rounds"),
        ("coin-shared", "", "coins of different devices"),
        ("device-always-drawn", "", RATE),
        ("no-noise-from20480", "", STD),
        ("noise-blocks-repeated", "", REPEATED),
        ("no-noise-without-update", LOCAL, STD),
        ("device-noise-shared", LOCAL, REPEATED),
        ("denominator-weighted", WEIGHTED, STD),
        ("device-on-two-ranks", "", "how often a device counts"),
        ("sampling-rate-too-large", "", RATE),
        ("event-never-charged", "", "charges of the ledger"),
        ("event-with-another-rate", "", RATE),
    ] {
        let broken = audit(fault, settings);
        assert_eq!(broken.code, Some(1), "{broken}");
        assert!(broken.stderr.contains("the claim is refuted"), "{broken}");
        assert!(broken.stderr.contains(test), "{broken}");
        let is_of_ranks = fault == "device-on-two-ranks";
        assert!(
            is_of_ranks || !is_as_claimed(&broken.json(), test),
            "{broken}"
        );
    }
    // The claim is larger than necessary, which no audit refutes.
    audit("event-charged-twice", "").success();
}

/// The private scale, the bits of an adaptive clip norm, and users with several devices.
#[test]
fn an_audit_finds_faults_of_all_that_is_claimed() {
    const SCALE: &str = "--set data.scale=private";
    const ADAPTIVE: &str = "--set privacy.clip_norm=adaptive";
    let place = Place::new();
    for (fault, settings, test) in [
        (
            "moment-noise-too-small",
            SCALE,
            "standard deviation of the noise on moments",
        ),
        (
            "no-noise-on-moments",
            SCALE,
            "standard deviation of the noise on moments",
        ),
        (
            "moment-noise-reused",
            SCALE,
            "noise of moments and other noise",
        ),
        ("moments-never-charged", SCALE, "charges of the ledger"),
        (
            "no-noise-on-bit",
            ADAPTIVE,
            "standard deviation of the noise on bits",
        ),
        (
            "bit-noise-reused",
            ADAPTIVE,
            "noise of bits and other noise",
        ),
        ("whole-bit", ADAPTIVE, "what one device changes"),
    ] {
        let call = format!("audit --set rounds=8 --runs 20 --fault {fault} {settings} --json");
        let broken = place.smolfed(&call);
        assert_eq!(broken.code, Some(1), "{broken}");
        assert!(broken.stderr.contains(test), "{broken}");
        assert!(!is_as_claimed(&broken.json(), test), "{broken}");
    }
}

/// Answers to questions: their noise, their cohorts, the effect of one device, and the charge.
#[test]
fn an_audit_finds_faults_of_answers() {
    const NOISE: &str = "noise of answers and other noise";
    const CHANGES: &str = "what one device changes in answers";
    let place = Place::new();
    let text = "method = \"dp-fed\"\nrounds = 8\n[data]\nsource = \"digits\"\ndevices = 100\n\
                scale = \"unit\"\n[cohort]\nsampling = \"poisson\"\nsampling_rate = 0.3\n\
                [privacy]\nepsilon = 4.0\nclip_norm = 0.3\n[[questions]]\n\
                kind = \"evaluate\"\nevery = 4\n[[questions]]\nkind = \"histogram\"\n";
    std::fs::write(place.path("asked.toml"), text).unwrap();
    let audit = |fault: &str, settings: &str| {
        let call = format!("audit asked.toml --runs 20 --fault {fault} {settings} --json");
        place.smolfed(&call)
    };
    let local = "--set privacy.trust=local --set privacy.epsilon=50";
    for settings in ["", local] {
        let honest = audit("none", settings).success().json();
        let answers = honest["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 2, "{honest}");
        assert!(answers.iter().all(|part| part["is_refuted"] == false));
    }
    for (fault, test) in [
        (
            "answer-entry-without-noise",
            "standard deviation of the noise on answers",
        ),
        ("answers-twice", "how often a device counts in answers"),
        ("answer-noise-of-round", NOISE),
        ("answer-never-charged", "charges of the ledger"),
        ("answer-too-long", CHANGES),
        ("answer-cohort-of-round", "cohorts of answers"),
    ] {
        let broken = audit(fault, "");
        assert_eq!(broken.code, Some(1), "{broken}");
        assert!(broken.stderr.contains(test), "{broken}");
        assert!(!is_as_claimed(&broken.json(), test), "{broken}");
    }
}

#[test]
fn a_bound_above_the_claim_refutes_it() {
    let place = Place::new();
    let call = "audit --set rounds=1 --runs 500 --fault noise-divided-twice --json";
    let broken = place.smolfed(call);
    assert_eq!(broken.code, Some(1), "{broken}");
    assert!(
        broken.stderr.contains("the epsilon of this mechanism"),
        "{broken}"
    );
    assert_eq!(broken.json()["is_refuted"], true);
}

/// Matrices are attacked separately, with an encoder without noise.
#[test]
fn correlation_matrices_are_attacked() {
    let place = Place::new();
    let audit = |fault: &str| {
        let call = format!("audit {FEDSC} --runs 300 --fault {fault} --json");
        place.smolfed(&call)
    };
    let honest = audit("none").success().json();
    assert_eq!(honest["claim"]["unit"], "example", "{honest}");
    assert!(honest["epsilon_low"].as_f64() > Some(2.0), "{honest}");
    let broken = audit("matrix-noise-too-small");
    assert_eq!(broken.code, Some(1), "{broken}");
    let test = "standard deviation of the noise on matrices";
    assert!(!is_as_claimed(&broken.json(), test), "{broken}");
}

/// Each injected fault is found, in the view that shows it.
#[test]
fn an_audit_finds_faults_of_masks_and_helpers() {
    let place = Place::new();
    let audit = |fault: &str, more: &str| {
        let call = format!("audit {TRUST} {SMALL} --fault {fault} {more} --json");
        place.smolfed(&call)
    };
    let honest = audit("none", "").success().json();
    assert_eq!(honest["view"], "coordinator");
    let others = honest["other_views"].as_array().unwrap();
    let names: Vec<&Value> = others.iter().map(|part| &part["view"]).collect();
    assert_eq!(names, ["helper", "outsider"]);
    for (fault, test) in [
        ("mask-reused", "masks of two rounds"),
        ("mask-round-cut", "masks of two rounds"),
        ("helper-noise-reused", "noise of different rounds"),
        ("no-helper-noise", "standard deviation of the noise"),
        ("one-answer-too-many", "answers of a helper in one round"),
        ("attendance-forged", "attendance on the list of a helper"),
        ("noise-too-small", "standard deviation of the noise"),
    ] {
        let found = audit(fault, "");
        assert_eq!(found.code, Some(1), "{found}");
        assert!(found.stderr.contains(test), "{found}");
    }
}
