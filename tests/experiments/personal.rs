//! Personal models, through the command line.

use std::path::PathBuf;

use crate::program::Place;

const RUN: &str = "--set data.devices=40 --set data.device_test=0.25 --set rounds=12 \
                   --set server.smoothing_factor=0 --json";

#[test]
fn each_method_says_how_devices_are_served() {
    let place = Place::new();
    for (method, more) in [
        ("dp-fed", ""),
        ("fedprox", "--set personalise.lambda=0.2"),
        ("pmtl", "--set personalise.lambda=0.2"),
        ("pp-sgd", ""),
        ("dpfedmtl", "--set model.hidden=8"),
        ("local", ""),
    ] {
        let run = format!("run --out {method} --set method={method} {more} {RUN}");
        let document = place.smolfed(&run).success().json();
        assert_eq!(document["method"], method);
        let accuracy = document["device_accuracy"].as_f64().unwrap();
        assert!((0.1..=1.0).contains(&accuracy), "{document}");
        let report = std::fs::read_to_string(place.path(format!("{method}/report.html"))).unwrap();
        assert!(report.contains("Device by device"), "{method}");
        assert_eq!(document["epsilon"].as_f64() == Some(0.0), method == "local");
    }
}

#[test]
fn every_example_runs_as_it_is() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    // Questions alone do not train: `answers.rs` asks them.
    let is_asked = |path: &PathBuf| path.ends_with("ask-evaluate.toml");
    let mut names: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|x| x == "toml") && !is_asked(path))
        .collect();
    names.sort();
    assert_eq!(names.len(), 14);
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let run = format!("run {} --out {name} --json", path.display());
        let document = place.smolfed(&run).success().json();
        assert_eq!(document["name"], name);
        // Of the devices' own models, or of a shared one. A regression has an error instead.
        let accuracy = ["device_accuracy", "test_accuracy"].map(|key| document[key].as_f64());
        let error = document["device_rmse"].as_f64();
        assert!(
            accuracy[0].or(accuracy[1]) > Some(0.3) || error.is_some_and(|rmse| rmse < 0.5),
            "{document}"
        );
    }
}

