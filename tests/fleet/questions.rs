//! Questions to device processes among simulated devices.

use std::collections::BTreeSet;

use super::device::Device;
use super::masked::{Helper, MASKED};
use super::{FULL, lines, provision, serve, wait};
use crate::program::{Place, wait_until};

/// Questions after rounds 1 and 3, and one of them after the last round only.
const ASKED: &str = "--set questions=[{kind=\"evaluate\",every=2},{kind=\"histogram\",feature=20,\
                     edges=[0.25,0.5]},{kind=\"count\",every=2},{kind=\"moments\",feature=3,\
                     bounds=[0,1]},{kind=\"presence\"},{kind=\"confusion\"}]";

/// Returns the answers of a run by round.
pub(crate) fn answers(place: &Place, out: &str) -> Vec<String> {
    let rounds = lines(&place.path(out).join("metrics.jsonl"));
    rounds
        .iter()
        .map(|round| round["answers"].to_string())
        .collect()
}

/// Returns the answering devices by question, and why device 3 did not answer.
fn answered(place: &Place) -> Vec<(u64, Vec<u64>, Option<String>)> {
    let asked = lines(&place.path("served/answers.jsonl"));
    let answered = asked.iter().map(|asked| {
        let devices = asked["answered"].as_array().unwrap().iter();
        (
            asked["number"].as_u64().unwrap(),
            devices.map(|device| device.as_u64().unwrap()).collect(),
            asked["missing"]["3"].as_str().map(str::to_owned),
        )
    });
    answered.collect()
}

/// Why a device with answers left did not answer, and why one without did not.
pub(crate) const OTHER: &str = "declined: the device answers no questions of this kind";
pub(crate) const SPENT: &str = "declined: the device has answered as many questions as it will";

/// Returns, by question, why a device did not answer, or "answered".
pub(crate) fn reasons(place: &Place, device: u32) -> Vec<String> {
    let asked = lines(&place.path("served/answers.jsonl"));
    let reasons = asked
        .iter()
        .map(|asked| asked["missing"][device.to_string()].as_str());
    reasons
        .map(|reason| reason.unwrap_or("answered").to_owned())
        .collect()
}

#[test]
fn the_answers_of_real_devices_are_those_of_a_simulation() {
    for trust in ["central", "local"] {
        let place = Place::new();
        let settings = format!("{FULL} --set rounds=4 --set privacy.trust={trust} {ASKED}");
        provision(&place, &format!("{settings} --answers all"));
        let _devices = Device::start_all(&place, 0..4);
        let arguments = serve("20s", &settings);
        let outcome = wait(place.start(&arguments), &arguments).success();
        assert_eq!(outcome.json()["rounds"], 4, "{outcome}");
        let simulated = format!("run --seed 7 --out simulated {settings}");
        place.smolfed(&simulated).success();
        let found = answers(&place, "served");
        assert_eq!(found, answers(&place, "simulated"), "{trust}");
        assert!(found[1].contains("accuracy") && found[3].contains("presence"));
        // Numbers 0, 1 and 4 belong to rounds.
        let everybody = |number| (number, vec![0, 1, 2, 3], None);
        let numbers = [2, 3, 6, 7, 8, 9, 10, 11];
        assert_eq!(answered(&place), numbers.map(everybody));
    }
}

/// The helper answers each number once: it counts questions like rounds.
#[test]
fn a_helper_unmasks_the_sum_of_answers_alone() {
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=4 {ASKED}");
    provision(&place, &format!("{settings} --answers all"));
    let _helper = Helper::start(&place, 0);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve("20s", &format!("{settings} --helper unix:helper-0.sock"));
    let outcome = wait(place.start(&arguments), &arguments).success();
    let simulated = format!("run --seed 7 --out simulated {settings}");
    place.smolfed(&simulated).success();
    assert_eq!(
        answers(&place, "served"),
        answers(&place, "simulated"),
        "{outcome}"
    );
    assert_eq!(answered(&place).len(), 8);
}

/// A paid round is burned with its questions, and no number names two releases.
#[test]
fn a_coordinator_that_was_killed_goes_on_with_other_numbers() {
    let place = Place::new();
    let settings = format!(
        "{FULL} --set rounds=30 --set questions=[{{kind=\"evaluate\",every=1}},\
         {{kind=\"count\",every=2}}]"
    );
    provision(&place, &format!("{settings} --answers all"));
    let _devices = Device::start_all(&place, 0..4);
    let mut first = place.start(&serve("20s", &settings));
    let path = place.path("served/answers.jsonl");
    wait_until(|| lines(&path).len() > 8);
    first.kill().unwrap();
    first.wait().unwrap();
    let again = "serve --resume served --json";
    let outcome = wait(place.start(again), again).success();
    assert_eq!(outcome.json()["rounds"], 30, "{outcome}");
    let rounds = lines(&place.path("served/participation.jsonl"));
    let asked = lines(&path);
    let lost = rounds.iter().filter(|round| round["burned"] == true);
    assert!(lost.count() <= 1 && rounds.len() == 30);
    let numbers = rounds.iter().chain(&asked);
    let numbers: Vec<u64> = numbers
        .map(|line| line["number"].as_u64().unwrap())
        .collect();
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len(), "{numbers:?}");
}

