//! Fixed features of new rows equal those of the run, in every exported form.

use std::path::Path;

use super::exports::{agree, has_compiler, python};
use super::unnamed::npy;
use super::{KINDS, evaluates_to_the_same, preprocessing, run};
use crate::program::Place;

/// Sides of the images. No cell of 3 pixels covers the last rows or columns.
pub(super) const ROWS: usize = 10;
pub(super) const COLUMNS: usize = 11;

/// Features of images with 1 or 3 planes: name, planes, and the table.
const IMAGES: [(&str, usize, &str); 5] = [
    ("gradients", 1, "kind=\"gradients\",cell=3"),
    ("pool", 1, "kind=\"pool\",cell=3"),
    ("colours", 3, "kind=\"gradients\",cell=4"),
    ("brightness", 3, "kind=\"pool\",cell=5"),
    ("whole", 1, "kind=\"gradients\",cell=10"),
];

/// Returns deterministic images with smooth parts, of three classes. The first one is black.
pub(super) fn images(planes: usize, count: usize, seed: usize) -> Vec<u8> {
    let size = planes * ROWS * COLUMNS;
    let pixel = |at: usize| {
        let (image, at) = (at / size, at % size);
        let (row, column) = (at / COLUMNS % ROWS, at % COLUMNS);
        let wave = match image % 3 {
            0 => row * 20,
            1 => column * 20,
            _ => (row * column * 7 + 3 * image) % 256,
        };
        let noise = (at * 31 + image * 17 + seed * 101) % 23;
        match image {
            0 => 0,
            _ => (wave + noise + 10 * (at / (ROWS * COLUMNS))).min(255) as u8,
        }
    };
    (0..count * size).map(pixel).collect()
}

fn labels(count: usize) -> Vec<u8> {
    (0..count).map(|image| (image % 3) as u8).collect()
}

pub(super) fn write(place: &Place, name: &str, planes: usize, count: usize, seed: usize) {
    let shape = match planes {
        1 => format!("({count}, {ROWS}, {COLUMNS})"),
        _ => format!("({count}, {planes}, {ROWS}, {COLUMNS})"),
    };
    let pixels = images(planes, count, seed);
    place.write(&format!("{name}.npy"), npy(&shape, &pixels));
    place.write(
        &format!("{name}-labels.npy"),
        npy(&format!("({count},)"), &labels(count)),
    );
}

/// Writes the model in all forms, and its predictions.
fn export(place: &Place, name: &str, data: &str) {
    place
        .smolfed(&format!("predict {name} --data {data} --out {name}.csv"))
        .success();
    for (format, ending) in [("c-header", "h"), ("onnx", "onnx"), ("npz", "npz")] {
        let call = format!("export {name} --format {format} --out {name}.{ending}");
        place.smolfed(&call).success();
    }
}

fn agree_in_python(place: &Place, name: &str) {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("inference/exports.py");
    let output = place
        .command(&python)
        .arg(script)
        .arg(name)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
}

#[test]
fn features_of_images_are_those_of_the_run() {
    for (name, planes, features) in IMAGES {
        let place = Place::new();
        write(&place, "images", planes, 90, 1);
        write(&place, "more", planes, 30, 2);
        let call = format!(
            "run --out {name} --json --set data={{source=\"npy\",path=\"images.npy\",\
             label_path=\"images-labels.npy\",test_path=\"more.npy\",\
             test_label_path=\"more-labels.npy\",devices=9}} --set features={{{features}}} \
             --set rounds=3 --set method=dp-fed --set server.smoothing_factor=0 \
             --set train.learning_rate=auto --set privacy.epsilon=100"
        );
        let document = place.smolfed(&call).success().json();
        evaluates_to_the_same(&place, name, &document, "more.npy --labels more-labels.npy");
        let found = preprocessing(&place, name);
        let shape = [1, ROWS, COLUMNS].map(|length| if length == 1 { planes } else { length });
        let shape = &shape[usize::from(planes == 1)..];
        assert_eq!(found["shape"], serde_json::json!(shape));
        export(&place, name, "more.npy");
        // Python reads the raw pixels.
        place.write(
            &format!("{name}.x.npy"),
            std::fs::read(place.path("more.npy")).unwrap(),
        );
        if has_compiler() {
            let pixels = images(planes, 30, 2);
            let rows = pixels.chunks(planes * ROWS * COLUMNS).map(|row| {
                let row: Vec<String> = row.iter().map(u8::to_string).collect();
                row.join(" ") + "\n"
            });
            agree(&place, name, &rows.collect::<String>());
        }
        agree_in_python(&place, name);
    }
}

