//! `include/smolfed.h` is what cbindgen makes of the crate, and compilers of C and C++ take it.

use std::path::Path;
use std::process::{Command, Stdio};

/// The header of the crate. `SMOLFED_WRITE=1 cargo test -p smolfed-c --test header` writes it.
#[test]
fn the_header_is_that_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bindings = cbindgen::generate(root).expect("a header");
    let path = root.join("include/smolfed.h");
    if std::env::var_os("SMOLFED_WRITE").is_some() {
        bindings.write_to_file(&path);
        return;
    }
    let mut made = Vec::new();
    bindings.write(&mut made);
    let kept = std::fs::read(&path).expect("the header");
    assert!(
        kept == made,
        "include/smolfed.h is not that of the crate: \
         SMOLFED_WRITE=1 cargo test -p smolfed-c --test header"
    );
}

#[test]
fn compilers_take_the_header_without_a_warning() {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    for (compiler, language, standard) in [("gcc", "c", "c11"), ("g++", "c++", "c++17")] {
        let mut command = Command::new(compiler);
        command.args(["-x", language, &format!("-std={standard}")]);
        command.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]);
        command.args(["-include", "smolfed.h", "-fsyntax-only", "-I", include, "-"]);
        match command.stdin(Stdio::null()).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.is_empty(), "{said}");
            }
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "{compiler}: {error}");
                eprintln!("SKIPPED: {compiler}: {error}");
            }
        }
    }
}
