//! A stopped and resumed run ends with the same bits as an uninterrupted run.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::program::{Outcome, Place};
use crate::run_dir::{Traces, rounds_done};

/// Long enough to be stopped halfway, short enough to finish.
const SETTINGS: &str = "--set rounds=60 --seed 5 --set privacy.trust=local";

/// A run of the same length with personal models, which a checkpoint must restore.
const PERSONAL: &str = "--set rounds=60 --seed 5 --set method=pmtl --set server.smoothing_factor=0 \
                        --set data.device_test=0.2 --set data.devices=60";

/// A run of the same length with correlation matrices, which a checkpoint must restore.
const CONTRAST: &str = "--set rounds=60 --seed 5 --set method=fedsc --set data.scale=unit \
                        --set data.devices=60 --set server.smoothing_factor=0 \
                        --set contrast.width=4 --set contrast.privacy.epsilon=8 \
                        --set privacy.epsilon=inf";

/// A run of the same length with a network of layers as the encoder.
const LAYERS: &str = "--set rounds=60 --seed 5 --set method=fedsc --set data.scale=unit \
                      --set data.devices=60 --set server.smoothing_factor=0 \
                      --set contrast.width=4 --set privacy.epsilon=inf \
                      --set model.layers=[{type=\"convolution\",channels=2,kernel=5}]";

/// A run of the same length with a changing clip norm, which a checkpoint must restore.
const ADAPTIVE: &str = "--set rounds=60 --seed 5 --set privacy.clip_norm=adaptive";

/// A run of the same length with correlated noise. A checkpoint must restore the private sums of
/// the last rounds, the estimates, and the participation.
const CORRELATED: &str = "--set rounds=60 --seed 5 \
                          --set cohort={sampling=\"arrival\",cohort_size=20} \
                          --set privacy.mechanism=correlated --set privacy.separation=10";

/// A run of the same length with masks. A checkpoint must restore the sums kept by the helper.
const MASKED: &str = "--set rounds=60 --seed 5 --set cohort={sampling=\"rotation\"} \
                      --set privacy.mechanism=correlated --set privacy.separation=10 \
                      --set privacy.trust=distributed";

/// A run of the same length with a tree, whose nodes are open most of the time.
const TREE: &str = "--set rounds=60 --seed 5 --set cohort={sampling=\"rotation\"} \
                    --set privacy.mechanism=correlated --set privacy.separation=10 \
                    --set privacy.family=tree";

/// A run of the same length with filters. A checkpoint must restore their performance.
const AUTO: &str = "--set rounds=60 --seed 5 --set server={denoiser=\"auto\"}";

/// Returns the traces of an uninterrupted run of `settings`.
fn unbroken(place: &Place, settings: &str) -> Traces {
    let call = format!("run --out unbroken --json {settings}");
    place.smolfed(&call).success();
    Traces::read(&place.path("unbroken"))
}

/// Waits until the run has written more than `rounds` rounds, or has ended.
fn wait_for_rounds(child: &mut Child, dir: &Path, rounds: usize) {
    let started = Instant::now();
    while rounds_done(dir) <= rounds && child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(120), "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    let kill = format!("kill -{signal} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(status.success());
}

/// Starts a run in `broken` and stops it after some rounds, like Ctrl-C.
fn interrupted(place: &Place) -> Outcome {
    stopped_by("INT", place, "broken")
}

fn stopped_by(signal: &str, place: &Place, out: &str) -> Outcome {
    let mut child = place.start(&format!("run --out {out} --json {SETTINGS}"));
    wait_for_rounds(&mut child, &place.path(out), 3);
    send(signal, &child);
    Outcome::of(child.wait_with_output().unwrap(), signal)
}

/// Signals of `systemctl stop` and a closed terminal.
#[test]
fn other_signals_stop_as_ctrl_c_does() {
    let place = Place::new();
    for signal in ["TERM", "HUP"] {
        let stopped = stopped_by(signal, &place, signal);
        assert_eq!(stopped.code, Some(1), "{stopped}");
        assert!(stopped.stderr.contains("resume with:"), "{stopped}");
    }
}

