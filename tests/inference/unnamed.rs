//! Rows with unnamed features: arrays, LEAF files and images.

use std::io::{Cursor, Write};

use image::{GrayImage, Luma};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{PAIRS, evaluates_to_the_same, preprocessing, run};
use crate::program::Place;

#[test]
fn images_are_taken_in_order_and_so_are_tables_without_names() {
    let place = Place::new();
    let images = |count: u8| {
        let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 2, 0, 0, 0, 3];
        bytes.extend((0..count).flat_map(|i| (0..6).map(move |j| i.wrapping_mul(31) ^ (j * 40))));
        bytes
    };
    let labels = |count: u8| {
        let mut bytes = vec![0, 0, 8, 1, 0, 0, 0, count];
        bytes.extend((0..count).map(|i| i % 3));
        bytes
    };
    place.write("images", images(60));
    place.write("labels", labels(60));
    place.write("more-images", images(21));
    place.write("more-labels", labels(21));
    let data = "data={source=\"idx\",path=\"images\",label_path=\"labels\",devices=6,\
                test_path=\"more-images\",test_label_path=\"more-labels\",scale=\"unit\"}";
    let call = format!(
        "run --out idx --json --set {data} --set rounds=2 --set cohort={{sampling=\"full\"}}"
    );
    let document = place.smolfed(&call).success().json();
    evaluates_to_the_same(&place, "idx", &document, "more-images --labels more-labels");
    let found = preprocessing(&place, "idx");
    assert_eq!(found["shape"], serde_json::json!([2, 3]));
    assert_eq!(
        found["columns"].as_array().unwrap().len(),
        1,
        "one entry for all pixels"
    );
    let lines = place
        .smolfed("predict idx --data more-images")
        .success()
        .stdout;
    assert!(lines.starts_with("row,prediction,probability_0,probability_1,probability_2\n1,"));
    assert_eq!(lines.lines().count(), 22);
    // The same rows as a table without names.
    let more = images(21);
    let rows = more[16..]
        .chunks(6)
        .map(|row| format!("{row:?}").replace(['[', ']'], ""));
    let text: Vec<String> = rows.collect();
    place.write("rows.csv", text.join("\n"));
    let call = "predict idx --no-header --data rows.csv";
    assert_eq!(place.smolfed(call).success().stdout, lines);
    // The same rows as NumPy arrays.
    place.write("more.npy", npy("(21, 2, 3)", &more[16..]));
    place.write("labels.npy", npy("(21,)", &labels(21)[8..]));
    let call = "predict idx --data more.npy";
    assert_eq!(place.smolfed(call).success().stdout, lines);
    evaluates_to_the_same(&place, "idx", &document, "more.npy --labels labels.npy");
    place
        .smolfed("predict idx --data labels")
        .refused(2, &["1 features", "6"]);
    place
        .smolfed("evaluate idx --data images")
        .refused(2, &["--labels"]);
}

/// A NumPy archive may be a single array, or a folder of several.
#[test]
fn arrays_of_archives_are_named() {
    let place = Place::new();
    let pixels: Vec<u8> = (0..240u8).map(|i| i.wrapping_mul(31)).collect();
    let classes: Vec<u8> = (0..40).map(|i| i % 3).collect();
    let arrays = [npy("(40, 2, 3)", &pixels), npy("(40,)", &classes)];
    place.write("one.npz", zip(&[("x.npy", &arrays[0])]));
    place.write(
        "two.npz",
        zip(&[("x.npy", &arrays[0]), ("y.npy", &arrays[1])]),
    );
    let paths = "path=\"two.npz/x\",label_path=\"two.npz/y\"";
    let tests = "test_path=\"two.npz/x\",test_label_path=\"two.npz/y\"";
    let data = format!("data={{source=\"npy\",{paths},{tests},devices=6,scale=\"unit\"}}");
    let call = format!(
        "run --out run --json --set {data} --set rounds=2 --set cohort={{sampling=\"full\"}}"
    );
    let document = place.smolfed(&call).success().json();
    let labelled = "two.npz/x --labels two.npz/y";
    evaluates_to_the_same(&place, "run", &document, labelled);
    let named = place.smolfed("predict run --data two.npz/x").success();
    let single = place.smolfed("predict run --data one.npz").success();
    assert_eq!(single.stdout, named.stdout);
    place
        .smolfed("predict run --data two.npz")
        .refused(2, &["two.npz: has the arrays", "`two.npz/x`"]);
    place.smolfed("predict run --data two.npz/z").refused(
        2,
        &["two.npz/z", "does not contain z.npy, but x.npy, y.npy"],
    );
}

