//! Absent devices: the run waits for them, and spends nothing meanwhile.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::device::{Device, send};
use super::{FULL, assert_is_the_simulation, lines, part_of, provision, serve, wait, wait_until};
use crate::program::{Outcome, Place};

/// Returns the rounds recorded so far.
pub(super) fn rounds(place: &Place) -> Vec<Value> {
    lines(&place.path("served/participation.jsonl"))
}

/// Returns the number of rounds charged so far.
pub(super) fn charges(place: &Place) -> usize {
    let ledger = lines(&place.path("served/ledger.jsonl"));
    let charges = ledger.iter().filter(|line| line["event"].is_object());
    charges.count()
}

/// Counts the log entries with this reason.
fn logged(place: &Place, reason: &str) -> usize {
    let log = lines(&place.path("serve.log"));
    log.iter().filter(|line| line["reason"] == reason).count()
}

fn stop(coordinator: Child, arguments: &str) -> Outcome {
    send(&coordinator, "-TERM");
    wait(coordinator, arguments).success()
}

/// Returns arguments of a coordinator with these rounds that logs to serve.log.
fn logging(rounds: u32, timeout: &str, settings: &str) -> String {
    let log = "--log-file serve.log --log-format json";
    serve(
        timeout,
        &format!("{FULL} --set rounds={rounds} {log} {settings}"),
    )
}

/// With an interval, a device that restarts after each round misses none.
#[test]
fn rounds_begin_an_interval_after_each_other() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let arguments = logging(3, "30s", "--round-interval 900ms --min-devices 4");
    let begin = Instant::now();
    let coordinator = place.start(&arguments);
    let mut devices = Device::start_all(&place, 0..4);
    for done in 1..3 {
        wait_until(|| rounds(&place).len() >= done);
        // They leave before they return.
        devices.clear();
        devices = Device::start_all(&place, 0..4);
    }
    wait(coordinator, &arguments).success();
    assert!(begin.elapsed() > Duration::from_millis(1_800));
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device), (vec![0, 1, 2], vec![]));
    }
    assert_is_the_simulation(&place, "served");
}

/// Kills all devices for some seconds, twice. Each time, at most the round in progress lacks an
/// answer, and no other round is charged before a device is back.
#[test]
fn an_outage_of_all_devices_costs_no_round() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=500 --budget 1000"));
    let arguments = logging(500, "2s", "");
    let coordinator = place.start(&arguments);
    for _ in 0..2 {
        let devices = Device::start_all(&place, 0..4);
        let before = rounds(&place).len();
        wait_until(|| rounds(&place).len() > before + 3);
        // A slow machine may have paused for starting devices.
        let (pauses, ends) = (logged(&place, "paused"), logged(&place, "resumed"));
        for mut device in devices {
            device.0.kill().unwrap();
            device.0.wait().unwrap();
        }
        wait_until(|| logged(&place, "paused") > pauses);
        let paused = (rounds(&place).len(), charges(&place));
        assert_eq!(paused.0, paused.1, "no round is charged and not done");
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(paused, (rounds(&place).len(), charges(&place)));
        assert_eq!(logged(&place, "paused"), pauses + 1, "once");
        assert_eq!(logged(&place, "resumed"), ends);
    }
    // A paused run stops at once.
    let asked = Instant::now();
    let outcome = stop(coordinator, &arguments);
    assert!(asked.elapsed() < Duration::from_secs(10), "{outcome}");
    let rounds = rounds(&place);
    assert_eq!(charges(&place), rounds.len());
    let is_empty = |round: &&Value| round["answered"].as_array().unwrap().is_empty();
    let empty = rounds.iter().filter(is_empty).count();
    assert!(empty <= 2, "{empty} rounds of {}", rounds.len());
    place.smolfed("account --verify served").success();
}

