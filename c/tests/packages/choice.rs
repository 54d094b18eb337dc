//! Which library the packages for Zephyr and ESP-IDF link, with stand-ins for the functions of the
//! framework.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::tools::{file, place, printed, run, tool, write};

/// A copy of a package with a file in the place of each library.
fn copy(package: &str, libraries: &[&str]) -> Option<PathBuf> {
    let folder = place(&format!("choice-{package}"));
    let mut copy = tool("cp")?;
    copy.arg("-r").arg(file("packages").join(package));
    run(copy.arg(folder.join("package")));
    for library in libraries {
        let library = folder.join(format!("package/lib/{library}/libsmolfed.a"));
        write(&library, "");
    }
    write(&folder.join("package/include/smolfed.h"), "");
    Some(folder)
}

/// The library that a project links with these variables, or the message of CMake.
fn chosen(folder: &Path, number: usize, variables: &[&str]) -> Option<Result<String, String>> {
    let mut cmake = tool("cmake")?;
    cmake.arg("-S").arg(folder).arg("-B");
    cmake.arg(folder.join(format!("build-{number}")));
    cmake.args(variables.iter().map(|variable| format!("-D{variable}")));
    let output = cmake.stdin(Stdio::null()).output().expect("it starts");
    let said = printed(&output);
    if !output.status.success() {
        return Some(Err(said.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    let library = said
        .lines()
        .find_map(|line| line.strip_prefix("-- chosen: "));
    let (_, library) = library?.rsplit_once("/lib/")?;
    let library = library.strip_suffix("/libsmolfed.a")?;
    Some(Ok(library.to_owned()))
}

const ZEPHYR: &str = "
cmake_minimum_required(VERSION 3.16)
project(choice NONE)
add_subdirectory(package/zephyr)
get_target_property(library smolfed IMPORTED_LOCATION)
message(STATUS \"chosen: ${library}\")
";

#[test]
fn zephyr_links_the_library_of_the_processor() {
    let libraries = [
        "thumbv6m-none-eabi",
        "thumbv7m-none-eabi",
        "thumbv7em-none-eabihf",
        "thumbv8m.main-none-eabihf",
        "riscv32imac-unknown-none-elf",
    ];
    let Some(folder) = copy("zephyr", &libraries) else {
        return;
    };
    write(&folder.join("CMakeLists.txt"), ZEPHYR);
    let riscv = [
        "RISCV",
        "RISCV_ISA_EXT_M",
        "RISCV_ISA_EXT_A",
        "RISCV_ISA_EXT_C",
    ];
    let without_atomics = ["RISCV", "RISCV_ISA_EXT_M", "RISCV_ISA_EXT_C"];
    let cases: [(&[&str], Result<&str, &str>); 10] = [
        (&["CPU_CORTEX_M0PLUS"], Ok(libraries[0])),
        (&["CPU_CORTEX_M3"], Ok(libraries[1])),
        (&["CPU_CORTEX_M4"], Ok(libraries[1])),
        (&["CPU_CORTEX_M4", "FPU", "FP_SOFTABI"], Ok(libraries[1])),
        (&["CPU_CORTEX_M4", "FPU", "FP_HARDABI"], Ok(libraries[2])),
        (&["CPU_CORTEX_M7", "FPU", "FP_HARDABI"], Ok(libraries[2])),
        (&["CPU_CORTEX_M33", "FPU", "FP_HARDABI"], Ok(libraries[3])),
        (&riscv, Ok(libraries[4])),
        (
            &without_atomics,
            Err("made without riscv32imc-unknown-none-elf"),
        ),
        (&["ARM64", "64BIT"], Err("no library for this processor")),
    ];
    for (number, (options, expected)) in cases.into_iter().enumerate() {
        let options = ["SMOLFED"].iter().chain(options);
        let options: Vec<_> = options.map(|name| format!("CONFIG_{name}=y")).collect();
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let Some(found) = chosen(&folder, number, &options) else {
            return;
        };
        match (expected, found) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected, "{options:?}"),
            (Err(why), Err(said)) => assert!(said.contains(why), "{options:?}: {said}"),
            (expected, found) => panic!("{options:?}: {found:?} for {expected:?}"),
        }
    }
}

const ESP_IDF: &str = "
cmake_minimum_required(VERSION 3.16)
project(choice NONE)
function(idf_build_get_property variable property)
  set(${variable} ${CHIP} PARENT_SCOPE)
endfunction()
macro(idf_component_register)
  set(COMPONENT_LIB component)
  add_library(component INTERFACE)
endmacro()
function(add_prebuilt_library name path)
  add_library(${name} STATIC IMPORTED)
  message(STATUS \"chosen: ${path}\")
endfunction()
add_subdirectory(package)
";

#[test]
fn esp_idf_links_the_library_of_the_chip_and_refuses_xtensa() {
    let Some(folder) = copy("esp-idf", &["riscv32imc", "riscv32imac"]) else {
        return;
    };
    write(&folder.join("CMakeLists.txt"), ESP_IDF);
    let manifest = super::tools::package("esp-idf/idf_component.yml");
    let cases = [
        ("esp32c2", Ok("riscv32imc")),
        ("esp32c3", Ok("riscv32imc")),
        ("esp32c5", Ok("riscv32imac")),
        ("esp32c6", Ok("riscv32imac")),
        ("esp32c61", Ok("riscv32imac")),
        ("esp32h2", Ok("riscv32imac")),
        ("esp32", Err("no library for esp32: its core is Xtensa")),
        ("esp32s2", Err("no library for esp32s2: its core is Xtensa")),
        ("esp32s3", Err("no library for esp32s3: its core is Xtensa")),
        ("esp32p4", Err("no library for esp32p4: its chips are")),
    ];
    for (number, (chip, expected)) in cases.into_iter().enumerate() {
        let is_listed = manifest.contains(&format!("  - {chip}\n"));
        assert_eq!(is_listed, expected.is_ok(), "{chip}");
        let Some(found) = chosen(&folder, number, &[&format!("CHIP={chip}")]) else {
            return;
        };
        match (expected, found) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected, "{chip}"),
            (Err(why), Err(said)) => assert!(said.contains(why), "{chip}: {said}"),
            (expected, found) => panic!("{chip}: {found:?} for {expected:?}"),
        }
    }
}
