//! Chooses the board, writes its memory map for the linker, and sets the linker's arguments.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "boards.rs"]
mod boards;

use boards::{BOARDS, Board, Region};

/// RAM size, in bytes, below which a vector of 4 KiB does not fit next to those of training.
const SMALL_RAM: u32 = 32 << 10;

/// Default features and classes of the client's model, seed of the random shapes, samples per
/// channel in a network's window, and pixels per side of a cell. The environment overrides them.
const MODEL: [(&str, &str); 5] = [
    ("SMOLFED_SEED", "1"),
    ("SMOLFED_FEATURES", "64"),
    ("SMOLFED_CLASSES", "10"),
    ("SMOLFED_WIDTH", "50"),
    ("SMOLFED_CELL", "2"),
];

/// Replacements for the last two on a board with little RAM.
const SMALL_MODEL: [(&str, &str); 2] = [("SMOLFED_WIDTH", "25"), ("SMOLFED_CELL", "4")];

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=SMOLFED_BOARD");
    println!("cargo:rerun-if-changed=boards.rs");
    println!("cargo:rerun-if-env-changed=SMOLFED_PUBLISHER");
    let board = board()?;
    let out = PathBuf::from(variable("OUT_DIR")?);
    write(&out.join("memory.x"), &memory_map(board))?;
    // Interrupt names, which a table with one handler does not need.
    write(&out.join("device.x"), "")?;
    println!("cargo:rustc-link-search={}", out.display());
    if board.target.starts_with("riscv") {
        println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    // The file keeps the relocations, outside the flash image. They show which function calls which
    // (tests/boards/panics.rs).
    println!("cargo:rustc-link-arg-bins=--emit-relocs");
    let sources = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("src/board");
    let module = sources.join(board.module).with_extension("rs");
    write(
        &out.join("board.rs"),
        &format!("#[path = {module:?}]\nmod chosen;\npub use chosen::*;\n"),
    )?;

    let names: Vec<String> = BOARDS
        .iter()
        .map(|board| format!("{:?}", board.name))
        .collect();
    println!(
        "cargo:rustc-check-cfg=cfg(board, values({}))",
        names.join(", ")
    );
    println!("cargo:rustc-check-cfg=cfg(has_random_numbers)");
    println!("cargo:rustc-check-cfg=cfg(small_ram)");
    println!("cargo:rustc-check-cfg=cfg(fast)");
    if env::var("OPT_LEVEL").is_ok_and(|level| level == "3") {
        println!("cargo:rustc-cfg=fast");
    }
    println!("cargo:rustc-cfg=board={:?}", board.name);
    if board.has_random_numbers {
        println!("cargo:rustc-cfg=has_random_numbers");
    }
    if board.ram.length < SMALL_RAM {
        println!("cargo:rustc-cfg=small_ram");
    }
    println!("cargo:rustc-env=SMOLFED_WINDOWS={}", board.windows);
    println!("cargo:rustc-env=SMOLFED_RAM={}", board.ram.length);
    for (name, default) in MODEL {
        println!("cargo:rerun-if-env-changed={name}");
        let is_small = board.ram.length < SMALL_RAM;
        let small = SMALL_MODEL.iter().find(|(of, _)| is_small && *of == name);
        let default = small.map_or(default, |(_, small)| small);
        let value = env::var(name).unwrap_or_else(|_| default.to_owned());
        println!("cargo:rustc-env={name}={value}");
    }
    Ok(())
}

/// Returns the board in `SMOLFED_BOARD`, or the first board of the target.
fn board() -> Result<&'static Board, String> {
    let target = variable("TARGET")?;
    let name = env::var("SMOLFED_BOARD");
    let is_named = |board: &&Board| name.as_ref().is_ok_and(|name| board.name == name);
    let found = BOARDS
        .iter()
        .filter(|board| board.target == target)
        .find(|board| name.is_err() || is_named(board));
    found.ok_or_else(|| {
        format!(
            "no board for {target}: build with --target, or name one of boards.rs in SMOLFED_BOARD"
        )
    })
}

fn memory_map(board: &Board) -> String {
    let mut map = "MEMORY\n{\n".to_owned();
    let regions = [
        ("FLASH", board.flash),
        ("PROVISION", board.provision),
        ("RAM", board.ram),
    ];
    for (name, Region { start, length }) in regions {
        map += &format!("  {name} : ORIGIN = {start:#010x}, LENGTH = {length}\n");
    }
    map += "}\n_provision = ORIGIN(PROVISION);\n";
    map += "_provision_end = ORIGIN(PROVISION) + LENGTH(PROVISION);\n";
    if board.target.starts_with("riscv") {
        for section in ["TEXT", "RODATA"] {
            map += &format!("REGION_ALIAS(\"REGION_{section}\", FLASH);\n");
        }
        for section in ["DATA", "BSS", "HEAP", "STACK"] {
            map += &format!("REGION_ALIAS(\"REGION_{section}\", RAM);\n");
        }
    }
    map
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
