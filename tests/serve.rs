//! Real devices, as processes, in one federation with simulated ones. However lines break and processes
//! die, the model is the one that a simulation of the same participation gives.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Outcome, Place};

mod boards;
mod device;
mod proxy;

use device::Device;
use proxy::Proxy;

/// Settings of the experiments here: everybody is drawn in every round.
const FULL: &str = "--set cohort={sampling=\"full\"} --set data.devices=54";

fn provision(place: &Place, settings: &str) {
    let call = format!("provision --devices 0..4 --out fleet --with-data --seed 7 {settings}");
    place.smolfed(&call).success();
}

/// Ends when the coordinator does, within two minutes.
fn wait(mut serve: Child, arguments: &str) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(120);
    while serve.try_wait().expect("the coordinator's state").is_none() {
        if Instant::now() > deadline {
            let _ = serve.kill();
            panic!(
                "{}",
                Outcome::of(serve.wait_with_output().unwrap(), arguments)
            );
        }
        thread::sleep(Duration::from_millis(20));
    }
    Outcome::of(serve.wait_with_output().unwrap(), arguments)
}

/// Repeats the participation of `out` in a simulation, which must end with the same model.
fn assert_is_the_simulation(place: &Place, out: &str) {
    let replay = format!("{out}-replay");
    let call = format!(
        "run {out}/config.toml --participation {out}/participation.jsonl --out {replay} --json"
    );
    place.smolfed(&call).success();
    let model = |dir: &str| std::fs::read(place.path(dir).join("model.safetensors")).unwrap();
    assert!(model(out) == model(&replay), "the bits differ");
    let rounds = |dir: &str| lines(&place.path(dir).join("ledger.jsonl")).len();
    assert_eq!(rounds(out), rounds(&replay));
}

/// The objects of a file of JSON lines.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last one may be on its way.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Rounds that a device answered, and why it missed the others.
fn part_of(place: &Place, out: &str, device: u32) -> (Vec<u64>, Vec<String>) {
    let rounds = lines(&place.path(out).join("participation.jsonl"));
    let answered = rounds.iter().filter(|round| {
        let answered = round["answered"].as_array().unwrap();
        answered.iter().any(|x| x.as_u64() == Some(device.into()))
    });
    let answered = answered.map(|round| round["round"].as_u64().unwrap());
    let missing = rounds.iter().filter_map(|round| {
        let why = &round["missing"][device.to_string()];
        why.as_str().map(str::to_owned)
    });
    (answered.collect(), missing.collect())
}

#[test]
fn lines_break_and_devices_die_and_the_model_is_that_of_the_participation() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=20 --budget 100"));
    let first = Proxy::start(&place, "first.sock", "fleet.sock", true);
    let second = Proxy::start(&place, "second.sock", "fleet.sock", true);
    // In the middle of its second update.
    first.hold_after.store(4_500, Ordering::Relaxed);
    second.damage_every.store(5_003, Ordering::Relaxed);
    second.cut_every.store(9_001, Ordering::Relaxed);
    let mut zero = Device::start(&place, 0, "first.sock");
    let mut one = Device::start(&place, 1, "second.sock");
    let _two = Device::start(&place, 2, "fleet.sock");
    let _three = Device::start(&place, 3, "fleet.sock");
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --seed 7 \
         --timeout 20s --out served --json {FULL} --set rounds=20"
    );
    let serve = place.start(&arguments);
    first.wait_until_held();
    zero.0.kill().unwrap();
    zero.0.wait().unwrap();
    first.repair();
    zero = Device::start(&place, 0, "first.sock");
    // The other is killed wherever it is once its line was damaged and cut; then it works again.
    second.wait_until_bad();
    one.0.kill().unwrap();
    one.0.wait().unwrap();
    second.repair();
    one = Device::start(&place, 1, "second.sock");
    let outcome = wait(serve, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 20, "{outcome}");

    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(
            answered.len() + missing.len(),
            20,
            "device {device}: {missing:?}"
        );
        match device {
            // Each lost its session at most where it was killed, and came back.
            0 => assert_eq!(
                missing,
                ["the session was lost after the model was delivered"]
            ),
            1 => assert!(missing.len() <= 1 && answered.contains(&19), "{missing:?}"),
            _ => assert_eq!(missing, [""; 0]),
        }
    }
    drop((zero, one));
}

