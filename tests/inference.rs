//! Models in use: a run directory is enough to predict new rows, and predictions equal the run's
//! own evaluation, in any exported form.

use std::path::Path;

use serde_json::Value;

use crate::program::{Outcome, Place};

mod exports;
mod features;
mod integers;
mod numbers;
mod quantised;
mod unnamed;

/// Rows of 12 devices with features on different scales, with gaps, and a constant feature.
pub(crate) struct Row {
    device: usize,
    small: f64,
    large: f64,
    gap: Option<f64>,
    class: &'static str,
    value: f64,
}

/// Names that break a careless writer of CSV, C or JSON.
const CLASSES: [&str; 3] = ["a\\b??/", "it's 5\"", "é, naïve"];

/// Returns deterministic rows, which depend on `seed`.
fn rows(seed: usize) -> impl Iterator<Item = Row> {
    (0..144).map(move |row| {
        let number = |factor: usize, modulus: usize| ((row + 7 * seed) * factor % modulus) as f64;
        let (a, b, c) = (number(37, 101), number(53, 89), number(29, 61));
        let class = usize::from(a > 40.0) + usize::from(b > 50.0);
        Row {
            device: row % 12,
            small: 5.0 + a / 1000.0,
            large: 1e6 + 300.0 * b,
            gap: (row % 10 != 3).then_some(c - 30.0),
            class: CLASSES[class],
            value: 40.0 + 0.3 * a - 0.2 * b + c / 10.0,
        }
    })
}

/// Column order of the training table.
const HEADER: &str = "who,row,small,\"large, raw\",gap,constant,kind,second,value\n";

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Returns a row in the order of [`HEADER`].
fn cells(number: usize, row: &Row) -> Vec<String> {
    let second = if row.class == CLASSES[0] { "no" } else { "yes" };
    vec![
        format!("d{}", row.device),
        number.to_string(),
        row.small.to_string(),
        row.large.to_string(),
        row.gap.map_or(String::new(), |gap| gap.to_string()),
        "7".to_owned(),
        quoted(row.class),
        second.to_owned(),
        row.value.to_string(),
    ]
}

/// Returns rows as a table. With `backwards`, the columns are reversed and one is added.
fn table(seed: usize, backwards: bool) -> String {
    let mut text = HEADER.to_owned();
    if backwards {
        text = "more,value,second,kind,constant,gap,\"large, raw\",small,row,who\n".to_owned();
    }
    for (number, row) in rows(seed).enumerate() {
        let mut cells = cells(number, &row);
        if backwards {
            cells.push("text".to_owned());
            cells.reverse();
        }
        text += &(cells.join(",") + "\n");
    }
    text
}

/// Prediction targets: the keys of `[data]`.
const KINDS: &str = "label = \"kind\"\nignore = [\"row\", \"second\", \"value\"]\n";
const PAIRS: &str = "label = \"second\"\nignore = [\"row\", \"kind\", \"value\"]\n";
const VALUES: &str =
    "label = \"value\"\nignore = [\"row\", \"kind\", \"second\"]\ntask = \"regression\"\n";

/// Trains on `train.csv` and tests on `test.csv`, whose columns have another order.
fn run(place: &Place, out: &str, data: &str, settings: &str) -> Value {
    place.write("train.csv", table(1, false));
    place.write("ordered.csv", table(2, false));
    place.write("test.csv", table(2, true));
    let method = match settings.contains("method=") {
        true => "",
        false => "--set method=dp-fed",
    };
    place.write(
        "experiment.toml",
        format!(
            "method = \"dp-fed\"\nrounds = 3\n[data]\nsource = \"csv\"\npath = \"train.csv\"\n\
             test_path = \"ordered.csv\"\ndevice_column = \"who\"\n{data}\n\
             [cohort]\nsampling = \"full\"\n[train]\nlearning_rate = 0.05\n\
             [privacy]\nnoise_multiplier = 0.01\nclip_norm = 1.0\n"
        ),
    );
    let call = format!("run experiment.toml --out {out} --json {method} {settings}");
    place.smolfed(&call).success().json()
}

