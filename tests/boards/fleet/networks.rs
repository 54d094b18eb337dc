//! A network on an emulated Cortex-M4F, on device processes, and on simulated devices, in one
//! federation. A device with another network is refused.

use super::Running;
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::fleet::device::Device;
use crate::fleet::networks::{EXPERIMENT, windows};
use crate::fleet::{assert_is_the_simulation, part_of, wait};
use crate::program::{Place, program};

#[test]
fn a_network_on_a_board_and_on_devices_gives_the_model_of_the_simulation() {
    let board = named(CORTEX_M4F);
    let Some((client, _)) = firmware(board, "network") else {
        return;
    };
    let place = Place::new();
    place.write("windows.csv", windows());
    place.write("experiment.toml", EXPERIMENT);
    // The same number of features, classes and parameters, but another network.
    place.write("other.toml", EXPERIMENT.replace("[1, 2]", "[1, 3]"));
    let provision = |file: &str, out: &str| {
        let call = format!("provision {file} --devices 0..4 --out {out} --with-data --seed 7");
        place.smolfed(&call).success().stdout
    };
    let printed = provision("experiment.toml", "fleet");
    provision("other.toml", "other");
    let model = "smolfed device --preprocessing fleet/preprocessing.json --provision";
    assert!(printed.contains(model), "{printed}");

    let _board = Running::start(&place, 0, board, &client);
    let start = |number, folder: &str| {
        let options = format!("--preprocessing {folder}/preprocessing.json");
        Device::start_with(
            &place,
            number,
            &format!("{options} --connect unix:fleet.sock"),
        )
    };
    let _devices = [start(1, "fleet"), start(2, "fleet")];
    let said = std::fs::File::create(place.path("said")).unwrap();
    let mut unknown = place.command(program());
    let call = "device --provision fleet/device-3.bin --ledger fleet/device-3.ledger \
                --preprocessing other/preprocessing.json --connect unix:fleet.sock";
    unknown.args(call.split_whitespace()).stderr(said);
    let _unknown = Device(unknown.spawn().expect("a device starts"));
    let serve = "serve experiment.toml --keys fleet/keys.toml --device unix:line-0 \
                 --listen unix:fleet.sock --simulated 2 --seed 7 --timeout 20s --out served --json";
    let outcome = wait(place.start(serve), serve).success();
    assert_eq!(outcome.json()["rounds"], 3, "{outcome}");

    assert_is_the_simulation(&place, "served");
    for device in 0..3 {
        let (answered, missing) = part_of(&place, "served", device);
        assert_eq!(
            (answered, missing),
            (vec![0, 1, 2], vec![]),
            "{device}: {outcome}"
        );
    }
    let (answered, missing) = part_of(&place, "served", 3);
    assert_eq!((answered, missing.len()), (vec![], 3), "{missing:?}");
    let said = std::fs::read_to_string(place.path("said")).unwrap();
    assert!(said.contains("refused by the coordinator"), "{said}");
    assert!(said.contains("another model"), "{said}");
}
