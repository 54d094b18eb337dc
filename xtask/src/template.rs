//! `cargo xtask template FOLDER [NAME=VALUE]...`: makes a project of `firmware-example/template/`,
//! as `cargo generate` does with the same placeholders.
//!
//! `cargo xtask firmware` makes one with the defaults, in a folder of its own, and builds it.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::federation::succeed;
use crate::toolchain::{Variant, firmware, root, target_dir};

/// What is substituted unless it is given: as in `cargo-generate.toml`.
const DEFAULTS: [(&str, &str); 4] = [
    ("project-name", "smolfed-client"),
    ("smolfed", "git = \"https://github.com/smolfed/smolfed\""),
    ("features", "64"),
    ("classes", "10"),
];

/// The file of `cargo generate`, which is not part of a project.
const SETTINGS: &str = "cargo-generate.toml";

/// The ending of files that are no valid ones before the substitution.
const ENDING: &str = ".liquid";

/// The target of the template's board.
pub const TARGET: &str = "thumbv7em-none-eabihf";

pub fn run(folder: &str, given: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut values = DEFAULTS;
    for word in given {
        let (name, value) = word
            .split_once('=')
            .ok_or(format!("`{word}`: NAME=VALUE"))?;
        let place = values.iter_mut().find(|(known, _)| *known == name);
        place.ok_or(format!("no placeholder `{name}`"))?.1 = value;
    }
    make(Path::new(folder), &values)
}

/// Makes a project that uses this repository's core, in a folder that is empty, and builds it with
/// the versions of `firmware-example/embassy/`, whose dependencies are then compiled once.
pub fn build() -> Result<(), Box<dyn Error>> {
    let folder = target_dir().join("template");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let core = format!("path = {:?}", root().join("core"));
    run(&folder.to_string_lossy(), &[&format!("smolfed={core}")])?;
    fs::copy(
        root().join("firmware-example/embassy/Cargo.lock"),
        folder.join("Cargo.lock"),
    )?;
    let mut update = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    update
        .current_dir(&folder)
        .args(["update", "--workspace", "--quiet"]);
    succeed(&mut update)?;
    let variant = Variant {
        workspace: &folder.to_string_lossy(),
        folder: "firmware-embassy",
        ..Variant::DEFAULT
    };
    firmware(TARGET, &variant)?;
    Ok(())
}

fn make(folder: &Path, values: &[(&str, &str)]) -> Result<(), Box<dyn Error>> {
    if folder.exists() {
        return Err(format!("{} is there already", folder.display()).into());
    }
    copy(&root().join("firmware-example/template"), folder, values)
}

/// Copies a folder, with values in the places of placeholders.
fn copy(from: &Path, to: &Path, values: &[(&str, &str)]) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or("a file without a name")?;
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(name), values)?;
        } else if name != SETTINGS {
            let mut text = fs::read_to_string(entry.path())?;
            for (name, value) in values {
                text = text.replace(&format!("{{{{{name}}}}}"), value);
            }
            if let Some((_, rest)) = text.split_once("{{") {
                let unknown: String = rest.chars().take_while(|c| *c != '}').collect();
                return Err(format!("{name}: no placeholder `{unknown}`").into());
            }
            fs::write(to.join(name.strip_suffix(ENDING).unwrap_or(name)), text)?;
        }
    }
    Ok(())
}
