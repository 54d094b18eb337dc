//! A client that trains in integers has no floating point: neither functions that emulate
//! instructions, nor functions of `libm`.

use std::path::Path;

use object::{Object, ObjectSymbol};

use super::{Board, firmware, named, on_every_board};

/// Matches floating-point routines of the compiler's library and the run-time ABI (arithmetic,
/// comparison, conversion), and of `libm`.
fn is_floating_point(name: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "__aeabi_f",
        "__aeabi_d",
        "__aeabi_i2",
        "__aeabi_ui2",
        "__aeabi_l2",
        "__aeabi_ul2",
        "__aeabi_cf",
        "__aeabi_cd",
        "__fix",
        "__float",
        "__extend",
        "__trunc",
    ];
    const ENDINGS: [&str; 4] = ["sf2", "sf3", "df2", "df3"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || ENDINGS
            .iter()
            .any(|ending| name.starts_with("__") && name.ends_with(ending))
        || name.contains("4libm")
        || name.contains("12smolfed_core4math")
}

/// Returns the floating-point functions of a program.
fn floating_point(program: &Path) -> Vec<String> {
    let bytes = std::fs::read(program).expect("the client");
    let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
    let names = file
        .symbols()
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    names.filter(|name| is_floating_point(name)).collect()
}

fn has_none(board: &Board) {
    for name in ["integer", "bare-integer", "backbone", "gradients-integer"] {
        let Some((program, _)) = firmware(board, name) else {
            return;
        };
        let found = floating_point(&program);
        assert!(found.is_empty(), "{name} on {}: {found:?}", board.target);
    }
}

#[test]
fn a_client_that_trains_in_integers_has_no_floating_point() {
    on_every_board(has_none);
}

/// The analysis finds such functions if they exist.
#[test]
fn floating_point_is_found() {
    let Some((program, _)) = firmware(named("microbit"), "client") else {
        return;
    };
    let found = floating_point(&program);
    assert!(found.iter().any(|name| name == "__aeabi_fmul"), "{found:?}");
}
