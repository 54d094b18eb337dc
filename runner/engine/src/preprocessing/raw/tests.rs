//! Files survive a round trip, and every kind of error is refused.

use super::*;

const FILE: &str = r#"{
  "format": 1,
  "task": "classification",
  "model": { "kind": "softmax", "outputs": 2, "hidden": 3, "activation": "relu",
    "personal": "rest" },
  "target": { "column": "y", "classes": ["no", "yes"] },
  "shape": [2, 3],
  "columns": [
    { "name": "a", "kind": "number", "missing": "mean", "mean": 0.1, "std": 2.5 },
    { "name": "b", "kind": "number", "missing": 0.25, "min": -1.0, "max": 1.0, "mean": 0.0,
      "std": 1.0, "then": { "mean": 0.5, "std": 0.125 } },
    { "kind": "number", "count": 3, "mean": 0.0, "std": 255.0 },
    { "kind": "zero" }
  ],
  "privacy": { "scale": "measured", "missing": "declared", "classes": "declared", "notes": ["N."] }
}"#;

fn read(text: &str) -> Result<Preprocessing, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn files_are_written_as_they_were_read() {
    let parsed = read(FILE).unwrap();
    let written: serde_json::Value = serde_json::from_str(&parsed.to_json()).unwrap();
    let expected: serde_json::Value = serde_json::from_str(FILE).unwrap();
    assert_eq!(written, expected);
    assert_eq!(
        (parsed.columns.len(), parsed.axes.as_slice()),
        (6, &[2, 3][..])
    );
    assert_eq!(parsed.task.tensors().as_slice(), [18, 3, 6, 2]);
    assert_eq!(parsed.names(), None, "four columns have none");
}

#[test]
fn networks_are_written_as_they_were_read() {
    let mut file: serde_json::Value = serde_json::from_str(FILE).unwrap();
    let pair = serde_json::json!([2, 2]);
    file["model"] = serde_json::json!({
        "kind": "softmax", "outputs": 2, "input": [1, 2, 3], "layers": [
            { "type": "convolution", "channels": 3, "kernel": pair, "stride": [1, 1],
              "padding": [0, 0] },
            { "type": "relu" },
        ],
    });
    let parsed = read(&file.to_string()).unwrap();
    assert_eq!(parsed.task.tensors().as_slice(), [12, 3, 12, 2]);
    let written: serde_json::Value = serde_json::from_str(&parsed.to_json()).unwrap();
    assert_eq!(written, file);
    file["model"]["input"] = serde_json::json!([1, 2, 2]);
    let error = read(&file.to_string()).unwrap_err();
    assert!(error.contains("an image of 1 x 2 x 2"), "{error}");
}

#[test]
fn equal_columns_with_names_stay_apart() {
    let column = |name: Option<&str>| Column {
        name: name.map(str::to_owned),
        map: ColumnMap::AS_IT_IS,
    };
    let columns = [None, None, Some("a"), Some("a"), None].map(column);
    let counts: Vec<_> = merged(columns.to_vec())
        .iter()
        .map(|raw| raw.count)
        .collect();
    assert_eq!(counts, [Some(2), None, None, None]);
}

#[test]
fn other_tasks_have_other_targets() {
    let values = FILE
        .replace("classification", "regression")
        .replace(
            "\"classes\": [\"no\", \"yes\"]",
            "\"mean\": 3.0, \"std\": 2.0",
        )
        .replace("\"softmax\"", "\"linear\"")
        .replace("\"hidden\": 3, \"activation\": \"relu\",", "");
    let parsed = read(&values).unwrap();
    assert!(matches!(&parsed.target, Target::Value { scale, .. } if scale.undo(1.5) == 6.0));
    let encoder = FILE.replace("classification", "representation").replace(
        "\"target\": { \"column\": \"y\", \"classes\": [\"no\", \"yes\"] },",
        "",
    );
    let parsed = read(&encoder).unwrap();
    assert_eq!(
        (parsed.target, parsed.task.output_count()),
        (Target::Representation, 2)
    );
}

#[test]
fn files_that_say_nothing_sensible_are_refused() {
    for (from, to, words) in [
        ("\"format\": 1", "\"format\": 7", "`format` is 7"),
        (
            "[2, 3]",
            "[2, 2]",
            "`shape` is [2, 2], but there are 6 columns",
        ),
        ("\"count\": 3", "\"count\": 99999999999", "columns"),
        ("\"count\": 3, ", "\"count\": 0, ", "columns"),
        ("{ \"kind\": \"zero\" }", "{ \"kind\": \"text\" }", "text"),
        ("\"std\": 2.5", "\"std\": 0.0", "column 0: cannot scale"),
        (", \"std\": 2.5", "", "needs `mean` and `std`"),
        ("\"min\": -1.0, ", "", "`min` and `max`"),
        ("\"min\": -1.0", "\"min\": 1.0", "min below max"),
        (
            "\"missing\": \"mean\"",
            "\"missing\": \"median\"",
            "missing",
        ),
        ("classification", "regression", "\"regression\""),
        ("classification", "representation", "\"representation\""),
        ("softmax", "logistic", "`model.kind`"),
        ("\"outputs\"", "\"output\"", "unknown field `output`"),
    ] {
        assert!(FILE.contains(from), "{from}");
        let error = read(&FILE.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(words), "{from}: {error}");
    }
}
