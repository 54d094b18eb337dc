//! The contract of the command line: exit codes, stdout and stderr.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Outcome, Place};
use crate::run_dir::rounds_done;

#[test]
fn json_is_one_document_with_the_keys_of_the_contract() {
    let place = Place::new();
    let outcome = place
        .smolfed("run --json --out run --set rounds=2")
        .success();
    assert_eq!(outcome.stderr, "", "no progress bar without a terminal");
    assert_eq!(outcome.stdout.lines().count(), 1);
    let document = outcome.json();
    assert_eq!(document["method"], "dp-fed-ls");
    assert_eq!(document["rounds"], 2);
    assert_eq!(document["devices"], 280);
    assert_eq!(document["out"], "run");
    for key in ["test_accuracy", "epsilon", "delta", "seconds"] {
        assert!(document[key].is_f64(), "{key}: {document}");
    }
    assert!(document["epsilon"].as_f64().unwrap() <= 8.0);
    // The statement has everything that the contract requires of an epsilon.
    for key in [
        "delta",
        "unit",
        "adjacency",
        "trust",
        "sampling",
        "accountant",
    ] {
        assert!(!document["privacy"][0][key].is_null(), "{key}: {document}");
    }
    assert_eq!(document["privacy"][0]["is_upper_bound"], true);
}

#[test]
fn a_run_says_more_or_nothing() {
    let place = Place::new();
    let run = |flags: &str| {
        let settings = "--set rounds=2 --set server.smoothing_factor= --set server.denoiser=auto";
        place.smolfed(&format!("run {settings} {flags}")).success()
    };
    let verbose = run("-v --json --out verbose");
    let lines: Vec<&str> = verbose.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{verbose}");
    for (line, start) in lines
        .iter()
        .zip(["round 1: accuracy ", "round 2: accuracy "])
    {
        assert!(
            line.starts_with(start) && line.contains(", filter \""),
            "{line}"
        );
    }
    let quiet = run("-q --out quiet");
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(rounds_done(&place.path("quiet")), 2);
    // One line has everything that an epsilon requires. `-v` prints the statement.
    let usual = run("--out usual").stdout;
    let line = usual.lines().find(|line| line.contains("epsilon = "));
    let line = line.unwrap();
    for part in [
        "delta = ",
        "one device",
        "a proved upper bound",
        "the server is trusted",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert!(
        usual.lines().count() < 10 && !usual.contains("This holds if"),
        "{usual}"
    );
    assert!(run("-v --out whole").stdout.contains("This holds if"));
    // Colours are for terminals, unless requested.
    assert!(!usual.contains('\u{1b}'));
    assert!(
        run("--out colours --color always")
            .stdout
            .contains("\u{1b}[1m")
    );
}

#[test]
fn more_than_a_machine_has_is_refused() {
    let place = Place::new();
    for (flags, sentence) in [
        (
            "--threads 2000",
            "`--threads 2000`: at most 1024; without it there is one per core",
        ),
        (
            "--set model.hidden=1000000000",
            "`model.hidden` = 1000000000 asks for 75000000010 parameters, but at most 268435456 \
             are supported",
        ),
    ] {
        place
            .smolfed(&format!("run {flags}"))
            .refused(2, &[sentence]);
    }
}

/// Runs `smolfed run --json | head -c 10`.
#[test]
fn whoever_has_read_enough_may_leave() {
    let place = Place::new();
    let mut child = place.start("run --json --out run --set rounds=1");
    drop(child.stdout.take());
    let outcome = Outcome::of(child.wait_with_output().unwrap(), "run --json");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
fn shells_and_manual_pages_know_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.smolfed(&format!("completions {shell}")).success();
        for word in ["account", "resume", "checkpoint-every"] {
            assert!(script.stdout.contains(word), "{shell}: no {word}");
        }
    }
    let bad = place.smolfed("completions dos");
    assert_eq!(bad.code, Some(2), "{bad}");
    place.smolfed("man pages").success();
    let page = std::fs::read_to_string(place.path("pages/smolfed-run.1")).unwrap();
    assert!(
        page.contains("checkpoint") && page.contains("Examples:"),
        "{page}"
    );
    assert!(place.path("pages/smolfed.1").is_file());
    place.write("file", "");
    let refused = place.smolfed("man file/pages");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused
            .stderr
            .starts_with("error: cannot write to file/pages: "),
        "{refused}"
    );
}

