//! Invalid experiments: one sentence that names the key, exit code 2, nothing written.

use crate::program::Place;

/// A valid experiment. Each test invalidates one part of it.
const VALID: &str = r#"
name = "valid"
method = "dp-fed-ls"
rounds = 3

[data]
source = "digits"
devices = 100

[cohort]
cohort_size = 20

[server]
smoothing_factor = 1.0

[privacy]
epsilon = 8.0
clip_norm = 0.5
"#;

/// Replaces `from` by `to` in [`VALID`] and expects a refusal with all of `words`.
#[track_caller]
fn refused(from: &str, to: &str, words: &[&str]) {
    assert_eq!(VALID.matches(from).count(), 1, "{from}");
    let place = Place::new();
    place.write("experiment.toml", VALID.replace(from, to));
    let outcome = place.smolfed("run experiment.toml --json");
    outcome.refused(2, words);
    assert_eq!(place.names(), ["experiment.toml"], "nothing is written");
}

#[test]
fn the_valid_experiment_runs() {
    let place = Place::new();
    place.write("experiment.toml", VALID);
    place.smolfed("run experiment.toml --json").success();
}

#[test]
fn unknown_keys_and_values_are_named_with_their_line() {
    let file = "experiment.toml: line ";
    refused(
        "rounds = 3",
        "round = 3",
        &[file, "4", "`round`", "`rounds`"],
    );
    refused(
        "epsilon = 8.0",
        "eps = 8.0",
        &[file, "17", "`eps`", "`epsilon`"],
    );
    refused("[server]", "[sever]", &[file, "`sever`", "`server`"]);
    refused(
        "\"dp-fed-ls\"",
        "\"dp\"",
        &[file, "3", "`dp`", "`dp-fed-ls`"],
    );
    refused(
        "\"digits\"",
        "\"digit\"",
        &[file, "7", "`digit`", "`digits`"],
    );
}

#[test]
fn wrong_types_and_missing_keys_are_named() {
    let file = "experiment.toml: line ";
    refused(
        "rounds = 3",
        "rounds = \"three\"",
        &[file, "4", "three", "whole number"],
    );
    refused(
        "rounds = 3",
        "rounds = -3",
        &[file, "4", "-3", "whole number"],
    );
    refused(
        "rounds = 3",
        "rounds = 3.5",
        &[file, "4", "3.5", "whole number"],
    );
    refused("rounds = 3", "", &["experiment.toml", "`rounds`"]);
    refused("method = \"dp-fed-ls\"", "", &["`method`"]);
    refused("source = \"digits\"", "", &["`source`"]);
    refused("rounds = 3", "rounds = [", &[file]);
    refused(
        "rounds = 3",
        "rounds = 3\nrounds = 4",
        &[file, "5", "duplicate"],
    );
}

#[test]
fn an_experiment_that_is_no_text_or_not_there_is_named() {
    let place = Place::new();
    place.write("bytes.toml", [0xff, 0xfe, 0x00]);
    for file in ["bytes.toml", "missing.toml", "."] {
        let outcome = place.smolfed(&format!("run {file}"));
        outcome.refused(2, &[file]);
    }
    assert_eq!(place.names(), ["bytes.toml"]);
}

#[test]
fn a_clip_norm_is_a_number_or_adaptive() {
    let text = "clip_norm = \"adaptve\"";
    refused("clip_norm = 0.5", text, &["a number or \"adaptive\""]);
}

