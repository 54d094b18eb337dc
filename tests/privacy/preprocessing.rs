//! Everything private is within epsilon. Values from the devices' rows before training are
//! constants of the configuration, or released under noise and charged, or the statement says that
//! it is not an upper bound.

use serde_json::Value;

use crate::program::{Outcome, Place};

/// Natural devices of six rows.
const DEVICES: usize = 200;

/// The device that differs between two worlds.
const ODD: usize = 77;

/// Returns a table of 200 devices. `row` gives features and label of each row.
fn table(row: impl Fn(usize, usize) -> String) -> String {
    let rows = (0..DEVICES).flat_map(|device| (0..6).map(move |i| (device, i)));
    let line = |(device, i)| format!("{},{},phone{device}\n", row(device, i), device % 5 + i);
    let lines = rows.map(line);
    "x,y,class,target,phone\n".to_owned() + &lines.collect::<String>()
}

/// Returns ordinary features and two classes.
fn ordinary(device: usize, i: usize) -> String {
    let class = if (device + i).is_multiple_of(2) {
        "sit"
    } else {
        "walk"
    };
    format!(
        "{},{},{class}",
        (device * 7 + i * 3) % 11,
        (device + 5 * i) % 9
    )
}

const CLASSIFICATION: &str = "label = \"class\"\nignore = [\"target\"]\n";
const REGRESSION: &str = "label = \"target\"\nignore = [\"class\"]\ntask = \"regression\"\n";

/// Returns an experiment on `table.csv`, with more keys of `[data]`.
fn experiment(method: &str, keys: &str) -> String {
    let task = match keys.contains("task") {
        true => "",
        false => CLASSIFICATION,
    };
    format!(
        "method = \"{method}\"\nrounds = 3\n[data]\nsource = \"csv\"\npath = \"table.csv\"\n\
         {task}device_column = \"phone\"\n{keys}\n\
         [cohort]\nsampling = \"poisson\"\nsampling_rate = 0.5\n\
         [privacy]\nepsilon = 1.0\nclip_norm = 1.0\n"
    )
}

/// Runs an experiment on a table.
fn run(table: &str, method: &str, keys: &str) -> (Place, Outcome) {
    let place = Place::new();
    place.write("table.csv", table);
    place.write("experiment.toml", experiment(method, keys));
    let outcome = place.smolfed("run experiment.toml --out run --json");
    (place, outcome.success())
}

/// Returns the run's statement, and whether its notes and a warning name a key of `[data]` that
/// caused reading of rows.
fn statement(outcome: &Outcome, key: &str) -> (Value, bool) {
    let statement = outcome.json()["privacy"][0].clone();
    let name = format!("`data.{key}`");
    let notes = statement["notes"].as_array().unwrap().iter();
    let notes: Vec<&str> = notes.map(|note| note.as_str().unwrap()).collect();
    let names = |words: &str, text: &&str| text.contains(&name) && text.contains(words);
    let noted = notes
        .iter()
        .any(|note| names("from the devices' rows", note));
    let warned = outcome
        .stderr
        .lines()
        .any(|line| names("no epsilon covers", &line));
    assert_eq!(noted, warned, "{notes:?} {}", outcome.stderr);
    (statement, noted)
}

/// Asserts that no human-readable text claims a bound.
#[track_caller]
fn claims_nothing(place: &Place, outcome: &Outcome, key: &str) {
    let (statement, is_named) = statement(outcome, key);
    assert_eq!(statement["is_upper_bound"], false, "{statement}");
    assert!(is_named, "{statement}");
    let report = std::fs::read_to_string(place.path("run/report.html")).unwrap();
    let top = report.split("Privacy accounting").next().unwrap();
    assert!(
        !top.contains("a proved upper bound"),
        "the report's headline"
    );
    assert!(top.contains("NOT a guarantee") && top.contains("from the devices"));
    let text = place
        .smolfed("run experiment.toml --out text")
        .success()
        .stdout;
    assert!(
        !text.contains("proved") && text.contains("NOT a guarantee"),
        "{text}"
    );
    assert!(!text.contains("at most"), "no bound on an attack: {text}");
}

#[track_caller]
fn is_proved(outcome: &Outcome, key: &str) {
    let (statement, is_named) = statement(outcome, key);
    assert_eq!(statement["is_upper_bound"], true, "{statement}");
    assert!(!is_named, "{statement}");
}

