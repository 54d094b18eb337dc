//! `cargo xtask qemu BOARD`: an emulated board computes the simulator's bits, and then takes part
//! in a federation with simulated devices.

use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::board::Board;
use crate::federation::{Federation, SIMULATED, named_or_built, provisioned, serve};
use crate::toolchain::{Variant, firmware};

/// Runs both. Without `smolfed`, uses an installed command line or builds it.
pub fn run(board: &Board, smolfed: Option<&Path>) -> Result<(), Box<dyn Error>> {
    // A wrong path should fail before minutes of building.
    let smolfed = &step("command line", || named_or_built(smolfed, None))?;
    let programs = step("firmware", || {
        firmware(board.target, &Variant::TESTS)?;
        firmware(board.target, &Variant::DEFAULT)
    })?;
    println!(
        "\n{} ({}): CRC-32 of updates as f32, and as they are sent",
        board.name, board.processor
    );
    let printed = step("self-test on the emulated board", || {
        board.print(&programs.join("selftest"), &["-monitor", "none"])
    })?;
    print!("{printed}");
    let dir = tempfile::tempdir()?;
    let client = programs.join("client");
    let federation = &Federation::built_in();
    let _board = step("provisioning", || {
        provisioned(federation, board, &client, smolfed, dir.path(), |command| {
            command.args(["-monitor", "none"]);
        })
    })?;
    println!("\nThe board takes part in a federation with {SIMULATED} simulated devices:");
    step("federation", || {
        serve(federation, smolfed, dir.path(), Stdio::inherit())
    })
}

/// Prints the name of a step on standard error at its start, and its duration on success.
fn step<T>(
    name: &str,
    act: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    eprintln!("xtask: {name} ..");
    let started = Instant::now();
    let result = act()?;
    eprintln!("xtask: {name}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(result)
}
