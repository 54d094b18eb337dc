//! Real devices, as processes, in one federation with simulated ones. Regardless of broken
//! connections and killed processes, the model equals a simulation of the same participation.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Outcome, Place, time_limit, wait_until};

mod attacks;
mod availability;
mod browser;
#[cfg(target_os = "linux")]
mod c_on_linux;
mod clock;
mod commands;
pub(crate) mod contrast;
mod delivery;
pub(crate) mod device;
mod eavesdrop;
mod handshake;
mod keys;
mod kills;
pub(crate) mod masked;
mod mqtt;
pub(crate) mod networks;
mod operation;
mod outage;
mod page;
mod personal;
mod preprocessing;
pub(crate) mod proxy;
pub(crate) mod questions;
pub(crate) mod radio;
mod recipes;
mod short_models;
mod slow_links;
mod stragglers;
mod tls;
mod windows;

use device::Device;
use proxy::Proxy;

/// Settings of the experiments in this file: every device is drawn in every round.
pub(crate) const FULL: &str = "--set cohort={sampling=\"full\"} --set data.devices=54";

pub(crate) fn provision(place: &Place, settings: &str) {
    let call = format!("provision --devices 0..4 --out fleet --with-data --seed 7 {settings}");
    place.smolfed(&call).success();
}

/// Returns arguments of a coordinator that listens on `fleet.sock` and simulates 50 more devices.
pub(crate) fn serve(timeout: &str, settings: &str) -> String {
    format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --seed 7 \
         --timeout {timeout} --out served --json {settings}"
    )
}

/// Waits for the coordinator to exit.
pub(crate) fn wait(mut coordinator: Child, arguments: &str) -> Outcome {
    let deadline = Instant::now() + time_limit();
    while coordinator
        .try_wait()
        .expect("the coordinator's state")
        .is_none()
    {
        if Instant::now() > deadline {
            let _ = coordinator.kill();
            panic!(
                "{}",
                Outcome::of(coordinator.wait_with_output().unwrap(), arguments)
            );
        }
        thread::sleep(Duration::from_millis(20));
    }
    Outcome::of(coordinator.wait_with_output().unwrap(), arguments)
}

/// Simulates the participation of `out`, which must give the same model.
pub(crate) fn assert_is_the_simulation(place: &Place, out: &str) {
    let replay = format!("{out}-replay");
    let call = format!(
        "run {out}/config.toml --participation {out}/participation.jsonl --out {replay} --json"
    );
    place.smolfed(&call).success();
    let model = |dir: &str| std::fs::read(place.path(dir).join("model.safetensors")).unwrap();
    assert!(model(out) == model(&replay), "the bits differ");
    // A burned round may have a digest, if its coordinator was killed afterwards.
    let is_charge = |line: &Value| line["event"].is_object();
    let charges = |dir: &str| {
        let ledger = lines(&place.path(dir).join("ledger.jsonl"));
        ledger.into_iter().filter(is_charge).count()
    };
    assert_eq!(charges(out), charges(&replay));
    for run in [out, &replay] {
        place.smolfed(&format!("account --verify {run}")).success();
    }
}

/// Reads the objects of a file of JSON lines.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be incomplete.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Returns the rounds answered by a device, and the reasons for missing the others.
pub(crate) fn part_of(place: &Place, out: &str, device: u32) -> (Vec<u64>, Vec<String>) {
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
fn connections_break_and_devices_die_and_the_model_is_that_of_the_participation() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=20 --budget 100"));
    let first = Proxy::start(&place, "first.sock", "fleet.sock", true);
    let second = Proxy::start(&place, "second.sock", "fleet.sock", true);
    // During its second update.
    first.hold_after.store(4_500, Ordering::Relaxed);
    second.damage_every.store(5_003, Ordering::Relaxed);
    second.cut_every.store(9_001, Ordering::Relaxed);
    let mut zero = Device::start(&place, 0, "first.sock");
    let mut one = Device::start(&place, 1, "second.sock");
    let _two = Device::start(&place, 2, "fleet.sock");
    let _three = Device::start(&place, 3, "fleet.sock");
    let arguments = serve("20s", &format!("{FULL} --set rounds=20"));
    let coordinator = place.start(&arguments);
    first.wait_until_held();
    zero.0.kill().unwrap();
    zero.0.wait().unwrap();
    let held = place.path("fleet/device-0.held");
    assert!(held.exists());
    first.repair();
    zero = Device::start(&place, 0, "first.sock");
    // The other device is killed in any state, after its connection was damaged and cut. It then
    // works again.
    second.wait_until_bad();
    one.0.kill().unwrap();
    one.0.wait().unwrap();
    second.repair();
    one = Device::start(&place, 1, "second.sock");
    let outcome = wait(coordinator, &arguments).success();
    assert_eq!(outcome.json()["rounds"], 20, "{outcome}");
    wait_until(|| !held.exists());

    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(
            answered.len() + missing.len(),
            20,
            "device {device}: {missing:?}"
        );
        match device {
            // It was killed during an update, which it had in a file.
            0 => assert_eq!(missing, [""; 0]),
            1 => assert!(missing.len() <= 1 && answered.contains(&19), "{missing:?}"),
            _ => assert_eq!(missing, [""; 0]),
        }
    }
    drop((zero, one));
}

