//! Networks in 8 bits: the compiled header and `smolfed predict --arithmetic integer` agree bit for
//! bit, and are as accurate as the network in `f32`.

use super::exports::{compiled_with, features, has_compiler};
use super::integers::{PROGRAM, WARNINGS, has_bits};
use super::{KINDS, run};
use crate::experiments::networks::place_with;
use crate::program::Place;

/// Features in an interval, which need no calibration.
const BOUNDED: &str = "--set data.scale={min=-1.5,max=1.5,mean=0,std=0.5}";

/// Every layer with an integer form, on an image of two channels. Overlapping windows are computed
/// after their convolution, and others together with it.
const DEEP: &str = "--set model.input=[2,3,4] --set model.layers=[\
    {type=\"convolution\",channels=4,kernel=[2,3],padding=[1,1]},{type=\"relu\"},\
    {type=\"max-pool\",size=[2,2]},\
    {type=\"convolution\",channels=5,kernel=[1,1]},\
    {type=\"max-pool\",size=[1,2],stride=[1,1]},{type=\"relu\"},\
    {type=\"dense\",outputs=6},{type=\"relu\"}]";

/// Each run's name, its settings, and the source of ranges.
const MODELS: [(&str, &str, &str); 4] = [
    ("calibrated", "", "--calibrate windows.csv"),
    ("bounded", BOUNDED, ""),
    ("deep", DEEP, "--calibrate windows.csv"),
    ("deep-bounded", BOUNDED, ""),
];

/// Returns the features of the windows, as text for the program.
fn rows(place: &Place) -> String {
    let table = std::fs::read_to_string(place.path("windows.csv")).unwrap();
    let row = |line: &str| line.splitn(3, ',').last().unwrap().replace(',', " ") + "\n";
    table.lines().skip(1).map(row).collect()
}

/// Asserts that header and `smolfed predict` give each row the same class and probabilities.
fn agree(place: &Place, name: &str, data: &str, calibrate: &str, rows: &str) {
    let integer = format!("--arithmetic integer {calibrate}");
    let predict = format!("predict {name} {integer} --data {data} --json");
    let predicted = place.smolfed(&predict).success().json();
    let export = format!("export {name} {integer} --format c-header --out {name}.h");
    let exported = place.smolfed(&export).success();
    let origin = match calibrate.is_empty() {
        true => "no data were read",
        false => "no epsilon covers them",
    };
    assert!(exported.stderr.contains(origin), "{exported}");
    let printed = compiled_with(place, name, PROGRAM, &WARNINGS, rows);
    has_bits(name, &printed, &predicted);
}

#[test]
fn headers_of_networks_have_the_bits_of_predictions() {
    if !has_compiler() {
        return;
    }
    let place = place_with("", "");
    let windows = rows(&place);
    for (name, settings, calibrate) in MODELS {
        let deep = if name == "deep-bounded" { DEEP } else { "" };
        let call = format!("run windows.toml --out {name} {settings} {deep}");
        place.smolfed(&call).success();
        agree(&place, name, "windows.csv", calibrate, &windows);
        let accuracy = |more: &str| {
            let call = format!("evaluate {name} --data windows.csv --json {more}");
            let found = place.smolfed(&call).success().json();
            found["accuracy"].as_f64().unwrap()
        };
        let [numbers, integers] = ["", &format!("--arithmetic integer {calibrate}")].map(accuracy);
        assert!(numbers > 0.8, "{name}: {numbers}");
        // One window of 48.
        assert!(
            (numbers - integers).abs() < 0.03,
            "{name}: {numbers} {integers}"
        );
    }
    a_network_is_a_file_in_rust(&place);
    what_has_no_form_is_refused(&place);
}

#[test]
fn a_hidden_layer_with_a_rectifier_is_a_network() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    let settings = "--set model.hidden=5 --set model.activation=relu --set train.learning_rate=0.5";
    run(&place, "relu", KINDS, settings);
    agree(
        &place,
        "relu",
        "test.csv",
        "--calibrate test.csv",
        &features(),
    );
}

/// Settings of `firmware-example/src/quantised.rs`.
const FIRMWARE: &str = "--set rounds=30 --set model.layers=[\
    {type=\"convolution\",channels=8,kernel=3,padding=1},{type=\"relu\"},\
    {type=\"max-pool\",size=2}]";

/// The tables used in board tests come from the command line.
#[test]
fn the_tables_of_the_firmware_are_exported() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let run = format!("run {folder}/examples/cnn.toml --out run {FIRMWARE}");
    place.smolfed(&run).success();
    let call = "export run --arithmetic integer --format rust";
    let exported = place.smolfed(call).success().stdout;
    let path = format!("{folder}/firmware-example/src/quantised.rs");
    let tables = std::fs::read_to_string(path).unwrap();
    assert!(tables == exported, "{exported}");
}

fn a_network_is_a_file_in_rust(place: &Place) {
    let call = "export deep-bounded --format rust --arithmetic integer";
    let text = place.smolfed(call).success().stdout;
    for part in [
        "pub const INPUT: Image = Image { height: 3, width: 4, channels: 2 };",
        "pub static CLASSES: [&str; 2] = [\"falls\", \"rises\"];",
        "static WEIGHTS_1: [i8; 48]",
        "pub static NETWORK: Quantised<'static>",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let lines = text.lines().map(|line| line.chars().count());
    assert!(lines.max() <= Some(100), "{text}");
    let call = "export calibrated --format rust --arithmetic integer --calibrate windows.csv";
    let text = place.smolfed(call).success().stdout;
    let warning = "//! scale: measured on the devices' rows without noise: no epsilon covers it.";
    assert!(text.contains(warning), "{text}");
}

fn what_has_no_form_is_refused(place: &Place) {
    let integer = "--arithmetic integer";
    let refused = place.smolfed(&format!("predict calibrated {integer} --data windows.csv"));
    refused.refused(2, &["`x0` has no bounds", "--calibrate FILE", "data.scale"]);
    let call = "predict calibrated --calibrate windows.csv --data windows.csv";
    place
        .smolfed(call)
        .refused(2, &["`--calibrate` is for networks"]);
    let refused = place.smolfed("export calibrated --format rust");
    refused.refused(2, &["`--format rust`", "--arithmetic integer"]);
    let call = format!("predict calibrated {integer} --calibrate - --data -");
    place
        .smolfed(&call)
        .refused(2, &["`--calibrate -`", "give a file"]);
    let over = "export calibrated --format rust --out windows.csv --calibrate windows.csv";
    let refused = place.smolfed(&format!("{over} {integer}"));
    refused.refused(2, &["`--out windows.csv` would overwrite an input"]);
    let lstm = "run windows.toml --out lstm --set rounds=1 --set model.input=[12,2] \
                --set model.layers=[{type=\"lstm\",hidden=3},{type=\"last\"}]";
    place.smolfed(lstm).success();
    let call = format!("export lstm --format rust {integer} --calibrate windows.csv");
    place
        .smolfed(&call)
        .refused(2, &["layer 1 (lstm)", "no integer form"]);
}