fn preprocessing(place: &Place, out: &str) -> Value {
    let path = place.path(out).join("preprocessing.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Asserts that the run's figures on its test rows equal those of `evaluate` on the file.
#[track_caller]
fn evaluates_to_the_same(place: &Place, out: &str, document: &Value, data: &str) {
    let call = format!("evaluate {out} --data {data} --json");
    let found = place.smolfed(&call).success().json();
    assert!(found["rows"].as_u64() > Some(0), "{found}");
    for key in ["accuracy", "rmse", "loss"] {
        let expected = document[&format!("test_{key}")].as_f64();
        let found = found[key].as_f64();
        assert_eq!(found.is_some(), expected.is_some(), "{key}");
        let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-12 * b.abs();
        assert!(
            found.zip(expected).is_none_or(close),
            "{key} {found:?} {expected:?}"
        );
    }
}

#[test]
fn evaluation_of_the_test_rows_is_that_of_the_run() {
    let place = Place::new();
    let bounds = "{ min = [4, 0, -40, 0], max = [6, 2e6, 40, 10]";
    let scales = [
        ("", "measured"),
        ("scale = \"none\"\nmissing = 3", "declared"),
        (
            "scale = \"unit\"\nmaximum = 1100000\nmissing = [1, 2, 3, 4]",
            "declared",
        ),
        ("scale = \"standardise-set\"", "measured"),
        (
            "scale = { mean = [5, 1e6, 0, 7], std = [0.1, 1e4, 20, 1] }\nmissing = 0",
            "declared",
        ),
        (&format!("scale = {bounds} }}\nmissing = 0"), "declared"),
        (
            &format!("scale = {bounds}, mean = 1, std = 2 }}"),
            "declared",
        ),
        (
            &format!("scale = \"private\"\nbounds = {bounds} }}"),
            "released",
        ),
    ];
    for (number, (scale, basis)) in scales.iter().enumerate() {
        let out = format!("run-{number}");
        let document = run(&place, &out, &format!("{KINDS}{scale}"), "");
        evaluates_to_the_same(&place, &out, &document, "test.csv");
        let found = preprocessing(&place, &out);
        assert_eq!(found["privacy"]["scale"], *basis, "{scale}");
        // The file uses the same words about the rows as the statement.
        let statement = &document["privacy"][0]["notes"];
        for note in found["privacy"]["notes"].as_array().into_iter().flatten() {
            assert!(statement.as_array().unwrap().contains(note), "{note}");
        }
    }
    let document = run(
        &place,
        "values",
        &format!("{VALUES}target_scale = \"standardise\""),
        "",
    );
    evaluates_to_the_same(&place, "values", &document, "test.csv");
    assert_eq!(preprocessing(&place, "values")["target"]["column"], "value");
    let document = run(&place, "pairs", PAIRS, "--set model.kind=logistic");
    evaluates_to_the_same(&place, "pairs", &document, "test.csv");
    let document = run(&place, "deep", KINDS, "--set model.hidden=5");
    evaluates_to_the_same(&place, "deep", &document, "test.csv");
}

#[test]
fn every_source_leaves_what_inference_needs() {
    let place = Place::new();
    place.smolfed("run --out digits --set rounds=1").success();
    let found = preprocessing(&place, "digits");
    assert_eq!(found["target"]["classes"].as_array().unwrap().len(), 10);
    let synthetic = "data={source=\"synthetic\",kind=\"windows\",devices=60,classes=4,test=100}";
    let call = format!("run --out windows --set {synthetic} --set rounds=1");
    place.smolfed(&call).success();
    let found = preprocessing(&place, "windows");
    assert_eq!(found["shape"], serde_json::json!([3, 64]));
    assert_eq!(found["columns"][0]["count"], 192);
    assert_eq!(
        found["privacy"],
        serde_json::json!({"scale": "declared", "classes": "declared"})
    );
}

#[test]
fn predictions_are_csv_or_json_in_the_unit_of_the_target() {
    let place = Place::new();
    run(&place, "kinds", KINDS, "");
    run(
        &place,
        "values",
        &format!("{VALUES}target_scale = {{ mean = 50, std = 10 }}"),
        "",
    );
    let text = place
        .smolfed("predict kinds --data test.csv --id row")
        .success()
        .stdout;
    let mut lines = text.lines();
    let header = "row,prediction,probability_a\\b??/,\"probability_it's 5\"\"\",\
                  \"probability_é, naïve\"";
    assert_eq!(lines.next(), Some(header));
    assert!(lines.next().unwrap().starts_with("0,"));
    let rows = place
        .smolfed("predict kinds --data test.csv --json")
        .success()
        .json();
    assert_eq!(rows["classes"], serde_json::json!(CLASSES));
    assert_eq!(rows["rows"].as_array().unwrap().len(), 144);
    let first = &rows["rows"][0];
    let sum: f64 = first["probabilities"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .sum();
    assert!((sum - 1.0).abs() < 1e-6 && first["row"] == "1", "{first}");
    // Values close to the data, not to 0.
    place
        .smolfed("predict values --data test.csv --out values.csv")
        .success();
    let text = std::fs::read_to_string(place.path("values.csv")).unwrap();
    for line in text.lines().skip(1) {
        let value: f64 = line.split_once(',').unwrap().1.parse().unwrap();
        assert!((20.0..90.0).contains(&value), "{line}");
    }
    let table = place
        .smolfed("evaluate values --data test.csv")
        .success()
        .stdout;
    for figure in ["rows", "RMSE", "RMSE of the mean", "R²", "MAE", "loss"] {
        assert!(table.contains(figure), "{table}");
    }
}

#[test]
fn rows_that_do_not_fit_are_refused_in_a_sentence() {
    let place = Place::new();
    run(
        &place,
        "run",
        &format!("{KINDS}scale = \"none\"\nmissing = 0"),
        "",
    );
    let refused = |text: &str, call: &str, words: &[&str]| {
        place.write("rows.csv", text);
        place
            .smolfed(&format!("{call} --data rows.csv"))
            .refused(2, words);
    };
    refused(
        "small,kind\n1,2\n",
        "predict run",
        &["`large, raw`, `gap`, `constant`", "`kind`"],
    );
    refused("", "predict run", &["rows.csv", "has no row"]);
    let good = "small,\"large, raw\",gap,constant,kind\n";
    refused(
        &format!("{good}1,x,3,4,5\n"),
        "predict run",
        &["line 2", "`large, raw`", "`x`"],
    );
    refused(
        &format!("{good}1,2,3,4,cat\n"),
        "evaluate run",
        &["line 2", "`kind`", "`cat`"],
    );
    refused(good, "evaluate run", &["rows.csv", "has no row"]);
    refused(
        "small,\"large, raw\",gap,constant\n1,2,3,4\n",
        "evaluate run",
        &["--label"],
    );
    refused(good, "predict run --id name", &["`name`", "--id"]);
    refused("1,2,3\n", "predict run --no-header", &["3 features", "4"]);
    let twice = "small,small,\"large, raw\",gap,constant\n1,2,3,4,5\n";
    refused(twice, "predict run", &["`small` twice"]);
    place
        .smolfed("predict run --data none.csv")
        .refused(2, &["none.csv"]);
    place
        .smolfed("predict nowhere --data rows.csv")
        .refused(2, &["nowhere"]);
    place
        .smolfed("predict run --data rows.csv --device 1")
        .refused(2, &["no personal models"]);
}

#[test]
fn a_gap_that_nothing_stands_for_is_refused() {
    let place = Place::new();
    let scaled = "scale = { mean = 0, std = 1 }";
    run(&place, "other", &format!("{KINDS}{scaled}"), "");
    place.write("train.csv", table(1, false).replace(",,7", ",1,7"));
    // Neither a constant nor a mean is known.
    let call = "run experiment.toml --out complete --set data.test_path=train.csv";
    place.smolfed(call).success();
    let call = "predict complete --data test.csv";
    place
        .smolfed(call)
        .refused(2, &["line 5", "`gap`", "data.missing"]);
    place.smolfed("predict other --data test.csv").success();
}

#[test]
fn files_of_other_versions_and_damaged_ones_are_refused() {
    let place = Place::new();
    run(
        &place,
        "run",
        &format!("{KINDS}scale = \"none\"\nmissing = 0"),
        "",
    );
    let path = place.path("run/preprocessing.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let with = |text: String, words: &[&str]| {
        std::fs::write(&path, text).unwrap();
        place
            .smolfed("predict run --data test.csv")
            .refused(2, words);
    };
    with(
        text.replace("\"format\": 1", "\"format\": 2"),
        &["`format` is 2"],
    );
    with(
        text.replace("\"std\": 1.0", "\"std\": 0.0"),
        &["column 0", "std"],
    );
    with(
        text.replace("\"constant\"", "\"constant\", \"count\": 9"),
        &["`shape`"],
    );
    with(text.replace("softmax", "linear"), &["model.kind"]);
    with("{".to_owned(), &["preprocessing.json", "damaged"]);
    std::fs::remove_file(&path).unwrap();
    place
        .smolfed("predict run --data test.csv")
        .refused(2, &["earlier version", "smolfed run"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::new();
    run(&place, "run", KINDS, "");
    let program = crate::program::program().display();
    let script = format!("set -o pipefail; {program} predict run --data test.csv | head -n 1");
    let output = place
        .command("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    Outcome::of(output, &script).success();
}

#[test]
fn personal_models_are_those_of_their_devices() {
    let place = Place::new();
    let states = ["pmtl", "pp-sgd", "dpfedmtl", "local"];
    for (method, more) in states.into_iter().zip(["", "", "--set model.hidden=4", ""]) {
        let settings = format!("--set method={method} {more} --set evaluate_every=0");
        run(&place, method, KINDS, &settings);
        let path = place.path(method).join("personal.json");
        let figures: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for device in [0, 7] {
            assert_eq!(figures["devices"][device]["number"], device);
            let own = rows_of(
                &place,
                figures["devices"][device]["device"].as_str().unwrap(),
            );
            place.write("own.csv", own);
            let call = format!("evaluate {method} --device {device} --data own.csv --json");
            let found = place.smolfed(&call).success().json();
            let expected = figures["devices"][device]["own"].as_f64();
            assert_eq!(
                found["accuracy"].as_f64(),
                expected,
                "{method} {found} {figures}"
            );
        }
    }
    let call = "predict dpfedmtl --data test.csv";
    place.smolfed(call).refused(2, &["head", "--device K"]);
    place
        .smolfed("predict local --data test.csv")
        .refused(2, &["by itself", "--device K"]);
    let call = "predict pmtl --device 12 --data test.csv";
    place
        .smolfed(call)
        .refused(2, &["`--device 12`", "each device that took part"]);
}

/// Returns the test rows of a device.
fn rows_of(place: &Place, device: &str) -> String {
    let text = std::fs::read_to_string(place.path(Path::new("ordered.csv"))).unwrap();
    let is_own = |line: &&str| line.starts_with(&format!("{device},"));
    let own: Vec<&str> = text.lines().skip(1).filter(is_own).collect();
    HEADER.to_owned() + &own.join("\n")
}
