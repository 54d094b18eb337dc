//! Private selection: `smolfed sweep` with `sweep.choose = "private"`.

use serde_json::Value;

use crate::program::Place;

const EXPERIMENT: &str = r#"
name = "selection"
method = "dp-fed-ls"
seed = 3
rounds = 3
[data]
source = "digits"
devices = 60
samples_per_device = 12
device_validation = 0.25
scale = "unit"
[cohort]
sampling = "poisson"
sampling_rate = 0.5
[train]
epochs = 1
[privacy]
epsilon = 4
"#;

const SWEEP: &str = r#"
[sweep]
choose = "private"
[sweep.private.grid]
"privacy.clip_norm" = [0.1, 0.5, 2.0]
"#;

fn figure(value: &Value, path: &[&str]) -> f64 {
    let found = path.iter().fold(value, |value, key| &value[*key]);
    found
        .as_f64()
        .unwrap_or_else(|| panic!("{path:?} in {value}"))
}

/// Asserts that no figure is a bound: the selection released more than the chosen trial's charges.
fn no_figure_of_the_ledger_is_a_bound(place: &Place) {
    let ledger = place
        .smolfed("account --ledger out/chosen/ledger.jsonl")
        .success();
    assert!(
        ledger.stdout.contains("best of several private trials"),
        "{ledger}"
    );
    assert!(!ledger.stdout.contains("upper bound"), "{ledger}");
    let ledger = place
        .smolfed("account --ledger out/chosen/ledger.jsonl --json")
        .success()
        .json();
    assert_eq!(ledger["is_upper_bound"], false);
    for answer in ledger["accountants"].as_array().unwrap() {
        assert_ne!(answer["is_upper_bound"], true, "{answer}");
    }
}

