//! The Debian package: the program, its manual pages and its completions. `runner/Cargo.toml` lists
//! the files and their locations.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::toolchain::{plain_cargo, root, target_dir};

/// Shells, with the file name of a program's completions in each.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "smolfed"),
    ("zsh", "_smolfed"),
    ("fish", "smolfed.fish"),
];

/// Builds the program and the package, with these options of cargo-deb, and prints its path.
///
/// # Errors
/// A command fails. Install cargo-deb with `cargo install cargo-deb`.
pub fn run(options: &[&str]) -> Result<(), Box<dyn Error>> {
    let release = target_dir().join("release");
    let program = release.join("smolfed");
    succeed(plain_cargo().args([
        "build",
        "--release",
        "--locked",
        "--package",
        "smolfed",
        "--features",
        "full",
    ]))?;
    succeed(Command::new(&program).arg("man").arg(release.join("man")))?;
    let folder = release.join("completions");
    fs::create_dir_all(&folder)?;
    for (shell, name) in COMPLETIONS {
        write_completions(&program, shell, &folder.join(name))?;
    }
    let package = ["deb", "--no-build", "--locked", "--package", "smolfed"];
    succeed(plain_cargo().args(package).args(options))
}

fn write_completions(program: &Path, shell: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let file = Stdio::from(fs::File::create(path)?);
    succeed(
        Command::new(program)
            .args(["completions", shell])
            .stdout(file),
    )
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.current_dir(root()).status();
    match status
        .map_err(|error| format!("{command:?}: {error}"))?
        .success()
    {
        true => Ok(()),
        false => Err(format!("failed: {command:?}").into()),
    }
}