/// The others answer, and the device's updates count.
#[test]
fn a_device_answers_as_it_was_provisioned_to() {
    let place = Place::new();
    let settings = format!(
        "{FULL} --set rounds=4 --set questions=[{{kind=\"evaluate\",every=1}},\
         {{kind=\"count\",every=1}}]"
    );
    provision(
        &place,
        &format!("{settings} --answers evaluate --max-answers 3"),
    );
    let _devices = Device::start_all(&place, 0..3);
    // Its owner's options override its record.
    let own = "--model softmax:64x10 --connect unix:fleet.sock --answers evaluate,count \
               --max-answers 2";
    let _other = Device::start_with(&place, 3, own);
    let arguments = serve("20s", &settings);
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 4, "{outcome}");
    let of_first = [
        "answered", OTHER, "answered", OTHER, "answered", OTHER, SPENT, OTHER,
    ];
    let of_last = [
        "answered", "answered", SPENT, SPENT, SPENT, SPENT, SPENT, SPENT,
    ];
    assert_eq!(reasons(&place, 0), of_first);
    assert_eq!(reasons(&place, 3), of_last);
    for device in 0..4 {
        assert_eq!(super::part_of(&place, "served", device).0, [0, 1, 2, 3]);
    }
}

/// A question alone: no device trains, and each spends the participation of one answer.
#[test]
fn devices_are_asked_without_training() {
    asked_without_training("--set privacy.trust=central", "");
    // One answer with the whole target has less noise than two updates.
    asked_without_training("--set privacy.trust=local", "--min-answer-noise 0.1");
}

fn asked_without_training(trust: &str, noise: &str) {
    let place = Place::new();
    let train = format!("run --seed 7 --out model --set rounds=2 --set data.devices=54 {trust}");
    place.smolfed(&train).success();
    provision(
        &place,
        &format!(
            "{FULL} --set rounds=2 {trust} {noise} --answers evaluate --budget 2 --max-answers 2"
        ),
    );
    let _devices = Device::start_all(&place, 0..4);
    place.write(
        "question.toml",
        "[cohort]\nsampling = \"full\"\n[privacy]\nepsilon = 6.0\n\
         [[questions]]\nkind = \"evaluate\"\n",
    );
    let ask = |out: &str, more: &str| {
        let ask = format!(
            "ask question.toml --run model --keys fleet/keys.toml --listen unix:fleet.sock \
             --timeout 20s --simulated 50 --seed 7 --json --out {out} {more}"
        );
        let asked = wait(place.start(&ask), &ask).success().json();
        let record = lines(&place.path(out).join("answers.jsonl"));
        assert_eq!(record.len(), 1);
        place.smolfed(&format!("account --verify {out}")).success();
        (asked, record[0].clone())
    };
    let model = |out: &str| std::fs::read(place.path(out).join("model.safetensors")).unwrap();
    let of_simulation = place.smolfed("ask question.toml --run model --out simulated --json");
    let of_simulation = of_simulation.success().json();
    // A clip norm, as in a file copied from an experiment, makes no device train.
    for (out, more) in [("asked", ""), ("clipped", "--set privacy.clip_norm=1.0")] {
        let (asked, record) = ask(out, more);
        assert_eq!(
            record["answered"],
            serde_json::json!([0, 1, 2, 3]),
            "{record}"
        );
        assert_eq!(asked["epsilon"], of_simulation["epsilon"]);
        let [found, expected] = [&asked, &of_simulation].map(|asked| asked["estimate"].as_f64());
        // Eight standard deviations of the noise on the difference: probability below 10⁻¹⁴.
        let interval = asked["interval"].as_array().unwrap();
        let width = interval[1].as_f64().unwrap() - interval[0].as_f64().unwrap();
        assert!(
            (found.unwrap() - expected.unwrap()).abs() < 2.2 * width,
            "{asked}"
        );
        let rounds = lines(&place.path(out).join("participation.jsonl"));
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0]["cohort"], serde_json::json!([]), "nobody trains");
        assert!(model(out) == model("simulated"), "the model changed");
        let resume = format!("serve --resume {out} --json");
        let resumed = wait(place.start(&resume), &resume).success().json();
        assert_eq!(resumed["estimate"], asked["estimate"]);
    }
    // Each device has answered twice, and the statement still stands.
    let (_, record) = ask("again", "");
    let missing = record["missing"].as_object().unwrap();
    assert_eq!(missing.len(), 4, "{record}");
}