#[test]
fn numbers_out_of_range_are_named_with_their_value() {
    for value in ["0", "-1.0", "nan"] {
        let text = format!("epsilon = {value}");
        refused("epsilon = 8.0", &text, &["`privacy.epsilon`", "above 0"]);
    }
    for value in [
        "0",
        "0.0",
        "1",
        "1.0",
        "-0.1",
        "7",
        "nan",
        "\"1/N^-2\"",
        "\"x\"",
    ] {
        let text = format!("epsilon = 8.0\ndelta = {value}");
        refused("epsilon = 8.0", &text, &["delta"]);
    }
    for value in ["0", "-0.5", "nan", "inf", "1e300", "1e-300"] {
        let text = format!("clip_norm = {value}");
        refused("clip_norm = 0.5", &text, &["`privacy.clip_norm`"]);
    }
    refused("rounds = 3", "rounds = 0", &["`rounds` is 0", "at least 1"]);
    for (key, value) in [
        ("epochs", "0"),
        ("batch_size", "0"),
        ("learning_rate", "0"),
        ("learning_rate", "-0.1"),
        ("learning_rate", "nan"),
        ("learning_rate_decay", "0"),
        ("learning_rate_decay", "1.5"),
        ("weight_decay", "-1"),
        ("proximal", "inf"),
        ("gradient_smoothing", "-1"),
        ("gradient_smoothing", "nan"),
        ("gradient_smoothing", "257"),
    ] {
        let text = format!("[train]\n{key} = {value}\n[server]");
        refused("[server]", &text, &[&format!("`train.{key}`")]);
    }
    refused(
        "factor = 1.0",
        "factor = -1.0",
        &["`server.smoothing_factor`"],
    );
    refused(
        "factor = 1.0",
        "factor = inf",
        &["`server.smoothing_factor`"],
    );
    refused(
        "factor = 1.0",
        "factor = 1.0\nlearning_rate = 0",
        &["`server.learning_rate`"],
    );
    refused(
        "clip_norm = 0.5",
        "clip_norm = 0.5\ngrid_bits = 99",
        &["`privacy.grid_bits` is 99"],
    );
    refused(
        "devices = 100",
        "devices = 0",
        &["`data.devices` is 0", "at least 1"],
    );
    refused(
        "devices = 100",
        "devices = 100\ntest = 2.0",
        &["line ", "2"],
    );
}

#[test]
fn cohorts_must_fit_the_federation() {
    refused(
        "cohort_size = 20",
        "cohort_size = 101",
        &["`cohort.cohort_size` is 101", "100"],
    );
    refused(
        "cohort_size = 20",
        "cohort_size = 0",
        &["`cohort.cohort_size` is 0"],
    );
    refused(
        "cohort_size = 20",
        "cohort_size = 101\nsampling = \"poisson\"",
        &["`cohort.cohort_size` is 101", "100"],
    );
    for rate in ["0", "1.5", "-1", "nan"] {
        let text = format!("sampling_rate = {rate}");
        refused("cohort_size = 20", &text, &["`cohort.sampling_rate`"]);
    }
    refused("cohort_size = 20", "", &["`cohort.cohort_size` is missing"]);
    refused(
        "cohort_size = 20",
        "cohort_size = 20\nsampling_rate = 0.2",
        &[
            "`cohort.cohort_size`",
            "`cohort.sampling_rate`",
            "contradict",
        ],
    );
    refused(
        "cohort_size = 20",
        "cohort_size = 20\nsampling = \"full\"",
        &["`cohort.sampling`", "contradict"],
    );
}

#[test]
fn contradictory_noise_settings_are_named() {
    for other in [
        "noise_multiplier = 1.0",
        "noise_std = 0.5",
        "max_epsilon = 9.0",
    ] {
        let key = other.split(' ').next().unwrap();
        refused(
            "epsilon = 8.0",
            &format!("epsilon = 8.0\n{other}"),
            &[
                "`privacy.epsilon`",
                &format!("`privacy.{key}`"),
                "contradict",
            ],
        );
    }
    refused(
        "epsilon = 8.0",
        "noise_multiplier = 1.0\nnoise_std = 0.5",
        &[
            "`privacy.noise_multiplier`",
            "`privacy.noise_std`",
            "contradict",
        ],
    );
    refused("clip_norm = 0.5", "", &["`privacy.clip_norm` is missing"]);
    refused(
        "epsilon = 8.0",
        "noise_multiplier = -1.0",
        &["`privacy.noise_multiplier`"],
    );
    refused("epsilon = 8.0", "noise_std = nan", &["`privacy.noise_std`"]);
    refused(
        "epsilon = 8.0",
        "noise_multiplier = 1e300",
        &["`privacy.noise_multiplier`"],
    );
    refused(
        "\"dp-fed-ls\"",
        "\"dp-fed\"",
        &["`method`", "`server.smoothing_factor`", "contradict"],
    );
    refused(
        "factor = 1.0",
        "factor = 1.0\ndenoiser = \"james-stein\"",
        &[
            "`server.denoiser`",
            "`server.smoothing_factor`",
            "contradict",
        ],
    );
}

