//! Any method runs on any source, except the pairs of one table, which are refused with an error.

use crate::program::Place;

const DEVICES: usize = 30;
const ROUNDS: usize = 4;

/// Settings with all devices in every round, so that the cohorts of a run are known.
const FULL: &str = "--set cohort={sampling=\"full\"} --set data.devices=30 \
                    --set data.device_test=0.2 --set rounds=4 --seed 3 \
                    --set server.smoothing_factor=0 --json";

/// An experiment of the contrastive methods.
const FEDSC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/fedsc.toml");

/// Returns the `participation.jsonl` of a run in which all devices were drawn and present.
fn full_participation() -> String {
    let cohort = serde_json::Value::from_iter(0..DEVICES);
    let line = |round| {
        let record = serde_json::json!({
            "round": round,
            "number": round,
            "cohort": cohort,
            "answered": [],
            "missing": {},
            "covered_by_the_privacy_statement": false,
        });
        format!("{record}\n")
    };
    (0..ROUNDS).map(line).collect()
}

#[test]
fn every_kind_of_method_repeats_a_recorded_participation_bit_for_bit() {
    let place = Place::new();
    place.write("participation.jsonl", full_participation());
    for (method, settings) in [
        ("dp-fed", ""),
        ("pmtl", ""),
        ("pp-sgd", ""),
        ("dpfedmtl", "--set model.hidden=4"),
        ("fedsc", FEDSC),
    ] {
        let run = format!("run {settings} --set method={method} {FULL}");
        place.smolfed(&format!("{run} --out {method}")).success();
        let replay = format!("{run} --participation participation.jsonl --out {method}-replay");
        place.smolfed(&replay).success();
        for file in ["model.safetensors", "personal.json"] {
            let read = |out: &str| std::fs::read(place.path(out).join(file)).unwrap();
            let (run, replay) = (read(method), read(&format!("{method}-replay")));
            assert!(run == replay, "{method}: {file} differs");
        }
    }
}

#[test]
fn a_device_that_is_missing_from_the_record_changes_a_personal_run() {
    let place = Place::new();
    let whole = full_participation();
    place.write("whole.jsonl", &whole);
    let missing = whole.replacen("\"missing\":{}", "\"missing\":{\"5\":\"too late\"}", 1);
    assert_ne!(missing, whole);
    place.write("missing.jsonl", missing);
    let model = |record: &str| {
        let run = format!("run --participation {record}.jsonl --out {record} --set method=pmtl");
        place.smolfed(&format!("{run} {FULL}")).success();
        std::fs::read(place.path(record).join("model.safetensors")).unwrap()
    };
    assert_ne!(model("whole"), model("missing"));
}

#[test]
fn a_pair_that_makes_no_sense_is_refused_by_the_name_of_the_method() {
    let place = Place::new();
    place.write("participation.jsonl", full_participation());
    let provision = "provision --devices 0..4 --out fleet --with-data --set data.devices=30";
    place.smolfed(provision).success();
    let serve = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 26";
    for (call, method, reason) in [
        (
            format!("{serve} --set method=local {FULL}"),
            "\"local\"",
            "its devices send nothing",
        ),
        (
            format!(
                "run {FEDSC} --set method=central-sc --participation participation.jsonl --json"
            ),
            "\"central-sc\"",
            "there are no cohorts",
        ),
    ] {
        let outcome = place.smolfed(&format!("{call} --out refused"));
        outcome.refused(2, &[method, reason]);
        assert!(!place.path("refused").exists());
    }
}
