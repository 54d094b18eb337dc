//! Several ranks over MPI give the same bytes as one process, for any number of ranks.
//!
//! `SMOLFED_MPI_BIN` is a program built with `--features mpi`. `./test` builds one if possible. The
//! library's tests run every method over ranks that are threads
//! (`runner/engine/src/source/ranks/tests.rs`). These tests cover the launcher, the processes and
//! their fate.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command};

use crate::program::{Outcome, Place, wait_until};
use crate::run_dir::{Traces, rounds_done};

/// Identifies the processes of a test among all processes of this machine.
const MARK: &str = "SMOLFED_TEST_RUN";

/// Returns a program with MPI, or prints that there is none. In CI this is a failure.
fn program() -> Option<OsString> {
    let program = std::env::var_os("SMOLFED_MPI_BIN");
    if program.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no smolfed with MPI");
        println!("skipped: SMOLFED_MPI_BIN names no smolfed with MPI");
    }
    program
}

/// Returns the launcher, which may start more processes than cores, as root in a container.
fn launcher(place: &Place) -> Command {
    let mut command = place.command("mpirun");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env(MARK, place.path(""));
    command
}

/// Starts this many ranks of `smolfed`, with arguments separated by spaces.
fn start(place: &Place, program: &OsString, ranks: usize, arguments: &str) -> Child {
    launcher(place)
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .args(arguments.split_whitespace())
        .args(["--threads", "1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("mpirun starts")
}

fn run(place: &Place, program: &OsString, ranks: usize, arguments: &str) -> Outcome {
    let started = start(place, program, ranks, arguments);
    Outcome::of(started.wait_with_output().unwrap(), arguments)
}

/// Returns the process of a rank in a place.
fn process(place: &Place, rank: usize) -> Option<u32> {
    let mark = format!("{MARK}={}", place.path("").display());
    let ranks = [
        format!("PMI_RANK={rank}"),
        format!("OMPI_COMM_WORLD_RANK={rank}"),
    ];
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let has = |text: &str| {
            environment
                .split(|byte| *byte == 0)
                .any(|x| x == text.as_bytes())
        };
        has(&mark) && ranks.iter().any(|rank| has(rank))
    })
}

fn signal(name: &str, process: u32) {
    let kill = format!("kill -{name} {process}");
    let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(status.success());
}

const METHODS: [&str; 4] = [
    "--set privacy.clip_norm=adaptive",
    "--set method=pmtl --set server.smoothing_factor=0 --set data.devices=60 \
     --set data.device_test=0.2",
    "--set method=fedsc --set server.smoothing_factor=0 --set data.scale=unit \
     --set data.devices=60 --set contrast.width=4 --set contrast.privacy.epsilon=8 \
     --set privacy.epsilon= --set privacy.noise_multiplier=0",
    "--set cohort={sampling=\"arrival\",cohort_size=3} --set privacy.mechanism=correlated \
     --set privacy.separation=3",
];

#[test]
fn any_number_of_ranks_leaves_the_bytes_of_one_process() {
    let Some(program) = program() else { return };
    let place = Place::new();
    for (number, method) in METHODS.iter().enumerate() {
        let call = |out: &str| format!("run --seed 5 --set rounds=4 {method} --json --out {out}");
        let alone = format!("alone-{number}");
        place.smolfed(&call(&alone)).success();
        let expected = Traces::read(&place.path(alone));
        for ranks in [1, 2, 3, 7] {
            let out = format!("{number}-{ranks}");
            let outcome = run(&place, &program, ranks, &call(&out)).success();
            assert_eq!(outcome.json()["rounds"], 4, "one document: {outcome}");
            assert_eq!(outcome.stderr, "", "{outcome}");
            assert!(
                Traces::read(&place.path(&out)) == expected,
                "{method}: {ranks} ranks"
            );
        }
    }
}