#[test]
fn a_theorem_whose_side_conditions_cannot_hold_is_refused_before_the_start() {
    refused(
        "epsilon = 8.0",
        "epsilon = 0.001\naccountant = \"theorem-1\"",
        &["`privacy.epsilon` is 0.001", "infeasible", "theorem-1"],
    );
    // The theorem for the other sampling scheme.
    refused(
        "epsilon = 8.0",
        "epsilon = 8.0\naccountant = \"theorem-2\"",
        &["theorem-2"],
    );
    refused(
        "epsilon = 8.0",
        "epsilon = 8.0\naccountant = \"theorem-9\"",
        &["`theorem-9`", "rdp"],
    );
}

#[test]
fn a_model_that_does_not_fit_the_data_is_refused() {
    refused(
        "[cohort]",
        "[model]\nkind = \"linear\"\n[cohort]",
        &["`model.kind` is \"linear\""],
    );
    refused(
        "[cohort]",
        "[model]\nkind = \"logistic\"\n[cohort]",
        &["10 classes", "\"softmax\""],
    );
    refused(
        "factor = 1.0",
        "factor = 1.0\naxes = [7, 9]",
        &["`server.axes` is [7, 9]", "64"],
    );
    refused(
        "factor = 1.0",
        "factor = 1.0\naxes = [9223372036854775807, 4]",
        &["`server.axes`", "64"],
    );
}

#[test]
fn a_name_cannot_lead_out_of_the_folder_of_runs() {
    for name in [
        "../../elsewhere",
        "/tmp/elsewhere",
        "a/b",
        "..",
        "",
        ".hidden",
        "a\\\\b",
    ] {
        refused("\"valid\"", &format!("\"{name}\""), &["`name` is"]);
    }
    refused(
        "\"valid\"",
        &format!("\"{}\"", "x".repeat(300)),
        &["`name` is"],
    );
}

