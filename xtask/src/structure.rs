//! Repository checks beyond the compiler's: no import cycle between files or sibling modules, no
//! long line or table cell, no dead link or citation, no page missing from the book, no file
//! without a purpose.

use std::error::Error;
use std::path::Path;

mod body;
mod cells;
mod citations;
mod finding;
#[cfg(test)]
mod fixture;
mod graph;
mod imports;
mod lines;
mod links;
mod modules;
mod names;
mod pages;
mod purpose;
mod repository;
mod siblings;
mod sources;
mod targets;
mod tokens;

use modules::Modules;
pub use repository::Repository;
use sources::Sources;

/// Checks the repository and prints all violations.
///
/// # Errors
/// Any finding, or a file that cannot be read or parsed.
pub fn run() -> Result<(), Box<dyn Error>> {
    let repository = Repository::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let pages = pages::read(&repository)?;
    let targets = targets::of(&repository)?;
    let sources = Sources::read(&targets)?;
    let crates = targets.iter().map(|root| Modules::of(root, &sources));
    let crates = crates.collect::<Result<Vec<_>, _>>()?;
    let mut findings = imports::cycles(&repository.root, &crates);
    findings.extend(siblings::cycles(&repository.root, &crates));
    findings.extend(lines::check(&repository)?);
    findings.extend(cells::check(&repository)?);
    findings.extend(purpose::check(&repository)?);
    findings.extend(links::check(&repository, &pages));
    findings.extend(citations::check(&repository, &pages)?);
    for finding in &findings {
        println!("{finding}");
    }
    let (files, crates) = (repository.files.len(), crates.len());
    println!("structure: {files} files, {crates} crates checked");
    if findings.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the structure of the repository: {} findings",
        findings.len()
    )
    .into())
}