/// Returns the errors of every device but one, each trained alone on its prepared rows.
fn of_other_devices(table: &str, keys: &str) -> Vec<Value> {
    let of_features = keys.lines().filter(|line| !line.starts_with("classes"));
    let keys = REGRESSION.to_owned() + &of_features.collect::<Vec<_>>().join("\n");
    let (place, _) = run(table, "local", &keys);
    let text = std::fs::read_to_string(place.path("run/personal.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let devices = report["devices"].as_array().unwrap().iter().cloned();
    let others = devices.filter(|device| device["device"] != format!("phone{ODD}"));
    let others: Vec<Value> = others.collect();
    assert_eq!(others.len(), DEVICES - 1, "{report}");
    others
}

#[test]
fn preprocessing_outside_epsilon() {
    const CLASSES: &str = "classes = [\"sit\", \"walk\"]\n";
    let world = table(ordinary);
    let other = table(|device, i| match device {
        ODD => "1e12,-1e12,sit".to_owned(),
        _ => ordinary(device, i),
    });
    // The scale of all devices follows from one device's rows: reported, and not called a bound.
    assert_ne!(
        of_other_devices(&world, CLASSES),
        of_other_devices(&other, CLASSES)
    );
    let (place, outcome) = run(&other, "dp-fed", CLASSES);
    claims_nothing(&place, &outcome, "scale");
    // Constants: other devices are unaffected, and the bound is proved.
    for scale in [
        "scale = { min = 0, max = [10, 8] }\n",
        "scale = { mean = 5, std = 3 }\n",
        "scale = \"unit\"\nmaximum = 10\n",
        "scale = \"none\"\n",
    ] {
        let keys = CLASSES.to_owned() + scale;
        assert_eq!(
            of_other_devices(&world, &keys),
            of_other_devices(&other, &keys),
            "{scale}"
        );
        let (_, outcome) = run(&other, "dp-fed", &keys);
        let clips = scale.contains("max");
        let says = outcome.stderr.contains("12 values are beyond the bounds");
        assert_eq!(clips, says, "{scale} {}", outcome.stderr);
        let (statement, _) = statement(&outcome, "classes");
        assert_eq!(statement["is_upper_bound"], true, "{scale} {statement}");
    }
    // Released under noise: proved and charged.
    let keys = format!("{CLASSES}scale = \"private\"\nbounds = {{ min = 0, max = [10, 8] }}\n");
    let (place, outcome) = run(&other, "dp-fed", &keys);
    is_proved(&outcome, "scale");
    let ledger = std::fs::read_to_string(place.path("run/ledger.jsonl")).unwrap();
    assert_eq!(
        ledger.matches("\"mechanism\":{\"moments\"").count(),
        1,
        "{ledger}"
    );
}

#[test]
fn class_list_of_one_device() {
    const SCALE: &str = "scale = { min = 0, max = 10 }\n";
    let world = table(ordinary);
    let other = table(|device, i| match (device, i) {
        (ODD, 0..4) => "1,1,jump".to_owned(),
        _ => ordinary(device, i),
    });
    let model = |place: &Place| {
        let bytes = std::fs::read(place.path("run/model.safetensors")).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        String::from_utf8(bytes[8..8 + length].to_vec()).unwrap()
    };
    // One device's label affects the shape and the names of the model.
    let (place, outcome) = run(&other, "dp-fed", SCALE);
    assert!(model(&place).contains("jump"));
    claims_nothing(&place, &outcome, "classes");
    // A list does not depend on a device's data, and neither does the shape of the model.
    for list in [
        "[\"sit\", \"walk\", \"jump\"]",
        "[\"walk\", \"sit\"]\nunknown_labels = \"drop\"",
    ] {
        let keys = format!("{SCALE}classes = {list}\n");
        let [ours, theirs] = [&world, &other].map(|table| {
            let (place, outcome) = run(table, "dp-fed", &keys);
            is_proved(&outcome, "classes");
            model(&place)
        });
        assert_eq!(ours, theirs, "{list}");
    }
}

#[test]
fn imputation_outside_epsilon() {
    const KEYS: &str = "scale = { min = 0, max = 10 }\nclasses = [\"sit\", \"walk\"]\n";
    let gap = |device: usize, i: usize| match (device, i) {
        (5, 0..3) => format!(",{i},sit"),
        _ => ordinary(device, i),
    };
    let world = table(gap);
    let other = table(|device, i| match device {
        ODD => "10,0,walk".to_owned(),
        _ => gap(device, i),
    });
    assert_ne!(
        of_other_devices(&world, KEYS),
        of_other_devices(&other, KEYS)
    );
    let (place, outcome) = run(&other, "dp-fed", KEYS);
    claims_nothing(&place, &outcome, "missing");
    for constant in ["4.5", "[4.5, 0]"] {
        let keys = format!("{KEYS}missing = {constant}\n");
        assert_eq!(
            of_other_devices(&world, &keys),
            of_other_devices(&other, &keys)
        );
        is_proved(&run(&other, "dp-fed", &keys).1, "missing");
    }
    // Noisy means fill gaps as well.
    let private = KEYS.replace("scale = {", "scale = \"private\"\nbounds = {");
    is_proved(&run(&other, "dp-fed", &private).1, "missing");
}

#[test]
fn a_private_scale_works_with_every_method_and_is_charged_once() {
    let place = Place::new();
    place.write("table.csv", table(ordinary));
    let keys =
        "classes = [\"sit\", \"walk\"]\nscale = \"private\"\nbounds = { min = 0, max = 10 }\n";
    for (method, settings) in [
        ("dp-fed", ""),
        (
            "dp-fed",
            "--set privacy.trust=local --set privacy.epsilon=50",
        ),
        (
            "dp-fed",
            "--set cohort={sampling=\"uniform\",cohort_size=50}",
        ),
        ("fedprox", ""),
        ("pmtl", ""),
        ("pp-sgd", ""),
        ("dpfedmtl", "--set model.hidden=3"),
        ("fedavg-sc", "--set contrast.width=2"),
    ] {
        place.write("experiment.toml", experiment(method, keys));
        let call = format!("run experiment.toml --json {settings} --out {method}");
        let outcome = place.smolfed(&call).success();
        let statement = &outcome.json()["privacy"][0];
        assert_eq!(statement["is_upper_bound"], true, "{method}: {statement}");
        assert!(
            statement["notes"]
                .to_string()
                .contains("epsilon includes it")
        );
        assert_eq!(statement["rounds"], 3);
        let ledger = place.path(method).join("ledger.jsonl");
        let ledger = std::fs::read_to_string(ledger).unwrap();
        assert_eq!(
            ledger.matches("\"moments\"").count(),
            1,
            "{method}: {ledger}"
        );
        std::fs::remove_dir_all(place.path(method)).unwrap();
    }
}

#[test]
fn a_private_scale_is_the_same_after_resuming_and_charged_once() {
    let place = Place::new();
    place.write("table.csv", table(ordinary));
    let keys =
        "classes = [\"sit\", \"walk\"]\nscale = \"private\"\nbounds = { min = 0, max = 10 }\n";
    place.write("experiment.toml", experiment("dp-fed", keys));
    let shared = "--set privacy.ledger=fleet.jsonl --json";
    let run = |out: &str| place.smolfed(&format!("run experiment.toml {shared} --out {out}"));
    let whole = run("whole").success().json();
    let model = |out: &str| std::fs::read(place.path(out).join("model.safetensors")).unwrap();
    let ledger = || std::fs::read_to_string(place.path("fleet.jsonl")).unwrap();
    let charged = ledger();
    assert_eq!(
        (
            charged.matches("\"event\"").count(),
            charged.matches("\"moments\"").count()
        ),
        (4, 1)
    );
    // As after a crash: charged, and nothing else is known.
    std::fs::remove_dir_all(place.path("whole/checkpoint")).unwrap();
    let before = model("whole");
    place.smolfed("run --resume whole --json").success();
    assert_eq!(model("whole"), before);
    // The same run again.
    let again = run("again").success().json();
    assert_eq!(model("again"), before);
    assert_eq!(whole["epsilon"], again["epsilon"]);
    assert_eq!(ledger(), charged, "nothing was charged twice");
}

#[test]
fn a_private_scale_is_refused_with_real_devices() {
    let place = Place::new();
    let provision = "provision --devices 0..2 --out fleet --with-data --set data.devices=30";
    let words = [
        "`data.scale` = \"private\"",
        "only in simulations",
        "`smolfed ask`",
    ];
    let private = "--set data.scale=private";
    place
        .smolfed(&format!("{provision} {private}"))
        .refused(2, &words);
    place.smolfed(provision).success();
    let serve = "serve --keys fleet/keys.toml --listen unix:fleet.sock --simulated 28";
    place
        .smolfed(&format!("{serve} {private}"))
        .refused(2, &words);
}

#[test]
fn the_built_in_experiment_and_the_examples_are_proved() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|file| file.unwrap().path().display().to_string());
    // Questions alone are not runs: `experiments/answers.rs` asks them.
    let is_run = |path: &String| path.ends_with(".toml") && !path.ends_with("ask-evaluate.toml");
    let examples = paths.filter(is_run);
    let all: Vec<String> = examples.chain([String::new()]).collect();
    assert!(all.len() > 7);
    for (at, file) in all.iter().enumerate() {
        // As many rounds as the separation in the example with correlated noise.
        let call = format!("run {file} --set rounds=10 --json --out {at}");
        let outcome = place.smolfed(&call).success();
        assert_eq!(outcome.stderr, "", "{file}");
        for statement in outcome.json()["privacy"].as_array().unwrap() {
            assert_eq!(statement["is_upper_bound"], true, "{file}: {statement}");
        }
    }
}