#[test]
fn pixels_from_0_to_1_have_256_levels() {
    let place = Place::new();
    let table = |count: usize, seed: usize| {
        let header: Vec<String> = (0..ROWS * COLUMNS)
            .map(|pixel| format!("p{pixel}"))
            .collect();
        let mut text = format!("label,{}\n", header.join(","));
        let pixels = images(1, count, seed);
        for (label, row) in labels(count).iter().zip(pixels.chunks(ROWS * COLUMNS)) {
            let row: Vec<String> = row
                .iter()
                .map(|x| (f32::from(*x) / 255.0).to_string())
                .collect();
            text += &format!("{label},{}\n", row.join(","));
        }
        text
    };
    place.write("train.csv", table(90, 1));
    place.write("test.csv", table(30, 2));
    write(&place, "train", 1, 90, 1);
    write(&place, "test", 1, 30, 2);
    let run = |out: &str, data: &str| {
        place.smolfed(&format!(
            "run --out {out} --json --set data={{{data},devices=9}} --set rounds=2 \
             --set features={{kind=\"gradients\",cell=3}} --set train.learning_rate=auto"
        ))
    };
    let shape = format!("axes=[{ROWS},{COLUMNS}]");
    let table =
        format!("source=\"csv\",path=\"train.csv\",test_path=\"test.csv\",label=\"label\",{shape}");
    let words = ["train.csv", "whole numbers from 0 to 255", "data.maximum"];
    run("none", &table).refused(2, &words);
    let document = run("levels", &format!("{table},maximum=1"))
        .success()
        .json();
    evaluates_to_the_same(&place, "levels", &document, "test.csv");
    export(&place, "levels", "test.csv");
    agree_in_python(&place, "levels");
    // The same images as bytes give the same model and predictions.
    let bytes = "source=\"npy\",path=\"train.npy\",label_path=\"train-labels.npy\",\
                 test_path=\"test.npy\",test_label_path=\"test-labels.npy\"";
    run("bytes", bytes).success();
    export(&place, "bytes", "test.npy");
    let said = |name: &str| std::fs::read_to_string(place.path(format!("{name}.csv"))).unwrap();
    assert_eq!(said("bytes"), said("levels"));
}

#[test]
fn steps_of_columns_are_those_of_the_run() {
    const STEPS: &str = "kind=\"steps\",count=5,bounds={min=[4.9,1e6,-30,0],max=[5.2,1.1e6,40,9]}";
    for (name, bound) in [("steps", ""), ("short", "norm_bound = 1.25")] {
        let place = Place::new();
        let settings = format!("--set features={{{STEPS}}} --set train.learning_rate=auto");
        let document = run(&place, name, &format!("{KINDS}{bound}"), &settings);
        evaluates_to_the_same(&place, name, &document, "test.csv");
        let found = preprocessing(&place, name);
        assert_eq!(found["columns"][2]["missing"], "open");
        // Nothing was read from the rows: neither a scale nor fill values for gaps.
        assert_eq!(found["privacy"]["scale"], "declared");
        assert_eq!(found["privacy"]["missing"], "declared");
        export(&place, name, "test.csv");
        if has_compiler() {
            agree(&place, name, &super::exports::features());
        }
        agree_in_python(&place, name);
    }
}

