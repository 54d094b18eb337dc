//! Root files of every library, program, test and bench, from cargo.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::repository::Repository;
use crate::toolchain::plain_cargo;

/// Returns the root files of all targets of all workspaces of the repository.
///
/// # Errors
/// `cargo metadata` fails or prints something else.
pub fn of(repository: &Repository) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    // Started together, since each waits for cargo.
    let mut running = Vec::new();
    for manifest in repository
        .with_extension("toml")
        .filter(|file| file.ends_with("Cargo.toml"))
    {
        if repository
            .read(manifest)?
            .lines()
            .any(|line| line.trim() == "[workspace]")
        {
            running.push((manifest, ask(&repository.root.join(manifest))?));
        }
    }
    let mut found = Vec::new();
    for (manifest, cargo) in running {
        found.extend(of_workspace(manifest, cargo)?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn ask(manifest: &Path) -> std::io::Result<Child> {
    plain_cargo()
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(manifest)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn of_workspace(manifest: &Path, cargo: Child) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let output = cargo.wait_with_output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata of {}: {stderr}", manifest.display()).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata without packages")?;
    Ok(packages
        .iter()
        .filter_map(|package| package["targets"].as_array())
        .flatten()
        .filter_map(|target| target["src_path"].as_str())
        .map(PathBuf::from)
        .collect())
}
