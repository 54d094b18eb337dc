//! Unwritable locations: exit code 1, and existing files stay unchanged.

use std::process::Output;

use crate::program::{Outcome, Place, program};
use crate::run_dir::{Traces, rounds_done};

/// Runs `smolfed` with a file size limit, which simulates a full disk without special rights.
/// Writes beyond it fail, because the signal that would end the process is ignored.
pub(crate) fn with_small_files(place: &Place, kibibytes: u32, arguments: &str) -> Outcome {
    let script = format!(
        "trap '' XFSZ; ulimit -f {}; exec \"$0\" {arguments}",
        2 * kibibytes
    );
    // In units of 512 bytes, by POSIX and in dash, Debian's `sh`.
    let output: Output = place
        .command("sh")
        .args(["-c", &script])
        .arg(program())
        .output()
        .unwrap();
    Outcome::of(output, arguments)
}

#[test]
fn an_out_that_cannot_be_made_is_named() {
    let place = Place::new();
    place.write("file", "");
    for out in ["file/run", "/proc/run", "/dev/null/run"] {
        let outcome = place.smolfed(&format!("run --out {out} --set rounds=1"));
        outcome.refused(1, &[out]);
    }
    assert_eq!(place.names(), ["file"]);
}

#[test]
fn an_out_that_is_taken_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("taken")).unwrap();
    place.write("taken/thesis.txt", "important");
    let outcome = place.smolfed("run --out taken --set rounds=1");
    outcome.refused(2, &["taken already exists"]);
    let content = std::fs::read_to_string(place.path("taken/thesis.txt")).unwrap();
    assert_eq!(content, "important");
}

#[test]
fn a_disk_that_fills_up_ends_the_run_and_resume_ends_with_the_same_bits() {
    let place = Place::new();
    let settings = "--checkpoint-every 0 --set rounds=30 --set evaluate_every=0 --seed 4 --json";
    place
        .smolfed(&format!("run --out whole {settings}"))
        .success();
    let whole = Traces::read(&place.path("whole"));

    // A round takes about 465 bytes in the ledger, a record without an evaluation about 440, the
    // checkpoint less than 3 KiB: the ledger hits the limit.
    let call = format!("run --out full {settings}");
    let outcome = with_small_files(&place, 4, &call);
    outcome.refused(
        1,
        &[
            "cannot write the privacy ledger full/ledger.jsonl",
            "--resume full",
        ],
    );
    let done = rounds_done(&place.path("full"));
    assert!((2..30).contains(&done), "{done}");

    // Still full: the records cannot be rewritten, and the checkpoint stays.
    let state = || std::fs::read(place.path("full/checkpoint/state.safetensors")).unwrap();
    let before = state();
    let outcome = with_small_files(&place, 1, "run --resume full --json");
    outcome.refused(1, &["cannot write full/"]);
    assert_eq!(state(), before);
    assert_eq!(rounds_done(&place.path("full")), done);

    place.smolfed("run --resume full --json").success();
    assert_eq!(Traces::read(&place.path("full")), whole);
}

#[test]
fn results_that_do_not_fit_leave_the_checkpoint_before() {
    let place = Place::new();
    place
        .smolfed("run --out run --set rounds=4 --set evaluate_every=0 --json")
        .success();
    let state = || std::fs::read(place.path("run/checkpoint/state.safetensors")).unwrap();
    let before = state();
    // 650 parameters are 2.6 kB: the records fit into 2 KiB, but the model does not.
    let outcome = with_small_files(&place, 2, "run --resume run --json");
    outcome.refused(1, &["cannot write run/model.safetensors"]);
    assert_eq!(state(), before);
    assert!(!place.path("run/model.safetensors.partial").exists());
}

#[test]
fn a_checkpoint_that_does_not_fit_ends_the_run_and_leaves_no_part_of_it() {
    let place = Place::new();
    let call = "run --out run --checkpoint-every 0 --set rounds=4 --json";
    let outcome = with_small_files(&place, 2, call);
    outcome.refused(1, &["state.safetensors", "--resume run"]);
    let partial = place.path("run/checkpoint/state.safetensors.partial");
    assert!(!partial.exists());
    place.smolfed("run --resume run --json").success();
}

#[test]
fn a_closed_output_is_an_error_and_not_a_panic() {
    let place = Place::new();
    let script = "exec \"$0\" run --out run --set rounds=1 --json >/dev/full";
    let output = place
        .command("sh")
        .args(["-c", script])
        .arg(program())
        .output()
        .unwrap();
    let outcome = Outcome::of(output, script);
    outcome.refused(1, &["standard output"]);
}
