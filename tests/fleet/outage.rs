//! Each part of a fleet in turn is away for 20 seconds: devices, broker, helper and coordinator.

use std::thread::sleep;
use std::time::Duration;

use super::availability::{charges, rounds};
use super::device::Device;
use super::masked::{Helper, MASKED};
use super::mqtt::{Broker, OPEN, mosquitto};
use super::{FULL, assert_is_the_simulation, provision, wait, wait_until};
use crate::program::Place;

const AWAY: Duration = Duration::from_secs(20);

/// Shorter than an outage, so a round in progress does not outlast it.
const TIMEOUT: &str = "5s";

const ROUNDS: usize = 150;

/// Asserts that an outage costs at most the round in progress.
fn is_away(place: &Place) {
    let (done, charged) = (rounds(place).len(), charges(place));
    sleep(AWAY);
    let during = [rounds(place).len() - done, charges(place) - charged];
    assert!(during.iter().all(|count| *count <= 1), "{during:?}");
}

fn go_on(place: &Place) {
    let done = rounds(place).len();
    wait_until(|| rounds(place).len() > done + 3);
    assert!(rounds(place).len() < ROUNDS, "the run ends too early");
}

#[test]
fn an_outage_of_any_part_costs_at_most_the_round_in_progress() {
    let Some(mosquitto) = mosquitto() else {
        return;
    };
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds={ROUNDS}");
    provision(&place, &format!("{settings} --budget 1000"));
    let mut broker = Broker::start(&place, mosquitto, OPEN);
    let mut helper = Helper::start(&place, 0);
    let connect = format!("--connect {}", broker.address());
    let start = |number| Device::start_at(&place, number, &connect);
    let devices: Vec<Device> = (0..4).map(start).collect();
    let call = super::serve(
        TIMEOUT,
        &format!("{settings} --helper unix:helper-0.sock --min-devices 4"),
    );
    let call = call.replace("unix:fleet.sock", &broker.address());
    let mut coordinator = place.start(&call);

    go_on(&place);
    drop(devices);
    is_away(&place);
    let _devices: Vec<Device> = (0..4).map(start).collect();

    go_on(&place);
    broker.kill();
    is_away(&place);
    broker.restart();

    go_on(&place);
    helper.kill();
    is_away(&place);
    helper.restart(&place);

    go_on(&place);
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    is_away(&place);
    let resume = "serve --resume served --json";
    let outcome = wait(place.start(resume), resume).success();

    let rounds = rounds(&place);
    assert_eq!((rounds.len(), charges(&place)), (ROUNDS, ROUNDS));
    let is_empty = |round: &&serde_json::Value| round["answered"].as_array().unwrap().is_empty();
    let empty = rounds.iter().filter(is_empty).count();
    // One for each outage, burned or not: the helper refuses a round without any of its devices.
    assert!(empty <= 4, "{empty} rounds had no update: {outcome}");
    assert_is_the_simulation(&place, "served");
}
