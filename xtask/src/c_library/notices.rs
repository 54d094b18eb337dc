//! The licences of the crates that a library contains.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::variant::VARIANTS;
use crate::toolchain::{plain_cargo, root};

const HEADER: &str = "\
The library contains code of these crates and of Rust's own library (MIT or Apache-2.0,
https://github.com/rust-lang/rust).
";

/// Returns the names, versions and licences of all crates from other authors, with the texts that
/// copies must contain.
///
/// # Errors
/// Cargo fails, or a file cannot be read.
pub fn third_party() -> Result<String, Box<dyn Error>> {
    let features = VARIANTS.iter().filter_map(|variant| variant.feature);
    let features = features.collect::<Vec<_>>().join(",");
    let tree = output(plain_cargo().args([
        "tree",
        "--locked",
        "--package=smolfed-c",
        &format!("--features={features}"),
        "--edges=normal,no-proc-macro",
        "--target=all",
        "--prefix=none",
        "--format={p}",
    ]))?;
    let folders = folders()?;
    let mut text = HEADER.to_owned();
    // Repeated crates have a mark.
    let names = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let crates: BTreeSet<&str> = names.filter(|name| !name.contains('/')).collect();
    for name in crates {
        let (folder, licence) = folders
            .get(name)
            .ok_or_else(|| format!("cargo metadata: no {name}"))?;
        let terms = licence_text(folder)?.unwrap_or_else(|| "The crate contains no text.\n".into());
        write!(text, "\n=== {name}: {licence}\n\n{terms}")?;
    }
    Ok(text)
}

/// Returns the folder and the licence of each crate, by its name and version.
fn folders() -> Result<BTreeMap<String, (PathBuf, String)>, Box<dyn Error>> {
    let metadata = output(plain_cargo().args(["metadata", "--locked", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.filter_map(|package| {
        let text = |key: &str| package[key].as_str();
        let name = format!("{} v{}", text("name")?, text("version")?);
        let folder = Path::new(text("manifest_path")?).parent()?.to_owned();
        Some((name, (folder, text("license")?.to_owned())))
    });
    Ok(found.collect())
}

/// Returns the text of a crate's licence: of the MIT licence if the user may choose it.
fn licence_text(folder: &Path) -> Result<Option<String>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        if file.to_uppercase().starts_with("LICEN") {
            files.push(file);
        }
    }
    files.sort_unstable_by_key(|file| (!file.to_uppercase().contains("MIT"), file.clone()));
    let text = files
        .first()
        .map(|file| fs::read_to_string(folder.join(file)));
    Ok(text.transpose()?)
}

fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.current_dir(root()).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("failed: {command:?}: {stderr}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
