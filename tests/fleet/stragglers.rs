//! Late devices, and rounds that do not wait for them.

use crate::program::{Place, wait_until};

use super::device::Device;
use super::{assert_is_the_simulation, lines, part_of, serve, wait};

/// All 54 devices in each round, 5 of which are real.
const UNIFORM: &str =
    "--set cohort={sampling=\"uniform\",cohort_size=54} --set data.devices=54 --set rounds=12";

/// 53 of 54 answers end a round. With four real devices all of them count, and a stalled device is
/// not waited for.
#[test]
fn a_round_ends_with_its_quorum() {
    let place = Place::new();
    let provision = format!("provision --devices 0..4 --out fleet --with-data --seed 7 {UNIFORM}");
    place.smolfed(&provision).success();
    let devices = Device::start_all(&place, 0..4);
    // Without the quorum, each round would take the full time-out.
    let arguments = serve("60s", &format!("{UNIFORM} --quorum 0.975"));
    let coordinator = place.start(&arguments);
    wait_until(|| part_of(&place, "served", 2).0.len() + part_of(&place, "served", 2).1.len() > 1);
    devices[2].signal("-STOP");
    let outcome = wait(coordinator, &arguments).success();
    let rounds = lines(&place.path("served/participation.jsonl"));
    assert_eq!(rounds.len(), 12);
    for round in &rounds {
        // Exactly the quorum: ceil(0.975 · 54) less 50 simulated devices.
        assert_eq!(round["answered"].as_array().unwrap().len(), 3, "{round}");
    }
    let (_, missing) = part_of(&place, "served", 2);
    let beyond = "the round had the updates of its quorum";
    assert!(missing.iter().all(|why| why == beyond), "{missing:?}");
    let notes = outcome.json()["privacy"][0]["notes"].to_string();
    assert!(
        notes.contains("when a share of the cohort had answered"),
        "{notes}"
    );
    assert_is_the_simulation(&place, "served");
}

/// A repeatedly stalling device is no longer invited until an operator readmits it.
#[test]
fn a_device_that_stalls_is_put_into_quarantine() {
    let place = Place::new();
    let provision = format!("provision --devices 0..4 --out fleet --with-data --seed 7 {UNIFORM}");
    place.smolfed(&provision).success();
    let devices = Device::start_all(&place, 0..4);
    let arguments = serve("1s", &format!("{UNIFORM} --strikes 2"));
    let coordinator = place.start(&arguments);
    wait_until(|| part_of(&place, "served", 2).0.len() > 1);
    devices[2].signal("-STOP");
    let outcome = wait(coordinator, &arguments).success();
    let (_, missing) = part_of(&place, "served", 2);
    let quarantined = missing.iter().filter(|why| *why == "in quarantine");
    assert_eq!(missing.len() - quarantined.count(), 2, "{missing:?}");
    // Standard error does not name the device.
    let sentence = "a device is in quarantine and no longer invited";
    assert!(outcome.stderr.contains(sentence), "{outcome}");
    assert_is_the_simulation(&place, "served");
    let readmit =
        |numbers: &str| place.smolfed(&format!("keys readmit {numbers} --keys fleet/keys.toml"));
    let listed = readmit("").success().stdout;
    assert!(
        listed.starts_with("device 2: no answer to the inv"),
        "{listed}"
    );
    readmit("1").refused(2, &["device 1 is not in quarantine"]);
    readmit("2").success();
    assert_eq!(readmit("").success().stdout, "");
}

/// Four devices are drawn and three are needed. The first three count in every round, the sum is
/// divided by three, and epsilon is for four.
#[test]
fn more_devices_are_drawn_than_are_needed() {
    const DRAWN: &str = "--set data.devices=4 --set rounds=12";
    let cohort = |size: u32| format!("--set cohort={{sampling=\"uniform\",cohort_size={size}}}");
    let place = Place::new();
    let provision = format!("provision --devices 0..4 --out fleet --with-data --seed 7 {DRAWN}");
    let drawn = cohort(4);
    place.smolfed(&format!("{provision} {drawn}")).success();
    let devices = Device::start_all(&place, 0..4);
    let serve =
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --seed 7 --timeout 60s --json";
    let needed = cohort(3);
    let arguments = format!("{serve} --out served {DRAWN} {needed} --over-select 0.3");
    let coordinator = place.start(&arguments);
    wait_until(|| part_of(&place, "served", 2).0.len() + part_of(&place, "served", 2).1.len() > 1);
    devices[2].signal("-STOP");
    let outcome = wait(coordinator, &arguments).success();
    let rounds = lines(&place.path("served/participation.jsonl"));
    assert_eq!(rounds.len(), 12);
    for round in &rounds {
        assert_eq!(round["cohort"].as_array().unwrap().len(), 4, "{round}");
        assert_eq!(round["answered"].as_array().unwrap().len(), 3, "{round}");
    }
    let config = std::fs::read_to_string(place.path("served/config.toml")).unwrap();
    assert!(
        config.contains("\ncohort_size = 4\ndenominator = 3\n"),
        "{config}"
    );
    // The statement, too, has four of four drawn devices.
    let privacy = &outcome.json()["privacy"][0];
    assert_eq!(privacy["sampling_rate"], 1.0, "{privacy}");
    assert_is_the_simulation(&place, "served");

    let refused =
        |settings: &str| place.smolfed(&format!("{serve} --out other {DRAWN} {settings}"));
    let poisson = "--set cohort={sampling=\"poisson\",cohort_size=3} --over-select 0.3";
    refused(poisson).refused(
        2,
        &["`--over-select` draws more devices than a cohort of fixed size"],
    );
    let many = format!("{needed} --over-select 0.5");
    refused(&many).refused(2, &["draws 5 devices, and the federation has 4"]);
}
