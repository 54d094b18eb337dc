//! Correlated noise, for devices that are not drawn at random: runs, their statements and ledgers,
//! and refusals before anything is written.

use serde_json::Value;

use crate::program::Place;
use crate::run_dir::Traces;

/// Twelve rounds of the built-in experiment, each device in every fifth.
const ROTATION: &str = "--set rounds=12 --set cohort={sampling=\"rotation\"} \
                        --set privacy.mechanism=correlated --set privacy.separation=5";
/// The same, with devices that arrive when they can.
const ARRIVAL: &str = "--set rounds=12 --set cohort={sampling=\"arrival\",cohort_size=40} \
                       --set privacy.mechanism=correlated --set privacy.separation=5";
/// The same, with devices drawn from each of five parts in turn.
const IN_TURN: &str = "--set rounds=12 --set cohort={sampling=\"block-cyclic\",cohort_size=20} \
                       --set privacy.mechanism=correlated --set privacy.separation=5";

fn lines(place: &Place, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path(file)).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

#[test]
fn a_run_is_one_release_that_is_charged_round_by_round() {
    let place = Place::new();
    for (out, settings) in [("rotation", ROTATION), ("arrival", ARRIVAL)] {
        let document = place
            .smolfed(&format!("run --out {out} --json {settings}"))
            .success()
            .json();
        let statement = &document["privacy"][0];
        assert_eq!(statement["accountant"], "analytic-gaussian", "{statement}");
        assert_eq!(statement["sampling"], "unsampled");
        assert_eq!(statement["max_participations"], 3);
        assert_eq!(statement["is_upper_bound"], true);
        let epsilon = statement["epsilon"].as_f64().unwrap();
        assert!(epsilon <= 1.0 && epsilon > 0.99, "{epsilon}");
        // It costs the same after the first round as after the last.
        for record in lines(&place, &format!("{out}/metrics.jsonl")) {
            assert_eq!(record["epsilon"].as_f64(), Some(epsilon), "{record}");
        }
        let charges = lines(&place, &format!("{out}/ledger.jsonl"));
        let charged = charges.iter().filter(|line| line["event"].is_object());
        assert!(charged.clone().all(|line| line["event"]["count"] == 1));
        assert_eq!(charged.count(), 12);
        let verified = place.smolfed(&format!("account --verify {out}")).success();
        assert!(
            verified.stdout.contains("agrees with the ledger"),
            "{verified}"
        );
        let ledger = format!("account --ledger {out}/ledger.jsonl --delta 0.002 --json");
        let of_ledger = place.smolfed(&ledger).success().json();
        assert!(of_ledger["epsilon"].as_f64().unwrap() < 1.02, "{of_ledger}");
        let report = std::fs::read_to_string(place.path(format!("{out}/report.html"))).unwrap();
        assert!(report.contains("Noise in the sum of all rounds so far"));
    }
}

/// Devices are drawn in turn. Every fifth round is a composition, in `epsilon` over the rounds.
#[test]
fn devices_are_drawn_in_turn() {
    let place = Place::new();
    let call = format!("run --out run --json {IN_TURN}");
    let document = place.smolfed(&call).success().json();
    let statement = &document["privacy"][0];
    assert_eq!(statement["sampling"], "block-cyclic", "{statement}");
    assert_eq!(statement["separation"], 5);
    assert_eq!(statement["is_upper_bound"], true);
    let epsilons: Vec<f64> = lines(&place, "run/metrics.jsonl")
        .iter()
        .map(|record| record["epsilon"].as_f64().unwrap())
        .collect();
    let is_new = |pair: &[f64]| pair[1] > pair[0];
    let rises = epsilons.windows(2).map(is_new).collect::<Vec<bool>>();
    let expected: Vec<bool> = (1..12).map(|round| round % 5 == 0).collect();
    assert_eq!(rises, expected, "{epsilons:?}");
    let last = statement["epsilon"].as_f64().unwrap();
    assert!(last <= 1.0 && last > 0.99 && epsilons[11] == last, "{last}");
    place.smolfed("account --verify run").success();
    let ledger = "account --ledger run/ledger.jsonl --delta 0.002 --json";
    let of_ledger = place.smolfed(ledger).success().json();
    assert!(of_ledger["epsilon"].as_f64().unwrap() < 1.02, "{of_ledger}");
    let report = std::fs::read_to_string(place.path("run/report.html")).unwrap();
    assert!(report.contains("Noise in the sum of all rounds so far"));
    let too_many = format!("run --out refused {IN_TURN} --set cohort.cohort_size=100");
    place
        .smolfed(&too_many)
        .refused(2, &["`cohort.cohort_size` is 100", "at most"]);
}

