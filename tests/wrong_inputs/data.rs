//! Unreadable or unusable data: the error names the file, the place in it and the problem. Exit
//! code 2, and nothing is written.

use crate::program::{Outcome, Place};

/// Returns a usable table: two classes, eight devices of twelve rows.
pub(crate) fn good_csv() -> String {
    let rows: String = (0..96)
        .map(|i| format!("{}.5,{},{},{}\n", i % 7, i % 5, i % 8, i % 2))
        .collect();
    format!("x,y,phone,class\n{rows}")
}

/// Returns an experiment on `table.csv` in the same folder, with more keys of `[data]`.
pub(crate) fn csv_experiment(keys: &str) -> String {
    experiment(&format!(
        "source = \"csv\"\npath = \"table.csv\"\nlabel = \"class\"\n\
         device_column = \"phone\"\n{keys}"
    ))
}

/// Returns an experiment on these data.
pub(crate) fn experiment(data: &str) -> String {
    format!("method = \"dp-fed\"\nrounds = 2\n[cohort]\nsampling = \"full\"\n[data]\n{data}")
}

/// The repository's digits, gzipped: real compressed data to corrupt.
const GZIP: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../runner/data/assets/digits/optdigits_8x8.csv.gz"
));

/// Returns an IDX array of bytes.
fn idx(dimensions: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dimensions.len() as u8];
    bytes.extend(dimensions.iter().flat_map(|length| length.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// Runs `experiment.toml`, which must be refused with all of `words`.
#[track_caller]
fn refused(place: &Place, words: &[&str]) -> Outcome {
    let before = place.names();
    let outcome = place.smolfed("run experiment.toml --json");
    let sentence = outcome.refusal(2);
    for word in words {
        assert!(sentence.contains(word), "no `{word}` in: {sentence}");
    }
    assert_eq!(place.names(), before, "nothing is written");
    outcome
}

/// Corrupts the good table and expects a refusal that names it.
#[track_caller]
fn csv_refused(from: &str, to: &str, words: &[&str]) {
    let table = good_csv();
    assert!(table.contains(from), "{from}");
    let place = Place::new();
    place.write("table.csv", table.replacen(from, to, 1));
    place.write("experiment.toml", csv_experiment(""));
    refused(&place, &[&["table.csv"], words].concat());
}

#[test]
fn the_good_table_is_learned_from() {
    let place = Place::new();
    place.write("table.csv", good_csv());
    place.write("experiment.toml", csv_experiment(""));
    let outcome = place.smolfed("run experiment.toml --json").success();
    assert_eq!(outcome.json()["devices"], 8);
}

#[test]
fn csv_is_refused_with_line_and_column() {
    csv_refused("x,y", "x,x", &["line 1", "`x` twice"]);
    csv_refused(
        "class",
        "kind",
        &["`class`", "key `data.label`", "`phone`, `kind`"],
    );
    csv_refused("0.5,0,0,0\n", "0.5,0,0\n", &["line 2", "3 cells", "4"]);
    csv_refused("1.5,1,1,1\n", "1.5,1,1,1,1\n", &["line 3", "5 cells", "4"]);
    csv_refused("1.5,1,", "one,1,", &["line 3", "`x`", "`one`"]);
    csv_refused(
        "1.5,1,",
        "2024-03-04,1,",
        &["line 3", "`x`", "times.x", "\"hour\""],
    );
    csv_refused("1.5,1,", "inf,1,", &["line 3", "`x`", "finite"]);
    csv_refused("1.5,1,", "1e999,1,", &["line 3", "`x`", "finite"]);
    csv_refused("1.5,1,1,1", "1.5,1,,1", &["line 3", "`phone`", "empty"]);
    csv_refused("1.5,1,1,1", "1.5,1,1,", &["line 3", "`class`", "empty"]);
}

#[test]
fn a_table_that_is_empty_or_says_nothing_is_refused() {
    let cases: [(&str, &str); 4] = [
        ("", "empty"),
        ("x,y,phone,class\n", "no sample"),
        ("phone,class\n1,0\n2,1\n", "no feature"),
        (
            "x,y,phone,class\n1,2,3,4\n5,6,3,4\n",
            "at least two classes",
        ),
    ];
    for (table, words) in cases {
        let place = Place::new();
        place.write("table.csv", table);
        place.write("experiment.toml", csv_experiment(""));
        refused(&place, &["table.csv", words]);
    }
}

#[test]
fn a_device_without_samples_is_refused() {
    let place = Place::new();
    place.write("table.csv", good_csv());
    // Phone 9 occurs only in the test part.
    place.write("test.csv", good_csv() + "1.0,1,9,1\n");
    let keys = "test_path = \"test.csv\"\n";
    place.write("experiment.toml", csv_experiment(keys));
    refused(&place, &["table.csv", "device `9`", "at least 1"]);
}

#[test]
fn more_devices_than_samples_are_refused() {
    let place = Place::new();
    place.write("table.csv", good_csv());
    let keys = "partition = \"iid\"\ndevices = 1000\n";
    place.write(
        "experiment.toml",
        csv_experiment(keys).replace("device_column", "label_path"),
    );
    refused(&place, &["`data.label_path`"]);
    let without = csv_experiment(keys).replace("device_column = \"phone\"\n", "");
    place.write("experiment.toml", without);
    refused(&place, &["table.csv", "1000 devices", "lower `devices`"]);
}

#[test]
fn a_missing_file_is_named_with_every_place_that_was_tried() {
    let place = Place::new();
    place.write("experiment.toml", csv_experiment(""));
    refused(&place, &["table.csv", "SMOLFED_DATA"]);
    place.write(
        "experiment.toml",
        experiment("source = \"mnist\"\ndevices = 10\n"),
    );
    refused(&place, &["mnist", "SMOLFED_DATA"]);
}

#[test]
fn gzip_that_is_cut_short_or_corrupt_is_refused() {
    let place = Place::new();
    let keys = "source = \"csv\"\npath = \"table.csv.gz\"\nlabel = \"digit\"\ndevices = 10\n";
    place.write("experiment.toml", experiment(keys));
    for length in [2, 10, 18, GZIP.len() / 2, GZIP.len() - 1] {
        place.write("table.csv.gz", &GZIP[..length]);
        refused(&place, &["table.csv.gz", "truncated"]);
    }
    let mut corrupt = GZIP.to_vec();
    corrupt[GZIP.len() / 2] ^= 0x55;
    place.write("table.csv.gz", corrupt);
    refused(&place, &["table.csv.gz", "corrupt"]);
}

#[test]
fn zip_that_is_cut_short_is_refused() {
    let place = Place::new();
    place.write(
        "experiment.toml",
        experiment("source = \"leaf\"\npath = \"users.zip\"\n"),
    );
    place.write("users.zip", b"PK\x03\x04 and no more");
    refused(&place, &["users.zip", "compressed data"]);
}

#[test]
fn idx_that_is_malformed_is_refused() {
    let place = Place::new();
    let keys = "source = \"idx\"\npath = \"images\"\nlabel_path = \"labels\"\ndevices = 2\n";
    place.write(
        "experiment.toml",
        experiment(&format!("{keys}classes = 3\n")),
    );
    let images = idx(&[6, 2, 2], &[7; 24]);
    let labels = idx(&[6], &[0, 1, 2, 0, 1, 2]);
    let cases: [(&[u8], &[u8], &[&str]); 9] = [
        (b"\x89PNG....", &labels, &["images", "magic"]),
        (&images[..7], &labels, &["images", "ends inside its header"]),
        (&images[..30], &labels, &["images", "24 bytes", "14 follow"]),
        (&idx(&[u32::MAX; 4], &[]), &labels, &["images", "declares"]),
        (
            &idx(&[0, 2, 2], &[]),
            &labels,
            &["images", "dimension 0 is 0"],
        ),
        (&idx(&[6], &[1; 6]), &labels, &["images", "dimension"]),
        (&images, &labels[..9], &["labels", "6 bytes", "1 follow"]),
        (
            &images,
            &idx(&[5], &[0; 5]),
            &["labels", "5 entries", "images", "6 samples"],
        ),
        (
            &images,
            &idx(&[6], &[0, 1, 2, 3, 1, 2]),
            &["label 3", "0 to 2"],
        ),
    ];
    for (images, labels, words) in cases {
        place.write("images", images);
        place.write("labels", labels);
        refused(&place, words);
    }
    place.write("images", &images);
    place.write("labels", idx(&[6], &[1; 6]));
    refused(&place, &["`1`", "at least two classes"]);
}

#[test]
fn leaf_that_is_malformed_is_refused() {
    let place = Place::new();
    place.write(
        "experiment.toml",
        experiment("source = \"leaf\"\npath = \"users.json\"\n"),
    );
    let sound = r#"{"users": ["a", "b"], "num_samples": [2, 2], "user_data": {
        "a": {"x": [[1, 2], [3, 4]], "y": [0, 1]}, "b": {"x": [[5, 6], [7, 8]], "y": [1, 0]}}}"#;
    for (from, to, words) in [
        ("}}}", "}}", "is not LEAF JSON"),
        ("\"users\"", "\"people\"", "the key `users` is missing"),
        ("[\"a\", \"b\"]", "[\"a\", \"a\"]", "`a` twice"),
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]", "`c`"),
        ("[2, 2]", "[2]", "1 entries"),
        ("[2, 2]", "[2, 3]", "`b`"),
        ("\"y\": [0, 1]", "\"y\": [0, 1, 1]", "`a`"),
        ("[3, 4]", "[3]", "1 features"),
        ("[3, 4]", "[3, NaN]", "is not LEAF JSON"),
        ("[3, 4]", "[3, 1e999]", "users.json"),
        ("\"y\": [0, 1]", "\"y\": [0, -1]", "label -1"),
        ("\"y\": [0, 1]", "\"y\": [0, 0.5]", "label 0.5"),
        ("[[5, 6], [7, 8]], \"y\": [1, 0]", "[], \"y\": []", "`b`"),
    ] {
        assert!(sound.contains(from), "{from}");
        place.write("users.json", sound.replacen(from, to, 1));
        refused(&place, &["users.json", words]);
    }
}

