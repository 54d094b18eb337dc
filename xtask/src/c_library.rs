//! `cargo xtask c-library`: the library for C, as an archive for each target, and multi-target
//! packages for frameworks.

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

use framework::FRAMEWORKS;
use library::Library;

/// Builds the library for these targets, or for all boards and this machine. Packs an archive for
/// each target, and the packages for frameworks, and prints their paths.
///
/// # Errors
/// A toolchain is missing, or a tool fails.
pub fn run(targets: &[&str]) -> Result<(), Box<dyn Error>> {
    let host = library::host()?;
    let mut all = board::targets();
    all.push(&host);
    let (found, missing) = with_toolchains(if targets.is_empty() { &all } else { targets });
    let libraries = parallel::map(&found, |target| {
        let library = Library::build(target, *target == host);
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
