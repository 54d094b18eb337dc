//! Devices with their own samples, which they preprocess like the experiment.

use serde_json::Value;

use super::device::Device;
use super::{assert_is_the_simulation, lines, wait, wait_until};
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

/// Returns the mean and the deviation of a column of all devices.
fn moments(rows: &[[String; 4]], column: usize) -> [f64; 2] {
    let values = rows.iter().map(|row| row[column].parse::<f64>().unwrap());
    let values: Vec<f64> = values.collect();
    let of = |power| values.iter().map(|x| x.powi(power)).sum::<f64>() / values.len() as f64;
    [of(1), (of(2) - of(1) * of(1)).sqrt()]
}

/// Writes a table, its questions and its experiment, without a scale, and provisions two of its six
/// devices. Returns the rows of all.
fn unscaled(place: &Place) -> Vec<[String; 4]> {
    let complete = |device| rows(device).into_iter().filter(|row| !row[1].is_empty());
    let all: Vec<[String; 4]> = (0..6).flat_map(complete).collect();
    let of_device = |device| complete(device).map(move |row| (device, row));
    let line = |(device, row): (u32, [String; 4])| format!("{device},{}\n", row.join(","));
    let table: String = (0..6).flat_map(of_device).map(line).collect();
    place.write("all.csv", format!("who,low,high,same,class\n{table}"));
    for device in 0..2 {
        let own: String = complete(device).map(|row| row.join(",") + "\n").collect();
        let path = format!("own-{device}.csv");
        place.write(&path, format!("low,high,same,class\n{own}"));
    }
    let plain = EXPERIMENT.replace("test = 0", "test = 0\nscale = \"none\"");
    let experiment = format!("{plain}ledger = \"fleet.ledger\"\n");
    place.write("experiment.toml", &experiment);
    let question = experiment.replace("method = \"dp-fed\"\nrounds = 4\n", "");
    let question = question.replace(
        "noise_multiplier = 0.5\nclip_norm = 1.0",
        "noise_multiplier = 0.001",
    );
    let ask = |feature, bound| {
        format!("[[questions]]\nkind = \"moments\"\nfeature = {feature}\nbounds = [0, {bound}]\n")
    };
    let asked = [ask(0, 0.25), ask(1, 1e4), ask(2, 20.0)].concat();
    place.write("question.toml", format!("{question}{asked}"));
    let provision = "provision experiment.toml --devices 0..2 --out fleet --seed 7 \
                     --answers moments --max-answers 3 --budget 7";
    place.smolfed(provision).success();
    all
}

/// Starts these two devices.
fn start(place: &Place, preprocessing: &str) -> [Device; 2] {
    [0, 1].map(|device| {
        let options = format!(
            "--preprocessing {preprocessing} --data own-{device}.csv --connect unix:fleet.sock"
        );
        Device::start_with(place, device, &options)
    })
}

/// A private scale on real devices: they answer a question about the moments of their features,
/// and then train on features with that scale. One ledger has both.
#[test]
fn devices_train_with_the_scale_that_they_answered() {
    let place = Place::new();
    let all = unscaled(&place);
    let fleet = "--keys fleet/keys.toml --listen unix:fleet.sock --simulated 4 \
                 --timeout 20s";

    let devices = start(&place, "fleet/preprocessing.json");
    let ask = format!("ask question.toml {fleet} --seed 9 --out asked");
    let printed = wait(place.start(&ask), &ask).success().stdout;
    drop(devices);
    let (_, scale) = printed.split_once("--set '").expect("a scale");
    let (scale, _) = scale.split_once('\'').unwrap();
    for asked in lines(&place.path("asked/answers.jsonl")) {
        assert_eq!(asked["answered"].as_array().unwrap().len(), 2, "{asked}");
    }

    let serve = format!("serve experiment.toml {fleet} --seed 7 --out served --json --set {scale}");
    let coordinator = place.start(&serve);
    let preprocessing = "served/preprocessing.json";
    wait_until(|| place.path(preprocessing).exists());
    let _devices = start(&place, preprocessing);
    wait(coordinator, &serve).success();
    let config = std::fs::read_to_string(place.path("served/config.toml")).unwrap();
    let config: toml::Table = toml::from_str(&config).unwrap();
    let found = |key: &str, column: usize| config["data"]["scale"][key][column].as_float().unwrap();
    for column in 0..3 {
        let [mean, deviation] = moments(&all, column);
        assert!(
            (found("mean", column) / mean - 1.0).abs() < 0.05,
            "{scale}: {mean}"
        );
        let std = found("std", column);
        // The last column is constant, and no interval excludes a small deviation.
        let is_right = match column {
            2 => std > 0.0 && std < 1.0,
            _ => (std / deviation - 1.0).abs() < 0.05,
        };
        assert!(is_right, "{scale}: {deviation}");
    }
    for device in 0..2 {
        let (answered, missing) = super::part_of(&place, "served", device);
        assert_eq!((answered.len(), missing.len()), (4, 0), "{missing:?}");
    }
    let replay = "run served/config.toml --participation served/participation.jsonl --out replay \
                  --set privacy.ledger=\"another.ledger\"";
    place.smolfed(replay).success();
    let model = |dir: &str| std::fs::read(place.path(dir).join("model.safetensors")).unwrap();
    assert!(model("served") == model("replay"), "the bits differ");
    place.smolfed("account --verify served").success();
    let charged = lines(&place.path("fleet.ledger"));
    let answers = |line: &&Value| line["event"]["mechanism"]["answer"].is_object();
    assert_eq!(charged.iter().filter(answers).count(), 3, "{charged:?}");
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
