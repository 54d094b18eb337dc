//! Time windows with sleeping devices: processes that run briefly and are killed.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use smolfed::fleet::device::flash::FileFlash;
use smolfed_core::ledger::{Ledger, Past};

use super::availability::charges;
use super::device::Device;
use super::mqtt::{Broker, OPEN, mosquitto};
use super::proxy::Proxy;
use super::{assert_is_the_simulation, lines, provision, serve, wait, wait_until};
use crate::program::Place;

/// Returns settings of windows with this many real devices and 50 simulated ones.
fn windows(devices: u32, window: Duration) -> String {
    let (all, milliseconds) = (devices + 50, window.as_millis());
    format!(
        "--set cohort={{sampling=\"buffered\",window=\"{milliseconds}ms\",staleness=1,\
         cohort_size={}}} --set data.devices={all}",
        all / 2
    )
}

/// Returns a number from the environment, for a job that takes an hour
/// ([`books_are_consistent_after_faults`] with 200 devices), and `default` in all other runs.
fn scaled(name: &str, default: u32) -> u32 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// A linear congruential generator, so that each run of a test has the same times.
struct Times(u64);

impl Times {
    /// Returns a time in this range, in milliseconds.
    fn within(&mut self, range: std::ops::Range<u64>) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        let length = range.end - range.start;
        Duration::from_millis(range.start + (self.0 >> 33) % length)
    }
}

/// Mean milliseconds that a device is awake. Each time is between half and one and a half of it.
const AWAKE: u64 = 1_500;

/// Returns the time from one wake to the next: at most ten of these devices are awake at a time.
fn period(devices: u32) -> Duration {
    Duration::from_millis(3_000).max(Duration::from_millis(150) * devices)
}