#[test]
fn short_samples_have_the_same_length_everywhere() {
    let place = Place::new();
    let document = run(&place, "short", &format!("{KINDS}norm_bound = 0.75"), "");
    evaluates_to_the_same(&place, "short", &document, "test.csv");
    export(&place, "short", "test.csv");
    if has_compiler() {
        agree(&place, "short", &super::exports::features());
    }
    agree_in_python(&place, "short");
}

#[test]
fn features_that_cannot_be_computed_are_refused() {
    let place = Place::new();
    let refused = |settings: &str, words: &[&str]| {
        let call = format!("run --out wrong {settings}");
        place.smolfed(&call).refused(2, words);
    };
    let features = |table: &str, words: &[&str]| {
        refused(&format!("--set features={{{table}}}"), words);
    };
    features("kind=\"gradients\"", &["features.cell", "missing"]);
    features(
        "kind=\"gradients\",cell=0",
        &["features.cell", "is 0", "1 to 1024"],
    );
    features(
        "kind=\"gradients\",cell=9",
        &["features.cell", "9 × 9", "1 to 8"],
    );
    features(
        "kind=\"gradients\",cell=2,count=3",
        &["features.count", "no effect"],
    );
    features(
        "kind=\"pool\",cell=2,bounds={min=0,max=1}",
        &["features.bounds", "no effect"],
    );
    features("kind=\"steps\",count=2", &["features.bounds", "documented"]);
    features(
        "kind=\"steps\",count=256,bounds={min=0,max=1}",
        &["features.count", "1 to 255"],
    );
    features(
        "kind=\"steps\",count=2,bounds={min=3,max=3}",
        &["features.bounds", "min below max"],
    );
    features(
        "kind=\"steps\",count=2,bounds={min=4,max=3}",
        &["features.bounds", "min below max"],
    );
    features(
        "kind=\"steps\",count=2,bounds={min=[1,2],max=3}",
        &["2 numbers", "64 columns"],
    );
    features(
        "kind=\"gradient\",cell=2",
        &["features.kind", "did you mean `gradients`"],
    );
    features("cells=2", &["unknown key", "did you mean `cell`"]);
    let synthetic =
        "--set data={source=\"synthetic\",devices=9} --set features={kind=\"pool\",cell=1}";
    refused(synthetic, &["[features]", "generated"]);
}

#[test]
fn samples_and_models_that_do_not_suit_are_refused() {
    let place = Place::new();
    let refused = |settings: &str, words: &[&str]| {
        let call = format!("run --out wrong {settings}");
        place.smolfed(&call).refused(2, words);
    };
    // One row has no vertical gradient, which is not an error. A table has no rows and columns.
    super::run(&place, "table", KINDS, "");
    let table = "experiment.toml --set features={kind=\"gradients\",cell=2}";
    refused(table, &["train.csv", "shape is unknown", "data.axes"]);
    let one_row =
        "experiment.toml --set data.axes=[1,4] --set features={kind=\"gradients\",cell=1}";
    refused(one_row, &["row 1", "pixel 0", "whole numbers"]);
    // The tables of `data inspect` can be pasted into an experiment.
    let steps = "features={kind=\"steps\",count=2,bounds={min=0,max=10}}";
    let text = place
        .smolfed(&format!("data inspect digits --set {steps}"))
        .success()
        .stdout;
    assert!(text.contains("[features.bounds]"), "{text}");
    refused("--set data.norm_bound=0", &["data.norm_bound", "above 0"]);
    refused(
        "--set train.learning_rate=auto",
        &["train.learning_rate", "data.norm_bound", "[features]"],
    );
    refused(
        "--set train.learning_rate=auto --set data.norm_bound=4 --set model.hidden=4",
        &["train.learning_rate", "one layer"],
    );
    refused(
        "--set train.learning_rate=fast",
        &["train.learning_rate", "number", "auto"],
    );
}
