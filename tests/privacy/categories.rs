//! Categories next to numbers under a private scale: they stay 0 and 1, cost nothing, and are
//! reported if their list was read from rows.

use serde_json::Value;

use crate::program::{Outcome, Place};

const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// Runs an experiment on 100 devices with six rows of two numbers and a category.
fn run(keys: &str) -> (Place, Outcome) {
    let place = Place::new();
    let mut table = "x,y,colour,class,phone\n".to_owned();
    for (device, i) in (0..100).flat_map(|device| (0..6).map(move |i| (device, i))) {
        let (x, y) = ((device * 7 + i * 3) % 11, (device + 5 * i) % 9);
        let class = if x > 5 { "high" } else { "low" };
        let colour = COLOURS[(device + i) % 3];
        table += &format!("{x},{y},{colour},{class},phone{device}\n");
    }
    place.write("table.csv", table);
    let text = format!(
        "method = \"dp-fed\"\nrounds = 3\n[data]\nsource = \"csv\"\npath = \"table.csv\"\n\
         label = \"class\"\nclasses = [\"high\", \"low\"]\ndevice_column = \"phone\"\n\
         scale = \"private\"\nbounds = {{ min = 0, max = [10, 8, 99, 99, 99] }}\n\
         categories.colour = [\"red\", \"green\", \"blue\"]\n{keys}\
         [cohort]\nsampling = \"poisson\"\nsampling_rate = 0.5\n\
         [privacy]\nepsilon = 4.0\nclip_norm = 1.0\n"
    );
    place.write("experiment.toml", text);
    let outcome = place.smolfed("run experiment.toml --out run --json");
    (place, outcome.success())
}

#[test]
fn categories_stay_0_and_1_under_a_private_scale() {
    let (place, outcome) = run("");
    let statement = &outcome.json()["privacy"][0];
    assert_eq!(statement["is_upper_bound"], true, "{outcome}");
    let text = std::fs::read_to_string(place.path("run/preprocessing.json")).unwrap();
    let prepared: Value = serde_json::from_str(&text).unwrap();
    let columns = prepared["columns"].as_array().unwrap();
    let is_scaled: Vec<bool> = columns
        .iter()
        .map(|column| column.get("then").is_some())
        .collect();
    assert_eq!(is_scaled, [true, true, false, false, false], "{text}");
    for column in &columns[2..] {
        assert_eq!(
            (&column["mean"], &column["std"]),
            (&0.0.into(), &1.0.into())
        );
    }
    place.smolfed("account --verify run").success();
}

#[test]
fn categories_of_rows_are_named_by_the_statement() {
    let (_, outcome) = run("categories_are_public = false\n");
    let statement = &outcome.json()["privacy"][0];
    assert_eq!(statement["is_upper_bound"], false, "{outcome}");
    let notes = statement["notes"].to_string();
    assert!(notes.contains("data.categories"), "{notes}");
}
