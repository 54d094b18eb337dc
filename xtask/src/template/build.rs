//! Builds of template projects, for one board or in all combinations.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{choices, make};
use crate::federation::succeed;
use crate::toolchain::{Variant, firmware, plain_cargo, root, target_dir};

/// Boards that `cargo xtask firmware` builds, with sensor kind and arithmetic: a real board, and
/// the board used in tests.
const TESTED: [[&str; 3]; 2] = [
    ["nrf52840", "plain", "f32"],
    ["mps2-an386", "windows", "integer"],
];

/// Returns the target of a template board.
fn target(board: &str) -> &'static str {
    match board {
        "rp2040" => "thumbv6m-none-eabi",
        "rp2350" => "thumbv8m.main-none-eabihf",
        _ => "thumbv7em-none-eabihf",
    }
}

/// Builds the projects that the tests need for a target.
pub fn tested(of: &str) -> Result<(), Box<dyn Error>> {
    let boards = TESTED.iter().filter(|[board, ..]| target(board) == of);
    boards.copied().try_for_each(build)
}

/// Builds each board with each sensor and arithmetic, and prints the duration.
pub fn all() -> Result<(), Box<dyn Error>> {
    let (sensors, arithmetics) = (choices("sensor")?, choices("arithmetic")?);
    for board in choices("board")? {
        for (sensor, arithmetic) in sensors
            .iter()
            .flat_map(|sensor| arithmetics.iter().map(move |x| (sensor, x)))
        {
            let start = Instant::now();
            build([&board, sensor, arithmetic])?;
            let seconds = start.elapsed().as_secs_f64();
            println!("{board}, {sensor}, {arithmetic}: {seconds:.1} s");
        }
    }
    Ok(())
}

/// Creates a project with this repository's core in an empty folder, and builds it with the
/// versions of `firmware-example/embassy/`. All projects share one cargo output folder, so
/// dependencies are compiled once.
fn build([board, sensor, arithmetic]: [&str; 3]) -> Result<(), Box<dyn Error>> {
    let folder = project(board, sensor, arithmetic)?;
    let variant = Variant {
        workspace: &folder.to_string_lossy(),
        folder: "firmware-template",
        ..Variant::DEFAULT
    };
    firmware(target(board), &variant)?;
    Ok(())
}

/// Creates a project in cargo's output folder.
fn project(board: &str, sensor: &str, arithmetic: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = target_dir().join("template");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    with_lock(
        &folder,
        &[
            &format!("board={board}"),
            &format!("sensor={sensor}"),
            &format!("arithmetic={arithmetic}"),
        ],
    )?;
    Ok(folder)
}

/// Creates a project with the versions of `firmware-example/embassy/`.
fn with_lock(folder: &Path, given: &[&str]) -> Result<(), Box<dyn Error>> {
    make(folder, given)?;
    let lock = root().join("firmware-example/embassy/Cargo.lock");
    fs::copy(lock, folder.join("Cargo.lock"))?;
    let mut update = plain_cargo();
    update
        .current_dir(folder)
        .args(["update", "--workspace", "--quiet"]);
    succeed(&mut update)
}