#[test]
fn regression_reports_an_error_in_place_of_an_accuracy() {
    let place = Place::new();
    let rows: String = (0..200).map(|i| format!("{},{}\n", i % 7, i % 5)).collect();
    place.write("table.csv", format!("x,y\n{rows}"));
    place.write(
        "experiment.toml",
        "method = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"csv\"\npath = \"table.csv\"\n\
         label = \"y\"\ntask = \"regression\"\ndevices = 10\n[cohort]\ncohort_size = 5\n",
    );
    let outcome = place
        .smolfed("run experiment.toml --json --out run")
        .success();
    let document = outcome.json();
    assert!(document["test_rmse"].is_f64(), "{document}");
    assert_eq!(document["test_accuracy"], Value::Null);
    assert_eq!(
        document["epsilon"],
        Value::Null,
        "no noise, no finite epsilon"
    );
}

#[test]
fn text_is_for_people() {
    let place = Place::new();
    let outcome = place.smolfed("run --out run --set rounds=2").success();
    assert!(outcome.stdout.contains("test accuracy"), "{outcome}");
    assert!(outcome.stdout.contains("written to run"), "{outcome}");
    assert!(
        !outcome.stdout.contains('\x1b'),
        "no colour without a terminal"
    );
}

#[test]
fn set_reaches_every_key_by_its_dotted_name() {
    let place = Place::new();
    let settings = [
        ("name", json!("other")),
        ("method", json!("dp-fed")),
        ("seed", json!(9)),
        ("rounds", json!(1)),
        ("evaluate_every", json!(3)),
        ("data.devices", json!(40)),
        ("data.samples_per_device", json!(7)),
        ("data.validation", json!(0.25)),
        ("data.test", json!(0.3)),
        ("model.kind", json!("softmax")),
        ("cohort.sampling", json!("uniform")),
        ("cohort.sampling_rate", json!(0.5)),
        ("cohort.denominator", json!("realised")),
        ("train.epochs", json!(2)),
        ("train.batch_size", json!(3)),
        ("train.learning_rate", json!(0.05)),
        ("train.learning_rate_decay", json!(0.9)),
        ("train.weight_decay", json!(0.001)),
        ("train.proximal", json!(0.25)),
        ("train.clip", json!("every-step")),
        ("train.gradient_smoothing", json!(0.5)),
        ("server.learning_rate", json!(0.75)),
        ("server.smoothing_factor", json!(0.0)),
        ("server.denoiser", json!("james-stein")),
        ("privacy.epsilon", json!(9.5)),
        ("privacy.delta", json!(0.01)),
        ("privacy.clip_norm", json!(0.7)),
        ("privacy.accountant", json!("rdp")),
        ("privacy.trust", json!("local")),
        ("privacy.grid_bits", json!(18)),
    ];
    let arguments: String = settings
        .iter()
        .map(|(key, value)| format!(" --set {key}={value}"))
        .collect();
    place
        .smolfed(&format!("run --json --out run{arguments}"))
        .success();
    let written = std::fs::read_to_string(place.path("run/config.toml")).unwrap();
    let mut table = "";
    let mut values = std::collections::BTreeMap::new();
    for line in written.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once(" = ") {
            let dot = if table.is_empty() { "" } else { "." };
            values.insert(format!("{table}{dot}{key}"), value.to_owned());
        }
    }
    for (key, value) in settings {
        assert_eq!(
            values.get(key),
            Some(&value.to_string()),
            "{key}:\n{written}"
        );
    }
}

#[test]
fn the_last_setting_of_a_key_counts() {
    let place = Place::new();
    place
        .smolfed("run --out run --set rounds=5 --set rounds=2 --json")
        .success();
    assert_eq!(rounds_done(&place.path("run")), 2);
}