/// Returns a NumPy file of unsigned bytes.
pub(super) fn npy(shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    // The header and everything before it fill a multiple of 64 bytes.
    let header = format!("{header:117}\n");
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

/// Returns an archive of these files, like `numpy.savez`.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        let options = SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A model trained on images names new images by their files, anywhere in the folder. To be
/// evaluated, they are in folders named after their classes.
#[test]
fn folders_of_images_are_taken_as_in_training() {
    let place = Place::new();
    for number in 0..40u8 {
        let class = if number % 2 == 0 { "cat" } else { "dog" };
        let level = 60 + 120 * (number % 2) + number;
        let image = GrayImage::from_fn(3, 2, |x, y| Luma([level + (x + y) as u8]));
        for path in [
            format!("train/d{}/{class}/{number}.png", number % 4),
            format!("new/{number}.png"),
        ] {
            let path = place.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            image.save(path).unwrap();
        }
    }
    let data = "data={source=\"images\",path=\"train\",folders=\"device/class\",\
                axes=[2,3],scale=\"unit\"}";
    let call = format!(
        "run --out run --json --set {data} --set rounds=2 --set cohort={{sampling=\"full\"}}"
    );
    place.smolfed(&call).success();
    let found = place.smolfed("predict run --data new").success().stdout;
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 41, "{found}");
    assert_eq!(lines[0], "row,prediction,probability_cat,probability_dog");
    assert!(lines[1].starts_with("new/0.png,cat,"), "{found}");
    // The same files, in the order of their folders.
    let among = place.smolfed("predict run --data train").success().stdout;
    let of_zero = |text: &str| {
        let line = text.lines().find(|line| line.contains("/0.png")).unwrap();
        line.split_once(',').unwrap().1.to_owned()
    };
    assert_eq!(of_zero(&found), of_zero(&among));
    let evaluated = place.smolfed("evaluate run --json --data train").success();
    assert_eq!(evaluated.json()["rows"], 40);
    place.smolfed("evaluate run --data new").refused(
        2,
        &["the folder of new/0.png is `new`", "classes: `cat`, `dog`"],
    );
    place.write("new/1.png", "no image");
    place
        .smolfed("predict run --data new")
        .refused(2, &["new/1.png: is not a PNG or JPEG image"]);
    place
        .smolfed("run -q --out digits --set rounds=1")
        .success();
    std::fs::create_dir(place.path("empty")).unwrap();
    place
        .smolfed("predict digits --data empty")
        .refused(2, &["empty: has no PNG or JPEG images"]);
    run(&place, "table", PAIRS, "");
    place.smolfed("predict table --data new").refused(
        2,
        &["new: is a folder, but the model was not trained on images"],
    );
}

#[test]
fn leaf_files_are_taken_in_order() {
    let place = Place::new();
    let samples = |count: usize, first: usize| {
        let rows = (first..first + count).map(|i| format!("[{}, {}]", i % 5, i % 3));
        let labels: Vec<String> = (first..first + count)
            .map(|i| (i % 2).to_string())
            .collect();
        let rows: Vec<String> = rows.collect();
        format!(
            "{{\"x\": [{}], \"y\": [{}]}}",
            rows.join(", "),
            labels.join(", ")
        )
    };
    let file = |first: usize| {
        format!(
            "{{\"users\": [\"a\", \"b\"], \"num_samples\": [9, 8], \"user_data\": \
             {{\"a\": {}, \"b\": {}}}}}",
            samples(9, first),
            samples(8, first + 4)
        )
    };
    place.write("leaf.json", file(0));
    place.write("more.json", file(3));
    let data = "data={source=\"leaf\",path=\"leaf.json\",test_path=\"more.json\"}";
    let call = format!(
        "run --out leaf --json --set {data} --set rounds=2 --set cohort={{sampling=\"full\"}}"
    );
    let document = place.smolfed(&call).success().json();
    evaluates_to_the_same(&place, "leaf", &document, "more.json");
}
