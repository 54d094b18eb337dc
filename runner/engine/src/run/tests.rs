//! Charges of runs, and their statements about themselves.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use super::verify::verify;
use super::*;
use crate::config::Override;
use smolfed_accounting::PrivacyUnit;
use smolfed_release::Fault;
use smolfed_release::condition::Effect;
use smolfed_release::ledger::{Charge, Line};

const TINY: &str = "name = \"tiny\"\nmethod = \"dp-fed\"\nrounds = 6\nseed = 7\n[data]\nsource = \
                    \"synthetic\"\ndevices = 40\nsamples_per_device = 5\nfeatures = 4\nclasses \
                    = 2\ntest = 20\nvalidation = 0\n[cohort]\nsampling = \"poisson\"\n\
                    sampling_rate = 0.25\n[privacy]\nclip_norm = 0.5\nnoise_multiplier = 2.0\n\
                    delta = 1e-3\n";

/// Runs in `place`, with or without a fault in its release, and optionally stopped after some
/// rounds.
fn run(
    place: &TempDir,
    out: &str,
    settings: &[&str],
    (fault, stop_after): (Fault, u32),
) -> Result<RunResult, RunError> {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(TINY, "a test", &overrides).unwrap();
    let (mut experiment, federation) = prepare(config, &DataFolders::new(Vec::new()))?;
    experiment.release.fault = fault;
    let path = place.path().join(out);
    let dir = match path.is_dir() {
        true => RunDir::open(&path)?,
        false => RunDir::create(&path, &experiment.config)?,
    };
    let stop = AtomicBool::new(stop_after == 0);
    let control = Control {
        stop: &stop,
        checkpoint_every: Duration::ZERO,
        on_round: &mut |record| {
            stop.store(record.round + 1 >= stop_after, Ordering::Relaxed);
        },
    };
    execute(&experiment, &federation, Some(&dir), control)
}

const WHOLE: (Fault, u32) = (Fault::None, u32::MAX);

/// The name of a run covers its configuration, its data and smolfed's version. A build of the same
/// version with different noise has the same name, but another digest.
#[test]
fn run_identity_other_build() {
    let place = TempDir::new().unwrap();
    let shared = format!("privacy.ledger={:?}", place.path().join("shared.jsonl"));
    let settings = [shared.as_str()];
    let other = (Fault::NoiseStreamReused, u32::MAX);
    let first = run(&place, "first", &settings, WHOLE).unwrap();
    let same = run(&place, "same", &settings, WHOLE).unwrap();
    assert!(same.repeated_rounds.is_empty());
    assert_eq!(same.statements, first.statements);
    // Round 0 has its original noise. Rounds 1 to 5 have it again.
    let build = run(&place, "other", &settings, other).unwrap();
    assert_eq!(build.repeated_rounds, [1, 2, 3, 4, 5]);
    let [before, after] = [&first, &build].map(|run| &run.statements[0]);
    assert_eq!((before.rounds, after.rounds), (6, 11));
    assert!(after.epsilon > 1.2 * before.epsilon);
    // The noise of both may be the same, as it is here, so no epsilon is proved.
    let words = after.in_words();
    assert!(before.is_upper_bound() && !after.is_upper_bound());
    assert!(words.contains("5 of the rounds were repeated"), "{words}");
    assert!(
        words.contains("NOT a guarantee") && !words.contains("at most"),
        "{words}"
    );
    assert_eq!(build.records[5].epsilon, Some(after.epsilon));
    let charges = Ledger::read(&place.path().join("shared.jsonl")).unwrap();
    assert_eq!(charges.len(), 11);
    // The ledger now knows the releases of both.
    let again = run(&place, "again", &settings, other).unwrap();
    assert!(again.repeated_rounds.is_empty());
    assert_eq!(again.statements[0].rounds, 11);
    for out in ["other", "again"] {
        let dir = RunDir::open(&place.path().join(out)).unwrap();
        let found = verify(&dir, Origin::Simulation).unwrap();
        assert!(found.agrees(), "{found:?}");
    }
    let stale = RunDir::open(&place.path().join("first")).unwrap();
    let found = verify(&stale, Origin::Simulation).unwrap();
    assert_eq!(found.differences[0].key, "rounds");
}

