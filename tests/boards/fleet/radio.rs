//! A board behind a radio like LoRaWAN's: packets have 51 bytes, and each downlink packet needs an
//! uplink packet before it.

use std::time::Duration;

use super::Running;
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::fleet::radio::{Air, Radio};
use crate::fleet::{FULL, assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Returns the one-way delay: `SMOLFED_RADIO_DELAY` in seconds, or a fraction of a second, which
/// costs the same packets in less time.
fn delay() -> Duration {
    let given = std::env::var("SMOLFED_RADIO_DELAY").ok();
    let seconds = given.map_or(0.1, |text| text.parse().expect("seconds"));
    Duration::from_secs_f64(seconds)
}

#[test]
fn a_board_takes_part_over_packets_of_51_bytes() {
    let board = named(CORTEX_M4F);
    let Some((program, _)) = firmware(board, "client") else {
        return;
    };
    let place = Place::new();
    let call =
        format!("provision --devices 0..1 --out fleet --with-data --seed 7 {FULL} --set rounds=2");
    place.smolfed(&call).success();
    let delay = delay();
    let air = Air {
        size: 51,
        slot: delay / 20,
        delay,
        heartbeat: Some(10),
        lost: 71,
        repeated: 13,
        late: 0,
    };
    let radio = Radio::start(air, None);
    let _board = Running::start(&place, 0, board, &program);
    let gateway = format!(
        "gateway --to udp:127.0.0.1:{}/51 --device unix:line-0",
        radio.device_port
    );
    let mut gateway = place.start(&gateway);
    let link = match delay < Duration::from_secs(1) {
        true => "fast",
        false => "lorawan",
    };
    let arguments = format!(
        "serve --keys fleet/keys.toml --device udp:127.0.0.1:{}/51 --simulated 53 --seed 7 \
         --link {link} --timeout {}s --out served --json {FULL} --set rounds=2",
        radio.coordinator_port,
        30 + 200 * delay.as_secs()
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    gateway.kill().expect("the gateway runs");
    gateway.wait().expect("the gateway ends");
    radio.assert_was_used();
    assert_eq!(
        part_of(&place, "served", 0),
        (vec![0, 1], vec![]),
        "{outcome}"
    );
    assert_is_the_simulation(&place, "served");
}
