//! `cargo xtask mutants [SHARD/SHARDS]`: mutation testing of the privacy path.
//!
//! cargo-mutants changes one expression of the code at a time, and runs the unit tests. A mutant
//! that no test detects is a possible undetected fault. `.cargo/mutants.toml` lists the mutated
//! files. An equivalent mutant, which no test can detect, is listed in `docs/privacy-testing.md`
//! with the reason. Any other survivor is an error.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};

use crate::toolchain::{plain_cargo, root};

/// The page that explains survivors.
const PAGE: &str = "docs/privacy-testing.md";

/// A crate with mutants.
struct Part {
    package: &'static str,
    /// Crates whose unit tests run on its mutants.
    tests: &'static [&'static str],
    /// Filters for quick unit tests close to the mutants. A mutant that passes them is tested with
    /// all unit tests of those crates.
    near: &'static [&'static str],
}

const PARTS: [Part; 4] = [
    Part {
        package: "smolfed-accounting",
        tests: &["smolfed-accounting"],
        near: &["event", "calibrate", "accountant", "selection"],
    },
    Part {
        package: "smolfed-core",
        tests: &["smolfed-core"],
        near: &[
            "clip",
            "quantize",
            "noise",
            "stream",
            "correlation",
            "ledger",
            // The exhaustive tests of the ledger.
            "--skip",
            "torn",
            "--skip",
            "format_1",
            "--skip",
            "power_cut",
            "--skip",
            "flipped_bit",
        ],
    },
    Part {
        package: "smolfed-release",
        // The crate of the rounds tests the effects of a release on methods, sources and audits.
        tests: &["smolfed-release", "smolfed-engine"],
        near: &[
            "admission",
            "history",
            "ledger",
            "masked",
            "plan",
            "sampling",
            "sum",
            "tests",
            "uploads",
        ],
    },
    Part {
        package: "smolfed-engine",
        tests: &["smolfed-engine"],
        near: &["budget", "round", "run"],
    },
];

/// Tests all mutants, or one shard of them, and fails if one survives without an explanation on the
/// page.
pub fn run(shard: Option<&str>) -> Result<(), Box<dyn Error>> {
    let installed = plain_cargo().args(["mutants", "--version"]).output()?;
    if !installed.status.success() {
        return Err("cargo-mutants is missing: cargo install --locked cargo-mutants".into());
    }
    let folder = output_folder(shard);
    let mut survivors = BTreeSet::new();
    for part in PARTS {
        let mut near: Vec<String> = Vec::new();
        near.extend(shard.map(|shard| format!("--shard={shard}")));
        near.extend(["--", "--"].map(str::to_owned));
        near.extend(part.near.iter().map(|filter| (*filter).to_owned()));
        let unnoticed = part.test(&folder, "near", &near)?;
        if unnoticed.is_empty() {
            continue;
        }
        let only = |mutant: &String| format!("--re=^{}$", escaped(mutant));
        let only: Vec<String> = unnoticed.iter().map(only).collect();
        let unnoticed = part.test(&folder, "all", &only)?;
        survivors.extend(unnoticed.iter().map(|mutant| without_position(mutant)));
    }
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

/// Returns a separate output folder for each shard, so that shards can run in parallel.
fn output_folder(shard: Option<&str>) -> PathBuf {
    let name = shard.map_or_else(|| "all".to_owned(), |shard| shard.replace('/', "-of-"));
    root().join("target/mutants").join(name)
}

impl Part {
    /// Runs cargo-mutants on this crate. Returns the undetected mutants.
    fn test(
        &self,
        folder: &Path,
        step: &str,
        arguments: &[String],
    ) -> Result<Vec<String>, Box<dyn Error>> {
        let output = folder.join(self.package).join(step);
        std::fs::create_dir_all(&output)?;
        let status = plain_cargo()
            .args(["mutants", "--package", self.package])
            .args(self.tests.iter().flat_map(|name| ["--test-package", name]))
            // `./test` checks that the unchanged code passes.
            .args(["--baseline", "skip", "--timeout", "120", "--output"])
            .arg(&output)
            .args(arguments)
            // All steps share compiled code. Another shard must not wait for it.
            .env("CARGO_TARGET_DIR", folder.join("build"))
            .current_dir(root())
            .status()?;
        // Exit code 2 means that mutants survived, 3 that tests hung, which counts as detected.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("cargo mutants: {status}").into());
        }
        let missed = std::fs::read_to_string(output.join("mutants.out/missed.txt"))?;
        Ok(missed.lines().map(str::to_owned).collect())
    }
}

/// Returns a regular expression that matches only this text.
fn escaped(text: &str) -> String {
    let escape = |c: char| match r"\.+*?()|[]{}^$".contains(c) {
        true => format!("\\{c}"),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Removes line and column from `core/src/clip.rs:12:5: replace ..`: they change with every edit.
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

/// Returns survivors that the page does not name in a code span.
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
    fn escaped_names_match_themselves() {
        let name = "a.rs:1:2: replace f -> Option<(u8, [u8; 2])> with None";
        let expected = r"a\.rs:1:2: replace f -> Option<\(u8, \[u8; 2\]\)> with None";
        assert_eq!(escaped(name), expected);
    }

    #[test]
    fn only_survivors_that_the_page_does_not_name_are_errors() {
        let survivors = ["+ with -", "+ with *", "| with ^"];
        let survivors = survivors
            .map(|change| format!("a.rs: replace {change}"))
            .into();
        let page =
            "- No bit is in both:\n  - `a.rs: replace + with *`\n  - `a.rs: replace | with ^`";
        assert_eq!(unexplained(&survivors, page), ["a.rs: replace + with -"]);
    }
}