/// The charged moments of a private scale cover devices, but not the examples that matrices
/// protect. Both a total of the ledger and later runs with the same ledger depend on this.
#[test]
fn charges_have_the_conditions_of_their_unit() {
    const DIGITS: &str = "{source = \"digits\", devices = 20, validation = 0, scale = ";
    let place = TempDir::new().unwrap();
    let shared = format!("privacy.ledger={:?}", place.path().join("shared.jsonl"));
    let run = |out: &str, scale: &str, seed: &str| {
        let data = format!("data={DIGITS}\"{scale}\"}}");
        let settings = [
            shared.as_str(),
            data.as_str(),
            seed,
            "method=\"fedsc\"",
            "rounds=1",
            "cohort={sampling = \"full\"}",
            "contrast={privacy = {noise_multiplier = 4.0, delta = 1e-3}}",
        ];
        let statements = run(&place, out, &settings, WHOLE).unwrap().statements;
        let uncovered = statements
            .iter()
            .map(|of| of.conditions().any(Effect::NoBound));
        uncovered.collect::<Vec<_>>()
    };
    assert_eq!(run("first", "private", "seed=7"), [false, true]);
    let charges = Ledger::read(&place.path().join("shared.jsonl")).unwrap();
    let of = |charge: &Charge| (charge.event.unit, charge.has_uncovered);
    let found: Vec<_> = charges.iter().map(of).collect();
    assert!(found.contains(&(PrivacyUnit::Device, false)), "{found:?}");
    assert!(found.contains(&(PrivacyUnit::Example, true)), "{found:?}");
    assert!(!found.contains(&(PrivacyUnit::Device, true)), "{found:?}");
    assert!(!found.contains(&(PrivacyUnit::Example, false)), "{found:?}");
    assert_eq!(run("second", "unit", "seed=8"), [false, true]);
}

/// Devices that train alone release only their answers, after the last round.
#[test]
fn rounds_without_a_release_are_not_in_the_ledger() {
    let place = TempDir::new().unwrap();
    let settings = [
        "method=\"local\"",
        "rounds=3",
        "cohort={sampling = \"full\"}",
        "questions=[{kind = \"count\"}]",
    ];
    let found = run(&place, "local", &settings, WHOLE).unwrap();
    assert_eq!(found.records.len(), 3);
    let charges = Ledger::read(&place.path().join("local/ledger.jsonl")).unwrap();
    let rounds: Vec<u32> = charges.iter().map(|charge| charge.round).collect();
    assert_eq!(rounds, [2]);
    let dir = RunDir::open(&place.path().join("local")).unwrap();
    let verified = verify(&dir, Origin::Simulation).unwrap();
    assert!(verified.agrees(), "{verified:?}");
}

/// Over its budget, a different release is discarded before any of it is written.
#[test]
fn a_repetition_over_budget_is_discarded() {
    let place = TempDir::new().unwrap();
    let shared = format!("privacy.ledger={:?}", place.path().join("shared.jsonl"));
    let settings = [shared.as_str(), "privacy.max_epsilon=1.0"];
    run(&place, "first", &settings, WHOLE).unwrap();
    let other = (Fault::NoiseStreamReused, u32::MAX);
    let error = run(&place, "other", &settings, other).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("round 1 did not repeat the release"),
        "{error}"
    );
    let dir = RunDir::open(&place.path().join("other")).unwrap();
    assert_eq!(dir.records().unwrap().len(), 1);
    assert!(dir.privacy().is_err());
}

/// The person who stops a run may have seen its releases, so the proved ε is the cost of the plan.
#[test]
fn stopped_early_states_the_plan() {
    let place = TempDir::new().unwrap();
    let whole = run(&place, "whole", &[], WHOLE).unwrap();
    let whole = &whole.statements[0];
    assert_eq!((whole.rounds_planned, whole.epsilon_planned), (None, None));
    assert!(whole.is_upper_bound());

    let stopped = run(&place, "stopped", &[], (Fault::None, 2)).unwrap();
    let stopped = &stopped.statements[0];
    assert_eq!((stopped.rounds, stopped.rounds_planned), (2, Some(6)));
    assert_eq!(stopped.epsilon_planned, Some(whole.epsilon));
    assert!(stopped.epsilon < whole.epsilon && !stopped.is_upper_bound());
    assert_eq!(stopped.planned_is_upper_bound(), Some(true));
    let words = stopped.in_words();
    assert!(
        words.contains("if the schedule was fixed beforehand"),
        "{words}"
    );
    assert!(
        words.contains("2 of 6 planned rounds") && !words.contains("at most"),
        "{words}"
    );
    let dir = RunDir::open(&place.path().join("stopped")).unwrap();
    assert!(verify(&dir, Origin::Simulation).unwrap().agrees());

    // After resuming to its end, it is the whole run.
    let resumed = run(&place, "stopped", &[], WHOLE).unwrap();
    assert_eq!(&resumed.statements[0], whole);
    assert!(resumed.repeated_rounds.is_empty());

    // A limit on epsilon is a rule fixed beforehand, so the run ends there as planned.
    let limited = run(&place, "limited", &["privacy.max_epsilon=0.7"], WHOLE).unwrap();
    assert!(matches!(limited.ending, Ending::OverBudget(_)));
    let limited = &limited.statements[0];
    assert!((1..6).contains(&limited.rounds) && limited.epsilon <= 0.7);
    assert!(limited.is_upper_bound() && limited.rounds_planned.is_none());
    let dir = RunDir::open(&place.path().join("limited")).unwrap();
    assert!(verify(&dir, Origin::Simulation).unwrap().agrees());
    let settings = ["privacy.max_epsilon=0.7"];
    let both = run(&place, "both", &settings, (Fault::None, 1)).unwrap();
    assert_eq!(both.statements[0].rounds_planned, Some(limited.rounds));
    assert_eq!(both.statements[0].epsilon_planned, Some(limited.epsilon));
}