/// The chosen run is an ordinary run directory with the statement of the selection. Nothing of the
/// other runs is on disk or in the output.
#[test]
fn the_chosen_run_alone_is_written_and_states_what_the_selection_costs() {
    let place = Place::new();
    place.write("sweep.toml", format!("{EXPERIMENT}{SWEEP}"));
    let outcome = place.smolfed("sweep sweep.toml --out out").success();
    assert_eq!(outcome.stderr, "", "{outcome}");
    assert_eq!(place.names(), ["out", "sweep.toml"]);
    let names = |dir: &str| {
        let entries = std::fs::read_dir(place.path(dir)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names("out"),
        ["chosen", "results.jsonl", "table.csv", "table.md"]
    );
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let config: toml::Table = read("out/chosen/config.toml").parse().unwrap();
    assert_eq!(
        config["privacy"]["selection"]["seed"].as_str(),
        Some("secret")
    );
    let results = read("out/results.jsonl");
    assert_eq!(results.lines().count(), 1, "{results}");
    // Nothing reveals the duration of the selection.
    assert!(results.contains("\"seconds\":0.0"), "{results}");
    let time = |name: &str| {
        let metadata = std::fs::metadata(place.path(name)).unwrap();
        metadata.modified().unwrap()
    };
    for name in ["chosen", "chosen/config.toml", "results.jsonl", "table.md"] {
        assert_eq!(time("out"), time(&format!("out/{name}")), "{name}");
    }

    // Target, statement, metrics and table have the same epsilon. One trial costs less.
    let statements: Value = serde_json::from_str(&read("out/chosen/privacy.json")).unwrap();
    let epsilon = figure(&statements[0], &["epsilon"]);
    assert!(epsilon <= 4.0 && epsilon > 3.99, "{statements}");
    assert_eq!(statements[0]["selection"]["theorem"], 2);
    assert!((figure(&statements[0], &["selection", "mean_trials"]) - 8.0).abs() < 1e-9);
    let last: Value =
        serde_json::from_str(read("out/chosen/metrics.jsonl").lines().last().unwrap()).unwrap();
    assert!((figure(&last, &["epsilon"]) - epsilon).abs() < 1e-9);
    assert!(last["score"].is_number(), "{last}");
    let z = figure(&statements[0], &["noise_multiplier"]);
    let one_trial = format!(
        "account --noise-multiplier {z} --devices 60 --sampling poisson --cohort 30 --rounds 3 \
         --delta {} --json",
        figure(&statements[0], &["delta"])
    );
    let alone = place.smolfed(&one_trial).success().json();
    assert!(figure(&alone, &["epsilon"]) < 0.8 * epsilon, "{alone}");
    place.smolfed("account --verify out/chosen").success();
    no_figure_of_the_ledger_is_a_bound(&place);

    // When repeated, the command does not select again.
    let model = |name: &str| std::fs::read(place.path(name)).unwrap();
    let before = model("out/chosen/model.safetensors");
    place.smolfed("sweep sweep.toml --out out").success();
    assert_eq!(read("out/results.jsonl"), results);
    assert_eq!(model("out/chosen/model.safetensors"), before);
    place
        .smolfed("sweep sweep.toml --out out --fresh")
        .refused(2, &["already exists"]);
}

/// No file and no output has the secret from the operating system: not the statement's notes, which
/// name a known seed, nor the ledger or the configuration. The run directory can be read like any
/// other. Nothing repeats or resumes the run.
#[test]
fn the_randomness_of_a_secret_selection_is_nowhere_and_its_run_can_be_read() {
    let place = Place::new();
    let scale = EXPERIMENT.replace("\"unit\"", "\"private\"");
    for (out, experiment) in [("out", EXPERIMENT), ("scaled", scale.as_str())] {
        place.write("sweep.toml", format!("{experiment}{SWEEP}"));
        let call = format!("sweep sweep.toml --out {out}");
        let outcome = place.smolfed(&format!("{call} --json")).success();
        let chosen = format!("{out}/chosen");
        let read =
            |name: &str| std::fs::read_to_string(place.path(format!("{out}/{name}"))).unwrap();
        let texts = [
            outcome.stdout,
            read("table.md"),
            read("results.jsonl"),
            read("chosen/privacy.json"),
            read("chosen/ledger.jsonl"),
            read("chosen/config.toml"),
            read("chosen/report.html"),
        ];
        for text in texts {
            assert!(!text.contains("known seed"), "{text}");
            // Only the data's seed has a number.
            let numbers = text.match_indices("seed").filter(|(at, _)| {
                let rest = text[at + 4..].trim_start_matches(['"', ' ', ':', '=', 's', '[']);
                rest.starts_with(|next: char| next.is_ascii_digit()) && !rest.starts_with('3')
            });
            assert_eq!(numbers.count(), 0, "{text}");
        }
        for call in [
            format!("account --verify {chosen}"),
            format!("report {chosen}"),
            format!("runs {chosen}"),
            format!("export {chosen} --format c-header"),
        ] {
            place.smolfed(&call).success();
        }
        for call in [
            format!("run {chosen}/config.toml --out again"),
            format!("run --resume {chosen}"),
        ] {
            let words = [
                "its randomness was not kept",
                "neither repeated nor resumed",
            ];
            place.smolfed(&call).refused(2, &words);
        }
        assert!(!place.path("again").exists());
    }
}

/// Secret draws differ between calls. Draws from the seed do not, the statement says so, and the
/// chosen run can be repeated alone.
#[test]
fn trials_are_drawn_in_secret_unless_a_seed_is_asked_for() {
    let place = Place::new();
    place.write("sweep.toml", format!("{EXPERIMENT}{SWEEP}"));
    let model = |out: &str, more: &str| {
        let call = format!("sweep sweep.toml --out {out} {more}");
        place.smolfed(&call).success();
        std::fs::read(place.path(format!("{out}/chosen/model.safetensors"))).unwrap()
    };
    let notes =
        |out: &str| std::fs::read_to_string(place.path(format!("{out}/chosen/privacy.json")));
    assert_ne!(model("a", ""), model("b", ""));
    assert!(notes("a").unwrap().contains("from the operating system"));
    let seeded = "--set privacy.selection.seeded=true";
    assert_eq!(
        model("c", seeded),
        model("d", &format!("{seeded} --threads 1"))
    );
    assert!(notes("c").unwrap().contains("from the known seed 3"));
    place
        .smolfed("run c/chosen/config.toml --out again")
        .success();
    let again = std::fs::read(place.path("again/model.safetensors"));
    assert_eq!(again.unwrap(), model("e", seeded));
}

/// Selections with the same seed have the same noise, of which the statements tell. Secret ones
/// have their own.
#[test]
fn only_seeded_selections_share_their_noise() {
    let place = Place::new();
    let outer = "[sweep.grid]\n\"train.batch_size\" = [3, 6]\n";
    place.write("sweep.toml", format!("{EXPERIMENT}{SWEEP}{outer}"));
    for (out, seeded) in [("secret", false), ("seeded", true)] {
        let setting = format!("--set privacy.selection.seeded={seeded}");
        let call = format!("sweep sweep.toml --seeds 2 --out {out} {setting} --json");
        let document = place.smolfed(&call).success().json();
        let cells = document["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 2);
        for cell in cells {
            let conditions = cell["privacy"][0]["conditions"].to_string();
            for kind in ["known-seed", "shared-seed"] {
                assert_eq!(conditions.contains(kind), seeded, "{kind}: {conditions}");
            }
        }
        let table = std::fs::read_to_string(place.path(format!("{out}/table.md"))).unwrap();
        let sentences = ["with known seeds", "share each seed"];
        let told = sentences.map(|sentence| table.contains(sentence));
        assert_eq!(told, [seeded; 2], "{table}");
    }
}

#[test]
fn what_cannot_be_selected_in_private_is_refused() {
    let place = Place::new();
    let refused = |experiment: &str, sweep: &str, call: &str, words: &[&str]| {
        place.write("sweep.toml", format!("{experiment}{sweep}"));
        place
            .smolfed(&format!("sweep sweep.toml --out out {call}"))
            .refused(2, words);
        assert!(!place.path("out").join("chosen").exists());
    };
    let set = |settings: &str, words: &[&str]| {
        refused(EXPERIMENT, SWEEP, &format!("--set {settings}"), words);
    };
    set("privacy.trust=local", &["`privacy.trust`", "\"central\""]);
    set(
        "privacy.accountant=pld",
        &["`privacy.accountant`", "\"rdp\""],
    );
    set("privacy.ledger=fleet.jsonl", &["privacy.ledger"]);
    set("method=fedsc", &["matrices"]);
    set(
        "data.device_validation=0",
        &["`data.device_validation` is missing"],
    );
    set("sweep.choose_by=validation_accuracy", &["sweep.choose_by"]);
    let with = |sweep: &str, words: &[&str]| refused(EXPERIMENT, sweep, "", words);
    let choose = "[sweep]\nchoose = \"private\"\n";
    with(choose, &["`sweep.choose` needs candidates"]);
    with("[sweep]\nchoose = \"secret\"\n", &["\"private\""]);
    with(
        "[sweep.private.grid]\nrounds = [1, 2]\n",
        &["has no effect without `sweep.choose`"],
    );
    let grid = |grid: &str| format!("{choose}[sweep.private.grid]\n{grid}\n");
    let clip = "\"privacy.clip_norm\" = [1]";
    with(
        &grid(&format!("{clip}\nrounds = [1, 2]")),
        &["differ in rounds, cohorts, noise"],
    );
    with(
        &grid("\"data.devices\" = [20, 30]"),
        &["all trials are on the same data"],
    );
    with(
        &grid("\"privacy.selection.mean\" = [2, 3]"),
        &["part of the selection"],
    );
    // The number of trials is drawn once, so no candidate may have another distribution.
    with(
        &grid("\"privacy.selection\" = [{ mean = 100.0, seeded = true }, { mean = 2.0 }]"),
        &["part of the selection"],
    );
    let twice = grid(clip) + "[sweep.grid]\n\"privacy.clip_norm\" = [1, 2]\n";
    with(&twice, &["leave it to one of them"]);

    // Only a sweep draws trials.
    let table = format!("{EXPERIMENT}clip_norm = 1\n[privacy.selection]\n");
    place.write("run.toml", &table);
    let run = place.smolfed("run run.toml --out out");
    run.refused(2, &["`privacy.selection.seed` is missing", "smolfed sweep"]);
    place.write("trial.toml", format!("{table}seeded = true\nseed = 1\n"));
    let audit = place.smolfed("audit trial.toml --runs 20 --json");
    let checks = audit.success().json()["checks"].to_string();
    assert!(
        checks.contains("standard deviation of the noise on scores"),
        "{checks}"
    );
}