#[test]
fn settings_of_the_command_line_are_refused_like_those_of_the_file() {
    let place = Place::new();
    for (call, words) in [
        ("--set nope=1", "`nope`"),
        ("--set privacy.nope=1", "`privacy`: unknown key `nope`"),
        ("--set rounds=abc", "`rounds` is \"abc\", but must be"),
        ("--set privacy.delta=2", "`privacy.delta`: "),
        ("--set rounds.of=1", "`rounds` is a value, not a table"),
        ("--set privacy.epsilon=0", "`privacy.epsilon`"),
        ("--set seed=-1", "`seed` is -1, but must be a whole number"),
        ("--set cohort.cohort_size=5", "`cohort.sampling_rate`"),
    ] {
        let outcome = place.smolfed(&format!("run {call}"));
        outcome.refused(2, &[words]);
    }
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn keys_of_constants_and_of_private_scales_are_checked() {
    for (keys, words) in [
        ("scale = { min = 1, max = 1 }", ["min = 1", "min below max"]),
        ("scale = { min = 1 }", ["min = ..", "mean = .."]),
        (
            "scale = { mean = 0, std = [1, 0] }",
            ["std = 0", "std above 0"],
        ),
        ("scale = \"zscore\"", ["`zscore`", "`private`"]),
        (
            "bounds = { min = 0, max = 1 }",
            ["`data.bounds`", "no effect"],
        ),
        ("scale_share = 0.5", ["`data.scale_share`", "no effect"]),
        (
            "scale = \"private\"\nscale_share = 1",
            ["`data.scale_share` is 1", "below 1"],
        ),
        (
            "scale = \"private\"\nscale_noise_multiplier = 0",
            ["`data.scale_noise_multiplier` is 0", "above 0"],
        ),
        (
            "scale = \"private\"\nscale_share = 0.5\nscale_noise_multiplier = 3",
            ["`data.scale_noise_multiplier` is 3", "`data.scale_share`"],
        ),
        (
            "scale = \"private\"\nscale_noise_multiplier = 1e300",
            ["`data.scale_noise_multiplier`", "grid"],
        ),
        ("classes = [\"a\", \"b\"]", ["`data.classes`", "no effect"]),
        (
            "unknown_labels = \"drop\"",
            ["`data.unknown_labels`", "no effect"],
        ),
        ("missing = 0", ["`data.missing`", "no effect"]),
    ] {
        let to = format!("devices = 100\n{keys}");
        refused("devices = 100", &to, &words);
    }
    let csv = "source = \"csv\"\npath = \"a.csv\"\nlabel = \"y\"";
    for (keys, words) in [
        ("classes = [\"a\", \"a\"]", ["`data.classes`", "`a` twice"]),
        ("classes = 1", ["`data.classes` is 1", "from 2"]),
        ("classes = [\"a\", \"\"]", ["`data.classes`", "empty name"]),
        (
            "unknown_labels = \"drop\"",
            ["`data.unknown_labels`", "without `data.classes`"],
        ),
        ("missing = \"median\"", ["missing", "\"mean\", a number"]),
        (
            "task = \"regression\"\nclasses = 2",
            ["`data.classes`", "no effect"],
        ),
    ] {
        refused("source = \"digits\"", &format!("{csv}\n{keys}"), &words);
    }
}

/// Answers that once failed newcomers. Each is a sentence that says what to type.
#[test]
fn a_newcomer_is_told_what_to_type() {
    let place = Place::new();
    place.write("empty.toml", "\n");
    let alone = VALID.replace("devices = 100", "devices = 1");
    place.write(
        "alone.toml",
        alone.replace("cohort_size = 20", "sampling = \"full\""),
    );
    for (call, words) in [
        (
            "run empty.toml",
            "empty.toml is empty: `smolfed init DATA > empty.toml`",
        ),
        (
            "run alone.toml",
            "with a single device, 1/N^p is 1: write a number such as 1e-5",
        ),
        (
            "run --set privacy.clip_norm=0",
            "`privacy.clip_norm` is 0: it must be above 0",
        ),
        (
            "run --set privacy.clip_norm=-1",
            "`privacy.clip_norm` is -1: it must be above 0",
        ),
        (
            "run --set method=fedsc",
            "leave `privacy.epsilon` out (`--set privacy.epsilon=`)",
        ),
    ] {
        place.smolfed(call).refused(2, &[words]);
    }
}

/// An infinite epsilon was requested, and gives a warning.
#[test]
fn an_infinite_epsilon_is_warned_of() {
    let place = Place::new();
    let run = "run --out run --set rounds=1 --set privacy.epsilon=inf";
    let outcome = place.smolfed(run).success();
    assert!(
        outcome
            .stderr
            .starts_with("warning: `privacy.epsilon` is inf"),
        "{outcome}"
    );
    assert!(
        outcome.stdout.contains("280 devices, 1 round in "),
        "{outcome}"
    );
}

/// A failed run cannot be resumed. A second run with the same directory moves it aside. A sweep
/// does not mix its files with those of a run.
#[test]
fn directories_of_runs_are_not_written_to() {
    let place = Place::new();
    let failing = "run --out failed --set method=fedsc --set privacy.epsilon= \
                   --set privacy.noise_multiplier=0";
    place
        .smolfed(failing)
        .refused(1, &["every device of the cohort was left out"]);
    let again = place.smolfed(failing);
    assert!(
        again.stderr.contains("it is failed-failed-1 now"),
        "{again}"
    );
    let again = place
        .smolfed("run -q --out failed --set rounds=1")
        .success();
    assert!(
        again.stderr.contains("it is failed-failed-2 now"),
        "{again}"
    );
    for kept in ["failed-failed-1", "failed-failed-2"] {
        let ledger = place.path(format!("{kept}/ledger.jsonl"));
        assert!(std::fs::metadata(ledger).unwrap().len() > 0, "{kept}");
    }
    place.smolfed("run -q --out run --set rounds=1").success();
    place
        .smolfed("run --out run")
        .refused(2, &["run already exists", "--resume run"]);
    place.write("sweep.toml", format!("{VALID}[sweep]\nseeds = 1\n"));
    let sweep = place.smolfed("sweep sweep.toml --out run");
    sweep.refused(2, &["`--out run` is the directory of a run"]);
}