#[test]
fn inspection_says_what_is_read_and_what_to_write_instead() {
    let place = Place::new();
    place.write(
        "table.csv",
        table(|device, i| match (device, i) {
            (5, 0) => ",1,sit".to_owned(),
            _ => ordinary(device, i),
        }),
    );
    let inspect = "data inspect table.csv --set label=class --set device_column=phone --set \
                   ignore=[\"target\"]";
    let text = place.smolfed(inspect).success().stdout;
    for part in [
        "no epsilon  covers that the scale of the features was computed",
        "instead: documented ranges",
        "\nclasses = [\"sit\", \"walk\"]\n",
        "`missing = 0`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let proved = "--set scale={min=0,max=5} --set missing=0 --set classes=[\"sit\",\"walk\"] \
                  --set classes_are_public=true";
    let json = place
        .smolfed(&format!("{inspect} {proved} --json"))
        .success()
        .json();
    assert_eq!(json["reads"], serde_json::json!([]), "{json}");
    assert_eq!(json["beyond_bounds"][0][0], "x", "{json}");
    let text = place
        .smolfed(&format!("{inspect} {proved}"))
        .success()
        .stdout;
    assert!(
        text.contains("values beyond the bounds") && !text.contains("no epsilon"),
        "{text}"
    );
}

#[test]
fn a_round_in_which_nobody_trained_stops_no_run_with_noise() {
    let place = Place::new();
    let run = "run --set train.learning_rate=1e38 --set rounds=2 --json";
    // Whether training fails depends on the data: with noise, it must not be visible.
    let outcome = place.smolfed(&format!("{run} --out noisy")).success();
    assert_eq!(outcome.json()["rounds"], 2);
    let words = [
        "every device of the cohort was left out",
        "the learning rate is too high",
    ];
    place
        .smolfed(&format!(
            "{run} --set privacy.epsilon= --set privacy.noise_multiplier=0"
        ))
        .refused(1, &words);
}

#[test]
fn a_method_that_sends_nothing_has_no_private_scale() {
    let place = Place::new();
    place.write("table.csv", table(ordinary));
    let keys =
        "classes = [\"sit\", \"walk\"]\nscale = \"private\"\nbounds = { min = 0, max = 10 }\n";
    place.write("experiment.toml", experiment("local", keys));
    let outcome = place.smolfed("run experiment.toml --json");
    outcome.refused(
        2,
        &["`data.scale` and `method`", "give `data.scale` constants"],
    );
}

/// All devices of a user count in the release of the scale, which gets correspondingly more noise.
#[test]
fn a_private_scale_protects_users_with_several_devices() {
    let place = Place::new();
    place.write("table.csv", table(ordinary));
    let keys =
        "classes = [\"sit\", \"walk\"]\nscale = \"private\"\nbounds = { min = 0, max = 10 }\n";
    place.write("experiment.toml", experiment("dp-fed", keys));
    let run =
        place.smolfed("run experiment.toml --out run --json --set privacy.devices_per_user=4");
    let statement = &run.success().json()["privacy"][0];
    assert_eq!(statement["devices_per_user"], 4);
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0, "{statement}");
    let ledger = std::fs::read_to_string(place.path("run/ledger.jsonl")).unwrap();
    let moments = ledger
        .lines()
        .find(|line| line.contains("\"moments\""))
        .unwrap();
    assert!(moments.contains("\"devices_per_user\":4"), "{moments}");
    place.smolfed("account --verify run").success();
}

/// A ledger does not say "proved" about a run that read rows without noise, nor does a later run.
#[test]
fn rows_that_were_read_are_known_to_the_ledger() {
    let (place, _) = run(&table(ordinary), "dp-fed", "");
    let call = "account --ledger run/ledger.jsonl --delta 1e-3";
    let text = place.smolfed(call).success().stdout;
    assert!(
        text.contains("NOT a guarantee") && !text.contains("proved"),
        "{text}"
    );
    let json = place.smolfed(&format!("{call} --json")).success().json();
    assert_eq!(json["adaptive"]["is_upper_bound"], false);
    let keys = "classes = [\"sit\", \"walk\"]\nscale = { min = 0, max = 10 }\n";
    place.write("experiment.toml", experiment("dp-fed", keys));
    let shared = "--set privacy.ledger=run/ledger.jsonl --set privacy.epsilon=3 --seed 9";
    let after = place.smolfed(&format!("run experiment.toml --json {shared}"));
    let statement = &after.success().json()["privacy"][0];
    assert_eq!(statement["is_upper_bound"], false, "{statement}");
    assert_eq!(statement["planned_is_upper_bound"], false, "{statement}");
}