#[test]
fn grids_that_do_not_fit_are_refused() {
    let place = Place::new();
    place.write("table.csv", good_csv());
    for axes in [
        "[3]",
        "[0]",
        "[4611686018427387904, 4611686018427387904, 8]",
    ] {
        let keys = format!("axes = {axes}\n");
        place.write("experiment.toml", csv_experiment(&keys));
        refused(&place, &["axes"]);
    }
}

#[test]
fn a_label_that_is_not_listed_is_an_error_by_name_or_left_out_and_counted() {
    let place = Place::new();
    let run = |keys: &str| {
        place.write("experiment.toml", csv_experiment(keys));
        place.smolfed("run experiment.toml --json")
    };
    place.write(
        "table.csv",
        good_csv().replacen("1.5,1,1,1", "1.5,1,1,odd", 1),
    );
    for list in ["[0, 1]", "2", "[\"1\", \"0\"]"] {
        place.write(
            "experiment.toml",
            csv_experiment(&format!("classes = {list}\n")),
        );
        let words = [
            "table.csv",
            "line 3",
            "`odd`",
            "`data.classes`",
            "unknown_labels",
        ];
        refused(&place, &words);
        let dropped = run(&format!("classes = {list}\nunknown_labels = \"drop\"\n")).success();
        assert!(
            dropped
                .stderr
                .contains("1 rows of other classes were left out"),
            "{dropped}"
        );
        std::fs::remove_dir_all(place.path("runs")).unwrap();
    }
    // A device without remaining rows is not dropped silently.
    let only = good_csv().replace(",3,1\n", ",3,odd\n");
    place.write("table.csv", only);
    let keys = "classes = 2\nunknown_labels = \"drop\"\n";
    place.write("experiment.toml", csv_experiment(keys));
    refused(&place, &["table.csv", "device `3`", "at least 1"]);
}

