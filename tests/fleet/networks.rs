//! Devices that share a network's layers below their heads.

use super::device::Device;
use super::{assert_is_the_simulation, part_of, wait};
use crate::program::Place;

/// The network of `firmware-example/src/network.rs`.
pub(crate) const EXPERIMENT: &str = "method = \"dp-fed-ls\"\nrounds = 3\n\
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

/// Returns simulated windows of six channels: seven for each of six devices, one per class.
pub(crate) fn windows() -> String {
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