#[test]
fn device_noise_has_the_bits_of_the_simulation() {
    let place = Place::new();
    let settings = format!("{FULL} --set rounds=4 --set privacy.trust=local");
    provision(&place, &settings);
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve("20s", &settings);
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 4);
    for device in 0..4 {
        assert_eq!(part_of(&place, "served", device).0, [0, 1, 2, 3]);
    }
    assert_is_the_simulation(&place, "served");
    let privacy = std::fs::read_to_string(place.path("served/privacy.json")).unwrap();
    assert!(
        privacy.contains("noise of the real devices is derived from the known seed 7"),
        "{privacy}"
    );
    // Less noise than the devices' provisioned minimum.
    let weak = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 20s \
                --out weak --json --set rounds=1 --set privacy.trust=local --set \
                privacy.epsilon=400 --set cohort={sampling=\"full\"}";
    wait(place.start(weak), weak).success();
    for device in 0..4 {
        let (_, missing) = part_of(&place, "weak", device);
        assert!(missing[0].contains("less noise"), "{missing:?}");
    }
    // The same noise, on a grid so coarse that an accountant counts less of it.
    let stated: Value = serde_json::from_str(&privacy).unwrap();
    let noise = &stated[0]["noise_multiplier"];
    let table =
        format!("privacy={{trust=\"local\",clip_norm=0.5,noise_multiplier={noise},grid_bits=4}}");
    let coarse = weak
        .replace("--out weak", "--out coarse")
        .replace("privacy.trust=local --set privacy.epsilon=400", &table);
    assert!(coarse.contains("grid_bits=4"), "{coarse}");
    wait(place.start(&coarse), &coarse).success();
    for device in 0..4 {
        let (_, missing) = part_of(&place, "coarse", device);
        assert!(missing[0].contains("less noise"), "{missing:?}");
    }
}

/// The bits of real and simulated devices give the same clip norm as in a simulation: each round's
/// model depends on it.
#[test]
fn devices_send_the_bit_of_an_adaptive_clip_norm() {
    for (trust, weaker) in [("central", ""), ("local", "400")] {
        let place = Place::new();
        let settings = format!(
            "{FULL} --set rounds=6 --set privacy.trust={trust} --set privacy.clip_norm=adaptive"
        );
        // Also for the second run, with less noise.
        provision(&place, &format!("{settings} --budget 20"));
        let devices = Device::start_all(&place, 0..4);
        let arguments = serve("20s", &settings);
        let outcome = wait(place.start(&arguments), &arguments).success();
        assert_eq!(outcome.json()["rounds"], 6, "{outcome}");
        for device in 0..4 {
            assert_eq!(part_of(&place, "served", device).0.len(), 6, "{outcome}");
        }
        assert_is_the_simulation(&place, "served");
        let clip_norms = |out: &str| -> Vec<String> {
            let rounds = lines(&place.path(out).join("metrics.jsonl"));
            let values = rounds.iter().map(|round| round["clip_norm"].to_string());
            values.collect()
        };
        let served = clip_norms("served");
        assert_eq!(served, clip_norms("served-replay"));
        let changes = served.windows(2).filter(|pair| pair[0] != pair[1]);
        assert_eq!(changes.count(), 5, "{served:?}");
        if !weaker.is_empty() {
            // The budget of the noise shared by update and bit, not of the update alone.
            let weak = arguments.replace("--out served", "--out weak");
            let weak = format!("{weak} --set privacy.epsilon={weaker}");
            wait(place.start(&weak), &weak).success();
            let (_, missing) = part_of(&place, "weak", 0);
            assert!(missing[0].contains("less noise"), "{missing:?}");
        }
        drop(devices);
    }
}

#[test]
fn an_unresponsive_device_costs_its_own_update_and_the_time_out() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=30"));
    let devices = Device::start_all(&place, 0..4);
    let arguments = serve("3s", &format!("{FULL} --set rounds=30"));
    let coordinator = place.start(&arguments);
    wait_until(|| part_of(&place, "served", 2).0.len() > 1);
    devices[2].signal("-STOP");
    wait_until(|| !part_of(&place, "served", 2).1.is_empty());
    devices[2].signal("-CONT");
    wait(coordinator, &arguments).success();
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