#[test]
fn labels_of_idx_and_leaf_that_are_not_listed_are_refused_or_left_out() {
    let place = Place::new();
    place.write("images", idx(&[8, 1, 2], &[7; 16]));
    place.write("labels", idx(&[8], &[0, 1, 2, 1, 0, 1, 0, 1]));
    place.write("phones", idx(&[8], &[0, 0, 0, 0, 1, 1, 1, 1]));
    place.write(
        "users.json",
        r#"{"users": ["a", "b"], "num_samples": [4, 3], "user_data": {
        "a": {"x": [[1], [3], [2], [2]], "y": [0, 1, 2, 0]},
        "b": {"x": [[5], [7], [1]], "y": [1, 0, 1]}}}"#,
    );
    for data in [
        "source = \"idx\"\npath = \"images\"\nlabel_path = \"labels\"\ndevice_path = \"phones\"\n",
        "source = \"leaf\"\npath = \"users.json\"\n",
    ] {
        let data = format!("{data}scale = \"none\"\n");
        for classes in ["classes = 2\n", "classes = [\"no\", \"yes\"]\n"] {
            place.write("experiment.toml", experiment(&format!("{data}{classes}")));
            refused(&place, &["label 2", "0 to 1"]);
            let drop = format!("{data}{classes}unknown_labels = \"drop\"\n");
            place.write("experiment.toml", experiment(&drop));
            let outcome = place.smolfed("run experiment.toml --json").success();
            assert!(
                outcome.stderr.contains("1 rows of other classes"),
                "{outcome}"
            );
            assert_eq!(outcome.json()["devices"], 2);
            std::fs::remove_dir_all(place.path("runs")).unwrap();
        }
    }
}