/// A killed rank ends the job. The run continues with another number of ranks.
#[test]
fn a_killed_rank_ends_the_run_which_goes_on_with_another_number() {
    let Some(program) = program() else { return };
    let place = Place::new();
    let settings = format!("--seed 5 --set rounds=60 {}", METHODS[1]);
    place
        .smolfed(&format!("run --out whole {settings}"))
        .success();
    let dir = place.path("broken");
    for (attempt, ranks) in [3, 2, 3].into_iter().enumerate() {
        let call = match dir.join("config.toml").is_file() {
            true => "run --resume broken --checkpoint-every 0".to_owned(),
            false => format!("run --out broken --checkpoint-every 0 {settings}"),
        };
        let before = rounds_done(&dir);
        let mut job = start(&place, &program, ranks, &call);
        wait_until(|| rounds_done(&dir) > before + 3);
        // Rank 0, which writes, or another rank.
        let victim = process(&place, attempt % 2).expect("the rank is there");
        signal("KILL", victim);
        assert!(!job.wait().unwrap().success());
        wait_until(|| (0..ranks).all(|rank| process(&place, rank).is_none()));
        assert!(rounds_done(&dir) < 60, "it was killed before its end");
    }
    run(&place, &program, 2, "run --resume broken").success();
    assert_eq!(Traces::read(&dir), Traces::read(&place.path("whole")));
}

#[test]
fn ctrl_c_stops_all_ranks_after_the_round() {
    let Some(program) = program() else { return };
    let place = Place::new();
    let dir = place.path("run");
    let job = start(&place, &program, 3, "run --out run --set rounds=2000");
    wait_until(|| rounds_done(&dir) > 2);
    for rank in 0..3 {
        signal("INT", process(&place, rank).expect("the rank is there"));
    }
    let stopped = Outcome::of(job.wait_with_output().unwrap(), "SIGINT");
    assert_eq!(stopped.code, Some(1), "{stopped}");
    assert!(
        stopped
            .stderr
            .contains("resume with: smolfed run --resume run"),
        "{stopped}"
    );
}

/// One sentence from rank 0, and nothing is written.
#[test]
fn ranks_that_differ_and_bad_input_are_refused_once() {
    let Some(program) = program() else { return };
    let place = Place::new();
    let arguments = |rounds: &str| format!("run --out run --set rounds={rounds}");
    let mut command = launcher(&place);
    for (index, rounds) in ["2", "3"].into_iter().enumerate() {
        if index > 0 {
            command.arg(":");
        }
        command
            .args(["-n", "1"])
            .arg(&program)
            .args(arguments(rounds).split(' '));
    }
    let outcome = Outcome::of(command.output().unwrap(), "two configurations");
    outcome.refused(
        2,
        &["rank 1 has other data, another configuration or another version"],
    );
    for (call, words) in [
        ("run missing.toml", "missing.toml"),
        ("run --set privacy.epsilon=-1", "privacy.epsilon"),
        ("sweep missing.toml", "missing.toml"),
    ] {
        run(&place, &program, 3, call).refused(2, &[words]);
    }
    let usage = run(&place, &program, 3, "run --no-such-flag");
    assert_eq!(
        usage.stderr.matches("error: unexpected").count(),
        1,
        "{usage}"
    );
    assert!(place.names().is_empty());
}

const SWEEP: &str = r#"
name = "small"
method = "dp-fed"
rounds = 3
[data]
source = "digits"
devices = 40
[cohort]
cohort_size = 10
[privacy]
clip_norm = 0.5
noise_multiplier = 1.0
[sweep]
seeds = 2
[sweep.grid]
"train.epochs" = [1, 2, 3]
"#;

#[test]
fn a_sweep_deals_its_runs_to_ranks() {
    let Some(program) = program() else { return };
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    place.smolfed("sweep sweep.toml --out alone").success();
    let table = |out: &str| std::fs::read_to_string(place.path(out).join("table.csv")).unwrap();
    for ranks in [2, 7] {
        let out = format!("on-{ranks}");
        run(
            &place,
            &program,
            ranks,
            &format!("sweep sweep.toml --out {out}"),
        )
        .success();
        assert_eq!(table(&out), table("alone"), "{ranks} ranks");
    }
}

/// Without MPI, each process would do all the work.
#[test]
fn copies_that_do_not_know_of_each_other_are_told_of() {
    let place = Place::new();
    let of_rank = |rank: &str| {
        let mut command = place.command(crate::program::program());
        command.env("PMI_SIZE", "3").env("PMI_RANK", rank);
        command.args(["run", "--set", "rounds=1", "--out", rank]);
        Outcome::of(command.output().unwrap(), "one of three").success()
    };
    let first = of_rank("0");
    assert!(
        first
            .stderr
            .contains("warning: 3 processes run 3 independent copies"),
        "{first}"
    );
    assert_eq!(of_rank("1").stderr, "");
    assert!(Path::new(&place.path("1")).is_dir());
}
