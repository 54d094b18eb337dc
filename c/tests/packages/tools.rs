//! Folders and programs that the tests need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A file of the crate.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The text of a file of `packages/`.
pub fn package(name: &str) -> String {
    let path = file("packages").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An empty folder for a test.
pub fn place(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// Skips a test, or fails where CI is set.
pub fn skipped<T>(why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("SKIPPED: {why}; ./test installs it");
    None
}

/// A program, if it is installed.
pub fn tool(name: &str) -> Option<Command> {
    let version = Command::new(name)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match version {
        Ok(_) => Some(Command::new(name)),
        Err(error) => skipped(&format!("{name}: {error}")),
    }
}

/// The output of a program, on both streams.
pub fn printed(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Runs a program that must succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let printed = printed(&output);
    assert!(output.status.success(), "{command:?}\n{printed}");
    printed
}

/// The folder of `cargo xtask c-library`.
pub fn archives() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SMOLFED_C") else {
        eprintln!("SKIPPED: SMOLFED_C names no libraries for C: cargo xtask c-library");
        return None;
    };
    Some(PathBuf::from(folder))
}

/// The unpacked archive of a target.
pub fn archive(target: &str) -> Option<PathBuf> {
    let name = format!("smolfed-c-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = archives()?.join(name);
    match folder.exists() {
        true => Some(folder),
        false => skipped(&format!("there is no {}", folder.display())),
    }
}
