//! Finished runs: `smolfed runs` lists and compares the runs in a folder, and writes formats of
//! other programs. The folder next to this file tests how runs end, resume and repeat.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Place, wait_until};
use crate::run_dir::rounds_done;

pub(crate) mod full_disk;
mod memory;
mod ranks;
mod resume;
mod same_bits;

/// Runs twice on the built-in data, with and without a bound on ε.
fn two_runs() -> Place {
    let place = Place::new();
    let run = |settings: &str| place.smolfed(&format!("run -q {settings}")).success();
    run("--set rounds=3 --out runs/a");
    run("--set rounds=2 --set privacy.epsilon= --set privacy.noise_multiplier=0 --out runs/b");
    place
}

/// Returns every file below a folder, by its path in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(path) = open.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => found.push(path.strip_prefix(folder).unwrap().to_path_buf()),
        }
    }
    found.sort();
    found
}

/// Returns the row about a run.
fn row<'a>(listing: &'a Value, run: &str) -> &'a Value {
    let mut rows = listing["runs"].as_array().unwrap().iter();
    rows.find(|row| row["run"] == run)
        .unwrap_or_else(|| panic!("{run}: {listing}"))
}

#[test]
fn every_run_is_a_row_and_a_broken_one_says_why() {
    let place = two_runs();
    let outcome = place.smolfed("runs").success();
    let line = |start: &str| {
        let mut lines = outcome.stdout.lines();
        let found = lines.find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {outcome}"))
    };
    for words in ["dp-fed-ls", " 3/3 ", "test accuracy", "1 per device [1]"] {
        assert!(line("runs/a ").contains(words), "{words}: {outcome}");
    }
    assert!(line("runs/a ").ends_with("complete"), "{outcome}");
    // Each epsilon comes with its status and its assumptions.
    for words in [
        "proved upper bound",
        "delta = ",
        "add-remove",
        "central",
        "poisson",
        "pld",
    ] {
        assert!(line("[1]").contains(words), "{words}: {outcome}");
    }
    assert!(line("runs/b ").contains("no bound [2]"), "{outcome}");
    assert!(
        line("[2]").contains("no privacy guarantee at all"),
        "{outcome}"
    );

    fs::write(
        place.path("runs/b/metrics.jsonl"),
        "{\"round\":0}\nno JSON\n",
    )
    .unwrap();
    fs::remove_file(place.path("runs/a/config.toml")).unwrap();
    let listing = place.smolfed("runs --json runs").success().json();
    for (run, words) in [("runs/a", "it has no config.toml"), ("runs/b", "line 2")] {
        assert_eq!(row(&listing, run)["state"], "broken");
        let reason = row(&listing, run)["reason"].as_str().unwrap();
        assert!(reason.contains(run) && reason.contains(words), "{reason}");
    }
    let outcome = place.smolfed("runs").success();
    assert_eq!(outcome.stdout.matches("broken: ").count(), 2, "{outcome}");
}

#[test]
fn the_listing_in_json_has_figures_and_statements() {
    let place = two_runs();
    let listing = place.smolfed("runs --json").success().json();
    let (a, b) = (row(&listing, "runs/a"), row(&listing, "runs/b"));
    assert_eq!((&a["rounds"], &a["rounds_planned"]), (&3.into(), &3.into()));
    assert_eq!(
        (&a["data"], &a["state"]),
        (&"digits".into(), &"complete".into())
    );
    assert_eq!(a["figure"]["name"], "test.accuracy");
    assert!(
        a["figure"]["value"].is_f64() && a["epsilon"].as_f64().unwrap() <= 1.0,
        "{a}"
    );
    assert_eq!(a["privacy"][0]["adjacency"], "add-remove");
    assert!(
        b["epsilon"].is_null() && b["privacy"][0]["delta"].is_f64(),
        "{b}"
    );
}

#[test]
fn a_run_that_goes_on_is_running_and_one_that_is_killed_unfinished() {
    let place = Place::new();
    let mut child = place.start("run -q --set rounds=1000000 --set evaluate_every=0 --out run");
    wait_until(|| rounds_done(&place.path("run")) > 0);
    let state = || place.smolfed("runs --json").success().json()["runs"][0].clone();
    let running = state();
    assert_eq!(running["state"], "running", "{running}");
    assert!(running["epsilon"].is_f64() && running["privacy"] == serde_json::json!([]));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state()["state"], "unfinished");
    let text = place.smolfed("runs").success().stdout;
    assert!(
        text.contains(" so far [1]") && text.contains("/1000000"),
        "{text}"
    );
}

/// A stopped run's statement covers too few rounds once the run is resumed and interrupted.
#[test]
fn a_statement_is_shown_only_if_it_covers_every_round() {
    let place = two_runs();
    let path = place.path("runs/a/config.toml");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("rounds = 3", "rounds = 9")).unwrap();
    let line = || {
        let stdout = place.smolfed("runs runs/a").success().stdout;
        stdout.lines().nth(1).unwrap().to_owned()
    };
    assert!(
        line().contains(" 3/9 ") && line().contains("1 per device"),
        "{}",
        line()
    );
    let path = place.path("runs/a/metrics.jsonl");
    let metrics = fs::read_to_string(&path).unwrap();
    fs::write(&path, metrics + "{\"round\":3,\"epsilon\":1.25}\n").unwrap();
    assert!(
        line().contains(" 4/9 ") && line().contains("1.25 so far [1]"),
        "{}",
        line()
    );
    assert!(line().ends_with("unfinished"), "{}", line());
}

