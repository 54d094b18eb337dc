//! From a user's own file to predictions with `init`, `run` and `predict`.

use std::path::Path;

use serde_json::Value;

use crate::program::{Outcome, Place};

/// Runs `init` with `flags` on a file, then the resulting experiment, and predicts the rows of a
/// table, which the model reads as the run did.
#[track_caller]
fn learned(place: &Place, file: &str, flags: &str) -> (String, Outcome) {
    let text = place
        .smolfed(&format!("init {file} {flags}"))
        .success()
        .stdout;
    place.write("mine.toml", &text);
    let before = place.names();
    let preview = place.smolfed("run mine.toml --dry-run --json").success();
    assert_eq!(place.names(), before, "a dry run writes nothing");
    let outcome = place.smolfed("run mine.toml --json --out run").success();
    let (planned, spent) = (&preview.json()["epsilon"], &outcome.json()["epsilon"]);
    assert_eq!(planned, spent, "{text}");
    if !file.ends_with(".npz") {
        let evaluated = place.smolfed(&format!("evaluate run --data {file} --json"));
        let predicted = place
            .smolfed(&format!("predict run --data {file}"))
            .success();
        let rows = evaluated.success().json()["rows"].as_u64().unwrap();
        assert_eq!(predicted.stdout.lines().count() as u64, rows + 1);
    }
    std::fs::remove_dir_all(place.path("run")).unwrap();
    (text, outcome)
}

#[track_caller]
fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

/// Returns rows of sixty phones, whose label follows from two numbers.
fn rows(line: fn(usize, f64, f64, &str) -> String) -> String {
    let row = |i: usize| {
        let (x, y) = (
            (i * 37 % 101) as f64 / 10.0 - 5.0,
            (i * 53 % 97) as f64 / 10.0 - 4.8,
        );
        line(i, x, y, if x + y > 0.0 { "walk" } else { "sit" })
    };
    (0..600).map(row).collect()
}

#[test]
fn semicolons_decimal_commas_and_a_mark() {
    let line = |i, x, y, label: &str| format!("{};{x:.2};{y:.2};{label}\r\n", i % 60);
    let text = "\u{feff}phone;x;y position;activity\r\n".to_owned() + &rows(line).replace('.', ",");
    let place = Place::new();
    place.write("a.csv", text);
    let (written, outcome) = learned(&place, "a.csv", "--label activity");
    contains(
        &written,
        &[
            "UTF-8 text, separated by semicolons",
            "device_column = \"phone\"",
            "found by its name",
        ],
    );
    assert_eq!(outcome.json()["devices"], 60);
    assert!(outcome.json()["test_accuracy"].as_f64().unwrap() > 0.7);
}

#[test]
fn utf_16_with_tabs() {
    let line = |i, x, y, label: &str| format!("{}\t{x}\t{y}\t{label}\n", i % 60);
    let text = format!("\u{feff}Gerät\tx\ty\tclass\n{}", rows(line));
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let place = Place::new();
    place.write("a.txt", bytes);
    let (written, outcome) = learned(&place, "a.txt", "--device-column Gerät");
    contains(
        &written,
        &[
            "UTF-16LE text, separated by tabs",
            "device_column = \"Gerät\"",
        ],
    );
    assert_eq!(outcome.json()["devices"], 60);
}

#[test]
fn index_missing_values_and_truths() {
    let line = |i, x: f64, y, label: &str| {
        let y = if i % 9 == 0 {
            "NA".to_owned()
        } else {
            format!("{y}")
        };
        format!("{i},{i},{},{y},{},{label}\n", x > 0.0, i % 60)
    };
    let place = Place::new();
    place.write(
        "a.csv",
        format!(",row,is_high,y,user id,class\n{}", rows(line)),
    );
    let (written, outcome) = learned(&place, "a.csv", "");
    contains(
        &written,
        &[
            "Columns without a name are never read",
            "\"row\", # it counts the rows",
            "missing =",
        ],
    );
    contains(
        &outcome.stderr,
        &["`data.missing`", "a column without a name was left out"],
    );
    let found = place.smolfed("data inspect a.csv").success().stdout;
    contains(
        &found,
        &[
            "(no name)",
            "left out: it has no name",
            "yes or no",
            "user id",
        ],
    );
}

