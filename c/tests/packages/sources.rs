//! The examples compile against the header, and against declarations of the frameworks in
//! `tests/stubs/`. Nothing here replaces a build with the framework itself.

use super::tools::{file, run, tool};

/// Checks a C file with warnings as errors.
fn check_c(source: &str, more: &[&str]) {
    let Some(mut compiler) = tool("gcc") else {
        return;
    };
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion"]);
    compiler.args(["-Werror", "-fsyntax-only"]).args(more);
    for folder in ["include", "examples"] {
        compiler.arg("-I").arg(file(folder));
    }
    run(compiler.current_dir(file("tests/stubs")).arg(file(source)));
}

#[test]
fn the_example_for_zephyr_compiles() {
    check_c("packages/zephyr/samples/uart/src/port.c", &["-I", "zephyr"]);
    check_c("examples/device.c", &["-Dmain=device_main"]);
}

#[test]
fn the_example_for_esp_idf_compiles() {
    check_c(
        "packages/esp-idf/examples/uart/main/port.c",
        &["-I", "esp-idf"],
    );
}

#[test]
fn the_sketch_compiles() {
    let Some(mut compiler) = tool("g++") else {
        return;
    };
    compiler.args(["-x", "c++", "-std=gnu++17", "-Wall", "-Wextra", "-Werror"]);
    compiler.args(["-fsyntax-only", "-I", "arduino", "-include", "Arduino.h"]);
    for folder in ["include", "examples"] {
        compiler.arg("-I").arg(file(folder));
    }
    let sketch = file("packages/arduino/examples/uart/uart.ino");
    run(compiler.current_dir(file("tests/stubs")).arg(sketch));
}

#[test]
fn the_smallest_programs_compile() {
    check_c("packages/minimal/main.c", &[]);
    check_c(
        "packages/minimal/main.c",
        &["-U__linux__", "-ffreestanding"],
    );
    for kind in ["-UFLOAT", "-DFLOAT"] {
        check_c("packages/sizes/client.c", &["-U__linux__", kind]);
    }
}