#[test]
fn folders_without_runs_get_a_sentence_and_sweeps_a_row() {
    let place = Place::new();
    let nothing = place.smolfed("runs").success();
    assert!(
        nothing.stdout.starts_with("there is no run in . or below"),
        "{nothing}"
    );
    let listing = place.smolfed("runs --json").success().json();
    assert_eq!(listing["runs"], serde_json::json!([]));
    place
        .smolfed("runs missing")
        .refused(2, &["missing is not a folder"]);

    let sweep = "name = 'small'\nmethod = 'dp-fed-ls'\nrounds = 1\n[data]\nsource = 'digits'\n\
                 devices = 40\nscale = 'none'\n[cohort]\ncohort_size = 10\n[privacy]\n\
                 clip_norm = 0.5\nnoise_multiplier = 1\n[sweep]\nseeds = 2\n";
    place.write("sweep.toml", sweep);
    place.smolfed("sweep sweep.toml --out sweep").success();
    let listing = place.smolfed("runs --json").success().json();
    assert_eq!(row(&listing, "sweep")["state"], "sweep");
    assert_eq!(row(&listing, "sweep")["runs"], 2);
    let refused = place.smolfed("runs export sweep --format csv --out x.csv");
    refused.refused(2, &["sweep is a sweep", "sweep/table.csv"]);
}

#[test]
fn runs_are_compared_by_figures_and_keys_that_differ() {
    let place = two_runs();
    let command = "runs compare runs/a runs/b";
    let outcome = place
        .smolfed(&format!("{command} --html page.html"))
        .success();
    for words in [
        "test.accuracy, best",
        "(round ",
        "no bound [2]",
        "written to page.html",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {outcome}");
    }
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    for words in [
        "<h3>test.accuracy</h3>",
        "<h3>epsilon</h3>",
        "privacy.noise_multiplier",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(
        page.contains("a proved upper bound (<code>pld</code>"),
        "the statements in words"
    );
    let again = place.smolfed(&format!("{command} --html page.html"));
    again.refused(2, &["page.html already exists"]);

    let document = place.smolfed(&format!("{command} --json")).success().json();
    let keys: Vec<&String> = document["differences"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        keys,
        ["privacy.epsilon", "privacy.noise_multiplier", "rounds"]
    );
    assert_eq!(document["differences"]["rounds"], serde_json::json!([3, 2]));
    let figure = &document["runs"][0]["figures"]["test.accuracy"];
    assert!(figure["best"].as_f64().unwrap() >= figure["final"].as_f64().unwrap());
    assert!(document["runs"][1]["epsilon"].is_null(), "{document}");
}

#[test]
fn runs_that_cannot_be_compared_are_named() {
    let place = two_runs();
    let refused = |runs: &str, words: &[&str]| {
        place
            .smolfed(&format!("runs compare runs/a {runs}"))
            .refused(2, words);
    };
    let alone = place.smolfed("runs compare runs/a");
    assert!(
        alone.code == Some(2) && alone.stderr.contains("2 values"),
        "{alone}"
    );
    refused("runs", &["runs is not a run directory", "config.toml"]);
    refused("runs/../runs/a", &["runs/a", "the same run"]);
    fs::remove_file(place.path("runs/b/metrics.jsonl")).unwrap();
    refused("runs/b", &["runs/b has no round yet", "metrics.jsonl"]);
}

#[test]
fn exports_have_every_figure_of_every_round() {
    let place = two_runs();
    let export = |format: &str, out: &str| {
        let runs = "runs/a runs/b";
        place.smolfed(&format!("runs export {runs} --format {format} --out {out}"))
    };
    export("csv", "all.csv").success();
    let table = fs::read_to_string(place.path("all.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 2);
    assert!(
        lines[0].starts_with("run,round,simulation_only.cohort,epsilon,"),
        "{}",
        lines[0]
    );
    for name in ["test.accuracy", "simulation_only.update_norm.median"] {
        assert!(lines[0].split(',').any(|column| column == name), "{name}");
    }
    assert!(
        lines[3].starts_with("a,2,") && lines[5].starts_with("b,1,"),
        "{table}"
    );
    assert!(lines[5].split(',').any(|cell| cell == "inf"), "{table}");

    export("tensorboard", "logs").success();
    let events = files(&place.path("logs"));
    let names = events.iter().map(|path| path.to_str().unwrap());
    let [a, b]: [&str; 2] = names.collect::<Vec<_>>().try_into().unwrap();
    assert!(
        a.starts_with("a/events.out.tfevents.") && b.starts_with("b/events"),
        "{a} {b}"
    );
    let bytes = fs::read(place.path("logs").join(a)).unwrap();
    assert!(bytes.windows(13).any(|window| window == b"brain.Event:2"));

    export("mlflow", "mlruns").success();
    let stored = files(&place.path("mlruns"));
    let metric = |path: &&PathBuf| path.ends_with("metrics/test.accuracy");
    let metrics: Vec<_> = stored.iter().filter(metric).collect();
    assert_eq!(metrics.len(), 2, "{stored:?}");
    let mut lines = Vec::new();
    for path in metrics {
        let text = fs::read_to_string(place.path("mlruns").join(path)).unwrap();
        lines.push(text.lines().count());
    }
    lines.sort_unstable();
    assert_eq!(lines, [2, 3]);

    for (format, out) in [
        ("csv", "all.csv"),
        ("tensorboard", "logs"),
        ("mlflow", "runs"),
    ] {
        export(format, out).refused(2, &[out, "already exists"]);
    }
    assert_eq!(fs::read_to_string(place.path("all.csv")).unwrap(), table);
    let unknown = export("parquet", "x");
    let formats = "possible values: csv, tensorboard, mlflow";
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains(formats),
        "{unknown}"
    );
}
