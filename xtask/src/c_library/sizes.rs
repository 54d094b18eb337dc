//! Bytes that the library adds to a program: a small client, linked with `--gc-sections`.

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine::Machine;
use super::variant::Variant;
use crate::elf::Sizes;
use crate::toolchain::root;

/// The clients, each with its name, the file of its library if it is not the main one, and flags.
const CLIENTS: [(&str, Option<&str>, &[&str]); 10] = [
    ("int8_t", None, &[]),
    ("float", None, &["-DFLOAT"]),
    ("int8_t, central", Some("libsmolfed_central.a"), &[]),
    ("float, central", Some("libsmolfed_central.a"), &["-DFLOAT"]),
    ("int8_t, answers", Some("libsmolfed_questions.a"), &[]),
    (
        "float, answers",
        Some("libsmolfed_questions.a"),
        &["-DFLOAT"],
    ),
    ("int8_t, sleeps", Some("libsmolfed_sleep.a"), &["-DSLEEP"]),
    (
        "float, sleeps",
        Some("libsmolfed_sleep.a"),
        &["-DFLOAT", "-DSLEEP"],
    ),
    (
        "int8_t, infers",
        Some("libsmolfed_delivery.a"),
        &["-DINFER"],
    ),
    (
        "float, infers",
        Some("libsmolfed_delivery.a"),
        &["-DFLOAT", "-DINFER"],
    ),
];

/// Reports the sizes of a library and its variants, or why they were not measured.
///
/// # Errors
/// A client does not compile or link.
pub fn report(
    target: &str,
    library: &Path,
    variants: &[(&Variant, PathBuf)],
) -> Result<String, Box<dyn Error>> {
    let Some(machine) = Machine::of(target) else {
        return Ok(format!(
            "{target}: not measured here, no compiler is known\n"
        ));
    };
    let version = Command::new(machine.compiler)
        .arg("-dumpfullversion")
        .output();
    let version = match version {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let compiler = machine.compiler;
            return Ok(format!("{target}: not measured here, no {compiler}\n"));
        }
        output => String::from_utf8(output?.stdout)?,
    };
    let mut text = format!(
        "{target}, {} {} {}\n{:>24}{:>8}{:>8}\n",
        machine.compiler,
        version.trim(),
        machine.flags.join(" "),
        "text",
        "data",
        "bss"
    );
    for (features, file, flags) in CLIENTS {
        let variant = |file: &str| variants.iter().find(|(variant, _)| variant.file == file);
        let library = match file.map(variant) {
            None => library,
            Some(Some((_, path))) => path,
            Some(None) => continue,
        };
        let sizes = measure(&machine, library, flags)?;
        let code = sizes.text + sizes.rodata;
        let (data, bss) = (sizes.data, sizes.bss);
        writeln!(text, "{features:<16}{code:>8}{data:>8}{bss:>8}")?;
    }
    if machine.is_hosted() {
        text.push_str(
            "This includes the start-up of C programs and parts of Rust's standard library.\n",
        );
    }
    Ok(text)
}

/// Measures a client without its own object.
fn measure(machine: &Machine, library: &Path, flags: &[&str]) -> Result<Sizes, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let object = folder.path().join("client.o");
    let program = folder.path().join("client");
    let mut compile = Command::new(machine.compiler);
    compile.args(machine.flags).args(flags);
    compile.args(["-std=c11", "-Os"]);
    if !machine.is_hosted() {
        compile.arg("-ffreestanding");
    }
    compile.arg("-I").arg(root().join("c/include"));
    compile
        .arg("-c")
        .arg(root().join("c/packages/sizes/client.c"));
    run(compile.arg("-o").arg(&object))?;
    let mut link = Command::new(machine.compiler);
    link.args(machine.flags).arg("-Wl,--gc-sections");
    if !machine.is_hosted() {
        link.arg("-nostdlib").arg("-T");
        link.arg(root().join("c/packages/sizes/client.ld"));
    }
    link.arg(&object).arg(library);
    link.args(machine.libraries.iter().map(|name| format!("-l{name}")));
    run(link.arg("-lgcc").arg("-o").arg(&program))?;
    let (whole, own) = (Sizes::read(&program)?, Sizes::read(&object)?);
    Ok(Sizes {
        text: whole.text.saturating_sub(own.text),
        rodata: whole.rodata.saturating_sub(own.rodata),
        data: whole.data.saturating_sub(own.data),
        bss: whole.bss.saturating_sub(own.bss),
    })
}

/// Runs a compiler, and shows its messages only on failure.
fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(format!("failed: {command:?}\n{complaint}").into())
        }
    }
}