/// Every missing, extra or duplicate charge is found, and so is every changed figure.
#[test]
fn a_statement_that_is_not_that_of_its_ledger_is_found() {
    let place = TempDir::new().unwrap();
    run(&place, "run", &[], WHOLE).unwrap();
    let dir = RunDir::open(&place.path().join("run")).unwrap();
    let found = || verify(&dir, Origin::Simulation).unwrap();
    assert!(found().agrees());
    let (ledger, privacy) = (dir.ledger(), dir.path().join("privacy.json"));
    let [charges, stated] = [&ledger, &privacy].map(|path| std::fs::read_to_string(path).unwrap());
    let lines: Vec<&str> = charges.split_inclusive('\n').collect();

    std::fs::write(&ledger, lines[..10].concat()).unwrap();
    assert_eq!(found().differences[0].key, "rounds");
    std::fs::write(&ledger, [&lines[..4], &lines[6..]].concat().concat()).unwrap();
    assert_eq!(found().faults, ["lacks a charge for round 2"]);
    std::fs::write(&ledger, [&lines[..], &lines[..1]].concat().concat()).unwrap();
    assert!(found().faults[0].starts_with("charges more than once"));
    let charge = Ledger::read(&ledger).unwrap().remove(0);
    let text = |charge: Charge| Line::Charge(charge).text();
    let beyond = text(Charge {
        round: 6,
        ..charge.clone()
    });
    std::fs::write(&ledger, charges.clone() + &beyond).unwrap();
    assert!(found().faults[0].ends_with("absent from the configuration, for round 6"));
    let foreign = text(Charge {
        run: "b".to_owned(),
        ..charge.clone()
    });
    std::fs::write(&ledger, charges.clone() + &foreign).unwrap();
    assert_eq!(found().faults, ["has 1 charges of other runs"]);
    let other = text(Charge {
        event: charge.event.with_count(2),
        ..charge
    });
    std::fs::write(&ledger, other + &lines[1..].concat()).unwrap();
    assert!(found().faults[0].starts_with("has an event that differs"));

    std::fs::write(&ledger, &charges).unwrap();
    for (from, to, key) in [
        ("\"epsilon\": 0.96", "\"epsilon\": 0.86", "epsilon"),
        ("\"trust\": \"central\"", "\"trust\": \"local\"", "trust"),
        ("\"is_upper_bound\": true,", "", "is_upper_bound"),
        ("known seed 7", "unknown seed", "notes"),
    ] {
        let changed = stated.replacen(from, to, 1);
        assert_ne!(changed, stated, "{key}");
        std::fs::write(&privacy, changed).unwrap();
        let keys: Vec<String> = found().differences.into_iter().map(|d| d.key).collect();
        assert_eq!(keys, [key]);
    }
}

/// The moments of a private scale are charged with the first round, and data derived from them are
/// written afterwards.
#[test]
fn a_private_scale_is_not_written_before_it_is_charged() {
    let place = TempDir::new().unwrap();
    let data = "data={source=\"digits\",devices=40,scale=\"private\"}";
    let path = |out: &str, file: &str| place.path().join(out).join(file);
    for (settings, is_written_at_once) in [(vec![data], false), (vec![], true)] {
        let out = settings.len().to_string();
        let result = run(&place, &out, &settings, (Fault::None, 0)).unwrap();
        assert!(matches!(result.ending, Ending::Interrupted));
        let file = path(&out, "preprocessing.json");
        assert_eq!(file.is_file(), is_written_at_once);
        run(&place, &out, &settings, (Fault::None, 1)).unwrap();
        assert!(file.is_file() && path(&out, "ledger.jsonl").is_file());
    }
}
