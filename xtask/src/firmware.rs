//! `cargo xtask firmware [TARGET]...`: builds the firmware, for all targets or some.

use std::error::Error;

use crate::board;
use crate::toolchain::{Variant, firmware};

pub fn run(targets: &[&str]) -> Result<(), Box<dyn Error>> {
    let all = board::targets();
    for target in if targets.is_empty() { &all } else { targets } {
        firmware(target, &Variant::DEFAULT)?;
        firmware(target, &Variant::X25519)?;
        firmware(target, &Variant::MASKS)?;
    }
    Ok(())
}
