//! Time windows with sleeping devices: processes that run briefly and are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::device::Device;
use super::{assert_is_the_simulation, lines, provision, serve, wait, wait_until};
use crate::program::Place;

/// Returns settings of windows with this many real devices and 50 simulated ones.
fn windows(devices: u32) -> String {
    let all = devices + 50;
    format!(
        "--set cohort={{sampling=\"buffered\",window=\"3s\",staleness=1,cohort_size=27}} \
         --set data.devices={all}"
    )
}

/// Returns a number from the environment, for a job that takes an hour
/// ([`books_are_consistent_after_kills`] with 200 devices), and `default` in all other runs.
fn scaled(name: &str, default: u32) -> u32 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Devices that wake for 1.5 s in every 3 s, at different times.
struct Sleepers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Sleepers {
    fn start(place: &Arc<Place>, devices: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let sleeper = |device: u32| {
            let (place, is_over) = (Arc::clone(place), Arc::clone(&is_over));
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(700) * (device % 5));
                while !is_over.load(Ordering::Relaxed) {
                    let awake = Device::start(&place, device, "fleet.sock");
                    thread::sleep(Duration::from_millis(1_500));
                    drop(awake);
                    thread::sleep(Duration::from_millis(1_500));
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
    let settings = format!("{} --set rounds=7", windows(4));
    provision(&place, &settings);
    let sleepers = Sleepers::start(&place, 4);
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

/// A coordinator killed in its windows charges each window once, and a failed window counts for no
/// device.
#[test]
fn books_are_consistent_after_kills() {
    let (devices, rounds) = (scaled("SMOLFED_SLEEPERS", 4), scaled("SMOLFED_WINDOWS", 9));
    let kills = rounds as usize / 4;
    let place = Arc::new(Place::new());
    let windows = windows(devices);
    let settings = format!("{windows} --set rounds={rounds} --set cohort.window=\"2s\"");
    let all = format!("provision --devices 0..{devices} --out fleet --with-data --seed 7");
    place.smolfed(&format!("{all} {settings}")).success();
    let _sleepers = Sleepers::start(&place, devices);
    let mut call = serve("20s", &settings);
    for _ in 0..kills {
        let mut coordinator = place.start(&call);
        let done = records(&place).len();
        wait_until(|| records(&place).len() > done + 1);
        thread::sleep(Duration::from_millis(900));
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        call = "serve --resume served --json".to_owned();
    }
    wait(place.start(&call), &call).success();
    let records = records(&place);
    assert_eq!(records.len(), rounds as usize);
    assert_schedule(&records);
    let burned = records.iter().filter(|record| record["burned"] == true);
    assert!((1..=kills).contains(&burned.count()), "{records:?}");
    let numbers = records
        .iter()
        .map(|record| record["number"].as_u64().unwrap());
    assert!(numbers.is_sorted_by(|a, b| a < b), "{records:?}");
    assert_is_the_simulation(&place, "served");
}
