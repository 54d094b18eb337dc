//! Real devices that train without labels: matrices and updates equal those of a simulation.

use serde_json::Value;

use super::device::Device;
use super::{FULL, Place, assert_is_the_simulation, lines, part_of, provision, serve, wait};

pub(crate) const FEDSC: &str = "--set method=fedsc --set rounds=3 \
                     --set privacy={clip_norm=0.3,noise_multiplier=1.0} \
                     --set train.learning_rate=0.05 --set contrast.privacy.epsilon=8";

pub(crate) fn start(place: &Place, numbers: std::ops::Range<u32>) -> Vec<Device> {
    let options = "--preprocessing fleet/preprocessing.json --connect unix:fleet.sock";
    let start = |number| Device::start_with(place, number, options);
    numbers.map(start).collect()
}

/// Returns the missing matrices of real devices in each round, with reasons.
pub(crate) fn without_matrix(place: &Place) -> Vec<Vec<(String, String)>> {
    let rounds = lines(&place.path("served/participation.jsonl"));
    let of_round = |round: &Value| match round["without_matrix"].as_object() {
        None => Vec::new(),
        Some(devices) => devices
            .iter()
            .map(|(device, reason)| (device.clone(), reason.as_str().unwrap().to_owned()))
            .collect(),
    };
    rounds.iter().map(of_round).collect()
}

#[test]
fn devices_learn_without_labels_and_the_encoder_is_that_of_a_simulation() {
    let local = "privacy={trust=\"local\",clip_norm=0.3,noise_multiplier=2.0}";
    let local = format!("--set method=fedavg-sc --set rounds=3 --set {local}");
    let network = "--set model.layers=[{type=\"dense\",outputs=20},{type=\"relu\"}] \
                   --set contrast={exchange=\"with-update\",share_every=2,alpha=\"share\",\
                   views=4,width=8,privacy={epsilon=8.0}}";
    let network = format!("{FEDSC} {network}").replace(" --set contrast.privacy.epsilon=8", "");
    for method in [FEDSC, &network, &local] {
        let place = Place::new();
        let settings = format!("{FULL} {method}");
        provision(&place, &settings);
        let _devices = start(&place, 0..4);
        let arguments = serve("60s", &settings);
        wait(place.start(&arguments), &arguments).success();
        for device in 0..4 {
            assert_eq!(part_of(&place, "served", device).0.len(), 3, "{method}");
        }
        assert_eq!(without_matrix(&place).concat(), [], "{method}");
        assert_is_the_simulation(&place, "served");
    }
}

/// An absent device adds no matrix to the sum, and its last one remains there.
#[test]
fn a_device_that_is_away_sends_no_matrix() {
    let place = Place::new();
    let settings = format!("{FULL} {FEDSC}");
    provision(&place, &settings);
    let _devices = start(&place, 0..3);
    let arguments = serve("2s", &settings);
    wait(place.start(&arguments), &arguments).success();
    let away = [("3".to_owned(), "not connected".to_owned())];
    assert_eq!(without_matrix(&place), vec![away.to_vec(); 3]);
    assert_is_the_simulation(&place, "served");
}

/// The noise of a matrix hides an example, and devices under local trust hide all their data.
#[test]
fn matrices_without_a_trusted_server_are_refused() {
    let place = Place::new();
    let local = "privacy={trust=\"local\",clip_norm=0.3,noise_multiplier=2.0}";
    let settings = format!("{FULL} --set method=fedsc --set {local}");
    let call = format!("provision --devices 0..4 --out fleet --with-data {settings}");
    let outcome = place.smolfed(&call);
    let sentence = outcome.refusal(2);
    let reason = "is supported only in simulations: real devices that add noise to their updates \
                  send no correlation matrix";
    assert!(sentence.contains(reason), "{sentence}");
}

/// A device sends nothing if its coordinator requests less than the provisioned noise.
#[test]
fn a_coordinator_that_asks_for_less_noise_gets_no_matrix() {
    let place = Place::new();
    provision(&place, &format!("{FULL} {FEDSC}"));
    let _devices = start(&place, 0..4);
    let settings = format!("{FULL} {FEDSC}").replace("epsilon=8", "epsilon=80");
    let arguments = serve("60s", &settings);
    wait(place.start(&arguments), &arguments).success();
    let declined = "declined: less noise than the device insists on";
    let matrices = without_matrix(&place).concat();
    assert_eq!(matrices.len(), 12);
    assert!(matrices.iter().all(|(_, reason)| reason == declined));
    // Their updates have the noise of the trusted server.
    assert_eq!(part_of(&place, "served", 0).0.len(), 3);
    assert_is_the_simulation(&place, "served");
}