#[test]
fn categories_are_listed() {
    let line = |i, x, y: f64, label: &str| {
        let colour = if y > 0.0 { "red" } else { "dark blue" };
        format!("{x},{colour},word{i},{label}\n")
    };
    let place = Place::new();
    place.write("a.csv", format!("x,colour,note,class\n{}", rows(line)));
    let (written, _) = learned(&place, "a.csv", "");
    contains(
        &written,
        &[
            "categories.colour = [\"dark blue\", \"red\"]",
            "\"note\", # it is text with 600 different values",
            "devices = 60",
            "add --device-column NAME",
        ],
    );
    // Without the list, the error contains the line to add.
    let without = written.replace("categories.", "# ");
    let without = without.replace("categories_are_public", "# ");
    place.write("mine.toml", without);
    place.smolfed("run mine.toml").refused(
        2,
        &[
            "a.csv",
            "line 2, column `colour`",
            "categories.colour = [\"dark blue\", ..]",
        ],
    );
}

#[test]
fn regression_with_times_beats_the_mean() {
    let line = |i: usize, x: f64, _, _: &str| {
        let (day, hour) = (1 + i % 28, i * 7 % 24);
        let load = 50.0 + 10.0 * x + hour as f64;
        format!(
            "st{},2024-03-{day:02} {hour:02}:30,{x},{load:.1}\n",
            i % 100
        )
    };
    let place = Place::new();
    let text = format!("station,at,x,load\n{}", rows(line));
    let loads = text
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap());
    let loads: Vec<f64> = loads.collect();
    place.write("a.csv", text);
    let (written, outcome) = learned(&place, "a.csv", "--label load");
    contains(
        &written,
        &[
            "task = \"regression\"",
            "target_scale = \"standardise\"",
            "[\"hour\", \"weekday\"]",
        ],
    );
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let squares: f64 = loads.iter().map(|load| (load - mean).powi(2)).sum();
    let of_mean = (squares / loads.len() as f64).sqrt();
    let rmse = outcome.json()["test_rmse"].as_f64().unwrap();
    assert!(rmse < 0.8 * of_mean, "{rmse} against {of_mean}");
    // As classes, which are not intended.
    let classes = written
        .replace("task = ", "# ")
        .replace("target_scale", "# ");
    place.write("mine.toml", classes);
    place
        .smolfed("run mine.toml")
        .refused(2, &["different numbers", "\"regression\""]);
}

/// Copies a file of `tests/vectors/own_data.py` into an empty place.
fn vector(name: &str) -> Place {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name);
    let place = Place::new();
    place.write(name, std::fs::read(path).unwrap());
    place
}

#[test]
fn parquet_of_pandas() {
    let place = vector("phones.parquet");
    let (written, outcome) = learned(&place, "phones.parquet", "--label activity");
    contains(
        &written,
        &[
            "source = \"parquet\"",
            "device_column = \"phone\"",
            "categories.colour = [\"blue\", \"red\"]",
            "times.time = [\"hour\", \"weekday\"]",
            "Columns without a name",
        ],
    );
    assert_eq!(outcome.json()["devices"], 60);
}

#[test]
fn archive_of_arrays_of_numpy() {
    let place = vector("phones.npz");
    let (written, outcome) = learned(&place, "phones.npz", "");
    contains(
        &written,
        &[
            "source = \"npy\"",
            "path = \"phones.npz/X\"",
            "phones.npz/groups",
            "classes = 2",
        ],
    );
    assert_eq!(outcome.json()["devices"], 60);
    place.write("mine.toml", written.replace("phones.npz/y", "phones.npz/z"));
    place
        .smolfed("run mine.toml")
        .refused(2, &["phones.npz/z", "X.npy", "y.npy"]);
}

