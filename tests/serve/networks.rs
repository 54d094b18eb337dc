//! A network on an emulated Cortex-M4F, on devices that are processes, and on simulated ones, in
//! one federation; a device with another network is refused.

use super::boards::Running;
use super::device::Device;
use super::{assert_is_the_simulation, part_of, wait};
use crate::boards::{CORTEX_M4F, firmware, named};
use crate::program::{Place, program};

/// The network of `firmware-example/src/network.rs`.
const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 3\n\
    [data]\nsource = \"csv\"\npath = \"windows.csv\"\nlabel = \"exercise\"\n\
    device_column = \"who\"\ntest = 0\n\
    [model]\ninput = [6, 1, 50]\nlayers = [\n\
    { type = \"convolution\", channels = 8, kernel = [1, 5] },\n\
    { type = \"relu\" },\n\
    { type = \"max-pool\", size = [1, 2] },\n\
    { type = \"convolution\", channels = 16, kernel = [1, 5] },\n\
    { type = \"relu\" },\n\
    { type = \"global-average\" },\n]\n\
    [train]\nepochs = 2\nbatch_size = 4\n\
    [cohort]\nsampling = \"full\"\n\
    [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n";

/// Windows of six channels that are made up: seven of each of six devices, one a class.
fn windows() -> String {
    let mut rows = String::from("who,exercise");
    for feature in 0..300 {
        rows += &format!(",f{feature}");
    }
    rows.push('\n');
    for device in 0..6 {
        for class in 0..7 {
            rows += &format!("{device},{class}");
            for feature in 0..300 {
                let at = (feature * (3 + class) + device * 11) % 97;
                rows += &format!(",{}", f64::from(at) / 50.0 - 1.0);
            }
            rows.push('\n');
        }
    }
    rows
}

/// The last layer stays on each device.
#[test]
fn devices_share_the_layers_of_a_network_below_their_heads() {
    let place = Place::new();
    place.write("windows.csv", windows());
    let experiment = EXPERIMENT.replace("dp-fed-ls", "dpfedmtl");
    place.write("experiment.toml", experiment);
    let call = "provision experiment.toml --devices 0..4 --out fleet --with-data --seed 7";
    place.smolfed(call).success();
    let start = |number| {
        let options = "--preprocessing fleet/preprocessing.json --connect unix:fleet.sock";
        Device::start_with(&place, number, options)
    };
    let _devices = [0, 1, 2, 3].map(start);
    let serve = "serve experiment.toml --keys fleet/keys.toml --listen unix:fleet.sock \
                 --simulated 2 --seed 7 --timeout 60s --out served --json";
    wait(place.start(serve), serve).success();
    assert_is_the_simulation(&place, "served");
    for device in 0..4 {
        let (answered, _) = part_of(&place, "served", device);
        assert_eq!(answered, [0, 1, 2]);
        assert!(
            place
                .path(format!("fleet/device-{device}.personal"))
                .is_file()
        );
    }
}

#[test]
fn a_network_on_a_board_and_on_devices_gives_the_model_of_the_simulation() {
    let board = named(CORTEX_M4F);
    let Some((client, _)) = firmware(board, "network") else {
        return;
    };
    let place = Place::new();
    place.write("windows.csv", windows());
    place.write("experiment.toml", EXPERIMENT);
    // As many features, classes and parameters, but not the same.
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
    let mut stranger = place.command(program());
    let call = "device --provision fleet/device-3.bin --ledger fleet/device-3.ledger \
                --preprocessing other/preprocessing.json --connect unix:fleet.sock";
    stranger.args(call.split_whitespace()).stderr(said);
    let _stranger = Device(stranger.spawn().expect("a device starts"));
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
