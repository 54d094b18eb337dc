//! A federation of one emulated board and simulated devices.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::board::Board;
use crate::toolchain::root;

/// Devices of the federation: the board is number 0, the others are simulated.
const DEVICES: &str = "100";
pub const SIMULATED: &str = "99";

/// A short run of the built-in experiment.
const SETTINGS: [&str; 4] = [
    "name=board",
    "rounds=10",
    "cohort.sampling_rate=0.8",
    "privacy.epsilon=4",
];

/// A process that is killed when it is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds the program; returns its path.
pub fn smolfed() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(root())
        .args(["build", "--release", "--locked", "-p", "smolfed"]);
    succeed(&mut command)?;
    let dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(dir).join("release/smolfed"))
}

/// Provisions the board as device 0, with its share of the data, and starts the client on it.
pub fn provisioned(
    board: &Board,
    client: &Path,
    smolfed: &Path,
    dir: &Path,
    more: impl FnOnce(&mut Command),
) -> Result<Running, Box<dyn Error>> {
    let mut command = Command::new(smolfed);
    let devices = format!("data.devices={DEVICES}");
    command.args([
        "provision",
        "--devices",
        "0..1",
        "--with-data",
        "--set",
        &devices,
    ]);
    for setting in SETTINGS {
        command.args(["--set", setting]);
    }
    let fleet = dir.join("fleet");
    succeed(command.arg("--out").arg(&fleet))?;
    let mut command = board.client(client, dir, &fleet.join("device-0"))?;
    more(&mut command);
    let running = command.spawn().map_err(|error| board.no_emulator(&error))?;
    Ok(Running(running))
}

/// Runs the rounds, over the board's serial line.
pub fn serve(smolfed: &Path, dir: &Path, output: Stdio) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(smolfed);
    command
        .arg("serve")
        .arg("--keys")
        .arg(dir.join("fleet/keys.toml"));
    let line = format!("unix:{}", dir.join("line").display());
    command.args([
        "--device",
        &line,
        "--simulated",
        SIMULATED,
        "--timeout",
        "60s",
    ]);
    for setting in SETTINGS {
        command.args(["--set", setting]);
    }
    succeed(command.arg("--out").arg(dir.join("run")).stdout(output))
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", command.get_program().display()).into())
    }
}
