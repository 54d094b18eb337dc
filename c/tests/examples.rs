//! The examples that need no library for this machine compile without a warning.
//! `tests/fleet/c_on_linux.rs` and `tests/boards/` run the others.

use std::path::Path;
use std::process::{Command, Stdio};

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];

/// Checks a file of `c/examples` with a compiler, unless it is not installed.
fn check(compiler: &str, options: &str, file: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(compiler);
    command.current_dir(root.join("examples")).args(STRICT);
    command.args(options.split_whitespace());
    command.args(["-fsyntax-only", "-I", "../include", file]);
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

/// The kernel is not here: a stub of its headers is.
#[test]
fn the_task_of_freertos_fits_the_stub_of_its_headers() {
    check("gcc", "-std=c11 -I freertos/stub", "freertos/device_task.c");
}

#[test]
fn the_class_for_cpp_needs_no_exceptions_and_no_rtti() {
    let options = "-std=c++17 -fno-exceptions -fno-rtti -ffreestanding";
    check("g++", options, "cpp/device.cpp");
}

#[test]
fn the_port_for_linux_is_c11() {
    if cfg!(target_os = "linux") {
        check("gcc", "-std=c11", "linux/port.c");
    }
}

/// `SMOLFED_C` names the folder of `cargo xtask c-library`. Nothing but the library and libgcc is
/// linked.
#[test]
fn the_device_in_cpp_links_for_a_cortex_m4f_without_a_library_of_its_own() {
    let target = "thumbv7em-none-eabihf";
    let name = format!("smolfed-c-{}-{target}", env!("CARGO_PKG_VERSION"));
    let library = std::env::var_os("SMOLFED_C").map(|folder| Path::new(&folder).join(name));
    let Some(library) = library.filter(|library| library.is_dir()) else {
        eprintln!("SKIPPED: SMOLFED_C has no library for {target}: cargo xtask c-library {target}");
        return;
    };
    if Command::new("arm-none-eabi-g++")
        .arg("--version")
        .output()
        .is_err()
    {
        assert!(std::env::var_os("CI").is_none(), "no arm-none-eabi-g++");
        eprintln!("SKIPPED: arm-none-eabi-g++ is not installed");
        return;
    }
    let run = |compiler: &str, options: &str| {
        let mut command = Command::new(format!("arm-none-eabi-{compiler}"));
        command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        command.args([
            "-mcpu=cortex-m4",
            "-mthumb",
            "-mfloat-abi=hard",
            "-mfpu=fpv4-sp-d16",
        ]);
        command.args([
            "-Os",
            "-ffreestanding",
            "-nostdlib",
            "-Wl,--gc-sections",
            "-I",
        ]);
        command.arg(library.join("include"));
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        for option in options.split_whitespace() {
            match option.strip_prefix('@') {
                Some(file) => command.arg(examples.join(file)),
                None => command.arg(option),
            };
        }
        if compiler == "g++" {
            command.arg(library.join("lib/libsmolfed.a")).arg("-lgcc");
        }
        let output = command.output().expect("the compiler starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options}: {said}");
    };
    let boards = "@boards/board.c @boards/host.c @boards/mps2-an386.c @boards/start_arm.c";
    run("gcc", &format!("-std=c11 -c @sensor.c {boards}"));
    let objects = "sensor.o board.o host.o mps2-an386.o start_arm.o";
    let cpp = "-std=c++17 -fno-exceptions -fno-rtti @cpp/device.cpp";
    let script = "-L @boards -T @boards/mps2-an386.ld -o device.elf";
    run("g++", &format!("{cpp} {objects} {script}"));
}