#[test]
fn devices_add_their_own_noise_and_the_bits_are_the_simulations() {
    let place = Place::new();
    let settings = format!("{FULL} --set rounds=4 --set privacy.trust=local");
    provision(&place, &settings);
    let _devices: Vec<Device> = (0..4)
        .map(|n| Device::start(&place, n, "fleet.sock"))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --seed 7 \
         --timeout 20s --out served --json {settings}"
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 4);
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device).0, [0, 1, 2, 3]);
    }
    assert_is_the_simulation(&place, "served");
    let privacy = std::fs::read_to_string(place.path("served/privacy.json")).unwrap();
    assert!(
        privacy.contains("noise follows from the known seed 7"),
        "{privacy}"
    );
    // Less noise than was promised: the devices insist on what they were provisioned with.
    let weak = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 1s \
                --out weak --json --set rounds=1 --set privacy.trust=local --set \
                privacy.epsilon=400 --set cohort={sampling=\"full\"}";
    wait(place.start(weak), weak).success();
    for device in 0..4 {
        let (_, missing) = part_of(&place, "weak", device);
        assert!(missing[0].contains("less noise"), "{missing:?}");
    }
}

#[test]
fn a_silent_device_costs_its_own_update_and_the_time_out() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=30"));
    let devices: Vec<Device> = (0..4)
        .map(|n| Device::start(&place, n, "fleet.sock"))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --seed 7 \
         --timeout 3s --out served --json {FULL} --set rounds=30"
    );
    let serve = place.start(&arguments);
    let wait_for = |condition: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(2));
        }
    };
    wait_for(&|| part_of(&place, "served", 2).0.len() > 1);
    devices[2].signal("-STOP");
    wait_for(&|| !part_of(&place, "served", 2).1.is_empty());
    devices[2].signal("-CONT");
    wait(serve, &arguments).success();
    for device in [0, 1, 3] {
        assert_eq!(part_of(&place, "served", device).0.len(), 30);
    }
    let (answered, missing) = part_of(&place, "served", 2);
    assert!(answered.contains(&29), "it came back: {missing:?}");
    let reasons = ["no answer to the invitation", "too late"];
    assert!(
        missing.iter().all(|why| reasons.contains(&why.as_str())),
        "{missing:?}"
    );
    assert_is_the_simulation(&place, "served");
}

/// Whatever the coordinator says about the number of rounds, each device counts for itself.
#[test]
fn a_device_stops_at_its_own_budget() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --budget 2"));
    // One waits for its coordinator, by TCP.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", free.local_addr().unwrap());
    drop(free);
    let _listens = Device::start_at(&place, 0, &format!("--listen {address}"));
    let _devices: Vec<Device> = (1..4)
        .map(|n| Device::start(&place, n, "fleet.sock"))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --device {address} --simulated 50 \
         --seed 7 --timeout 20s --out served --json {FULL} --set rounds=4"
    );
    wait(place.start(&arguments), &arguments).success();
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(answered, [0, 1]);
        assert_eq!(missing, ["declined: the device's own budget is spent"; 2]);
    }
    assert_is_the_simulation(&place, "served");
}

#[test]
fn a_round_that_was_begun_is_burned_by_a_restart() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=6"));
    let devices: Vec<Device> = (0..3)
        .map(|n| Device::start(&place, n, "fleet.sock"))
        .collect();
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --seed 7 \
         --timeout 30s --out served --json {FULL} --set rounds=6"
    );
    // Device 3 is waited for: the coordinator dies in the middle of its first round.
    let mut serve = place.start(&arguments);
    let ledger = |device: u32| place.path(format!("fleet/device-{device}.ledger"));
    let deadline = Instant::now() + Duration::from_secs(60);
    let has_begun = || {
        let bytes = std::fs::read(ledger(0)).unwrap_or_default();
        // The second slot has a record: the first participation.
        bytes.get(64..68) == Some(b"sfL1")
    };
    while !has_begun() {
        assert!(Instant::now() < deadline, "no round began");
        thread::sleep(Duration::from_millis(5));
    }
    serve.kill().unwrap();
    serve.wait().unwrap();
    assert_eq!(
        lines(&place.path("served/ledger.jsonl")).len(),
        1,
        "paid before"
    );

    let _last = Device::start(&place, 3, "fleet.sock");
    let resume = "serve --resume served --json";
    let outcome = wait(place.start(resume), resume).success();
    assert_eq!(outcome.json()["rounds"], 6, "{outcome}");
    let records = lines(&place.path("served/metrics.jsonl"));
    assert_eq!(records[0]["burned"], true);
    let answered = part_of(&place, "served", 0).0;
    assert_eq!(answered, [1, 2, 3, 4, 5], "no number comes twice");
    assert_is_the_simulation(&place, "served");

    // Another run of the same fleet goes on with numbers that no device has used.
    let again = arguments.replace("--out served", "--out second");
    wait(place.start(&again), &again).success();
    let records = lines(&place.path("second/participation.jsonl"));
    assert_eq!(records[0]["number"], 6);
    drop(devices);
}

