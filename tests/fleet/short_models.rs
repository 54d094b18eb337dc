//! Models sent in 16 bits, and as differences from the previous model.

use std::sync::atomic::Ordering;

use super::device::Device;
use super::proxy::Proxy;
use super::{FULL, assert_is_the_simulation, part_of, wait};
use crate::program::Place;

const ROUNDS: usize = 3;

/// Serves a process over a line that damages frames, and asserts that the model equals a
/// simulation's. Returns the bytes sent to the process.
fn served(places: Option<u8>, damage_every: usize) -> usize {
    let place = Place::new();
    let grid = places.map_or(String::new(), |places| {
        format!("--set server.model_places={places}")
    });
    let settings = format!("{FULL} --set rounds={ROUNDS} {grid}");
    let call = format!("provision --devices 0..1 --out fleet --with-data --seed 7 {settings}");
    place.smolfed(&call).success();
    let proxy = Proxy::start(&place, "line.sock", "fleet.sock", true);
    proxy.damage_every.store(damage_every, Ordering::Relaxed);
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 53 --seed 7 \
         --timeout 60s --out served --json {settings}"
    );
    let coordinator = place.start(&arguments);
    let _device = Device::start(&place, 0, "line.sock");
    let outcome = wait(coordinator, &arguments).success();
    let rounds = (0..ROUNDS as u64).collect();
    assert_eq!(part_of(&place, "served", 0), (rounds, vec![]), "{outcome}");
    assert_is_the_simulation(&place, "served");
    let connections = proxy.recorded().into_iter();
    connections.map(|connection| connection.down.len()).sum()
}

/// Returns the bytes per round to a device, as predicted by the dry run.
fn predicted(round: &str) -> usize {
    let place = Place::new();
    let dry = place.smolfed(&format!(
        "run --dry-run --json {FULL} --set server.model_places=12"
    ));
    let cost = dry.success().json()["device_cost"][round]["bytes_down"].as_u64();
    cost.unwrap() as usize
}

#[test]
fn a_device_gets_16_bits_once_and_then_differences() {
    let [whole, differences, floats] =
        ["round", "round_of_differences", "round_of_32_bits"].map(predicted);
    let saved = served(None, 0) - served(Some(12), 0);
    let most = floats - whole + (ROUNDS - 1) * (floats - differences);
    // Some parameters change by more than fits in a byte.
    assert!((most * 4 / 5..=most).contains(&saved), "{saved} of {most}");
}

#[test]
fn damaged_differences_cost_no_participation() {
    served(Some(12), 1_500);
}
