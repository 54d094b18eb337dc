//! Failures that a run directory survives, and its refusals.

use std::collections::BTreeMap;

use tempfile::TempDir;

use super::*;
use crate::round::SimulationOnly;
use crate::tables::ModelConfig;
use smolfed_data::dataset::Names;

fn config() -> Config {
    Config::load(None, &[]).unwrap()
}

/// Returns a run directory inside a temporary one.
fn run_dir() -> (TempDir, RunDir) {
    let place = TempDir::new().unwrap();
    let dir = RunDir::create(&place.path().join("below/run"), &config()).unwrap();
    (place, dir)
}

/// `predict` and `export` protect these files, among them those that must stay secret.
#[test]
fn the_list_of_files_is_that_of_the_documentation() {
    let rows = include_str!("../directory.rs").lines();
    let rows = rows.filter_map(|line| line.strip_prefix("//! | `"));
    let rows = rows.filter_map(|row| row.split('`').next());
    let mut documented: Vec<&str> = rows.map(|name| name.trim_end_matches('/')).collect();
    assert!(documented.contains(&"answers.jsonl"), "{documented:?}");
    documented.push("config.toml.partial");
    documented.sort_unstable();
    let mut files = RunDir::FILES.to_vec();
    files.sort_unstable();
    assert_eq!(files, documented);
}

#[test]
fn one_process_writes_at_a_time() {
    let (_place, first) = run_dir();
    let again = || RunDir::resume(first.path());
    assert!(matches!(again(), Err(RunDirError::InUse { .. })));
    // Reading it does no harm.
    let reader = RunDir::open(first.path()).unwrap();
    assert!(reader.is_in_use().unwrap());
    let path = first.path().to_path_buf();
    let copy = first.clone();
    drop(first);
    assert!(RunDir::resume(&path).is_err(), "a clone still writes");
    drop(copy);
    assert!(!reader.is_in_use().unwrap());
    assert!(RunDir::resume(&path).is_ok());
}

/// A kill between the two files leaves no directory that looks like a simulation.
#[test]
fn a_fleets_directory_that_was_not_completed_is_made_again() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let fleet = BTreeMap::from([("simulated".to_owned(), 4)]);
    let create = || RunDir::create_of_fleet(Some(&path), &config(), &fleet);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("fleet.toml"), "simulated = 9\n").unwrap();
    fs::write(path.join("config.toml.partial"), "name = ").unwrap();
    let simulation = RunDir::create(&path, &config());
    assert!(matches!(simulation, Err(RunDirError::Taken { .. })));
    let dir = create().unwrap();
    assert_eq!(dir.fleet().unwrap(), Some(fleet.clone()));
    assert!(create().is_err(), "it is a run now");
}