/// Regardless of the coordinator's requests, each device limits its participations itself.
#[test]
fn a_device_stops_at_its_own_budget() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --budget 2"));
    // One device listens for its coordinator, over TCP.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", free.local_addr().unwrap());
    drop(free);
    let _listens = Device::start_at(&place, 0, &format!("--listen {address}"));
    let _devices = Device::start_all(&place, 1..4);
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

/// The fleet's round numbers continue across runs, and so does the separation of participations.
#[test]
fn devices_keep_their_separation_over_runs() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --separation 3 --participations 3"));
    let _devices = Device::start_all(&place, 0..4);
    let soon = "declined: the round is closer to the device's last one than it accepts";
    let spent = "declined: the device's own budget is spent";
    // Numbers 0 to 4, then 5 to 7: 0, 3 and 6 are answered.
    for (out, rounds, answered, missing) in [
        ("served", 5, vec![0, 3], [soon; 3].as_slice()),
        ("second", 3, vec![1], &[soon, spent]),
    ] {
        let arguments = serve("20s", &format!("{FULL} --set rounds={rounds}"));
        let arguments = arguments.replace("--out served", &format!("--out {out}"));
        let outcome = wait(place.start(&arguments), &arguments).success();
        for device in 0..4 {
            assert_eq!(part_of(&place, out, device).0, answered, "{outcome}");
            assert_eq!(part_of(&place, out, device).1, missing, "{outcome}");
        }
        assert_is_the_simulation(&place, out);
    }
}

#[test]
fn a_restart_burns_the_round_that_had_begun() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=6"));
    let devices = Device::start_all(&place, 0..3);
    let arguments = serve("30s", &format!("{FULL} --set rounds=6"));
    // The coordinator waits for device 3, and is killed during its first round.
    let mut coordinator = place.start(&arguments);
    let ledger = |device: u32| place.path(format!("fleet/device-{device}.ledger"));
    wait_until(|| {
        let bytes = std::fs::read(ledger(0)).unwrap_or_default();
        // The second slot has a record: the first participation.
        bytes.get(128..132) == Some(b"sfL3")
    });
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    assert_eq!(
        lines(&place.path("served/ledger.jsonl")).len(),
        1,
        "charged before"
    );

    let _last = Device::start(&place, 3, "fleet.sock");
    let resume = "serve --resume served --json";
    let outcome = wait(place.start(resume), resume).success();
    assert_eq!(outcome.json()["rounds"], 6, "{outcome}");
    let records = lines(&place.path("served/metrics.jsonl"));
    assert_eq!(records[0]["burned"], true);
    let answered = part_of(&place, "served", 0).0;
    assert_eq!(answered, [1, 2, 3, 4, 5], "no round number is reused");
    assert_is_the_simulation(&place, "served");

    // Another run of the same fleet continues with unused round numbers.
    let again = arguments.replace("--out served", "--out second");
    wait(place.start(&again), &again).success();
    let records = lines(&place.path("second/participation.jsonl"));
    assert_eq!(records[0]["number"], 6);
    drop(devices);
}

/// The private sums of correlated noise are lost with the process that held them. Noise restarts,
/// and the participation record says so, so a simulation of it repeats the bits.
#[test]
fn correlated_noise_begins_anew_after_a_restart() {
    let place = Place::new();
    let settings = "--set cohort={sampling=\"rotation\"} --set data.devices=54 --set rounds=60 \
                    --set privacy.mechanism=correlated --set privacy.separation=6";
    provision(&place, &format!("{settings} --budget 100"));
    let _devices = Device::start_all(&place, 0..4);
    let arguments = serve("30s", settings);
    let mut coordinator = place.start(&arguments);
    let done = || lines(&place.path("served/metrics.jsonl")).len();
    for (rounds, signal) in [(8, "-INT"), (20, "-KILL")] {
        wait_until(|| done() >= rounds);
        Device(coordinator).signal(signal);
        wait_until(|| place.path("served/config.toml").is_file());
        coordinator = place.start("serve --resume served --json");
    }
    let outcome = wait(coordinator, "serve --resume served --json").success();
    assert!(
        outcome.stderr.contains("correlated noise starts again"),
        "{outcome}"
    );
    let statement = &outcome.json()["privacy"][0];
    assert_eq!(statement["is_upper_bound"], true);
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0, "{statement}");
    let rounds = lines(&place.path("served/participation.jsonl"));
    let restarts = rounds.iter().filter(|round| round["begins_anew"] == true);
    assert_eq!((rounds.len(), restarts.count()), (60, 2));
    for device in 0..4 {
        let answered = part_of(&place, "served", device).0;
        let is_apart = |pair: &[u64]| pair[1] - pair[0] >= 6;
        assert!(
            answered.len() > 5 && answered.windows(2).all(is_apart),
            "{answered:?}"
        );
    }
    assert_is_the_simulation(&place, "served");
    let tree = serve("1s", &format!("{settings} --set privacy.family=tree"));
    let tree = tree.replace("--out served", "--out tree");
    place
        .smolfed(&tree)
        .refused(2, &["`privacy.family` = \"tree\"", "a restarted server"]);
}

