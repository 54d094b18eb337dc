//! Writes the board's memory map (linker script `memory.x`) for the linker.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    for (feature, board) in [("NRF52840", "nrf52840"), ("RP2040", "rp2040")] {
        if env::var_os(format!("CARGO_FEATURE_{feature}")).is_some() {
            let map = format!("memory/{board}.x");
            let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
            fs::copy(&map, Path::new(&out).join("memory.x"))?;
            println!("cargo:rustc-link-search={}", Path::new(&out).display());
            println!("cargo:rerun-if-changed={map}");
        }
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bin=rp2040=-Tlink-rp.x");
    Ok(())
}