/// Processes that are killed after some time awake, and started again in the next period.
struct Sleepers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Sleepers {
    /// Starts devices that connect to one of these addresses each.
    fn start(place: &Arc<Place>, devices: u32, addresses: &[String]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let period = period(devices);
        let sleeper = |device: u32| {
            let (place, is_over) = (Arc::clone(place), Arc::clone(&is_over));
            let address = addresses[device as usize % addresses.len()].clone();
            let mut times = Times(device.into());
            thread::spawn(move || {
                thread::sleep(period * device / devices);
                while !is_over.load(Ordering::Relaxed) {
                    let device = Device::start_at(&place, device, &format!("--connect {address}"));
                    let time = times.within(AWAKE / 2..AWAKE * 3 / 2);
                    thread::sleep(time);
                    drop(device);
                    thread::sleep(period - time);
                }
            })
        };
        Self {
            threads: (0..devices).map(sleeper).collect(),
            is_over,
        }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn records(place: &Place) -> Vec<Value> {
    lines(&place.path("served/participation.jsonl"))
}

/// Returns the windows in which a device counts, each with the version that it trained from.
fn visits(records: &[Value], device: u64) -> Vec<[u64; 2]> {
    let visit = |record: &Value| {
        let cohort = record["cohort"].as_array()?;
        let place = cohort.iter().position(|x| x.as_u64() == Some(device))?;
        Some([
            record["round"].as_u64()?,
            record["versions"][place].as_u64()?,
        ])
    };
    records.iter().filter_map(visit).collect()
}

/// Asserts that devices do not count twice for a version or too often, and only in valid windows.
fn assert_schedule(records: &[Value]) {
    for device in 0..500 {
        let visits = visits(records, device);
        assert!(
            visits.iter().all(|[round, version]| round - version <= 1),
            "{visits:?}"
        );
        let apart = |pair: &[[u64; 2]]| pair[1][0] > pair[0][0] && pair[1][1] - pair[0][1] >= 2;
        assert!(visits.windows(2).all(apart), "device {device}: {visits:?}");
    }
}

#[test]
fn devices_that_sleep_count_in_the_windows_in_which_they_wake() {
    let place = Arc::new(Place::new());
    let settings = format!("{} --set rounds=7", windows(4, period(4)));
    provision(&place, &settings);
    let sleepers = Sleepers::start(&place, 4, &["unix:fleet.sock".to_owned()]);
    let arguments = serve("20s", &settings);
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(outcome.json()["rounds"], 7, "{outcome}");
    drop(sleepers);
    let records = records(&place);
    assert_schedule(&records);
    let answered = records
        .iter()
        .map(|record| record["answered"].as_array().unwrap().len());
    // Four devices count in every second window. A slow machine may miss some.
    let answered: usize = answered.sum();
    assert!((6..=16).contains(&answered), "{records:?}");
    assert_is_the_simulation(&place, "served");
    let privacy = std::fs::read_to_string(place.path("served/privacy.json")).unwrap();
    let privacy: Value = serde_json::from_str(&privacy).unwrap();
    assert_eq!(privacy[0]["staleness"], 1);
    // ceil(7 / (1 + 1)).
    assert_eq!(privacy[0]["max_participations"], 4);
}

/// The parts of a fleet that fail and return.
struct Faults {
    place: Arc<Place>,
    coordinator: Child,
    /// The command that starts the coordinator again.
    call: String,
    kills: usize,
    broker: Broker,
    links: Arc<Proxy>,
    times: Times,
}

impl Faults {
    /// Waits for another window, and then for some time in the one after it.
    fn wait(&mut self, window: Duration) {
        let done = records(&self.place).len();
        wait_until(|| records(&self.place).len() > done);
        let end = u64::try_from(window.as_millis()).unwrap();
        thread::sleep(self.times.within(0..end));
    }

    fn kill_coordinator(&mut self) {
        self.coordinator.kill().unwrap();
        self.coordinator.wait().unwrap();
        self.kills += 1;
        self.call = "serve --resume served --json".to_owned();
        thread::sleep(self.times.within(0..1_000));
        self.coordinator = start(&self.place, &self.call);
    }

    fn kill_broker(&mut self) {
        self.broker.kill();
        thread::sleep(self.times.within(0..2_000));
        self.broker.restart();
    }

    /// Cuts every connection that carries a byte in the next moment.
    fn cut_links(&mut self) {
        self.links.cut_every.store(1, Ordering::Relaxed);
        thread::sleep(self.times.within(100..1_000));
        self.links.cut_every.store(0, Ordering::Relaxed);
    }
}

/// Starts a coordinator whose messages are read, so that it never waits for a reader.
fn start(place: &Place, call: &str) -> Child {
    let mut coordinator = place.start(call);
    let mut messages = coordinator.stderr.take().unwrap();
    thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
    coordinator
}

/// Returns the participations in a device's own ledger.
fn past(place: &Place, device: u32) -> Past {
    let path = place.path(format!("fleet/device-{device}.ledger"));
    let ledger = Ledger::open(FileFlash::open(&path).unwrap());
    ledger.unwrap().past()
}

/// Kills devices, coordinator and broker, and cuts links. Each window is charged once, a failed
/// window counts for no device, and no device counts more often than its ledger says.
#[test]
fn books_are_consistent_after_faults() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let (devices, rounds) = (scaled("SMOLFED_SLEEPERS", 4), scaled("SMOLFED_WINDOWS", 9));
    let place = Arc::new(Place::new());
    let window = period(devices);
    let settings = format!("{} --set rounds={rounds}", windows(devices, window));
    let all = format!("provision --devices 0..{devices} --out fleet --with-data --seed 7");
    place.smolfed(&format!("{all} {settings}")).success();
    let broker = Broker::start(&place, mosquitto, OPEN);
    let listen = format!("--listen {} --log-file serve.log", broker.address());
    let call = serve("20s", &format!("{listen} {settings}"));
    let addresses = ["unix:links.sock".to_owned(), broker.address()];
    let mut faults = Faults {
        links: Proxy::start(&place, "links.sock", "fleet.sock", true),
        coordinator: start(&place, &call),
        place: Arc::clone(&place),
        call,
        kills: 0,
        broker,
        times: Times(7),
    };
    let sleepers = Sleepers::start(&place, devices, &addresses);
    for fault in 0..rounds / 2 {
        faults.wait(window);
        match fault % 3 {
            0 => faults.kill_coordinator(),
            1 => faults.kill_broker(),
            _ => faults.cut_links(),
        }
    }
    wait(faults.coordinator, &faults.call).success();
    drop(sleepers);

    let records = records(&place);
    assert_eq!(
        (records.len(), charges(&place)),
        (rounds as usize, rounds as usize)
    );
    assert_schedule(&records);
    let burned = records.iter().filter(|record| record["burned"] == true);
    let burned = burned.count();
    assert!((1..=faults.kills).contains(&burned), "{records:?}");
    let numbers = records
        .iter()
        .map(|record| record["number"].as_u64().unwrap());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{records:?}");
    let mut sums = [0, 0];
    for device in 0..devices {
        let (past, counted) = (past(&place, device), visits(&records, device.into()).len());
        assert!(counted <= past.participations as usize, "device {device}");
        // ceil(rounds / (1 + 1)).
        assert!(past.participations <= rounds.div_ceil(2), "device {device}");
        sums[0] += counted;
        sums[1] += past.participations as usize;
    }
    let [counted, begun] = sums;
    println!("{counted} of {begun} participations counted, {burned} windows failed");
    // Most others arrived in a window whose coordinator was killed.
    assert!(counted * 4 > begun, "{counted} of {begun}");
    assert_is_the_simulation(&place, "served");
}
