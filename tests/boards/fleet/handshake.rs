//! Boards with X25519 handshakes, among devices with X25519.

use std::path::PathBuf;

use super::Running;
use crate::boards::{CORTEX_M4F, firmware_with, named};
use crate::fleet::device::Device;
use crate::fleet::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::Place;

/// The boards use the emulator's clocks.
#[test]
fn emulated_boards_greet_with_the_handshake() {
    let boards = [CORTEX_M4F, "riscv-virt"].map(named);
    let programs = boards.map(|board| Some(firmware_with(Some("x25519"), board, "client")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    provision(&place, &format!("{FULL} --set rounds=3"));
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let options = "--connect unix:fleet.sock --x25519";
    let _devices = [2, 3].map(|device| Device::start_at(&place, device, options));
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 \
         --listen unix:fleet.sock --simulated 50 --seed 7 --timeout 60s --out served --json \
         --require-x25519 {FULL} --set rounds=3"
    );
    wait(place.start(&arguments), &arguments).success();
    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
}
