//! `cargo xtask qemu BOARD`: an emulated board computes the simulator's bits, and then takes part
//! in a federation with simulated devices.

use std::error::Error;
use std::process::Stdio;

use crate::board::Board;
use crate::federation::{Federation, SIMULATED, provisioned, serve, smolfed};
use crate::toolchain::{Variant, firmware};

pub fn run(board: &Board) -> Result<(), Box<dyn Error>> {
    firmware(board.target, &Variant::TESTS)?;
    let programs = firmware(board.target, &Variant::DEFAULT)?;
    println!(
        "\n{} ({}): CRC-32 of updates as f32, and as they are sent",
        board.name, board.processor
    );
    print!(
        "{}",
        board.print(&programs.join("selftest"), &["-monitor", "none"])?
    );
    let smolfed = smolfed(None)?;
    let dir = tempfile::tempdir()?;
    let client = programs.join("client");
    let federation = &Federation::built_in();
    let _board = provisioned(
        federation,
        board,
        &client,
        &smolfed,
        dir.path(),
        |command| {
            command.args(["-monitor", "none"]);
        },
    )?;
    println!("\nThe board takes part in a federation with {SIMULATED} simulated devices:");
    serve(federation, &smolfed, dir.path(), Stdio::inherit())
}
