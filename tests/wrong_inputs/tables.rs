//! Real-world tables: read as intended, or refused with the remedy. Nothing is dropped silently.

use serde_json::Value;

use super::data::{csv_experiment, good_csv};
use crate::program::{Outcome, Place};

/// Settings of a run without noise, in which every device takes part.
const PLAIN: &str = "--json --set privacy.noise_multiplier=0 --set rounds=10";

/// Returns ten devices of twenty rows, whose label says whether `x` is above its middle. `cell`
/// writes `x`, a whole number below 200, and `label` a class.
fn table(cell: impl Fn(usize) -> String, label: impl Fn(bool) -> String) -> String {
    let row = |i: usize| {
        let x = i * 37 % 200;
        format!("d{},{},{}\n", i % 10, cell(x), label(x >= 100))
    };
    let rows: String = (0..200).map(row).collect();
    format!("phone,x,class\n{rows}")
}

fn number(x: usize) -> String {
    x.to_string()
}

fn class(is_high: bool) -> String {
    u8::from(is_high).to_string()
}

/// Writes `table.csv` and trains on it.
fn run(place: &Place, table: &str, keys: &str, out: &str) -> Outcome {
    place.write("table.csv", table);
    place.write("experiment.toml", csv_experiment(keys));
    place.smolfed(&format!("run experiment.toml --out {out} {PLAIN}"))
}

fn classes(place: &Place, out: &str) -> Value {
    let path = place.path(out).join("preprocessing.json");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["target"]["classes"].clone()
}

#[test]
fn an_open_quote_is_refused_by_its_line_wherever_it_is() {
    let place = Place::new();
    place.write("experiment.toml", csv_experiment(""));
    for cell in ["\"1.5,1,1,1\n", "1.5,1,\"1,1\n", "1.5,1,1,\"1\n"] {
        let spoilt = good_csv().replacen("1.5,1,1,1\n", cell, 1);
        place.write("table.csv", spoilt);
        for call in [
            "run experiment.toml --json",
            "data inspect table.csv",
            "init table.csv",
        ] {
            let words = ["table.csv", "line 3", "opens a quote that is not closed"];
            place.smolfed(call).refused(2, &words);
        }
    }
    // A closed quote with a line break makes one name of two lines.
    let text = good_csv().replacen("1.5,1,1,1\n", "1.5,1,1,\"1\n\"\n", 1);
    let text = text.replacen("2.5,2,2,0\n", "2.5,2,2,\"0\n1\"\n", 1);
    let outcome = run(&place, &text, "", "broken").success();
    let words = "a class in column `class` has a line break after `0`";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

#[test]
fn equal_numbers_are_one_class_in_training_test_and_use() {
    let place = Place::new();
    let floats = table(number, |high| class(high) + ".0");
    place.write("test.csv", &floats);
    let keys = "test_path = \"test.csv\"\nclasses_are_public = true\nclasses = [0, 1]\n";
    for (out, keys) in [("listed", keys), ("found", "test_path = \"test.csv\"\n")] {
        let outcome = run(&place, &table(number, class), keys, out).success();
        let accuracy = outcome.json()["test_accuracy"].as_f64();
        assert!(accuracy > Some(0.9), "{outcome}");
        assert_eq!(classes(&place, out), serde_json::json!(["0", "1"]));
        let found = place.smolfed(&format!("evaluate {out} --data test.csv --json"));
        assert_eq!(found.success().json()["accuracy"].as_f64(), accuracy);
    }
    let outcome = run(&place, &floats, "", "floats").success();
    assert_eq!(outcome.json()["devices"], 10);
    assert_eq!(classes(&place, "floats"), serde_json::json!(["0", "1"]));
}

#[test]
fn a_label_of_test_rows_alone_makes_no_class_and_columns_are_found_by_name() {
    let place = Place::new();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{},{},7,{}\n", cells[2], cells[1], cells[0])
    };
    let backwards: String = table(number, class).lines().map(row).collect();
    place.write(
        "test.csv",
        backwards.replacen("7", "more", 1) + "2,3,7,d1\n",
    );
    let keys = "test_path = \"test.csv\"\n";
    let outcome = run(&place, &table(number, class), keys, "run").success();
    assert!(outcome.json()["test_accuracy"].as_f64() > Some(0.9));
    for words in [
        "1 test rows were left out, as no training row has their labels: `2`",
        "columns that the training file does not have were left out: `more`",
    ] {
        assert!(outcome.stderr.contains(words), "{outcome}");
    }
    assert_eq!(classes(&place, "run"), serde_json::json!(["0", "1"]));
    let inspected = place
        .smolfed("data inspect experiment.toml --json")
        .success();
    let inspected = inspected.json();
    assert_eq!(inspected["remarks"].as_array().unwrap().len(), 2);
    assert_eq!(inspected["test"], 200);
    place.write("test.csv", "phone,class\nd1,0\n");
    let words = ["test.csv", "no column `x`", "the training file"];
    place
        .smolfed("run experiment.toml --json")
        .refused(2, &words);
}

