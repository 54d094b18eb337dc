//! Flash of the client with fewer or more core features, as a Markdown table.

use std::error::Error;

use super::tables::grouped;
use crate::elf::Sizes;
use crate::toolchain::{Variant, firmware};

/// Start marker of the table in `docs/targets.md`.
pub const BEGIN: &str = "<!-- begin: cargo xtask bench-target builds -->\n";

/// Processors with their targets. Each has both arithmetics of a client.
const PROCESSORS: [(&str, &str); 2] = [
    ("Cortex-M4F", "thumbv7em-none-eabihf"),
    ("Cortex-M0", "thumbv6m-none-eabi"),
];
const PROGRAMS: [(&str, &str); 2] = [("bare", "`f32`"), ("bare-integer", "integer")];

/// A title, whether the default features are enabled, and additional features.
type Build = (&'static str, bool, &'static [&'static str]);

const BUILDS: [Build; 9] = [
    ("the default features", true, &[]),
    (
        "without `local-noise`",
        false,
        &["gradient-smoothing", "adaptive-bit", "pseudonym"],
    ),
    (
        "without `gradient-smoothing`",
        false,
        &["local-noise", "adaptive-bit", "pseudonym"],
    ),
    (
        "without `adaptive-bit`",
        false,
        &["local-noise", "gradient-smoothing", "pseudonym"],
    ),
    (
        "without `pseudonym`",
        false,
        &["local-noise", "gradient-smoothing", "adaptive-bit"],
    ),
    ("without the four", false, &[]),
    ("with `masks`", true, &["masks"]),
    ("with `x25519`", true, &["x25519"]),
    ("with `reports`", true, &["reports"]),
];

/// Builds each variant and returns the table.
pub fn table() -> Result<String, Box<dyn Error>> {
    let columns = PROCESSORS.iter().flat_map(|(processor, _)| {
        let of = move |(_, arithmetic): &(&str, &str)| format!("{processor}, {arithmetic}");
        PROGRAMS.iter().map(of)
    });
    let columns: Vec<String> = columns.collect();
    let mut page = String::from("\nFlash of the client, 64 × 10, opt-level \"s\", bytes:\n\n");
    page += &format!("| build | {} |\n", columns.join(" | "));
    page += &format!("| --- |{}\n", " ---: |".repeat(columns.len()));
    for build in BUILDS {
        eprintln!("{}", build.0);
        let flash = flash(build)?.map(grouped).join(" | ");
        page += &format!("| {} | {flash} |\n", build.0);
    }
    Ok(page + "\n")
}

/// Returns the bytes of flash by processor, then by arithmetic.
fn flash((_, is_whole, features): Build) -> Result<[u64; 4], Box<dyn Error>> {
    let variant = Variant {
        folder: "firmware-builds",
        is_whole,
        features,
        programs: &[PROGRAMS[0].0, PROGRAMS[1].0],
        ..Variant::DEFAULT
    };
    let mut flash = [0; 4];
    for ((_, target), sizes) in PROCESSORS
        .iter()
        .zip(flash.chunks_exact_mut(PROGRAMS.len()))
    {
        let folder = firmware(target, &variant)?;
        for ((program, _), size) in PROGRAMS.iter().zip(sizes) {
            *size = Sizes::read(&folder.join(program))?.flash();
        }
    }
    Ok(flash)
}
