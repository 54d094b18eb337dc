//! Rounds of a device process over a slow link.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::device::Device;
use super::proxy::Proxy;
use super::{FULL, assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Number of served rounds. The first includes the greeting.
const ROUNDS: usize = 2;

/// Returns bytes per second: `SMOLFED_RATES`, separated by commas, or a rate that takes seconds.
fn rates() -> Vec<usize> {
    let given = std::env::var("SMOLFED_RATES");
    let rates = given.as_deref().unwrap_or("5000").split(',');
    rates.map(|rate| rate.parse().expect("a rate")).collect()
}

/// Returns the bytes of two rounds in both directions, and the seconds per round.
fn carried(rate: usize) -> (usize, f64) {
    let place = Place::new();
    let call = format!(
        "provision --devices 0..1 --out fleet --with-data --seed 7 {FULL} --set rounds={ROUNDS}"
    );
    place.smolfed(&call).success();
    let proxy = Proxy::start(&place, "slow.sock", "fleet.sock", true);
    proxy.rate.store(rate, Ordering::Relaxed);
    let arguments = format!(
        "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 53 --seed 7 --link slow \
         --out served --json {FULL} --set rounds={ROUNDS}"
    );
    let begin = Instant::now();
    let coordinator = place.start(&arguments);
    let _device = Device::start_at(&place, 0, "--link slow --connect unix:slow.sock");
    let outcome = wait(coordinator, &arguments).success();
    let seconds = begin.elapsed().as_secs_f64() / ROUNDS as f64;
    assert_eq!(
        part_of(&place, "served", 0),
        (vec![0, 1], vec![]),
        "{outcome}"
    );
    assert_is_the_simulation(&place, "served");
    let bytes = proxy.recorded().into_iter();
    let bytes = bytes
        .map(|connection| connection.up.len() + connection.down.len())
        .sum();
    (bytes, seconds)
}

/// Nothing is repeated while it is still in transit.
#[test]
fn a_slow_link_carries_what_a_round_needs() {
    let (necessary, _) = carried(0);
    for rate in rates() {
        let (bytes, seconds) = carried(rate);
        let ideal = necessary as f64 / (ROUNDS * rate) as f64;
        println!(
            "{rate} B/s: {bytes} of {necessary} bytes, {seconds:.1} s a round of {ideal:.1} s"
        );
        assert!(
            bytes * 10 <= necessary * 13,
            "{rate} B/s: {bytes} bytes, {necessary} are necessary"
        );
    }
}