/// Each example is better than training on devices alone, and than the same example without its
/// feature at the same ε: the order in the table of `examples/README.md`.
#[test]
fn examples_win() {
    let place = Place::new();
    let run = |name: &str, setting: &str| {
        let file = format!(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/{}.toml"),
            name
        );
        let out = format!("{name}-{}", setting.replace('=', "-"));
        let quick = "--set evaluate_every=0 --set personalise.evaluate_devices=300";
        let call = format!("run {file} --out {out} --set {setting} {quick} --json");
        place.smolfed(&call).success().json()
    };
    for (name, method, plain, figure, least) in [
        ("pmtl", "pmtl", "method=dp-fed", "accuracy", 0.04),
        ("pp-sgd", "pp-sgd", "method=dp-fed", "accuracy", 0.04),
        (
            "fine-tuning",
            "dp-fed",
            "personalise.fine_tune=none",
            "accuracy",
            0.04,
        ),
        ("dpfedmtl", "dpfedmtl", "method=dp-fed", "rmse", 0.3),
    ] {
        let own = run(name, &format!("method={method}"));
        let plain = run(name, plain);
        let local = run(name, "method=local");
        assert!(own["epsilon"].as_f64().unwrap() <= 4.0);
        assert_eq!(own["epsilon"], plain["epsilon"]);
        assert_eq!(own["delta"], plain["delta"]);
        let of = |document: &serde_json::Value, part: &str| {
            let value = &document[format!("device_{part}{figure}")];
            value.as_f64().or(value["mean"].as_f64()).unwrap()
        };
        // The same number of steps as an average device, or as the device itself.
        for other in [of(&plain, ""), of(&own, "alone_"), of(&local, "")] {
            let gain = match figure {
                "rmse" => other - of(&own, ""),
                _ => of(&own, "") - other,
            };
            assert!(gain > least, "{name}: {own} {plain} {local}");
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let place = Place::new();
    let run = |out: &str, threads: u32| {
        let method = "--set method=pmtl --set evaluate_every=0";
        let call = format!("run --out {out} --threads {threads} {method} {RUN}");
        place.smolfed(&call).success().json()
    };
    let read = |file: &str| std::fs::read(place.path(file)).unwrap();
    run("whole", 1);
    run("again", 4);
    assert_eq!(
        read("whole/model.safetensors"),
        read("again/model.safetensors")
    );
    assert_eq!(read("whole/personal.json"), read("again/personal.json"));
}

#[test]
fn personal_models_that_are_cut_or_foreign_are_refused() {
    let place = Place::new();
    let run = |out: &str, seed: u32| {
        let call = format!("run --out {out} --seed {seed} --set method=pmtl {RUN}");
        place.smolfed(&call).success();
    };
    run("one", 1);
    run("two", 2);
    let resumed_is_refused = |word| {
        place.smolfed("run --resume one").refused(2, &[word]);
    };
    let path = place.path("one/personal.states");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    resumed_is_refused("personal.states are damaged");
    std::fs::copy(place.path("two/personal.states"), &path).unwrap();
    resumed_is_refused("belong to another run");
    // States with single changed bits, and no state at all.
    let mut changed = whole.clone();
    for byte in changed.iter_mut().skip(200).step_by(997) {
        *byte ^= 1;
    }
    std::fs::write(&path, &changed).unwrap();
    resumed_is_refused("damaged");
    std::fs::remove_file(&path).unwrap();
    resumed_is_refused("personal.states");

    // A finished run is resumed with its figures.
    std::fs::write(&path, &whole).unwrap();
    let again = place.smolfed("run --resume one --json").success().json();
    assert!(again["device_accuracy"].is_f64(), "{again}");
}

#[test]
fn invalid_and_contradictory_settings_are_refused_in_a_sentence() {
    let place = Place::new();
    for (settings, word) in [
        (
            "--set method=pmtl --set personalise.lambda=-1",
            "personalise.lambda",
        ),
        (
            "--set method=pmtl --set personalise.local_steps=0",
            "personalise.local_steps",
        ),
        ("--set method=dpfedmtl", "model.hidden"),
        (
            "--set model.hidden=8 --set personalise.fine_tune=ewc",
            "mean-regularised",
        ),
        (
            "--set method=fedprox --set train.proximal=1",
            "personalise.lambda",
        ),
        ("--set data.device_test=0.9", "data.device_test"),
        ("--set cohort.weighting=samples", "cohort.weight_cap"),
        ("--set cohort.weight_cap=5", "cohort.weighting"),
        (
            "--set cohort.weighting=samples --set cohort.weight_cap=5 \
             --set cohort.denominator=realised",
            "cohort.denominator",
        ),
        (
            "--set method=pmtl --set personalise.update=mean-over-all \
             --set cohort.denominator=realised",
            "mean-over-all",
        ),
        (
            "--set method=dpfedmtl --set model.hidden=4 --set personalise.noise_scale=as-printed",
            "privacy.noise_multiplier",
        ),
        ("--set method=pmtl --set train.proximal=1", "train.proximal"),
        (
            "--set method=local --set privacy.epsilon=-3",
            "privacy.epsilon",
        ),
    ] {
        let call = format!("run --out none {settings} --set server.smoothing_factor=0");
        place.smolfed(&call).refused(2, &[word]);
        assert!(!place.path("none").exists());
    }
}

#[test]
fn a_sweep_covers_methods_and_strengths() {
    let place = Place::new();
    let sweep = "method = \"pmtl\"\nrounds = 4\n[data]\nsource = \"digits\"\ndevices = 20\n\
                 device_test = 0.25\n[cohort]\nsampling_rate = 0.5\n[privacy]\nclip_norm = 1\n\
                 [sweep]\nmetric = \"device_accuracy\"\n[sweep.grid]\n\
                 method = [\"pmtl\", \"local\", \"dp-fed\"]\n\
                 \"privacy.epsilon\" = [1, 8]\n\"personalise.lambda\" = [0.1, 1]\n";
    place.write("sweep.toml", sweep);
    let document = place.smolfed("sweep sweep.toml --json").success().json();
    assert_eq!(
        document["cells"].as_array().unwrap().len(),
        12,
        "{document}"
    );
}
