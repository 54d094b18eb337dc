//! The library for C: an archive for each target, and multi-target packages for frameworks.

use std::error::Error;

use crate::board;

mod archive;
mod framework;
mod library;
mod machine;
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
    let mut built = Vec::new();
    for target in if targets.is_empty() { &all } else { targets } {
        let library = Library::build(target, *target == host)?;
        println!("{}", archive::of_target(&library)?.display());
        built.push(library);
    }
    for framework in &FRAMEWORKS {
        if let Some(archive) = framework.archive(&built)? {
            println!("{}", archive.display());
        }
    }
    Ok(())
}
