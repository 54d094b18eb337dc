//! Firmware, emulated boards and checks of the repository, in one command each.
//!
//! ```text
//! cargo xtask targets                the targets of all boards, one a line
//! cargo xtask firmware [TARGET]...   builds the firmware, for all targets or some
//! cargo xtask firmware --tested      builds the firmware that tests run
//! cargo xtask firmware --template-all  builds projects of the template in all combinations
//! cargo xtask qemu BOARD             runs a federation with an emulated board; with
//!                                    `--smolfed PATH` by an installed command line
//! cargo xtask bench-target           measures all targets, and writes docs/targets.md
//! cargo xtask bench-target builds    the flash of builds with fewer or more features alone
//! cargo xtask cycles BOARD [3]       instructions and modelled cycles of one board, at "s" or 3
//! cargo xtask backbone train         trains the frozen backbone, and writes its weights
//! cargo xtask backbone check         whether these weights are those in the repository
//! cargo xtask backbone data FOLDER   digits that it has not seen: as pixels, and as its features
//! cargo xtask template FOLDER        a project of firmware-example/template/, with NAME=VALUE
//! cargo xtask load [--devices N]     `smolfed serve` under the load of many devices; with further
//!                                    options under faults and attacks
//! cargo xtask c-library [TARGET]...  the library for C, an archive for each target
//! cargo xtask c-library --tested     the libraries for C that tests use
//! cargo xtask deb [OPTIONS]          builds the Debian package, with options of cargo-deb
//! cargo xtask find WORD...           finds files by the words of their introductions and paths
//! cargo xtask structure              import cycles, long lines, dead links, missing introductions
//! cargo xtask mutants [K/N]          mutation testing of the privacy path, or shard K of N
//! ```
//!
//! Where rustup has the library of a target, plain cargo builds. Otherwise, Debian's toolchain
//! builds that library from its sources, and a message says so.

use std::path::Path;
use std::process::ExitCode;

mod backbone;
mod bench_target;
mod board;
mod c_library;
mod deb;
mod elf;
mod federation;
mod find;
mod firmware;
mod introduction;
mod load;
mod mutants;
mod parallel;
mod qemu;
mod structure;
mod template;
mod toolchain;

use board::Board;
use toolchain::{Missing, Variant};

const USAGE: &str = "cargo xtask targets | firmware [TARGET]... | \
                     firmware --tested|--template-all | qemu BOARD [--smolfed PATH] | \
                     bench-target [builds] | cycles BOARD [3] | \
                     backbone train|check | backbone data FOLDER | \
                     template FOLDER [NAME=VALUE]... | c-library --tested|[TARGET]... | \
                     load [--devices N] | deb [OPTIONS] | find WORD... | structure | mutants [K/N]";

/// Exit code if the toolchain for a target is missing. `./test` then installs it and retries.
const MISSING: u8 = 3;

fn cycles(name: &str, variant: &Variant<'_>) -> Result<(), Box<dyn std::error::Error>> {
    bench_target::cycles(&Board::named(name)?, variant)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["targets"] => {
            board::targets()
                .iter()
                .for_each(|target| println!("{target}"));
            Ok(())
        }
        ["firmware", "--template-all"] => template::build::all(),
        ["firmware", "--tested"] => firmware::run(&[], firmware::Variants::Tested),
        ["firmware", targets @ ..] => firmware::run(targets, firmware::Variants::All),
        ["qemu", name] => Board::named(name).and_then(|board| qemu::run(&board, None)),
        ["qemu", name, "--smolfed", path] => {
            Board::named(name).and_then(|board| qemu::run(&board, Some(Path::new(path))))
        }
        ["c-library", "--tested"] => c_library::run_tested(),
        ["c-library", targets @ ..] => c_library::run(targets),
        ["bench-target"] => bench_target::run(),
        ["bench-target", "builds"] => bench_target::builds(),
        ["cycles", name] => cycles(name, &Variant::TESTS),
        ["cycles", name, "3"] => cycles(name, &bench_target::FAST),
        ["backbone", "train"] => backbone::train(),
        ["backbone", "check"] => backbone::check(),
        ["backbone", "data", folder] => backbone::data(Path::new(folder)),
        ["template", folder, values @ ..] => template::run(folder, values),
        ["load", arguments @ ..] => load::run(arguments),
        ["deb", options @ ..] => deb::run(options),
        ["find", word, words @ ..] => find::run(&[&[*word], words].concat()),
        ["structure"] => structure::run(),
        ["mutants"] => mutants::run(None),
        ["mutants", shard] => mutants::run(Some(shard)),
        _ => {
            eprintln!("usage: {USAGE}\nboards: {}", board::names());
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            let missing = error.downcast_ref::<Missing>().is_some();
            ExitCode::from(if missing { MISSING } else { 1 })
        }
    }
}
