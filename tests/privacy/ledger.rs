//! The privacy ledger: each release is charged once, in advance, and runs can share a ledger.

use serde_json::Value;

use crate::program::Place;

const SHARED: &str = "--set privacy.ledger=fleet.jsonl --set rounds=5 --json";

fn charges(place: &Place) -> usize {
    let text = std::fs::read_to_string(place.path("fleet.jsonl")).unwrap();
    text.lines()
        .filter(|line| line.contains("\"event\""))
        .count()
}

#[test]
fn runs_that_share_a_ledger_add_up_until_nothing_is_left() {
    let place = Place::new();
    let run = |call: &str| place.smolfed(&format!("run {call} {SHARED}"));
    let first = run("--seed 1 --out first").success().json();
    assert_eq!(charges(&place), 5);

    // The first run has used more than half of the second run's target, which needs more noise.
    let second = run("--seed 2 --out second --set privacy.epsilon=2")
        .success()
        .json();
    assert_eq!(charges(&place), 10);
    let figure = |run: &Value, key: &str| run["privacy"][0][key].as_f64().unwrap();
    assert!(figure(&second, "epsilon") <= 2.0);
    assert_eq!(figure(&second, "rounds") as u32, 10);
    let alone = "run --seed 2 --out alone --set privacy.epsilon=2 --set rounds=5 --json";
    let alone = place.smolfed(alone).success().json();
    let noise = |run: &Value| figure(run, "noise_multiplier");
    assert!(noise(&second) > noise(&alone), "{second} {alone}");
    assert!(noise(&first) > noise(&alone));

    // Nothing remains of a target of 1: refused before anything is written.
    let third = run("--seed 3 --out third");
    third.refused(2, &["`privacy.epsilon` is 1"]);
    assert!(!place.path("third").exists());
    assert_eq!(charges(&place), 10);
}

#[test]
fn the_same_run_again_releases_the_same_bits_and_costs_nothing() {
    let place = Place::new();
    let run = |out: &str| place.smolfed(&format!("run --out {out} {SHARED}"));
    let (first, second) = (
        run("first").success().json(),
        run("second").success().json(),
    );
    assert_eq!(charges(&place), 5);
    assert_eq!(first["epsilon"], second["epsilon"]);
}

#[test]
fn a_second_run_must_not_draw_the_same_noise() {
    let place = Place::new();
    place
        .smolfed(&format!("run --seed 4 --out first {SHARED}"))
        .success();
    let twice = format!("run --seed 4 --out second {SHARED} --set privacy.epsilon=2");
    place.smolfed(&twice).refused(2, &["choose another seed"]);
    assert!(!place.path("second").exists());
    assert_eq!(charges(&place), 5);
}

#[test]
fn a_sweep_has_no_ledger_to_share() {
    let place = Place::new();
    let sweep = "rounds = 2\n[data]\nsource = \"digits\"\ndevices = 20\n\
                 [privacy]\nledger = \"fleet.jsonl\"\n[sweep.grid]\nmethod = [\"dp-fed\"]\n";
    place.write("sweep.toml", sweep);
    place
        .smolfed("sweep sweep.toml")
        .refused(2, &["privacy.ledger"]);
}

#[test]
fn a_ledger_that_lost_a_payment_stops_the_run() {
    let place = Place::new();
    place.smolfed("run --out run --set rounds=5").success();
    let path = place.path("run/ledger.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();

    let damaged = text.replacen("\"round\":2", "\"round\":9", 1);
    std::fs::write(&path, &damaged).unwrap();
    place
        .smolfed("run --resume run")
        .refused(2, &["ledger.jsonl is damaged in line 5"]);

    // The charges of four rounds, each with its digest.
    let first_four: String = text.split_inclusive('\n').take(8).collect();
    std::fs::write(&path, first_four).unwrap();
    place
        .smolfed("run --resume run")
        .refused(2, &["no charge for round 4"]);
}
