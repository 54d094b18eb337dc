//! A coordinator under a supervisor: signals, the log, a full disk.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::device::send;
use super::{
    Device, FULL, Place, Value, assert_is_the_simulation, lines, part_of, provision, serve, wait,
    wait_until,
};
use crate::program::program;

/// Returns whether a device has begun to train in its first round.
fn has_begun(place: &Place, device: u32) -> bool {
    let ledger = place.path(format!("fleet/device-{device}.ledger"));
    let bytes = std::fs::read(ledger).unwrap_or_default();
    // The second slot has a record: the first participation.
    bytes.get(128..132) == Some(b"sfL3")
}

/// A round that waits for the absent device 3 ends with the others' updates.
#[test]
fn a_stop_burns_no_round_and_the_run_can_be_resumed() {
    for (signals, grace, code) in [
        (&["-TERM"][..], "1s", 0),
        (&["-INT"], "1s", 1),
        (&["-TERM", "-TERM"], "600s", 0),
    ] {
        let place = Place::new();
        provision(&place, &format!("{FULL} --set rounds=3"));
        let _devices = Device::start_all(&place, 0..3);
        let settings = format!("{FULL} --set rounds=3 --grace {grace}");
        let arguments = serve("600s", &settings);
        let coordinator = place.start(&arguments);
        wait_until(|| (0..3).all(|device| has_begun(&place, device)));
        let started = Instant::now();
        for signal in signals {
            send(&coordinator, signal);
            // Two signals pending at the same time count as one.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        let outcome = wait(coordinator, &arguments);
        assert_eq!(outcome.code, Some(code), "{outcome}");
        assert!(started.elapsed().as_secs() < 60, "{outcome}");
        assert!(outcome.stderr.contains("resume with"), "{outcome}");

        assert_eq!(lines(&place.path("served/metrics.jsonl")).len(), 1);
        let devices = std::fs::read_to_string(place.path("served/devices.json")).unwrap();
        let devices: Value = serde_json::from_str(&devices).unwrap();
        assert_eq!(devices["devices"][0]["answered"], 1, "{devices}");
        assert_eq!(part_of(&place, "served", 3).1, ["not connected"]);

        let _last = Device::start(&place, 3, "fleet.sock");
        let resume = "serve --resume served --json";
        wait(place.start(resume), resume).success();
        for record in lines(&place.path("served/metrics.jsonl")) {
            assert_eq!(record["burned"], Value::Null, "{record}");
        }
        for device in 0..3 {
            assert_eq!(part_of(&place, "served", device).0, [0, 1, 2]);
        }
        assert_is_the_simulation(&place, "served");
    }
}

/// Before there is anything to finish, a signal ends the process, and nothing is charged.
#[test]
fn a_third_signal_ends_the_process() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _device = Device::start(&place, 0, "fleet.sock");
    let arguments = serve(
        "600s",
        &format!("{FULL} --set rounds=3 --min-devices 1 --grace 600s"),
    );
    let mut child = place.start(&arguments);
    wait_until(|| has_begun(&place, 0));
    // It waits for a device even if signals merge, so they are sent until it exits.
    let ended = Instant::now();
    while child.try_wait().unwrap().is_none() && ended.elapsed().as_secs() < 60 {
        let id = child.id().to_string();
        let _ = std::process::Command::new("kill")
            .args(["-INT", &id])
            .status();
    }
    let outcome = wait(child, &arguments);
    assert!(matches!(outcome.code, Some(1 | 130)), "{outcome}");
}

#[test]
fn sighup_opens_the_log_again_and_ends_nothing() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _devices = Device::start_all(&place, 0..3);
    let options = "--set rounds=3 --log-file serve.log --log-format json";
    let arguments = serve("3s", &format!("{FULL} {options}"));
    let coordinator = place.start(&arguments);
    wait_until(|| has_begun(&place, 0) && place.path("serve.log").is_file());
    std::fs::rename(place.path("serve.log"), place.path("old.log")).unwrap();
    send(&coordinator, "-HUP");
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 3, "{outcome}");
    let log = lines(&place.path("serve.log"));
    assert_eq!(log[0]["reason"], "reload", "{log:?}");
    let missing = log.iter().find(|line| line["reason"] == "not connected");
    let missing = missing.unwrap_or_else(|| panic!("{log:?}"));
    assert_eq!(missing["message"], "round 0: device 3: not connected");
    assert_eq!(
        (&missing["count"], &missing["level"]),
        (&1.into(), &"info".into())
    );
    // Participation is secret, and others read standard error.
    let expected = "round 0: 1 missing: not connected";
    assert!(outcome.stderr.contains(expected), "{outcome}");
    assert!(!outcome.stderr.contains("device 3"), "{outcome}");
}

