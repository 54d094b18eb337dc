//! The static library of a target.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::machine::Machine;
use super::sizes;
use super::variant::{Platform, VARIANTS, Variant};
use crate::toolchain::{cargo, root, target_dir};

/// The profile of the library, and its folder in `target/`.
const PROFILE: &str = "firmware";

/// A built library.
pub struct Library {
    pub target: String,
    pub path: PathBuf,
    /// The built variants with their paths.
    pub variants: Vec<(&'static Variant, PathBuf)>,
    /// Report of their sizes.
    pub sizes: String,
}

impl Library {
    /// Builds the libraries of a platform, and measures them.
    ///
    /// # Errors
    /// A missing toolchain, or a library that does not compile or link.
    pub fn build(platform: &Platform<'_>) -> Result<Self, Box<dyn Error>> {
        let target = platform.target;
        let variants = VARIANTS.iter().filter(|variant| platform.has(variant));
        let variants = variants.map(|variant| {
            let features: &[&str] = match &variant.feature {
                None => &["--no-default-features"],
                Some(feature) => &["--features", feature],
            };
            Ok((variant, compile(platform, variant.file, features)?))
        });
        let variants = variants.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        let path = compile(platform, "libsmolfed.a", &[])?;
        Ok(Self {
            target: target.to_owned(),
            sizes: sizes::report(target, &path, &variants)?,
            path,
            variants,
        })
    }
}

/// Compiles a library with features, and returns its path.
fn compile(
    platform: &Platform<'_>,
    name: &str,
    features: &[&str],
) -> Result<PathBuf, Box<dyn Error>> {
    let target = platform.target;
    let mut command = cargo(target, "rustc")?;
    command
        .current_dir(root())
        .args(["--locked", "--package", "smolfed-c", "--profile", PROFILE])
        .args(["--crate-type", "staticlib", "--target", target])
        // Targets are built in parallel, and a build locks its folder.
        .arg("--target-dir")
        .arg(target_dir().join("bare-metal").join(target))
        // Host flags do not apply to a board.
        .env_remove("RUSTFLAGS")
        .args(features);
    if !platform.is_host {
        command.args(["--features", "bare-metal"]);
    }
    if !command.status()?.success() {
        return Err(format!("the library for {target} was not built").into());
    }
    let folder = target_dir().join("bare-metal").join(target);
    let folder = folder.join(target).join(PROFILE);
    let path = folder.join(name);
    fs::copy(folder.join("libsmolfed_c.a"), &path)?;
    strip(target, &path)?;
    Ok(path)
}

/// Removes the debug information of Rust's own library and, for boards, the unwind tables. A linker
/// script that keeps them would put 6 KB into the flash of RISC-V. Without a tool for the target,
/// the library stays larger.
fn strip(target: &str, library: &Path) -> Result<(), Box<dyn Error>> {
    let Some(machine) = Machine::of(target) else {
        return Ok(());
    };
    let mut command = Command::new(machine.strip);
    command.arg("--strip-debug").arg(library);
    if !machine.is_hosted() {
        command.arg("--remove-section=.eh_frame");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed: {command:?}").into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!(
                "{target}: no {}, the library is not stripped",
                machine.strip
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the target of this machine.
///
/// # Errors
/// There is no Rust compiler.
pub fn host() -> Result<String, Box<dyn Error>> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("`rustc -vV` names no host")?.to_owned())
}