#[test]
fn a_run_that_goes_on_is_not_resumed() {
    let place = Place::new();
    let mut child = place.start(&format!("run --out busy --json {SETTINGS}"));
    wait_for_rounds(&mut child, &place.path("busy"), 1);
    send("STOP", &child);
    let second = place.smolfed("run --resume busy --json");
    send("CONT", &child);
    let first = Outcome::of(child.wait_with_output().unwrap(), "the first").success();
    assert_eq!(second.code, Some(2), "{second}");
    let advice = "error: busy is in use: another process still writes to it; stop that one, or \
                  wait\n";
    assert_eq!(second.stderr, advice);
    assert_eq!(first.json()["rounds"], 60);
}

#[test]
fn ctrl_c_stops_after_the_round_and_resume_ends_with_the_same_bits() {
    let place = Place::new();
    let whole = unbroken(&place, SETTINGS);
    let dir = place.path("broken");
    let stopped = interrupted(&place);

    assert_eq!(stopped.code, Some(1), "{stopped}");
    let done = rounds_done(&dir);
    assert!(done < 60, "it was stopped before its end");
    assert_eq!(stopped.json()["rounds"], done);
    let advice = format!(
        "error: stopped after {done} of 60 rounds; resume with: smolfed run --resume broken\n"
    );
    assert_eq!(stopped.stderr, advice);
    // The cost so far is stated for this many rounds.
    let privacy = std::fs::read_to_string(dir.join("privacy.json")).unwrap();
    assert!(
        privacy.contains(&format!("\"rounds\": {done}")),
        "{privacy}"
    );

    let resumed = place.smolfed("run --resume broken --json").success();
    assert_eq!(resumed.json()["rounds"], 60);
    assert_eq!(Traces::read(&dir), whole);
}

/// A run that fails after its last round, before writing all its results, still finds them when it
/// is resumed. For example, spectra are known only during the round.
#[test]
fn results_that_could_not_be_written_are_found_again() {
    let place = Place::new();
    let whole = unbroken(&place, SETTINGS);
    interrupted(&place);
    // A directory blocks the path of the last file.
    let obstacle = place.path("broken/diagnostics.json.partial");
    std::fs::create_dir(&obstacle).unwrap();
    let failed = place.smolfed("run --resume broken --json");
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(failed.stderr.contains("diagnostics.json"), "{failed}");

    std::fs::remove_dir(&obstacle).unwrap();
    place.smolfed("run --resume broken --json").success();
    assert_eq!(Traces::read(&place.path("broken")), whole);
}

/// Kills the run at a different moment each time, after some rounds and a delay from a fixed
/// sequence. The moments include training, the record, the checkpoint and its rename.
fn killed_at_any_moment(settings: &str) {
    let place = Place::new();
    let whole = unbroken(&place, settings);
    let dir = place.path("killed");
    let mut state = 2020u32;
    for attempt in 0..12 {
        let call = if dir.join("config.toml").is_file() {
            "run --resume killed --checkpoint-every 0".to_owned()
        } else {
            // The first kill may happen before the directory is a run.
            let _ = std::fs::remove_dir_all(&dir);
            format!("run --out killed --checkpoint-every 0 {settings}")
        };
        let mut child = place.start(&call);
        if attempt > 0 {
            let before = rounds_done(&dir);
            wait_for_rounds(&mut child, &dir, before);
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(state >> 16) % 30_000));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    place.smolfed("run --resume killed --json").success();
    assert_eq!(Traces::read(&dir), whole);
}

#[test]
fn kill_at_any_moment_and_resume_ends_with_the_same_bits() {
    killed_at_any_moment(SETTINGS);
}

#[test]
fn personal_models_survive_a_kill_at_any_moment() {
    killed_at_any_moment(PERSONAL);
}

#[test]
fn correlation_matrices_survive_a_kill_at_any_moment() {
    killed_at_any_moment(CONTRAST);
    killed_at_any_moment(LAYERS);
}

#[test]
fn an_adaptive_clip_norm_survives_a_kill_at_any_moment() {
    killed_at_any_moment(ADAPTIVE);
}

