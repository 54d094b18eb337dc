//! `cargo xtask c-library`: the library for C, as an archive for each target, and multi-target
//! packages for frameworks. With `--tested`, only the libraries that tests use.

use std::error::Error;

use crate::board;
use crate::parallel;
use crate::toolchain::with_toolchains;

mod archive;
mod framework;
mod library;
mod machine;
mod notices;
mod sizes;
mod variant;

use framework::FRAMEWORKS;
use library::Library;
use variant::Platform;

/// The boards' targets for which tests use the library.
const TESTED: [&str; 3] = [
    "thumbv7em-none-eabihf",
    "thumbv6m-none-eabi",
    "riscv32imac-unknown-none-elf",
];

/// Builds the library for these targets, or for all boards and this machine. Packs an archive for
/// each target, and the packages for frameworks, and prints their paths.
///
/// # Errors
/// A toolchain is missing, or a tool fails.
pub fn run(targets: &[&str]) -> Result<(), Box<dyn Error>> {
    match targets {
        [] => build(&board::targets(), true, false),
        _ => build(targets, false, false),
    }
}

/// Builds what tests use.
///
/// # Errors
/// As [`run`].
pub fn run_tested() -> Result<(), Box<dyn Error>> {
    build(&TESTED, true, true)
}

fn build(targets: &[&str], has_host: bool, is_tested: bool) -> Result<(), Box<dyn Error>> {
    let host = library::host()?;
    let own = has_host.then_some(host.as_str());
    let targets: Vec<&str> = own.into_iter().chain(targets.iter().copied()).collect();
    let (found, missing) = with_toolchains(&targets);
    let libraries = parallel::map(&found, |target| {
        let library = Library::build(&Platform {
            target,
            is_host: *target == host,
            is_tested,
        });
        library.map_err(|error| error.to_string())
    });
    let built = libraries.into_iter().collect::<Result<Vec<_>, _>>()?;
    let notices = notices::third_party()?;
    for library in &built {
        println!("{}", archive::of_target(library, &notices)?.display());
    }
    for framework in &FRAMEWORKS {
        if let Some(archive) = framework.archive(&built, &notices)? {
            println!("{}", archive.display());
        }
    }
    missing.map_or(Ok(()), |missing| Err(missing.into()))
}