/// On a full disk, the error names the required file, and not the next one.
#[test]
fn a_full_disk_names_the_file_that_is_needed() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=60"));
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve("20s", &format!("{FULL} --set rounds=60"));
    // A limit of 8 KiB per file simulates a full disk.
    let script = format!("trap '' XFSZ; ulimit -f 16; exec \"$0\" {arguments}");
    let script = script.replace("{sampling=\"full\"}", "'{sampling=\"full\"}'");
    let mut command = place.command("sh");
    command.args(["-c", &script]).arg(program());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let coordinator = command.spawn().unwrap();
    // The table of devices cannot be written either: a folder blocks its path.
    wait_until(|| place.path("served").is_dir());
    std::fs::create_dir(place.path("served/devices.json.partial")).unwrap();
    let outcome = wait(coordinator, &arguments);
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let error = outcome.stderr.lines().last().unwrap_or_default();
    let is_needed = ["ledger.jsonl", "metrics.jsonl", "participation.jsonl"]
        .iter()
        .any(|file| error.contains(&format!("served/{file}")));
    assert!(is_needed && error.contains("File too large"), "{outcome}");
    assert!(error.contains("--resume served"), "{outcome}");
}

/// The files next to the keys do not belong to the run. An error names an unwritable file, and no
/// device is invited while a used round number or a ledger is not on disk.
#[test]
fn a_file_beside_the_keys_that_cannot_be_written_is_named() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --budget 20"));
    let _devices = Device::start_all(&place, 0..4);
    let served = |out: &str, timeout: &str| {
        let arguments = serve(timeout, &format!("{FULL} --set rounds=1"));
        let arguments = arguments.replace("--out served", &format!("--out {out}"));
        wait(place.start(&arguments), &arguments)
    };
    // A folder blocks the path of the temporary file.
    let blocked = |ending: &str| {
        let path = place.path(format!("fleet/keys.toml.{ending}.partial"));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let unblock = |path| std::fs::remove_dir(path).unwrap();

    let path = blocked("ledgers");
    let outcome = served("ledgers", "1s");
    let sentence = "no device is invited: cannot write fleet/keys.toml.ledgers: ";
    assert!(outcome.stderr.contains(sentence), "{outcome}");
    assert!(!has_begun(&place, 0));
    unblock(path);
    let path = blocked("round");
    served("round", "60s").refused(1, &["cannot write fleet/keys.toml.round: "]);
    unblock(path);
    assert_eq!(served("works", "60s").code, Some(0));
    // The next session uses the next key.
    let path = blocked("chains");
    let outcome = served("chains", "60s").success();
    let sentence = "cannot write fleet/keys.toml.chains: ";
    assert!(outcome.stderr.contains(sentence), "{outcome}");
    unblock(path);
    assert_eq!(part_of(&place, "chains", 0).0, [0]);
}

/// As with a sleeping machine or a hanging disk: devices repeat their messages, and none is lost.
#[test]
fn a_coordinator_that_is_suspended_loses_no_update() {
    let place = Place::new();
    let settings = format!("{FULL} --set rounds=30 --budget 100");
    provision(&place, &settings);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve("60s", &format!("{FULL} --set rounds=30"));
    let coordinator = place.start(&arguments);
    wait_until(|| part_of(&place, "served", 0).0.len() > 2);
    send(&coordinator, "-STOP");
    std::thread::sleep(Duration::from_secs(5));
    send(&coordinator, "-CONT");
    wait(coordinator, &arguments).success();
    for number in 0..4 {
        let (answered, missing) = part_of(&place, "served", number);
        assert_eq!(
            (answered.len(), missing),
            (30, Vec::new()),
            "device {number}"
        );
    }
    assert_is_the_simulation(&place, "served");
}
