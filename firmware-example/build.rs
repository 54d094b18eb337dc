//! Puts the memory map of the board where the linker finds it.

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
    println!("cargo:rustc-link-search={}", out.display());
    Ok(())
}