#[test]
fn constants_that_do_not_fit_the_data_are_refused() {
    let place = Place::new();
    place.write("table.csv", good_csv());
    for (keys, words) in [
        (
            "scale = { min = [0, 0, 0], max = 9 }\n",
            ["`scale`", "3 numbers", "2 features"],
        ),
        ("missing = [1]\n", ["`missing`", "1 numbers", "2 features"]),
        (
            "scale = \"private\"\n",
            ["\"private\"", "no known bounds", "bounds = {"],
        ),
        (
            "scale = \"private\"\nbounds = { min = 0, max = [1, 2, 3] }\n",
            ["`bounds`", "3 numbers", "2 features"],
        ),
    ] {
        place.write("experiment.toml", csv_experiment(keys));
        refused(&place, &[&["table.csv"][..], &words].concat());
    }
}

#[test]
fn values_beyond_constant_bounds_are_clipped_counted_and_said() {
    let place = Place::new();
    place.write(
        "table.csv",
        good_csv().replacen("1.5,1,1,1", "1e30,1,1,1", 1),
    );
    let keys = "scale = { min = 0, max = 6.5 }\n";
    place.write("experiment.toml", csv_experiment(keys));
    let outcome = place
        .smolfed("run experiment.toml --json --out run")
        .success();
    let said = "1 values are beyond the bounds and were clipped to them: of x";
    assert!(outcome.stderr.contains(said), "{outcome}");
    let inspected = place
        .smolfed("data inspect experiment.toml --json")
        .success();
    assert_eq!(
        inspected.json()["beyond_bounds"],
        serde_json::json!([["x", 1]])
    );
    // The number depends on the data, and is in no published file.
    let privacy = std::fs::read_to_string(place.path("run/privacy.json")).unwrap();
    assert!(privacy.contains("are clipped to them") && !privacy.contains("1 values"));
}
