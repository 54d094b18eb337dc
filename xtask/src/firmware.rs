//! `cargo xtask firmware [TARGET]...`: builds the firmware and projects of the template for some or
//! all targets. `cargo xtask firmware --template-all` builds all combinations of the template.

use std::error::Error;

use crate::board;
use crate::template;
use crate::toolchain::{Variant, firmware};

/// The boards of `firmware-example/embassy/`, with their targets.
const EMBASSY: [(&str, &[&str]); 2] = [
    ("thumbv7em-none-eabihf", &["nrf52840"]),
    ("thumbv6m-none-eabi", &["rp2040"]),
];

/// Targets with a flash limit for the client with central trust only.
const CENTRAL: [&str; 2] = ["thumbv7em-none-eabihf", "thumbv6m-none-eabi"];

/// Targets whose client is tested with questions.
const QUESTIONS: [&str; 2] = ["thumbv7em-none-eabihf", "riscv32imac-unknown-none-elf"];

/// Target whose clients are tested with 16-bit models.
const SHORT: &str = "thumbv7em-none-eabihf";

/// Targets whose program that only infers is tested.
const DELIVERY: [&str; 2] = ["thumbv7em-none-eabihf", "riscv32imac-unknown-none-elf"];

pub fn run(targets: &[&str]) -> Result<(), Box<dyn Error>> {
    let all = board::targets();
    for target in if targets.is_empty() { &all } else { targets } {
        firmware(target, &Variant::DEFAULT)?;
        firmware(target, &Variant::TESTS)?;
        firmware(target, &Variant::X25519)?;
        firmware(target, &Variant::MASKS)?;
        firmware(target, &Variant::REPORTS)?;
        if target == &SHORT {
            firmware(target, &Variant::SHORT)?;
        }
        if DELIVERY.contains(target) {
            firmware(target, &Variant::DELIVERY)?;
        }
        if CENTRAL.contains(target) {
            firmware(target, &Variant::CENTRAL)?;
        }
        if QUESTIONS.contains(target) {
            firmware(target, &Variant::QUESTIONS)?;
        }
        if board::has_second_line(target) {
            firmware(target, &Variant::ELEMENT)?;
        }
        for (_, board) in EMBASSY.iter().filter(|(name, _)| name == target) {
            firmware(target, &Variant::embassy(board))?;
        }
        template::build::tested(target)?;
    }
    Ok(())
}