#[test]
fn threads_do_not_matter() {
    let place = Place::new();
    for family in ["banded-optimal-max", "tree"] {
        let traces = |threads: u32| {
            let out = format!("{family}-{threads}");
            let call = format!(
                "run --out {out} --json {ARRIVAL} --set privacy.family={family} --threads {threads}"
            );
            place.smolfed(&call).success();
            Traces::read(&place.path(&out))
        };
        assert_eq!(traces(1), traces(8), "{family}");
    }
}

/// An impossible number of participations is reduced, and the statement says so.
#[test]
fn a_cut_is_said() {
    let place = Place::new();
    let run = format!("run -v --out run {ROTATION} --set privacy.participations=9");
    let outcome = place.smolfed(&run).success();
    let words = outcome
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let note = "`privacy.participations` is 9, but no more than 3 of 12 rounds are 5 rounds apart";
    assert!(words.contains(note), "{outcome}");
}

#[test]
fn what_would_break_the_bound_is_refused_before_it_starts() {
    let place = Place::new();
    let run = format!("run {ROTATION} --out refused --json");
    for (settings, parts) in [
        (
            "--set privacy.participations=2",
            ["`privacy.participations` is 2", "round 10"],
        ),
        (
            "--set privacy.separation=13",
            ["`privacy.separation` is 13", "from 1 to 12"],
        ),
        (
            "--set privacy.trust=local",
            ["`privacy.trust`", "under masks"],
        ),
        (
            "--set privacy.clip_norm=adaptive",
            ["`privacy.clip_norm`", "different grids"],
        ),
        (
            "--set method=local --set server.smoothing_factor=0",
            ["`method`", "send nothing"],
        ),
    ] {
        place
            .smolfed(&format!("{run} {settings}"))
            .refused(2, &parts);
        assert!(!place.path("refused").exists());
    }
    // A record in which a device participates too early.
    let record = |round: u32, device: u32| {
        let record = serde_json::json!({
            "round": round,
            "number": round,
            "cohort": [device],
            "answered": [],
            "missing": {},
            "covered_by_the_privacy_statement": false,
        });
        format!("{record}\n")
    };
    let early: String = (0..12).map(|round| record(round, round % 4)).collect();
    place.write("early.jsonl", early);
    let replay = format!("{run} --participation early.jsonl");
    place
        .smolfed(&replay)
        .refused(2, &["device 0", "round 4", "too early"]);
    assert!(!place.path("refused").exists());
    let sound: String = (0..12).map(|round| record(round, round % 5)).collect();
    place.write("sound.jsonl", sound);
    let replay = format!("run {ROTATION} --out replay --participation sound.jsonl");
    place.smolfed(&replay).success();
}

/// Runs on one population add up, regardless of their mechanisms.
#[test]
fn a_shared_ledger_adds_up_runs_of_both_mechanisms() {
    let place = Place::new();
    let shared = "--set privacy.ledger=fleet.jsonl --json";
    let drawn = format!("run --seed 1 --out drawn {shared} --set rounds=5");
    place.smolfed(&drawn).success();
    let second = format!("run --seed 2 --out second {ROTATION} {shared} --set privacy.epsilon=2");
    let second = place.smolfed(&second).success().json();
    let alone = format!("run --seed 2 --out alone {ROTATION} --set privacy.epsilon=2 --json");
    let alone = place.smolfed(&alone).success().json();
    let figure = |run: &Value, key: &str| run["privacy"][0][key].as_f64().unwrap();
    assert!(figure(&second, "epsilon") <= 2.0);
    let noise = |run| figure(run, "noise_multiplier");
    assert!(noise(&second) > noise(&alone), "{second} {alone}");
    place.smolfed("account --verify second").success();
}
