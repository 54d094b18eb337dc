//! A board whose firmware has no default features takes part under central trust, and declines a
//! round with device noise, with a reason.

use super::Running;
use crate::boards::{CENTRAL, CORTEX_M4F, firmware_with, named};
use crate::fleet::device::Device;
use crate::fleet::{FULL, assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// Serves one board and one process to devices provisioned for central trust.
fn serve(place: &Place, settings: &str) -> Option<()> {
    let board = named(CORTEX_M4F);
    let (program, _) = firmware_with(Some(CENTRAL), board, "client")?;
    let call =
        format!("provision --devices 0..2 --out fleet --with-data --seed 7 {FULL} --set rounds=2");
    place.smolfed(&call).success();
    let _board = Running::start(place, 0, board, &program);
    let _device = Device::start_at(place, 1, "--connect unix:fleet.sock");
    let arguments = format!(
        "serve --keys fleet/keys.toml --device unix:line-0 --listen unix:fleet.sock \
         --simulated 52 --min-devices 2 --seed 7 --timeout 60s --out served --json {FULL} \
         {settings}"
    );
    wait(place.start(&arguments), &arguments).success();
    Some(())
}

#[test]
fn an_emulated_board_without_noise_of_its_own_trusts_the_coordinator_or_declines() {
    let place = Place::new();
    if serve(&place, "--set rounds=2").is_none() {
        return;
    }
    assert_is_the_simulation(&place, "served");
    for device in 0..2 {
        assert_eq!(part_of(&place, "served", device), (vec![0, 1], vec![]));
    }

    let place = Place::new();
    serve(&place, "--set rounds=1 --set privacy.trust=local");
    let (answered, missing) = part_of(&place, "served", 0);
    assert_eq!(answered, Vec::<u64>::new());
    let [why] = missing.as_slice() else {
        panic!("{missing:?}");
    };
    assert!(why.contains("built without noise of its own"), "{why}");
    assert_eq!(part_of(&place, "served", 1), (vec![0], vec![]));
}