#[test]
fn a_run_that_no_device_joins_spends_nothing_and_can_be_resumed() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let arguments = serve(
        "1s",
        &format!("{FULL} --set rounds=3 --give-up-after 1500ms"),
    );
    let outcome = wait(place.start(&arguments), &arguments);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let sentence = "error: no device has been connected for 1s 500ms, and no round was charged";
    assert!(outcome.stderr.contains(sentence), "{outcome}");
    assert!(
        outcome.stderr.contains("the run is paused: 0 of 4"),
        "{outcome}"
    );
    assert_eq!((charges(&place), rounds(&place).len()), (0, 0));
    let _devices = Device::start_all(&place, 0..4);
    let resume = "serve --resume served --timeout 20s --give-up-after 10m --json";
    let outcome = wait(place.start(resume), resume).success();
    assert_eq!(outcome.json()["rounds"], 3, "{outcome}");
    assert_is_the_simulation(&place, "served");
}

/// The rounds so far are released: their model and their report exist.
#[test]
fn a_run_that_gives_up_leaves_its_results() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=500 --budget 1000"));
    let arguments = logging(500, "1s", "--give-up-after 2s");
    let devices = Device::start_all(&place, 0..4);
    let coordinator = place.start(&arguments);
    wait_until(|| rounds(&place).len() > 3);
    drop(devices);
    let outcome = wait(coordinator, &arguments);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.stderr.lines().last().unwrap_or_default();
    let sentence = "error: no device has been connected for 2s";
    assert!(error.starts_with(sentence), "{outcome}");
    assert!(error.contains("--resume served"), "{outcome}");
    let done = rounds(&place).len();
    assert_eq!(outcome.json()["rounds"], done, "{outcome}");
    assert_eq!(charges(&place), done);
    for file in ["model.safetensors", "privacy.json", "report.html"] {
        assert!(place.path("served").join(file).is_file(), "{file}");
    }
    place.smolfed("account --verify served").success();
}

/// One of four devices is less than half, unless the operator sets a lower minimum.
#[test]
fn a_round_needs_as_many_devices_as_the_operator_says() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _device = Device::start(&place, 0, "fleet.sock");
    let arguments = logging(3, "1s", "");
    let coordinator = place.start(&arguments);
    wait_until(|| logged(&place, "paused") == 1);
    assert_eq!(charges(&place), 0);
    let outcome = stop(coordinator, &arguments);
    assert!(outcome.stderr.contains("until there are 2"), "{outcome}");
    let resume = "serve --resume served --min-devices 1 --timeout 5s --json";
    wait(place.start(resume), resume).success();
    assert_eq!(part_of(&place, "served", 0).0, [0, 1, 2]);
    // Cohorts are drawn from all devices, not from the connected ones.
    for round in rounds(&place) {
        assert_eq!(round["cohort"].as_array().unwrap().len(), 54, "{round}");
    }
    let start = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --out many";
    let many = |devices| place.smolfed(&format!("{start} --min-devices {devices}"));
    many(5).refused(2, &["`--min-devices 5`: 4 devices have keys"]);
    let revoke = "keys revoke 3 --keys fleet/keys.toml";
    place.smolfed(revoke).success();
    many(4).refused(2, &["`--min-devices 4`: 3 devices have keys"]);
}

/// Two of four devices are needed by default, but one of two once the others' keys are revoked, in
/// the paused run or before it is resumed.
#[test]
fn devices_without_keys_are_not_waited_for() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _device = Device::start(&place, 0, "fleet.sock");
    let arguments = logging(3, "1s", "");
    let coordinator = place.start(&arguments);
    wait_until(|| logged(&place, "paused") == 1);
    for device in [2, 3] {
        let revoke = format!("keys revoke {device} --keys fleet/keys.toml");
        place.smolfed(&revoke).success();
    }
    wait(coordinator, &arguments).success();
    assert_eq!(rounds(&place).len(), 3);
    assert!(part_of(&place, "served", 0).0.len() >= 2, "it answers");
    assert_eq!(part_of(&place, "served", 3).1, ["its key was revoked"; 3]);
    let table = std::fs::read_to_string(place.path("served/devices.json")).unwrap();
    let table: Value = serde_json::from_str(&table).unwrap();
    assert_eq!(table["devices"].as_array().map(Vec::len), Some(2));
}