#[test]
fn attribute_relation_file() {
    let line = |i, x, y, label: &str| format!("{x}, {y}, {}, {label}\n", ["'so so'", "up"][i % 2]);
    let head = "@relation phones\n@attribute x real\n@attribute y real\n\
                @attribute trend {'so so', up}\n@attribute class {sit, walk}\n@data\n";
    let place = Place::new();
    place.write("a.arff", head.to_owned() + &rows(line));
    let (written, _) = learned(&place, "a.arff", "");
    contains(&written, &["source = \"arff\"", "categories.trend"]);
}

#[test]
fn what_is_meant_is_said() {
    let place = Place::new();
    place.write("a.csv", "x,y\n1,2\n");
    for (call, words) in [
        ("run wisdm", "smolfed init wisdm > mine.toml"),
        ("run a.csv", "smolfed init a.csv > mine.toml"),
        ("init wisdmm", "did you mean wisdm?"),
        ("init a.csv --label yy", "did you mean `y`?"),
        ("init mine.toml", "is an experiment already"),
        ("run --set data.source=wisdm", "smolfed init wisdm"),
        ("run --set epsilon=3", "did you mean `privacy.epsilon`?"),
        ("run --set privacy.epsilom=3", "did you mean `epsilon`?"),
        (
            "run --set rounds=many",
            "`rounds` is \"many\", but must be a whole number",
        ),
    ] {
        let outcome = place.smolfed(call);
        let sentence = outcome.refusal(2);
        assert!(sentence.contains(words), "{call}: {sentence}");
        for word in ["u32", "u64", "struct", "'--'", "-- -"] {
            assert!(!outcome.stderr.contains(word), "{call}: {}", outcome.stderr);
        }
    }
    for (call, words) in [
        ("run --seed -1", "a whole number from 0 to"),
        ("run --epsilon 3", "--set privacy.epsilon=VALUE"),
    ] {
        let outcome = place.smolfed(call);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        contains(&outcome.stderr, &[words]);
        assert!(!outcome.stderr.contains("'-- "), "{outcome}");
    }
}

/// The preview shows the cost of a round to a device, or why devices do not take part.
#[test]
fn a_preview_has_the_cost_of_a_round() {
    let place = Place::new();
    let preview = place.smolfed("run --dry-run --json").success();
    let cost = &preview.json()["device_cost"];
    assert_eq!(cost["round"]["messages_up"], 20);
    assert_eq!(cost["boards"][0]["name"], "micro:bit v1");
    assert_eq!(preview.json()["origin"]["device_cost"], "simulation-only");
    let alone = "run --dry-run --set privacy= --set server= --set method=local";
    let preview = place.smolfed(alone).success();
    contains(
        &preview.stdout,
        &["# a board    takes no part: method \"local\" is supported only in simulations"],
    );
    let preview = place.smolfed(&format!("{alone} --json")).success();
    assert!(preview.json()["device_cost"].is_null(), "{preview}");
}

#[test]
fn keys_can_be_unset_and_previewed() {
    let place = Place::new();
    let call = "run --dry-run --set privacy.epsilon= --set privacy.noise_multiplier=1";
    let outcome = place.smolfed(call).success();
    contains(
        &outcome.stdout,
        &[
            "# devices    280",
            "650 parameters",
            "roughly",
            "epsilon = ",
            "noise_multiplier = 1.0",
        ],
    );
    assert_eq!(place.names(), [""; 0]);
    // The output is a valid experiment.
    place.write("whole.toml", &outcome.stdout);
    place
        .smolfed("run whole.toml --set rounds=1 --out run")
        .success();
}

#[test]
fn schema_describes_experiments() {
    let text = Place::new().smolfed("schema").success().stdout;
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["properties"]["rounds"]["type"], "integer");
}