#[test]
fn correlated_noise_survives_a_kill_at_any_moment() {
    killed_at_any_moment(CORRELATED);
}

#[test]
fn automatic_denoising_survives_a_kill_at_any_moment() {
    killed_at_any_moment(AUTO);
}

/// A checkpoint without a part required by automatic denoising.
#[test]
fn a_checkpoint_that_lacks_a_part_is_refused() {
    let place = Place::new();
    let dir = place.path("old");
    let mut child = place.start(&format!("run --out old --checkpoint-every 0 {AUTO}"));
    wait_for_rounds(&mut child, &dir, 3);
    send("INT", &child);
    Outcome::of(child.wait_with_output().unwrap(), "INT");
    let path = dir.join("checkpoint/state.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let [name, other] = [b"auto.moved", b"auto.other"];
    let at = bytes.windows(name.len()).position(|part| part == name);
    bytes[at.unwrap()..][..name.len()].copy_from_slice(other);
    std::fs::write(&path, bytes).unwrap();
    let refused = place.smolfed("run --resume old");
    assert_eq!(refused.code, Some(2), "{refused}");
    let advice = "error: old/checkpoint/state.safetensors is damaged: it has no `auto.moved`; \
                  restore it from a copy, or write it again\n";
    assert!(refused.stderr.ends_with(advice), "{refused}");
}

#[test]
fn masked_sums_survive_a_kill_at_any_moment() {
    killed_at_any_moment(MASKED);
}

#[test]
fn a_tree_survives_a_kill_at_any_moment() {
    killed_at_any_moment(TREE);
}

#[test]
fn a_finished_run_is_resumed_without_a_change() {
    let place = Place::new();
    let first = place
        .smolfed("run --out done --json --set rounds=3")
        .success();
    let traces = Traces::read(&place.path("done"));
    let again = place.smolfed("run --resume done --json").success();
    assert_eq!(Traces::read(&place.path("done")), traces);
    let without_seconds = |outcome: &Outcome| {
        let mut document = outcome.json();
        document.as_object_mut().unwrap().remove("seconds");
        document
    };
    assert_eq!(without_seconds(&first), without_seconds(&again));
}

#[test]
fn a_run_is_not_continued_on_other_data() {
    let place = Place::new();
    let table = crate::wrong_inputs::data::good_csv();
    place.write("table.csv", &table);
    place.write(
        "experiment.toml",
        crate::wrong_inputs::data::csv_experiment(""),
    );
    place
        .smolfed("run experiment.toml --out run --json")
        .success();
    let model = Traces::read(&place.path("run"));

    place.write("table.csv", table.replacen("0.5", "0.6", 1));
    place
        .smolfed("run --resume run")
        .refused(2, &["checkpoint", "other data"]);
    assert_eq!(
        Traces::read(&place.path("run")),
        model,
        "nothing was touched"
    );

    place.write("table.csv", table);
    place.smolfed("run --resume run").success();
}

#[test]
fn a_run_is_not_continued_with_another_configuration() {
    let place = Place::new();
    place
        .smolfed("run --out run --json --set rounds=2")
        .success();
    let config = std::fs::read_to_string(place.path("run/config.toml")).unwrap();
    place.write(
        "run/config.toml",
        config.replace("rounds = 2", "rounds = 4"),
    );
    place
        .smolfed("run --resume run")
        .refused(2, &["another experiment"]);
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let place = Place::new();
    place
        .smolfed("run --out run --json --set rounds=2")
        .success();
    let state = std::fs::read(place.path("run/checkpoint/state.safetensors")).unwrap();
    place.write(
        "run/checkpoint/state.safetensors",
        &state[..state.len() / 2],
    );
    place
        .smolfed("run --resume run")
        .refused(2, &["run/checkpoint/state.safetensors is damaged"]);
}

#[test]
fn only_a_run_is_resumed() {
    let place = Place::new();
    std::fs::create_dir(place.path("empty")).unwrap();
    for dir in ["empty", "missing"] {
        place
            .smolfed(&format!("run --resume {dir}"))
            .refused(2, &["not a run directory"]);
    }
}
