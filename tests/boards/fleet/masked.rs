//! Boards that mask their updates, among real and simulated devices.

use std::path::PathBuf;

use super::Running;
use crate::boards::{CORTEX_M4F, firmware_with, named};
use crate::fleet::device::Device;
use crate::fleet::masked::{Helper, MASKED, burned};
use crate::fleet::{FULL, assert_is_the_simulation, part_of, provision, wait};
use crate::program::Place;

/// Boards mask like processes and simulated devices.
#[test]
fn emulated_boards_take_part_with_a_helper() {
    let boards = ["microbit", CORTEX_M4F].map(named);
    let programs = boards.map(|board| Some(firmware_with(Some("masks"), board, "client")?.0));
    let programs: Option<Vec<PathBuf>> = programs.into_iter().collect();
    let Some(programs) = programs else {
        return;
    };
    let place = Place::new();
    let settings = format!("{FULL} {MASKED} --set rounds=3 --set privacy.grid_bits=8");
    provision(&place, &settings);
    let _helper = Helper::start(&place, 0);
    let _running: Vec<Running> = (0..2)
        .map(|n| Running::start(&place, n, boards[n], &programs[n]))
        .collect();
    let _devices = Device::start_all(&place, 2..4);
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --device unix:line-1 \
         --listen unix:fleet.sock --helper unix:helper-0.sock --simulated 50 --seed 7 \
         --timeout 60s --out served --json {settings}"
    );
    let outcome = wait(place.start(&arguments), &arguments).success();
    assert_eq!(burned(&place, "served"), 0, "{outcome}");
    for device in 0..4 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!((answered, missing), (vec![0, 1, 2], vec![]), "{device}");
    }
    assert_is_the_simulation(&place, "served");
}