/// The device count of its first call stays, though fewer devices are left.
#[test]
fn a_run_that_asked_for_more_devices_than_are_left_is_resumed() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _devices = Device::start_all(&place, 0..3);
    let arguments = logging(3, "5s", "--min-devices 4");
    let coordinator = place.start(&arguments);
    wait_until(|| logged(&place, "paused") == 1);
    stop(coordinator, &arguments);
    let revoke = "keys revoke 3 --keys fleet/keys.toml";
    place.smolfed(revoke).success();
    let resume = "serve --resume served --json";
    place
        .smolfed(&format!("{resume} --min-devices 4"))
        .refused(2, &["`--min-devices 4`: 3 devices have keys"]);
    wait(place.start(resume), resume).success();
    assert_eq!(part_of(&place, "served", 0).0, [0, 1, 2]);
}

/// Devices that are connected but never answer. A pause would reveal that drawn devices are among
/// them. The time-out and quarantine bound their cost.
#[test]
fn a_run_does_not_pause_for_devices_that_do_not_answer() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=60"));
    let devices = Device::start_all(&place, 0..4);
    let arguments = logging(60, "1s", "--strikes 2");
    let coordinator = place.start(&arguments);
    wait_until(|| !rounds(&place).is_empty());
    let pauses = logged(&place, "paused");
    for device in &devices {
        device.signal("-STOP");
    }
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 60, "{outcome}");
    assert_eq!(logged(&place, "paused"), pauses, "{outcome}");
    let (_, missing) = part_of(&place, "served", 0);
    assert_eq!(missing.last().unwrap(), "in quarantine");
}

/// A device that answered and then disconnected is expected back: the next round waits for it.
#[test]
fn a_device_that_answered_its_latest_round_is_waited_for() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=500 --budget 1000"));
    let mut devices = Device::start_all(&place, 0..4);
    let arguments = logging(500, "60s", "");
    let coordinator = place.start(&arguments);
    wait_until(|| rounds(&place).len() > 3);
    // The round that waits for this device has the update of the other one, which then leaves.
    devices[2].signal("-STOP");
    std::thread::sleep(Duration::from_secs(3));
    devices[3].0.kill().unwrap();
    devices[3].0.wait().unwrap();
    devices[2].signal("-CONT");
    std::thread::sleep(Duration::from_secs(1));
    let done = rounds(&place).len();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(rounds(&place).len(), done, "it is waited for");
    devices[3] = Device::start(&place, 3, "fleet.sock");
    wait_until(|| rounds(&place).len() > done + 3);
    stop(coordinator, &arguments);
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device).1, [""; 0], "{device}");
    }
}

/// A copy of a device takes its session, and leaves before it takes part.
#[test]
fn a_device_recovers_from_a_copy_that_took_its_session() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let copied = std::fs::copy(
        place.path("fleet/device-0.ledger"),
        place.path("copy.ledger"),
    );
    copied.unwrap();
    let _original = Device::start(&place, 0, "fleet.sock");
    // No round begins before all are connected.
    let arguments = logging(3, "20s", "--min-devices 4");
    let coordinator = place.start(&arguments);
    wait_until(|| logged(&place, "paused") == 1);
    let call = "device --provision fleet/device-0.bin --ledger copy.ledger --model softmax:64x10 \
                --connect unix:fleet.sock";
    let mut copy = place.start(call);
    wait_until(|| logged(&place, "second session") > 0);
    copy.kill().unwrap();
    copy.wait().unwrap();
    let _others = Device::start_all(&place, 1..4);
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(part_of(&place, "served", 0).0, [0, 1, 2], "{outcome}");
    let table = std::fs::read_to_string(place.path("served/devices.json")).unwrap();
    let table: Value = serde_json::from_str(&table).unwrap();
    assert!(
        table["devices"][0]["second_sessions"].as_u64() > Some(0),
        "{table}"
    );
    // Its number and address are only in the log file.
    let log = lines(&place.path("serve.log"));
    let warning = log.iter().find(|line| line["reason"] == "second session");
    let warning = warning.unwrap();
    assert_eq!(warning["level"], "warn");
    let sentence = "device 0: a second session, from a local socket or a broker, has replaced the \
                    one from a local socket or a broker";
    assert_eq!(warning["message"], sentence);
    assert!(!outcome.stderr.contains("device 0"), "{outcome}");
}
