//! Commands printed by `smolfed provision`.

use std::process::{Command, Stdio};

use super::device::Device;
use super::{assert_is_the_simulation, part_of};
use crate::program::{Outcome, Place, program};

/// One round with all devices. A shell would split the last value.
const SETTINGS: [&str; 3] = [
    "rounds=1",
    "data.devices=3",
    "cohort = { sampling = \"full\" }",
];

/// Provisions one device in a folder with a space in its name. Returns the output.
fn provision(place: &Place, settings: &[&str], more: &[&str]) -> String {
    let mut command = place.command(program());
    command.args([
        "provision",
        "--devices",
        "0..1",
        "--with-data",
        "--out",
        "a fleet",
    ]);
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let output = command.args(settings).args(more).output().unwrap();
    Outcome::of(output, "provision").success().stdout
}

/// Returns the printed command with this beginning, for a shell, at a socket of this place.
fn printed(place: &Place, stdout: &str, begin: &str, more: &str) -> Command {
    let line = stdout.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("{stdout}"));
    let line = line.replace("tcp:0.0.0.0:7000", "unix:fleet.sock");
    let line = line.replace("tcp:127.0.0.1:7000", "unix:fleet.sock");
    let mut command = place.command("sh");
    command.env("SMOLFED", program());
    command.args([
        "-c",
        &format!("smolfed() {{ \"$SMOLFED\" \"$@\"; }}\n{line} {more}"),
    ]);
    command
}

/// Runs the printed commands with one device. The run is in served.
fn run(place: &Place, stdout: &str) {
    let mut device = printed(place, stdout, "  smolfed device", "--once");
    device.stdout(Stdio::null()).stderr(Stdio::null());
    let _device = Device(device.spawn().unwrap());
    let mut serve = printed(
        place,
        stdout,
        "  smolfed serve",
        "--out served --timeout 20s --json",
    );
    Outcome::of(serve.output().unwrap(), "serve").success();
    assert_eq!(part_of(place, "served", 0), (vec![0], vec![]));
}

#[test]
fn the_printed_commands_run_the_experiment_with_its_settings() {
    let place = Place::new();
    let stdout = provision(&place, &SETTINGS, &[]);
    assert!(!stdout.contains("seed"), "{stdout}");
    run(&place, &stdout);
    let config = std::fs::read_to_string(place.path("served/config.toml")).unwrap();
    assert!(config.contains("rounds = 1\n"), "{config}");
    assert!(config.contains("sampling = \"full\"\n"), "{config}");
}

/// The seed distributes the data. With another seed, simulated devices would have the samples of
/// real ones.
#[test]
fn the_coordinator_of_a_demonstration_has_the_seed_of_its_devices() {
    let place = Place::new();
    let stdout = provision(&place, &SETTINGS, &["--seed", "7"]);
    run(&place, &stdout);
    assert_is_the_simulation(&place, "served");
}

#[test]
fn no_command_is_printed_for_a_process_that_cannot_train_in_integers() {
    let place = Place::new();
    let stdout = provision(&place, &["simulation.arithmetic=integer"], &[]);
    assert!(!stdout.contains("  smolfed device"), "{stdout}");
    assert!(
        stdout.contains("These devices train in integers"),
        "{stdout}"
    );
    assert!(
        stdout.contains(" --set simulation.arithmetic=integer\n"),
        "{stdout}"
    );
}
