//! No panic can happen on a board: in the optimised client nobody calls what panics.
//!
//! Every panic of Rust goes through `core::panicking`. The linker keeps its relocations in the ELF file
//! (`firmware-example/.cargo/config.toml`): one for every call and every address that code uses. So who
//! calls those functions, who calls the callers and so on can be read from the file, down to code that is
//! not of `core`: that is where a panic would begin.
//!
//! What it shows: in `bare`, the whole client without a host, and in `round`, the compiler has found every panic of
//! `smolfed-core`, of the firmware and of their dependencies unreachable but those listed in [`KNOWN`].
//! What it does not: stack overflow, and faults of the hardware. It holds for this compiler, these
//! targets and this profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

use crate::boards::{
    Board, CORTEX_M0, CORTEX_M3, CORTEX_M4F, CORTEX_M33, RV32IMAC, RV32IMC, firmware,
};

/// Where RustCrypto's BLAKE2s keeps a check that the compiler cannot remove: that constants in a table
/// are below 16, and that a key of 32 bytes has a length that keys may have.
const KNOWN: [&str; 2] = ["6blake2", "4wire3mac"];

/// A function, from its first byte to behind its last.
struct Function {
    start: u64,
    end: u64,
    name: String,
}

/// For every function the functions that name it.
fn callers(program: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let bytes = std::fs::read(program).expect("the client");
    let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
    let mut functions: Vec<Function> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| {
            // The lowest bit of an address says that the code is Thumb.
            let start = symbol.address() & !1;
            let end = start + symbol.size();
            let name = symbol.name().expect("a name").to_owned();
            Function { start, end, name }
        })
        .collect();
    functions.sort_by_key(|function| function.start);
    let at = |address: u64| {
        let after = functions.partition_point(|function| function.start <= address);
        let found = functions[..after]
            .last()
            .filter(|function| address < function.end);
        found.map(|function| function.name.clone())
    };
    let mut callers = BTreeMap::<_, BTreeSet<_>>::new();
    let mut relocations = 0;
    for section in file.sections() {
        for (offset, relocation) in section.relocations() {
            relocations += 1;
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index).expect("a symbol");
            // Calls within a section may go by the section's name and an offset.
            let target = match symbol.kind() {
                SymbolKind::Section => at((symbol.address() + relocation.addend() as u64) & !1),
                _ => at(symbol.address() & !1),
            };
            let caller = at(offset).unwrap_or_else(|| section.name().unwrap_or("").to_owned());
            if let Some(target) = target.filter(|target| *target != caller) {
                callers.entry(target).or_default().insert(caller);
            }
        }
    }
    assert!(relocations > 1_000, "the linker keeps the relocations");
    callers
}

/// Who begins a panic: the nearest callers of `core::panicking` that are no part of Rust's `core`.
fn origins(program: &Path) -> BTreeSet<String> {
    let callers = callers(program);
    let panics =
        |name: &&String| name.contains("rust_begin_unwind") || name.contains("4core9panicking");
    let mut waiting: Vec<&String> = callers.keys().filter(panics).collect();
    let mut seen = BTreeSet::new();
    let mut origins = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        for caller in callers.get(name).into_iter().flatten() {
            if !seen.insert(caller) {
                continue;
            }
            if of_core(caller) {
                waiting.push(caller);
            } else {
                origins.insert(caller.clone());
            }
        }
    }
    origins
}

/// Whether a function is of Rust's `core`: whether that is the first crate in its mangled name.
fn of_core(name: &str) -> bool {
    let first = name
        .split_once("Cs")
        .and_then(|(_, rest)| rest.split_once('_'));
    first.is_some_and(|(_, path)| path.starts_with("4core")) || name.starts_with("_ZN4core")
}

fn panics_nowhere(board: &Board) {
    for name in ["bare", "round"] {
        let Some(program) = firmware(board, name) else {
            return;
        };
        let origins = origins(&program);
        println!("{}, {name}: {origins:?}", board.target);
        for origin in &origins {
            let known = KNOWN.iter().any(|known| origin.contains(known));
            assert!(known, "{}: a panic can begin in {origin}", board.target);
        }
    }
}

#[test]
fn the_client_of_a_cortex_m0_never_panics() {
    panics_nowhere(&CORTEX_M0);
}

#[test]
fn the_client_of_a_cortex_m3_never_panics() {
    panics_nowhere(&CORTEX_M3);
}

#[test]
fn the_client_of_a_cortex_m4f_never_panics() {
    panics_nowhere(&CORTEX_M4F);
}

#[test]
fn the_client_of_a_cortex_m33_never_panics() {
    panics_nowhere(&CORTEX_M33);
}

#[test]
fn the_client_of_a_risc_v_never_panics() {
    panics_nowhere(&RV32IMAC);
}

#[test]
fn the_client_of_a_risc_v_without_atomics_never_panics() {
    panics_nowhere(&RV32IMC);
}

/// The method sees a panic where there is one: the bench prints, and formatting may panic.
#[test]
fn a_panic_is_found() {
    let Some(program) = firmware(&CORTEX_M4F, "bench") else {
        return;
    };
    let unknown = |origin: &String| !KNOWN.iter().any(|known| origin.contains(known));
    assert!(origins(&program).iter().any(unknown));
}
