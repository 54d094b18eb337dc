//! Fast arithmetic, through the command line.

use crate::program::Place;
use crate::run_dir::Traces;

/// Eight rounds of the built-in experiment on devices of a few samples.
const RUN: &str = "--json --set rounds=8 --set data.devices=150 --set evaluate_every=0";

#[test]
fn a_fast_run_says_what_it_is_and_is_as_good() {
    let place = Place::new();
    let exact = place
        .smolfed(&format!("run --out exact {RUN}"))
        .success()
        .json();
    let fast = place
        .smolfed(&format!("run --out fast {RUN} --fast"))
        .success()
        .json();
    assert_eq!(exact["arithmetic"], "f32");
    assert_eq!(exact.get("arithmetic_note"), None);
    assert_eq!(fast["arithmetic"], "fast");
    assert_eq!(fast["devices_in_span"], 150);
    let note = fast["arithmetic_note"].as_str().unwrap();
    assert!(note.contains("not the bits of a board"), "{note}");
    assert_eq!(fast["epsilon"], exact["epsilon"]);
    let accuracy = |document: &serde_json::Value| document["test_accuracy"].as_f64().unwrap();
    assert!((accuracy(&fast) - accuracy(&exact)).abs() < 0.01, "{fast}");

    let report = std::fs::read_to_string(place.path("fast/report.html")).unwrap();
    assert!(report.contains("not the bits of a board"));
    assert!(!report.contains("does not depend on the machine"));
    let text = place
        .smolfed("run --out text --fast --set rounds=2")
        .success()
        .stdout;
    assert!(
        text.replace('\n', " ").contains("not the bits of a board"),
        "{text}"
    );
}

#[test]
fn the_flag_is_the_key_and_threads_and_memory_change_nothing() {
    let place = Place::new();
    let train = |out: &str, settings: &str| {
        let call = format!("run --out {out} {RUN} {settings}");
        place.smolfed(&call).success();
        Traces::read(&place.path(out))
    };
    let flag = train("flag", "--fast --threads 1");
    assert_eq!(
        flag,
        train("key", "--set simulation.arithmetic=fast --threads 8")
    );
    let little = "--fast --threads 2 --set simulation.memory=";
    assert_eq!(flag.model, train("none", &format!("{little}0")).model);
    assert_eq!(flag.model, train("some", &format!("{little}30KiB")).model);
    assert_ne!(flag.model, train("exact", "").model);
}

#[test]
fn what_has_no_fast_arithmetic_is_refused() {
    let place = Place::new();
    for (settings, words) in [
        ("--set model.hidden=8", "`model.hidden`"),
        (
            "--set train.gradient_smoothing=1",
            "`train.gradient_smoothing`",
        ),
        (
            "--set method=fedsc --set server={} --set privacy={}",
            "`method`",
        ),
    ] {
        let outcome = place.smolfed(&format!("run --fast {settings} --out no"));
        outcome.refused(2, &["`simulation.arithmetic`", words]);
    }
    let wrong = place.smolfed("run --set simulation.arithmetic=slow --out no");
    wrong.refused(2, &["simulation.arithmetic", "slow", "f32", "fast"]);
    let wrong = place.smolfed("run --fast --set simulation.memory=much --out no");
    wrong.refused(2, &["simulation.memory", "much", "512 MiB"]);
    assert!(place.names().is_empty(), "nothing is written");
}

#[test]
fn a_fleet_with_fast_arithmetic_is_refused() {
    let place = Place::new();
    place
        .smolfed("provision --devices 0..2 --out fleet --with-data --set data.devices=54")
        .success();
    let serve = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 52";
    let outcome = place.smolfed(&format!("{serve} --set simulation.arithmetic=fast"));
    outcome.refused(
        2,
        &[
            "`simulation.arithmetic` = \"fast\"",
            "only in simulations",
            "boards",
        ],
    );
}
