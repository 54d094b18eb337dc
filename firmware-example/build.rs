//! Puts the memory map of the board where the linker finds it, and chooses board and model.

use std::path::PathBuf;
use std::{env, fs};

/// The board that is emulated for a target, unless `SMOLFED_BOARD` names another one.
const DEFAULTS: [(&str, &str); 6] = [
    ("thumbv6m-none-eabi", "microbit"),
    ("thumbv7m-none-eabi", "mps2-an385"),
    ("thumbv7em-none-eabihf", "mps2-an386"),
    ("thumbv8m.main-none-eabihf", "mps2-an505"),
    ("riscv32imac-unknown-none-elf", "riscv-virt"),
    ("riscv32imc-unknown-none-elf", "riscv-virt"),
];

/// The boards in `boards/`: each has a module in `src/board/`, perhaps with others of its family.
const BOARDS: [&str; 5] = [
    "microbit",
    "mps2-an385",
    "mps2-an386",
    "mps2-an505",
    "riscv-virt",
];

/// Features and classes of the client's model, unless the environment gives others.
const MODEL: [(&str, &str); 2] = [("SMOLFED_FEATURES", "64"), ("SMOLFED_CLASSES", "10")];

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=SMOLFED_BOARD");
    println!("cargo:rerun-if-changed=boards");
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let target = variable("TARGET")?;
    let default = DEFAULTS.iter().find(|(name, _)| *name == target);
    let board = match (env::var("SMOLFED_BOARD"), default) {
        (Ok(board), _) => board,
        (Err(_), Some((_, board))) => (*board).to_owned(),
        (Err(_), None) => {
            return Err(format!(
                "no board for {target}: build with --target, or set SMOLFED_BOARD to a file in boards/"
            ));
        }
    };
    let map = PathBuf::from("boards").join(&board).with_extension("x");
    let out = PathBuf::from(variable("OUT_DIR")?);
    fs::copy(&map, out.join("memory.x"))
        .map_err(|error| format!("the memory map {}: {error}", map.display()))?;
    // Names for interrupts, of which a table of one handler needs none.
    fs::write(out.join("device.x"), "").map_err(|error| format!("device.x: {error}"))?;
    println!("cargo:rustc-link-search={}", out.display());
    println!(
        "cargo:rustc-check-cfg=cfg(board, values(\"{}\"))",
        BOARDS.join("\", \"")
    );
    println!("cargo:rustc-cfg=board=\"{board}\"");
    for (name, default) in MODEL {
        println!("cargo:rerun-if-env-changed={name}");
        let value = env::var(name).unwrap_or_else(|_| default.to_owned());
        println!("cargo:rustc-env={name}={value}");
    }
    Ok(())
}
