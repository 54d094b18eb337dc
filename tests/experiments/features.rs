//! Features of windows, from the raw rows of recordings to a model and its predictions.

use super::networks::recordings;
use crate::program::Place;

const EXPERIMENT: &str = "name = \"recordings\"
method = \"dp-fed\"
rounds = 20

[data]
source = \"csv\"
path = \"recordings.csv\"
label = \"label\"
device_column = \"device\"
series_column = \"series\"
classes = [\"slow\", \"fast\"]
scale = { mean = 0, std = [8, 8] }

[data.window]
length = 10
features = [\"mean\", \"deviation\"]
bands = [1, 2, 4, 9]

[cohort]
sampling = \"full\"

[train]
epochs = 5
batch_size = 5
learning_rate = 0.5

[privacy]
noise_multiplier = 0
clip_norm = 5.0
";

/// From raw rows to a model and its predictions, with features computed by the core.
#[test]
fn features_of_recordings_are_learned_from_and_predicted_on() {
    let place = Place::new();
    place.write("recordings.csv", recordings());
    place.write("recordings.toml", EXPERIMENT);
    for (name, more) in [("run", ""), ("integers", " --set data.window.counts=[100]")] {
        let more = match more.is_empty() {
            true => String::new(),
            false => format!("{more} --set data.scale.std=[800,800]"),
        };
        let call = format!("run recordings.toml --out {name} --json{more}");
        let document = place.smolfed(&call).success().json();
        assert!(document["test_accuracy"].as_f64() > Some(0.9), "{document}");
        let call = format!("evaluate {name} --data recordings.csv --json");
        let assessed = place.smolfed(&call).success().json();
        // 12 recordings of 60 rows.
        assert_eq!(assessed["rows"], 72, "{assessed}");
        assert!(assessed["accuracy"].as_f64() > Some(0.9), "{assessed}");
    }
    let preprocessing = std::fs::read_to_string(place.path("run/preprocessing.json")).unwrap();
    for part in ["\"x_mean\"", "\"y_band_2\"", "\"breaks\"", "\"amplitude\""] {
        assert!(preprocessing.contains(part), "{part}");
    }
    // Without labels, windows end at the end of a series, and take its rows in order.
    let unlabelled = recordings().replace(",slow,", ",,").replace(",fast,", ",,");
    place.write("new.csv", unlabelled);
    let predicted = place
        .smolfed("predict run --data new.csv --id series")
        .success();
    let lines: Vec<&str> = predicted.stdout.lines().collect();
    assert_eq!(lines.len(), 73, "{predicted}");
    assert!(lines[72].starts_with("11,fast,"), "{predicted}");
    let exported = place.smolfed("export run --format c-header").success();
    assert!(
        exported.stdout.contains("#define SMOLFED_WINDOW 10"),
        "{exported}"
    );
    // A gap, and a table without the channels.
    place.write("gap.csv", recordings().replacen(",0,7\n", ",,7\n", 1));
    let refused = place.smolfed("predict run --data gap.csv");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`x` is missing"), "{refused}");
    place.write("other.csv", "a,b\n1,2\n");
    let refused = place.smolfed("predict run --data other.csv");
    assert!(refused.stderr.contains("the model reads `x`"), "{refused}");
    let damaged = preprocessing.replace("\"x_mean\"", "\"x_median\"");
    place.write("run/preprocessing.json", damaged);
    let refused = place.smolfed("predict run --data new.csv");
    assert!(
        refused.stderr.contains("the features of `window`"),
        "{refused}"
    );
}
