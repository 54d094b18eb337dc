//! Runs' statements, in words, in `privacy.json`, and about figures on private data, and support
//! for run directories of earlier versions.

use std::path::Path;

use serde_json::Value;

use crate::program::Place;

/// Writes twelve natural devices of ten rows each, including two rows held out for testing.
fn natural_devices(place: &Place) {
    let mut table = "device,a,b,class\n".to_owned();
    for row in 0..120u32 {
        let [a, b] = [7, 11].map(|factor| f64::from(row * factor % 17) / 17.0);
        let class = if row % 3 == 0 { "x" } else { "y" };
        table += &format!("device-{},{a},{b},{class}\n", row % 12);
    }
    place.write("table.csv", table);
    place.write(
        "natural.toml",
        "name = \"natural\"\nmethod = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"csv\"\n\
         path = \"table.csv\"\nlabel = \"class\"\ndevice_column = \"device\"\ntest = 0.2\n\
         validation = 0\n[cohort]\nsampling = \"full\"\n[privacy]\nclip_norm = 0.5\n\
         noise_multiplier = 3\n",
    );
}

/// Clipped updates without noise give a warning, regardless of how this was requested.
#[test]
fn no_noise_is_said_of_an_infinite_epsilon_and_of_none() {
    let place = Place::new();
    natural_devices(&place);
    let run = |setting: &str| {
        let call = format!("run natural.toml --quiet --set rounds=1 --set {setting}");
        place.smolfed(&call).success().stderr
    };
    let words = "updates get no noise, and nothing protects them";
    assert!(run("privacy.noise_multiplier=").contains(words));
    let infinite = run("privacy={clip_norm=0.5,epsilon=inf}");
    assert!(infinite.contains("`privacy.epsilon` is inf") && infinite.contains(words));
    assert!(!run("privacy.noise_multiplier=2").contains(words));
}

/// The test rows of natural devices belong to the devices: figures on them have no noise.
#[test]
fn figures_on_devices_rows() {
    let place = Place::new();
    natural_devices(&place);
    let document = place
        .smolfed("run natural.toml --out run --json")
        .success()
        .json();
    let marked = document["simulation_only"].as_array().unwrap();
    assert!(marked.contains(&"test_accuracy".into()), "{document}");
    let read = |file: &str| std::fs::read_to_string(place.path(file)).unwrap();
    for line in read("run/metrics.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["test_is_simulation_only"], true, "{line}");
    }
    let report = read("run/report.html");
    assert!(report.contains("test*"), "the table of rounds");
    let tile = report.split("Test accuracy").nth(1).unwrap();
    assert!(tile[..400].contains("simulation only"), "{}", &tile[..400]);
    let outcome = place.smolfed("run natural.toml --out again").success();
    let quality = outcome
        .stdout
        .lines()
        .find(|line| line.contains("test accuracy"));
    assert!(quality.unwrap().contains("(simulation only)"), "{outcome}");

    // Rows of no device are like public ones.
    let call = "run --out public --set rounds=2 --json";
    let document = place.smolfed(call).success().json();
    let marked = document["simulation_only"].as_array().unwrap();
    assert!(!marked.contains(&"test_accuracy".into()), "{document}");
    assert!(!read("public/metrics.jsonl").contains("test_is_simulation_only"));
}

