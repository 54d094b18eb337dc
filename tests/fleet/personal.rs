//! Real devices with personal models: the shared model equals that of a simulation.

use super::device::send;
use super::{
    Device, FULL, Place, assert_is_the_simulation, part_of, provision, serve, wait, wait_until,
};

/// Returns the personal model of a device, if it has one.
fn personal(place: &Place, device: u32) -> Option<Vec<u8>> {
    std::fs::read(place.path(format!("fleet/device-{device}.personal"))).ok()
}

fn answered(place: &Place, device: u32) -> usize {
    part_of(place, "served", device).0.len()
}

#[test]
fn devices_keep_personal_models_and_the_shared_one_is_that_of_a_simulation() {
    let local = "--set privacy={trust=\"local\",clip_norm=0.3,noise_multiplier=2.0}";
    for (method, has_state) in [
        ("--set method=pmtl", true),
        (
            "--set method=pmtl --set personalise.update=\"as-printed\" \
             --set personalise.local_steps=9",
            true,
        ),
        (
            "--set method=pp-sgd --set personalise.ratio=0.5 --set privacy.clip_norm=\"adaptive\"",
            true,
        ),
        (
            "--set method=dpfedmtl --set personalise.private=\"biases\"",
            true,
        ),
        (
            "--set method=dpfedmtl --set personalise.private=\"biases\" LOCAL",
            true,
        ),
        ("--set method=fedprox", false),
    ] {
        let place = Place::new();
        let settings = format!("{FULL} --set rounds=3 {}", method.replace("LOCAL", local));
        provision(&place, &settings);
        let _devices = Device::start_all(&place, 0..4);
        let arguments = serve("60s", &settings);
        wait(place.start(&arguments), &arguments).success();
        for device in 0..4 {
            assert_eq!(answered(&place, device), 3, "{method}");
            assert_eq!(personal(&place, device).is_some(), has_state, "{method}");
        }
        assert_is_the_simulation(&place, "served");
    }
}

/// It is a participation of the devices, but not a round of the run.
#[test]
fn devices_fine_tune_the_final_model_and_keep_it() {
    for objective in ["plain", "mean-regularised"] {
        let place = Place::new();
        let settings = format!("{FULL} --set rounds=2 --set personalise.fine_tune=\"{objective}\"");
        provision(&place, &format!("{settings} --budget 4"));
        let _devices = Device::start_all(&place, 0..4);
        let arguments = serve("60s", &format!("{settings} --log-file serve.log"));
        wait(place.start(&arguments), &arguments).success();
        assert_is_the_simulation(&place, "served");
        let log = std::fs::read_to_string(place.path("serve.log")).unwrap();
        let tuned = "4 of 4 devices have fine-tuned the final model";
        assert!(log.contains(tuned), "{log}");
        let models: Vec<_> = (0..4)
            .map(|device| personal(&place, device).unwrap())
            .collect();
        assert_ne!(models[0], models[1]);

        // Once more, with the samples in another order.
        let resume = "serve --resume served --json --log-file again.log";
        wait(place.start(resume), resume).success();
        let log = std::fs::read_to_string(place.path("again.log")).unwrap();
        assert!(log.contains(tuned), "{log}");
        assert_ne!(personal(&place, 0).as_ref(), models.first());
    }
}

/// Personal models survive restarts of devices and coordinator. Models of another run of the fleet
/// do not count.
#[test]
fn personal_models_survive_restarts_and_belong_to_a_run() {
    let place = Place::new();
    let settings = format!("{FULL} --set method=pmtl --set rounds=4");
    provision(&place, &format!("{settings} --budget 100"));
    let first = serve("60s", &settings).replace("--out served", "--out first");
    let devices = Device::start_all(&place, 0..4);
    wait(place.start(&first), &first).success();
    let of_first = personal(&place, 0);
    assert!(of_first.is_some());

    // A new run, stopped while device 3 is missing, continues with new processes.
    drop(devices);
    let devices = Device::start_all(&place, 0..3);
    let arguments = serve("600s", &format!("{settings} --grace 1s"));
    let coordinator = place.start(&arguments);
    wait_until(|| (0..3).all(|device| personal(&place, device) != of_first));
    send(&coordinator, "-TERM");
    wait(coordinator, &arguments);
    drop(devices);
    let kept = personal(&place, 0);
    let _devices = Device::start_all(&place, 0..4);
    let resume = "serve --resume served --json";
    wait(place.start(resume), resume).success();
    assert_eq!(answered(&place, 0), 4);
    assert_eq!(answered(&place, 3), 3);
    assert_ne!(personal(&place, 0), kept);
    assert_is_the_simulation(&place, "served");
}