#[test]
fn devices_with_another_key_are_refused_and_counted() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=2"));
    let other = "provision --devices 0..4 --out other --with-data --set data.devices=54";
    place.smolfed(other).success();
    // Device 0 has another fleet's key, in its record and in its ledger.
    for name in ["device-0.bin", "device-0.ledger"] {
        let from = place.path("other").join(name);
        std::fs::rename(from, place.path("fleet").join(name)).unwrap();
    }
    let _devices = Device::start_all(&place, 0..4);
    // One connection sends bytes of no protocol, and another sends nothing.
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 50 --timeout 2s \
         --out served --json {FULL} --set rounds=2"
    );
    let coordinator = place.start(&arguments);
    let connect = || UnixStream::connect(place.path("fleet.sock"));
    wait_until(|| connect().is_ok());
    let (mut noise, _silence) = (connect().unwrap(), connect().unwrap());
    let _ = noise.write_all(&[0x55; 4_000]);
    let _ = noise.write_all(&[0]);
    let outcome = wait(coordinator, &arguments).success();
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
        "Updates were sent without noise",
        "Anyone who observes the traffic",
    ] {
        assert!(privacy.contains(note), "{privacy}");
    }
    assert!(
        !std::fs::read_to_string(place.path("served/ledger.jsonl"))
            .unwrap()
            .contains("seed")
    );
}

/// A device with a restored old ledger counts from 0 again. The coordinator reports this, even
/// after its own restart, and accepts the device once it has a new key and root.
#[test]
fn device_of_before_is_refused_until_it_is_provisioned_again() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --budget 100"));
    let other = "provision --devices 0..4 --out other --with-data --set data.devices=54";
    place.smolfed(other).success();
    let served = |out: &str| {
        let _devices = Device::start_all(&place, 0..4);
        let arguments = serve("4s", &format!("{FULL} --set rounds=1"));
        let arguments = arguments.replace("--out served", &format!("--out {out}"));
        let outcome = wait(place.start(&arguments), &arguments).success();
        let (answered, missing) = part_of(&place, out, 0);
        (answered.len(), missing, outcome.to_string())
    };
    let replace = |name: &str| {
        let from = place.path("other").join(name);
        std::fs::copy(from, place.path("fleet").join(name)).unwrap();
    };
    let ledger = place.path("fleet/device-0.ledger");
    let before = std::fs::read(&ledger).unwrap();
    assert_eq!(served("first").0, 1);
    assert_eq!(served("second").0, 1);
    std::fs::write(&ledger, before).unwrap();
    let (answered, missing, printed) = served("erased");
    assert_eq!((answered, missing), (0, vec!["not connected".to_owned()]));
    // Standard error does not name the device.
    let sentence = "a device is refused: its ledger or its key is not the known one";
    assert!(printed.contains(sentence), "{printed}");
    // Provisioned again, with new record, ledger and key.
    replace("device-0.ledger");
    replace("device-0.bin");
    let keys = place.path("fleet/keys.toml");
    let key_of_0 = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("key = "));
        line.unwrap().to_owned()
    };
    let ours = std::fs::read_to_string(&keys).unwrap();
    let theirs = std::fs::read_to_string(place.path("other/keys.toml")).unwrap();
    let text = ours.replace(&key_of_0(&ours), &key_of_0(&theirs));
    std::fs::write(&keys, text).unwrap();
    assert_eq!(served("again").0, 1);
}

#[test]
fn devices_decline_a_round_far_ahead() {
    let place = Place::new();
    provision(&place, &format!("{FULL} --max-jump 50"));
    let _devices = Device::start_all(&place, 0..4);
    let missing = |next: u32| {
        std::fs::write(place.path("fleet/keys.toml.round"), format!("{next}\n")).unwrap();
        let out = format!("from-{next}");
        let arguments = serve("30s", &format!("{FULL} --set rounds=1"));
        let arguments = arguments.replace("--out served", &format!("--out {out}"));
        wait(place.start(&arguments), &arguments).success();
        part_of(&place, &out, 0).1
    };
    let declined = "declined: the round number is further ahead than the device accepts";
    assert_eq!(missing(u32::MAX - 1), [declined]);
    assert_eq!(missing(51), [declined]);
    assert_eq!(missing(50), [""; 0]);
}