#[test]
fn whoever_has_another_key_or_another_name_is_left_out_and_named() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=2"));
    let other = "provision --devices 0..4 --out other --with-data --set data.devices=54";
    place.smolfed(other).success();
    // Device 0 has another fleet's key.
    std::fs::rename(
        place.path("other/device-0.bin"),
        place.path("fleet/device-0.bin"),
    )
    .unwrap();
    let _devices: Vec<Device> = (0..4)
        .map(|n| Device::start(&place, n, "fleet.sock"))
        .collect();
    // Something that speaks no protocol at all, and a connection that never says a word.
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 2s \
         --out served --json {FULL} --set rounds=2"
    );
    let serve = place.start(&arguments);
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut noise = loop {
        match UnixStream::connect(place.path("fleet.sock")) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    let _silence = UnixStream::connect(place.path("fleet.sock")).unwrap();
    let _ = noise.write_all(&[0x55; 4_000]);
    let _ = noise.write_all(&[0]);
    let outcome = wait(serve, &arguments).success();
    assert_eq!(part_of(&place, "served", 0).1, ["not connected"; 2]);
    for device in 1..4 {
        assert_eq!(part_of(&place, "served", device).0, [0, 1], "{outcome}");
    }
    let devices = std::fs::read_to_string(place.path("served/devices.json")).unwrap();
    let devices: Value = serde_json::from_str(&devices).unwrap();
    assert!(devices["devices"][0]["refused"]["not authentic"].as_u64() > Some(0));
    assert!(
        devices["strangers"]["longer than any frame"].as_u64() > Some(0),
        "{devices}"
    );
    let privacy = std::fs::read_to_string(place.path("served/privacy.json")).unwrap();
    for note in [
        "from the operating system and was not kept",
        "Updates crossed the lines without noise",
        "Whoever watches the lines",
    ] {
        assert!(privacy.contains(note), "{privacy}");
    }
    assert!(
        !std::fs::read_to_string(place.path("served/ledger.jsonl"))
            .unwrap()
            .contains("seed")
    );
}

#[test]
fn calls_that_cannot_be_are_refused_in_one_sentence() {
    let place = Place::new();
    provision(&place, FULL);
    let listen = "--listen unix:fleet.sock";
    for (name, cohort) in [("once", "0,2"), ("far", "0,280"), ("twice", "2,2")] {
        let record = format!(
            "{{\"round\":0,\"number\":0,\"cohort\":[{cohort}],\"answered\":[],\"missing\":{{}},\
             \"covered_by_the_privacy_statement\":false}}\n"
        );
        place.write(&format!("{name}.jsonl"), record);
    }
    let cases = [
        ("provision --devices 4..4 --out x", "0..4"),
        ("provision --devices 0..300 --out x", "devices 0 to 279"),
        ("provision --devices 0..4 --out fleet", "is there already"),
        (
            "serve --keys missing.toml --listen tcp:127.0.0.1:0",
            "missing.toml",
        ),
        ("serve --keys fleet/keys.toml", "--listen"),
        (
            "serve --keys fleet/keys.toml --listen udp:x:1",
            "tcp:HOST:PORT",
        ),
        ("serve --keys fleet/keys.toml LISTEN --timeout 3", "30s"),
        ("serve --keys fleet/keys.toml LISTEN", "--simulated 276"),
        (
            "serve --keys fleet/keys.toml LISTEN --simulated 9 --set privacy={}",
            "clip_norm",
        ),
        ("serve --resume fleet", "no run directory"),
        ("run --participation missing.jsonl", "missing.jsonl"),
        (
            "run --participation once.jsonl --out x",
            "it has 1 rounds, where `rounds` is 40",
        ),
        (
            "run --participation far.jsonl --out x --set rounds=1",
            "it names device 280 of 280 devices",
        ),
        (
            "run --participation twice.jsonl --out x",
            "line 1: the cohort",
        ),
        (
            "device --model tree:3 --provision a --ledger b --connect unix:c",
            "softmax:64x10",
        ),
        (
            "device --model linear:3 --provision a --ledger b --connect unix:c",
            "a: ",
        ),
        (
            "device --model linear:64 --provision fleet/device-0.bin --ledger b --connect unix:c",
            "another kind of model",
        ),
        (
            "device --model softmax:63x10 --provision fleet/device-0.bin --ledger b --connect unix:c",
            "do not fit",
        ),
        (
            "device --model softmax:64x3 --provision fleet/device-0.bin --ledger b --connect unix:c",
            "classes that",
        ),
        (
            "device --model softmax:64x10 --provision fleet/device-0.bin --ledger b --connect unix:c",
            "b: there is no ledger",
        ),
    ];
    for (call, expected) in cases {
        let outcome = place.smolfed(&call.replace("LISTEN", listen));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(expected), "{outcome}");
    }
}