#[test]
fn a_run_without_a_name_for_its_directory_makes_one_below_runs() {
    let place = Place::new();
    let outcome = place.smolfed("run --json --set rounds=1").success();
    let document = outcome.json();
    let out = document["out"].as_str().unwrap();
    assert!(out.starts_with("runs/digits-"), "{out}");
    assert_eq!(rounds_done(&place.path(out)), 1);
}

#[test]
fn the_budget_ends_a_run_before_the_round_that_would_exceed_it() {
    let place = Place::new();
    place.write(
        "experiment.toml",
        "method = \"dp-fed\"\nrounds = 50\n[data]\nsource = \"digits\"\ndevices = 100\n\
         [cohort]\ncohort_size = 20\n[privacy]\nnoise_multiplier = 1.0\nclip_norm = 0.5\n\
         max_epsilon = 6.0\n",
    );
    let outcome = place.smolfed("run experiment.toml --json --out run");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let document = outcome.json();
    let rounds = document["rounds"].as_u64().unwrap();
    assert!((1..50).contains(&rounds), "{document}");
    assert!(document["epsilon"].as_f64().unwrap() <= 6.0, "{document}");
    assert!(outcome.stderr.contains("above the limit of 6"), "{outcome}");
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let place = Place::new();
    let help = place.smolfed("--help").success();
    let commands = help
        .stdout
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        // Descriptions continue further right.
        .filter(|command| !command.is_empty() && *command != "help");
    let mut count = 0;
    for command in commands {
        let help = place.smolfed(&format!("{command} --help")).success();
        assert!(
            help.stdout.contains("Example"),
            "{command}: {}",
            help.stdout
        );
        let wide = help.stdout.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{command}");
        count += 1;
    }
    assert!(count >= 1, "{}", help.stdout);
    place.smolfed("--version").success();
    assert_eq!(place.names(), [""; 0]);
}

/// Returns the first line of a command's help, without its full stop.
fn purpose(place: &Place, command: &str) -> String {
    let help = place.smolfed(&format!("{command} --help")).success();
    let line = help.stdout.lines().next().unwrap_or_default();
    line.trim_end_matches('.').to_owned()
}

/// `WRITE_COMMANDS=1` writes the tables instead of comparing them.
#[test]
fn tables_of_commands_are_printed_from_the_help() {
    let (place, mut count) = (Place::new(), 0);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let (mut expected, mut is_table) = (String::new(), false);
        for line in text.lines() {
            let row = line.strip_prefix("| `").and_then(|row| row.split_once('`'));
            match row {
                Some((call, _)) if is_table => {
                    let words = call.split_whitespace().filter(|word| *word != "smolfed");
                    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
                    let command: Vec<&str> = words.take_while(is_name).collect();
                    let purpose = purpose(&place, &command.join(" "));
                    expected += &format!("| `{call}` | {purpose} |\n");
                    count += 1;
                    continue;
                }
                _ => is_table &= line.is_empty() || line.starts_with('|'),
            }
            is_table |= line == "<!-- commands -->";
            expected += line;
            expected.push('\n');
        }
        if std::env::var_os("WRITE_COMMANDS").is_some() && expected != text {
            std::fs::write(&path, expected).unwrap();
            continue;
        }
        let advice = "WRITE_COMMANDS=1 cargo test -p smolfed-tests tables_of_commands";
        assert!(
            text.is_empty() || text == expected,
            "{}: {advice}",
            path.display()
        );
    }
    assert!(count > 5, "{count}");
}

#[test]
fn bad_usage_ends_with_code_2() {
    let place = Place::new();
    for call in [
        "walk",
        "run --fly",
        "run a.toml b.toml",
        "run --threads 0",
        "run --threads many",
        "run --seed one",
        "run --set rounds",
        "run --resume run --seed 1",
        "run experiment.toml --resume run",
    ] {
        let outcome = place.smolfed(call);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.starts_with("error: "), "{outcome}");
    }
    assert_eq!(place.names(), [""; 0]);
}