#[test]
fn epochs_keep_their_digits_until_they_are_scaled() {
    let place = Place::new();
    let epoch = |x: usize| format!("{}", 1_700_000_000_000_usize + 100 * x);
    let gap = |x: usize| if x == 99 { String::new() } else { epoch(x) };
    let offset = |x: usize| format!("{}", 100 * x);
    let offset_gap = |x: usize| if x == 99 { String::new() } else { offset(x) };
    let mut accuracies = Vec::new();
    for (out, cells) in [
        ("epoch", table(epoch, class)),
        ("offset", table(offset, class)),
        ("epoch-gap", table(gap, class)),
        ("offset-gap", table(offset_gap, class)),
    ] {
        let outcome = run(&place, &cells, "scale = \"standardise\"\n", out).success();
        let accuracy = outcome.json()["test_accuracy"].as_f64();
        assert!(accuracy > Some(0.9), "{outcome}");
        accuracies.push(accuracy);
        // Predictions work as in training.
        place
            .smolfed(&format!("predict {out} --data table.csv --out {out}.csv"))
            .success();
    }
    assert_eq!(accuracies[0], accuracies[1]);
    assert_eq!(accuracies[2], accuracies[3]);
    let classes = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(place.path(name)).unwrap();
        let cells = text.lines().map(|line| line.split(',').nth(1).unwrap());
        cells.map(str::to_owned).collect()
    };
    assert_eq!(classes("epoch.csv"), classes("offset.csv"));
    assert_eq!(classes("epoch-gap.csv"), classes("offset-gap.csv"));
}

#[test]
fn spreadsheets_of_excel_offsets_and_signs_are_read() {
    let place = Place::new();
    let plain = table(number, class);
    let expected = run(&place, &plain, "", "plain").success().json()["test_accuracy"].clone();
    let excel = format!("sep=;\r\n{}", plain.replace(',', ";").replace('\n', "\r\n"));
    let outcome = run(&place, &excel, "", "excel").success();
    assert_eq!(outcome.json()["test_accuracy"], expected);
    let signs = table(|x| format!("\"$1,{x:03}.50\""), class);
    let outcome = run(&place, &signs, "", "signs").success();
    assert_eq!(outcome.json()["test_accuracy"], expected);
    for words in [
        "table.csv: 200 numbers were read without a currency sign: `$1,000.50` (line 2) as 1000.50",
        "200 numbers were read without thousands separators",
    ] {
        assert!(outcome.stderr.contains(words), "{outcome}");
    }
    let time = |zone: &str| {
        let zone = zone.to_owned();
        let cell = move |x: usize| format!("2024-03-31T{:02}:{:02}:00{zone}", x / 60, x % 60);
        table(cell, class)
    };
    let keys = "times.x = [\"hour\"]\n";
    for (number, zone) in ["", "Z", "+02:00", "-0530"].iter().enumerate() {
        let outcome = run(&place, &time(zone), keys, &format!("zone-{number}")).success();
        assert!(
            outcome.json()["test_accuracy"].as_f64() > Some(0.9),
            "{outcome}"
        );
    }
}

