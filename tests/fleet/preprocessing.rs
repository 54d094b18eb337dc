//! Devices with their own samples, which they preprocess like the experiment.

use super::device::Device;
use super::{assert_is_the_simulation, wait};
use crate::program::Place;

/// Returns rows of device `device`: features on other scales, with a gap, and a class name.
fn rows(device: u32) -> Vec<[String; 4]> {
    let row = |i: u32| {
        let (a, b) = ((device * 7 + i * 5) % 13, (device + 3 * i) % 11);
        let gap = if i == 3 {
            String::new()
        } else {
            (1000 * b).to_string()
        };
        let class = if a > 6 { "walk" } else { "sit" };
        [
            (f64::from(a) / 50.0).to_string(),
            gap,
            "9".to_owned(),
            class.to_owned(),
        ]
    };
    (0..8).map(row).collect()
}

const EXPERIMENT: &str = "method = \"dp-fed\"\nrounds = 4\n\
    [data]\nsource = \"csv\"\npath = \"all.csv\"\nlabel = \"class\"\ndevice_column = \"who\"\n\
    test = 0\n[cohort]\nsampling = \"full\"\n\
    [privacy]\nnoise_multiplier = 0.5\nclip_norm = 1.0\n";

#[test]
fn samples_of_devices_have_the_bits_of_the_simulation() {
    trains_as_the_simulation(EXPERIMENT);
}

#[test]
fn fixed_features_of_devices_have_the_bits_of_the_simulation() {
    let bounded = EXPERIMENT.replace("test = 0", "test = 0\nnorm_bound = 1.25");
    let features = "[features]\nkind = \"steps\"\ncount = 3\n\
                    bounds = { min = 0, max = [0.25, 10000, 20] }\n\
                    [train]\nlearning_rate = \"auto\"\n";
    trains_as_the_simulation(&format!("{bounded}{features}"));
}

fn trains_as_the_simulation(experiment: &str) {
    let place = Place::new();
    let of_device = |device| rows(device).into_iter().map(move |row| (device, row));
    let line = |(device, row): (u32, [String; 4])| format!("{device},{}\n", row.join(","));
    let table: String = (0..6).flat_map(of_device).map(line).collect();
    place.write("all.csv", format!("who,low,high,same,class\n{table}"));
    place.write("experiment.toml", experiment);
    let call = "provision experiment.toml --devices 0..2 --out fleet --seed 7";
    let printed = place.smolfed(call).success().stdout;
    assert!(
        printed.contains("--preprocessing fleet/preprocessing.json"),
        "{printed}"
    );

    let serve = "serve experiment.toml --keys fleet/keys.toml --listen unix:fleet.sock \
                 --simulated 4 --seed 7 --timeout 20s --out served --json";
    let coordinator = place.start(serve);
    let mut devices = Vec::new();
    for device in 0..2 {
        // Columns in another order, an additional column, and no device column.
        let line = |row: [String; 4]| {
            let [low, high, same, class] = row;
            format!("{class},{same},{high},note,{low}\n")
        };
        let own: String = rows(device).into_iter().map(line).collect();
        place.write(
            &format!("own-{device}.csv"),
            format!("class,same,high,more,low\n{own}"),
        );
        let options = format!(
            "--preprocessing fleet/preprocessing.json --data own-{device}.csv \
             --connect unix:fleet.sock"
        );
        devices.push(Device::start_with(&place, device, &options));
    }
    let document = wait(coordinator, serve).success().json();
    assert_eq!(document["rounds"], 4);
    // Every device answered in every round, and the model equals the simulation's.
    for device in 0..2 {
        let (answered, missing) = super::part_of(&place, "served", device);
        assert_eq!((answered.len(), missing.len()), (4, 0), "{missing:?}");
    }
    assert_is_the_simulation(&place, "served");
    let read = |path| std::fs::read(place.path(path)).unwrap();
    assert_eq!(
        read("fleet/preprocessing.json"),
        read("served/preprocessing.json")
    );
}

#[test]
fn samples_that_do_not_fit_are_refused() {
    let place = Place::new();
    place
        .smolfed("provision --devices 0..1 --out fleet")
        .success();
    place.write("pixels.csv", "a,b,digit\n1,2,3\n");
    let device = "device --provision fleet/device-0.bin --ledger fleet/device-0.ledger \
                  --connect unix:none.sock --data pixels.csv";
    let refused = |options: &str, words: &[&str]| {
        place
            .smolfed(&format!("{device} {options}"))
            .refused(2, words);
    };
    let prepared = "--preprocessing fleet/preprocessing.json";
    refused(prepared, &["pixels.csv", "`p0`", "and 52 more", "`a`"]);
    refused(&format!("{prepared} --label c"), &["`c`", "--label"]);
    refused("--model softmax:2x10", &["`--data pixels.csv`", "--label"]);
    refused("--preprocessing none.json --label digit", &["none.json"]);
}
