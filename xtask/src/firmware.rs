//! `cargo xtask firmware [TARGET]...`: builds the firmware and projects of the template for some or
//! all targets, with `--tested` only the variants that tests run. `cargo xtask firmware
//! --template-all` builds all combinations of the template.

use std::error::Error;

use crate::board;
use crate::parallel;
use crate::template;
use crate::toolchain::{Variant, firmware, with_toolchains};

/// The boards of `firmware-example/embassy/`, with their targets.
const EMBASSY: [(&str, &[&str]); 2] = [(M4F, &["nrf52840"]), (M0, &["rp2040"])];

const M0: &str = "thumbv6m-none-eabi";
const M4F: &str = "thumbv7em-none-eabihf";
const M33: &str = "thumbv8m.main-none-eabihf";
const RV32IMAC: &str = "riscv32imac-unknown-none-elf";

/// The users' programs that tests run on several targets. Tests run the others, and the bench, on
/// the Cortex-M4F only.
const WIDELY_TESTED: [&str; 11] = [
    "backbone",
    "bare",
    "bare-integer",
    "client",
    "encoder",
    "features",
    "gradients",
    "gradients-integer",
    "integer",
    "personal",
    "round",
];

/// Variants for all targets, with those on which tests run them.
const EVERYWHERE: [(Variant<'_>, &[&str]); 3] = [
    (Variant::X25519, &[M4F, RV32IMAC]),
    (Variant::MASKS, &[M0, M4F]),
    (Variant::REPORTS, &[M4F]),
];

/// Variants for the targets on which tests run or measure them.
const TESTED: [(Variant<'_>, &[&str]); 4] = [
    (Variant::SHORT, &[M4F]),
    (Variant::DELIVERY, &[M4F, RV32IMAC]),
    (Variant::CENTRAL, &[M4F, M0]),
    (Variant::QUESTIONS, &[M4F, RV32IMAC]),
];

/// The variants to build for a target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variants {
    /// Those that tests run.
    Tested,
    /// All of them.
    All,
}

/// Builds the targets in parallel, the one with the most variants first.
///
/// # Errors
/// A build fails, or a toolchain is missing. The other targets are built in any case.
pub fn run(targets: &[&str], which: Variants) -> Result<(), Box<dyn Error>> {
    let all = board::targets();
    let (mut found, missing) = with_toolchains(if targets.is_empty() { &all } else { targets });
    found.sort_by_key(|target| std::cmp::Reverse(variants(target, which).len()));
    for built in parallel::map(&found, |target| build(target, which)) {
        built?;
    }
    missing.map_or(Ok(()), |missing| Err(missing.into()))
}

/// Builds variants of a target, and its tested projects of the template.
fn build(target: &str, which: Variants) -> Result<(), String> {
    let built = variants(target, which)
        .iter()
        .try_for_each(|variant| firmware(target, variant).map(drop));
    let built = built.and_then(|()| template::build::tested(target));
    built.map_err(|error| error.to_string())
}

fn variants(target: &str, which: Variants) -> Vec<Variant<'static>> {
    let is_whole = which == Variants::All;
    let mut variants = if is_whole || target == M4F {
        vec![Variant::DEFAULT, Variant::TESTS]
    } else {
        let of_users = Variant {
            programs: &WIDELY_TESTED,
            ..Variant::DEFAULT
        };
        let of_tests = Variant {
            programs: &["selftest", "shapes"],
            ..Variant::TESTS
        };
        vec![of_users, of_tests]
    };
    for (variant, tested) in EVERYWHERE {
        if is_whole || tested.contains(&target) {
            variants.push(variant);
        }
    }
    for (variant, targets) in TESTED {
        if targets.contains(&target) {
            variants.push(variant);
        }
    }
    if board::has_second_line(target) && (is_whole || target == M33) {
        variants.push(Variant::ELEMENT);
    }
    let embassy = EMBASSY.iter().filter(|(name, _)| *name == target);
    variants.extend(embassy.map(|(_, board)| Variant::embassy(board)));
    variants
}