#[test]
fn a_statement_is_verified_against_its_ledger() {
    let place = Place::new();
    let settings = "--set rounds=3 --set evaluate_every=0";
    for method in [
        "dp-fed-ls",
        "fedprox",
        "pmtl",
        "dpfedmtl",
        "pp-sgd",
        "local",
        "fedsc",
    ] {
        let more = match method {
            "dp-fed-ls" => "--set privacy.trust=local",
            "dpfedmtl" => "--set personalise.private=biases --set server.smoothing_factor=0",
            "fedsc" => {
                "--set data.scale=unit --set contrast.width=4 --set contrast.privacy.epsilon=8 \
                 --set privacy.epsilon=inf --set server.smoothing_factor=0"
            }
            _ => "--set server.smoothing_factor=0",
        };
        let run = format!("run --out {method} --set method={method} {settings} {more}");
        place.smolfed(&run).success();
        let verified = place
            .smolfed(&format!("account --verify {method}"))
            .success();
        assert!(
            verified.stdout.contains("agrees with the ledger"),
            "{verified}"
        );
    }
    let document = place
        .smolfed("account --verify fedsc --json")
        .success()
        .json();
    assert_eq!(
        (&document["agrees"], &document["rounds"]),
        (&true.into(), &3.into())
    );

    let path = place.path("fedsc/privacy.json");
    let stated = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, stated.replacen("\"rounds\": 3", "\"rounds\": 2", 1)).unwrap();
    let differs = place.smolfed("account --verify fedsc");
    differs.refused(1, &["`rounds` of statement 1", "is 2", "give 3"]);
    let document = place.smolfed("account --verify fedsc --json");
    assert_eq!(document.code, Some(1), "{document}");
    let document = document.json();
    assert_eq!(document["differences"][0]["key"], "rounds", "{document}");
    let outcome = place.smolfed("account --verify nothing");
    outcome.refused(2, &["nothing is not a run directory"]);
}

/// Writes a run directory of commit 5bb8ecf.
fn unpack(place: &Place, name: &str) {
    let vectors = include_str!("../vectors/runs_5bb8ecf.json");
    let runs: Value = serde_json::from_str(vectors).unwrap();
    for (file, content) in runs["runs"][name].as_object().unwrap() {
        let path = place.path(Path::new(name).join(file));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let bytes = match content["hex"].as_str() {
            Some(hex) => (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
            None => content["text"].as_str().unwrap().as_bytes().to_vec(),
        };
        std::fs::write(path, bytes).unwrap();
    }
}

/// Run directories of an earlier version, stopped after 3 of 4 rounds, are reported and accounted
/// for. Their ledgers have no digests. They are not resumed, since the checkpoint has an earlier
/// format.
#[test]
fn run_directories_of_earlier_versions_are_read() {
    let place = Place::new();
    for name in ["dp-fed", "fedsc", "pmtl"] {
        unpack(&place, name);
        place.smolfed(&format!("report {name}")).success();
        let account = format!("account --ledger {name}/ledger.jsonl --delta 1e-3 --json");
        assert_eq!(place.smolfed(&account).success().json()["rounds"], 3);
        // It did not state the cost of the whole plan.
        let verified = place.smolfed(&format!("account --verify {name}"));
        verified.refused(1, &["in privacy.json is"]);
        let ledger = std::fs::read(place.path(name).join("ledger.jsonl")).unwrap();
        let resumed = place.smolfed(&format!("run --resume {name} --json"));
        let file = format!("{name}/checkpoint/state.safetensors was written by another version");
        assert_eq!(resumed.code, Some(2), "{resumed}");
        for words in [&file, "its format has version 1"] {
            assert!(resumed.stderr.contains(words), "{resumed}");
        }
        let after = std::fs::read(place.path(name).join("ledger.jsonl")).unwrap();
        assert_eq!(ledger, after, "nothing was charged");
    }
}

/// The releases of rounds charged by an earlier version and run again are unknown, so each round is
/// charged once more.
#[test]
fn rounds_that_an_earlier_version_lost_are_charged_again() {
    let place = Place::new();
    unpack(&place, "dp-fed");
    std::fs::remove_dir_all(place.path("dp-fed/checkpoint")).unwrap();
    let resumed = place.smolfed("run --resume dp-fed --json").success();
    let warning = "warning: 3 rounds, from round 0 to round 2, had been charged before";
    assert!(resumed.stderr.starts_with(warning), "{resumed}");
    let statement = &resumed.json()["privacy"][0];
    assert_eq!(
        (&statement["rounds"], &statement["is_upper_bound"]),
        (&7.into(), &false.into())
    );
    let account = place.smolfed("account --ledger dp-fed/ledger.jsonl --delta 1e-3 --json");
    let account = account.success().json();
    assert_eq!(
        (&account["rounds"], &account["is_upper_bound"]),
        (&7.into(), &false.into())
    );
    place.smolfed("account --verify dp-fed").success();
}
