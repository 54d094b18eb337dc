//! `cargo xtask mutants [SHARD/SHARDS]`: mutation testing of the privacy path.
//!
//! cargo-mutants changes one expression of the code at a time, and runs the unit tests: a mutant
//! that no test notices is a fault that could slip in unnoticed. `.cargo/mutants.toml` says which
//! files are mutated. A mutant that no test can notice, since it changes nothing that matters, is
//! listed in `docs/privacy-testing.md` with the reason; any other survivor is an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::root;

/// The page that explains survivors.
const PAGE: &str = "docs/privacy-testing.md";

/// Runs all mutants, or one shard of them, and fails if one survives that the page does not
/// explain.
pub fn run(shard: Option<&str>) -> Result<(), Box<dyn Error>> {
    let installed = Command::new("cargo")
        .args(["mutants", "--version"])
        .output()?;
    if !installed.status.success() {
        return Err("cargo-mutants is missing: cargo install --locked cargo-mutants".into());
    }
    let output = output_folder(shard);
    std::fs::create_dir_all(&output)?;
    let mut command = Command::new("cargo");
    command
        .args(["mutants", "--workspace", "--output"])
        .arg(&output);
    if let Some(shard) = shard {
        command.args(["--shard", shard]);
    }
    // Its exit code 2 says that mutants survived, 3 that tests hung on some: both are judged here.
    let status = command.current_dir(root()).status()?;
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo mutants: {status}").into());
    }
    let survivors = survivors(&output.join("mutants.out"))?;
    let page = std::fs::read_to_string(root().join(PAGE))?;
    let unexplained = unexplained(&survivors, &page);
    if unexplained.is_empty() {
        println!("no mutant survives that {PAGE} does not explain");
        return Ok(());
    }
    for mutant in &unexplained {
        println!("{mutant}");
    }
    let count = unexplained.len();
    Err(format!("{count} mutants survive: add a test, or the reason to {PAGE}").into())
}

/// Each shard writes to a folder of its own, so that shards can run one after the other.
fn output_folder(shard: Option<&str>) -> PathBuf {
    let name = shard.map_or_else(|| "all".to_owned(), |shard| shard.replace('/', "-of-"));
    root().join("target/mutants").join(name)
}

/// The mutants that no test noticed.
fn survivors(folder: &Path) -> std::io::Result<BTreeSet<String>> {
    let missed = std::fs::read_to_string(folder.join("missed.txt"))?;
    Ok(missed.lines().map(without_position).collect())
}

/// `core/src/clip.rs:12:5: replace ..` without line and column, which change with every edit.
fn without_position(line: &str) -> String {
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match line.splitn(4, ':').collect::<Vec<_>>()[..] {
        [file, row, column, rest] if [row, column].iter().all(is_number) => {
            format!("{file}:{rest}")
        }
        _ => line.to_owned(),
    }
}

/// Those that the page does not name in a code span.
fn unexplained<'a>(survivors: &'a BTreeSet<String>, page: &str) -> Vec<&'a str> {
    let is_explained = |mutant: &&String| page.contains(&format!("`{mutant}`"));
    let unexplained = survivors.iter().filter(|mutant| !is_explained(mutant));
    unexplained.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_left_out() {
        let line = "core/src/clip.rs:69:25: replace > with >= in shrink_factor";
        let name = "core/src/clip.rs: replace > with >= in shrink_factor";
        assert_eq!(without_position(line), name);
        assert_eq!(without_position(name), name);
    }

    #[test]
    fn only_survivors_that_the_page_does_not_name_are_errors() {
        let survivors = ["a.rs: replace + with -", "a.rs: replace + with *"];
        let survivors = survivors.map(str::to_owned).into();
        let page = "| `a.rs: replace + with *` | the other term is zero |";
        assert_eq!(unexplained(&survivors, page), ["a.rs: replace + with -"]);
    }
}