fn record(round: u32) -> RoundRecord {
    RoundRecord {
        round,
        cohort: 3,
        ages: Vec::new(),
        wasted: None,
        epsilon: Some(0.1 * f64::from(round + 1)),
        learning_rate: 0.1,
        clip_norm: None,
        unclipped_share: None,
        beyond_grid: None,
        score: None,
        answers: Vec::new(),
        experts: Vec::new(),
        kept: Vec::new(),
        test: None,
        test_is_simulation_only: false,
        burned: false,
        simulation_only: SimulationOnly::default(),
        seconds: 0.5,
        origin: std::collections::BTreeMap::new(),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_directory_holds_the_complete_configuration() {
    let (_place, dir) = run_dir();
    assert_eq!(names(dir.path()), ["config.toml"]);
    assert_eq!(dir.config().unwrap(), config());
    assert_eq!(RunDir::open(dir.path()).unwrap().path(), dir.path());
}

#[test]
fn a_directory_that_is_taken_is_refused() {
    let (_place, dir) = run_dir();
    let again = || RunDir::create(dir.path(), &config()).unwrap_err();
    // Nothing to resume from.
    assert!(matches!(again(), RunDirError::Failed { .. }), "{}", again());
    std::fs::create_dir(dir.path().join("checkpoint")).unwrap();
    assert!(matches!(again(), RunDirError::Exists { .. }), "{}", again());
}

#[test]
fn a_failed_run_is_set_aside_unless_it_is_still_running() {
    let (place, dir) = run_dir();
    let path = dir.path().to_path_buf();
    let running = RunDir::set_aside(&path).unwrap_err();
    assert!(matches!(running, RunDirError::InUse { .. }), "{running}");
    drop(dir);
    let kept = RunDir::set_aside(&path).unwrap().unwrap();
    assert_eq!(kept, place.path().join("below/run-failed-1"));
    assert_eq!(names(&kept), ["config.toml"]);
    assert_eq!(RunDir::set_aside(&path).unwrap(), None, "nothing is there");
    std::fs::create_dir(kept.join("checkpoint")).unwrap();
    assert_eq!(RunDir::set_aside(&kept).unwrap(), None, "it can be resumed");
}

#[test]
fn a_directory_without_a_configuration_is_no_run() {
    let place = TempDir::new().unwrap();
    for path in [place.path().to_path_buf(), place.path().join("missing")] {
        let error = RunDir::open(&path).unwrap_err();
        assert!(matches!(error, RunDirError::NotARun { .. }), "{error:?}");
        assert!(error.to_string().contains("config.toml"), "{error}");
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = RunDir::create(&file.join("run"), &config()).unwrap_err();
    assert!(
        matches!(
            error,
            RunDirError::Io {
                action: "create",
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_spoilt_configuration_is_refused_as_such() {
    let (_place, dir) = run_dir();
    fs::write(dir.path().join("config.toml"), "rounds = 1").unwrap();
    let error = dir.config().unwrap_err();
    assert!(matches!(error, RunDirError::Config(_)), "{error:?}");
}

#[test]
fn records_come_back_as_they_were() {
    let (_place, dir) = run_dir();
    assert_eq!(dir.records().unwrap(), []);
    let mut metrics = dir.metrics(0).unwrap();
    let records = [record(0), record(1), record(2)];
    for record in &records {
        metrics.append(record).unwrap();
    }
    metrics.sync().unwrap();
    assert_eq!(dir.records().unwrap(), records);
}

#[test]
fn a_torn_last_line_is_left_out() {
    let (_place, dir) = run_dir();
    let mut metrics = dir.metrics(0).unwrap();
    for round in 0..3 {
        metrics.append(&record(round)).unwrap();
    }
    let path = dir.path().join("metrics.jsonl");
    let whole = fs::read(&path).unwrap();
    let second_end = whole.len() * 2 / 3;
    for length in second_end + 5..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(dir.records().unwrap(), [record(0), record(1)], "{length}");
    }
    // A line can also be torn inside a character.
    fs::write(
        &path,
        [&whole[..], b"{\"round\":3,\"cohort\":\xe2\x82"].concat(),
    )
    .unwrap();
    assert_eq!(dir.records().unwrap().len(), 3);
}

#[test]
fn rounds_after_the_checkpoint_are_written_again() {
    let (_place, dir) = run_dir();
    let mut metrics = dir.metrics(0).unwrap();
    for round in 0..5 {
        metrics.append(&record(round)).unwrap();
    }
    drop(metrics);
    let mut metrics = dir.metrics(2).unwrap();
    assert_eq!(dir.records().unwrap(), [record(0), record(1)]);
    metrics.append(&record(2)).unwrap();
    assert_eq!(dir.records().unwrap().len(), 3);
    assert_eq!(names(dir.path()), ["config.toml", "metrics.jsonl"]);
}

#[test]
fn records_that_the_checkpoint_counts_on_must_be_there() {
    let (_place, dir) = run_dir();
    dir.metrics(0).unwrap().append(&record(0)).unwrap();
    let error = dir.metrics(2).unwrap_err();
    assert!(matches!(error, RunDirError::Damaged { .. }), "{error:?}");
    assert!(
        error.to_string().contains("1 of the first 2 rounds"),
        "{error}"
    );
    assert_eq!(dir.records().unwrap(), [record(0)], "nothing was lost");
}

#[test]
fn a_damaged_record_is_named_with_its_line() {
    let (_place, dir) = run_dir();
    let path = dir.path().join("metrics.jsonl");
    dir.metrics(0).unwrap().append(&record(0)).unwrap();
    let text = fs::read_to_string(&path).unwrap() + "{\"round\":\n";
    fs::write(&path, text).unwrap();
    let error = dir.records().unwrap_err();
    assert!(matches!(error, RunDirError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("line 2"), "{error}");
}

#[test]
fn damage_after_the_checkpoint_does_not_matter() {
    let (_place, dir) = run_dir();
    let path = dir.path().join("metrics.jsonl");
    dir.metrics(0).unwrap().append(&record(0)).unwrap();
    let before = fs::read(&path).unwrap();
    // A crashed file system may leave a block of zeros, then more.
    fs::write(&path, [&before[..], &[0; 512], b"\n{}\n"].concat()).unwrap();
    dir.metrics(1).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn records_out_of_order_are_refused() {
    let (_place, dir) = run_dir();
    let mut metrics = dir.metrics(0).unwrap();
    metrics.append(&record(0)).unwrap();
    metrics.append(&record(2)).unwrap();
    let error = dir.metrics(2).unwrap_err();
    assert!(
        error.to_string().contains("line 2 belongs to round 2"),
        "{error}"
    );
}

#[test]
fn a_model_comes_back_with_its_shape() {
    let (_place, dir) = run_dir();
    let task = Task::new(&ModelConfig::default(), &[], 2, Some(3)).unwrap();
    let parameters: Vec<f32> = (0..9u8).map(f32::from).collect();
    let layout = InputLayout {
        axes: vec![1, 2],
        names: Names {
            features: vec!["left".to_owned(), "right".to_owned()],
            classes: vec![],
            ..Names::default()
        },
        is_encoder: false,
    };
    dir.write_model(&task, &layout, &parameters).unwrap();
    let model = dir.model().unwrap();
    assert_eq!(model.weights, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(model.biases, [6.0, 7.0, 8.0]);
    assert_eq!(
        (model.features, model.axes.as_slice()),
        (2, [1, 2].as_slice())
    );
    assert_eq!(model.feature_names, ["left", "right"]);
    assert!(model.class_names.is_empty());
    let short = dir
        .write_model(&task, &layout, &parameters[..5])
        .unwrap_err();
    assert!(matches!(short, RunDirError::Damaged { .. }), "{short:?}");
    assert_eq!(
        dir.model().unwrap(),
        model,
        "the model before is still there"
    );
}

#[test]
fn files_that_are_missing_or_no_json_are_named() {
    let (_place, dir) = run_dir();
    for error in [
        dir.privacy().unwrap_err(),
        dir.diagnostics().unwrap_err(),
        dir.representation().unwrap_err(),
        dir.model().unwrap_err(),
    ] {
        assert!(
            matches!(error, RunDirError::Io { action: "read", .. }),
            "{error:?}"
        );
    }
    for name in [
        "privacy.json",
        "diagnostics.json",
        "representation.json",
        "model.safetensors",
    ] {
        fs::write(dir.path().join(name), "{").unwrap();
    }
    for error in [
        dir.privacy().unwrap_err(),
        dir.diagnostics().unwrap_err(),
        dir.representation().unwrap_err(),
        dir.model().unwrap_err(),
    ] {
        assert!(matches!(error, RunDirError::Damaged { .. }), "{error:?}");
    }
}

#[test]
fn a_write_that_fails_leaves_the_file_and_no_litter() {
    let (_place, dir) = run_dir();
    let spectrum = Spectrum::new(None, &[1.0, 2.0], &[1.0, 1.0], 2);
    dir.write_diagnostics(&spectrum).unwrap();
    // A directory blocks the partial file, so the new file cannot be written.
    fs::create_dir(dir.path().join("diagnostics.json.partial")).unwrap();
    let other = Spectrum::new(None, &[5.0, 2.0], &[5.0, 1.0], 2);
    let error = dir.write_diagnostics(&other).unwrap_err();
    assert!(
        matches!(
            error,
            RunDirError::Io {
                action: "write",
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(dir.diagnostics().unwrap(), spectrum);
    fs::remove_dir(dir.path().join("diagnostics.json.partial")).unwrap();
    dir.write_diagnostics(&other).unwrap();
    assert_eq!(names(dir.path()), ["config.toml", "diagnostics.json"]);
}
