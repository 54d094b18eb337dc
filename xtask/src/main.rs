//! Firmware and emulated boards, in one command each.
//!
//! ```text
//! cargo xtask firmware [TARGET]...   builds the firmware, for all targets or some
//! cargo xtask qemu BOARD             the demonstration on an emulated board
//! cargo xtask bench-target           sizes and instruction counts of all targets: docs/targets.md
//! ```
//!
//! Where rustup has the library of a target, plain cargo builds; otherwise Debian's toolchain builds
//! that library from its sources, and the program says so.

use std::error::Error;
use std::process::ExitCode;

mod bench;
mod board;
mod demo;
mod elf;
mod toolchain;

use board::Board;
use toolchain::Missing;

const USAGE: &str = "cargo xtask firmware [TARGET]... | qemu BOARD | bench-target";

/// The toolchain for a target is missing: `./test` installs it and tries again.
const MISSING: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["firmware", targets @ ..] => firmware(targets),
        ["qemu", name] => Board::named(name).and_then(|board| demo::run(&board)),
        ["bench-target"] => bench::run(),
        _ => {
            eprintln!("usage: {USAGE}\nboards: {}", board::names());
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            let missing = error.downcast_ref::<Missing>().is_some();
            ExitCode::from(if missing { MISSING } else { 1 })
        }
    }
}

fn firmware(targets: &[&str]) -> Result<(), Box<dyn Error>> {
    let all: Vec<&str> = board::BOARDS.iter().map(|board| board.target).collect();
    for target in if targets.is_empty() { &all } else { targets } {
        toolchain::firmware(target, &toolchain::Variant::AS_IT_IS)?;
    }
    Ok(())
}
