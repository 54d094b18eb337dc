//! The optimised client contains no reachable panic.
//!
//! Every panic of Rust goes through `core::panicking`. The linker keeps its relocations in the ELF
//! file (`firmware-example/build.rs`): one for every call and every address in the code.
//! They give the callers of those functions, the callers' callers and so on, up to the first
//! function outside `core`: the origin of a panic.
//!
//! The test shows that the compiler has proved every panic of `smolfed-core`, the firmware and
//! their dependencies unreachable in `bare` and `bare-integer`, whole clients without a host, and
//! in `round`, except those listed in [`KNOWN`]. It does not show the absence of stack overflows
//! and hardware faults. It holds for this compiler, these targets and this profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::{
    Object, ObjectSection, ObjectSymbol, RelocationTarget, Section, SectionKind, SymbolKind,
};

use super::{Board, CORTEX_M4F, firmware, named, on_every_board};

/// Checks that the compiler cannot remove: none.
const KNOWN: [&str; 0] = [];

/// A function: its name and its range of addresses.
struct Function {
    start: u64,
    end: u64,
    name: String,
}

/// Returns, for each function, the functions that refer to it.
fn callers(program: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let bytes = std::fs::read(program).expect("the client");
    let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
    let mut functions: Vec<Function> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| {
            // The lowest bit of an address marks Thumb code.
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
    // Offsets in debug information are not addresses.
    let is_loaded = |section: &Section<'_, '_>| {
        use SectionKind::{Data, ReadOnlyData, Text};
        matches!(section.kind(), Text | Data | ReadOnlyData)
    };
    for section in file.sections().filter(is_loaded) {
        for (offset, relocation) in section.relocations() {
            relocations += 1;
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index).expect("a symbol");
            // Calls within a section may use the section's name and an offset.
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
    assert!(relocations > 200, "the linker keeps the relocations");
    callers
}

/// Returns the origins of panics: the nearest callers of `core::panicking` outside Rust's `core`.
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

/// Returns whether a function belongs to Rust's `core`: the first crate in its mangled name.
fn of_core(name: &str) -> bool {
    let first = name
        .split_once("Cs")
        .and_then(|(_, rest)| rest.split_once('_'));
    first.is_some_and(|(_, path)| path.starts_with("4core")) || name.starts_with("_ZN4core")
}

fn has_no_panic(board: &Board) {
    for name in ["bare", "bare-integer", "round"] {
        let Some((program, _)) = firmware(board, name) else {
            return;
        };
        let origins = origins(&program);
        println!("{}, {name}: {origins:?}", board.target);
        for origin in &origins {
            let known = KNOWN.iter().any(|known| origin.contains(known));
            assert!(known, "{}: {origin} can panic", board.target);
        }
    }
}

#[test]
fn the_client_of_every_board_never_panics() {
    on_every_board(has_no_panic);
}

/// Image features add no panic to a client. The client borrows its flash from a host with calls
/// that may panic.
#[test]
fn features_of_images_add_no_panic() {
    on_every_board(|board| {
        adds_no_panic(board, "integer", "backbone");
        adds_no_panic(board, "integer", "gradients-integer");
        adds_no_panic(board, "client", "gradients");
    });
}

fn adds_no_panic(board: &Board, client: &str, program: &str) {
    let programs = [client, program].map(|name| Some(firmware(board, name)?.0));
    let [Some(without), Some(with)] = programs else {
        return;
    };
    // A name ends with a hash of the program.
    let names = |program: &Path| -> BTreeSet<String> {
        let origins = origins(program).into_iter();
        let name = |origin: String| origin.rsplit_once("17h").map(|(name, _)| name.to_owned());
        origins.filter_map(name).collect()
    };
    let (without, with) = (names(&without), names(&with));
    assert!(!without.is_empty());
    assert_eq!(with, without, "{program} on {}", board.target);
}

/// The analysis finds existing panics: the bench prints, and formatting may panic.
#[test]
fn a_panic_is_found() {
    let Some((program, _)) = firmware(named(CORTEX_M4F), "bench") else {
        return;
    };
    let unknown = |origin: &String| !KNOWN.iter().any(|known| origin.contains(known));
    assert!(origins(&program).iter().any(unknown));
}