#[test]
fn what_is_not_read_is_named_with_the_remedy() {
    let place = Place::new();
    for (bytes, words) in [
        (&b"ARROW1\0\0\x10\0"[..], ["Feather or Arrow", "to_parquet"]),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0", ["pickle", "to_parquet"]),
        (b"\x89HDF\r\n\x1a\n", ["HDF5", "CSV"]),
        (b"X\n\0\0\0\x03", ["R file", "write.csv"]),
    ] {
        place.write("table.csv", bytes);
        place.write("experiment.toml", csv_experiment(""));
        for call in ["run experiment.toml --json", "data inspect table.csv"] {
            place.smolfed(call).refused(2, &words);
        }
    }
    let dates = table(
        |x| format!("{}/{}/2024 10:15", x % 28 + 1, x % 12 + 1),
        class,
    );
    let outcome = run(&place, &dates, "times.x = [\"hour\"]\n", "dates");
    outcome.refused(2, &["line 2, column `x`", "2024-12-31 10:15:30"]);
    let dates = dates
        .replace(",class\n", ",y,class\n")
        .replace("10:15,", "10:15,1.5,");
    place.write("table.csv", dates.replacen("1.5,", "2.5,", 1));
    let outcome = place
        .smolfed("init table.csv --device-column phone")
        .success();
    let words = "1 column is left out: `x` (`1/1/2024 10:15` may have the day or the month first";
    assert!(outcome.stderr.contains(words), "{outcome}");
}

#[test]
fn an_unknown_category_ends_no_prediction_unless_that_is_asked_for() {
    let place = Place::new();
    let colour = |x: usize| ["red", "blue"][x / 100].to_owned();
    let keys = "categories.x = [\"red\", \"blue\"]\nscale = \"none\"\n";
    run(&place, &table(colour, class), keys, "run").success();
    let new = "x,class\nred,0\ngreen,0\nblue,1\n,1\n";
    place.write("new.csv", new);
    let outcome = place.smolfed("predict run --data new.csv").success();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 5);
    // It is treated as none of the known categories, like an empty cell.
    assert_eq!(
        lines[2].split_once(','),
        Some(("2", lines[4].split_once(',').unwrap().1))
    );
    let words = "1 rows have a category that the model was not trained with";
    assert!(outcome.stderr.contains(words), "{outcome}");
    let outcome = place
        .smolfed("evaluate run --data new.csv --json")
        .success();
    assert!(
        outcome.stderr.contains(words) && outcome.json()["rows"] == 4,
        "{outcome}"
    );
    for command in ["predict", "evaluate"] {
        let call = format!("{command} run --data new.csv --unknown error");
        place.smolfed(&call).refused(2, &["line 3", "`green`"]);
    }
    let known = new.replace("green", "red");
    place.write("new.csv", known);
    let outcome = place.smolfed("predict run --data new.csv").success();
    assert_eq!(outcome.stderr, "");
}

#[test]
fn json_lines_are_a_table_for_every_command() {
    let place = Place::new();
    let plain = table(number, class);
    let expected = run(&place, &plain, "", "csv").success().json()["test_accuracy"].clone();
    let line = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        format!(
            "{{\"class\": {}, \"x\": {}.0, \"phone\": {:?}}}\n",
            cells[2], cells[1], cells[0]
        )
    };
    let lines: String = plain.lines().skip(1).map(line).collect();
    place.write("table.jsonl", &lines);
    let keys = csv_experiment("")
        .replace("\"csv\"", "\"jsonl\"")
        .replace(".csv", ".jsonl");
    place.write("lines.toml", keys);
    let outcome = place
        .smolfed(&format!("run lines.toml --out lines {PLAIN}"))
        .success();
    assert_eq!(outcome.json()["test_accuracy"], expected);
    let predicted = |data: &str| {
        let call = format!("predict lines --data {data}");
        place.smolfed(&call).success().stdout
    };
    assert_eq!(predicted("table.jsonl"), predicted("table.csv"));
    place.smolfed("evaluate lines --data table.jsonl").success();
    let inspected = place.smolfed("data inspect table.jsonl --set device_column=phone");
    assert!(inspected.success().stdout.contains("JSON lines, 3 columns"));
    let written = place.smolfed("init table.jsonl").success().stdout;
    assert!(written.contains("source = \"jsonl\""), "{written}");
    place.write(
        "table.jsonl",
        lines.replacen("{\"class\": 1", "{\"class\": [1]", 1),
    );
    let words = ["table.jsonl", "line 4", "is not a JSON object"];
    place.smolfed("run lines.toml --json").refused(2, &words);
}
