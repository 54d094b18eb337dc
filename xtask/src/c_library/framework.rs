//! Packages for Zephyr, ESP-IDF and Arduino, each with the libraries of several targets.

use std::error::Error;
use std::path::PathBuf;

use super::archive::{Content, LICENCES, NOTICES, SIZES, version};
use super::library::Library;
use crate::toolchain::root;

/// A package for a framework.
pub struct Framework {
    name: &'static str,
    /// Its files in the repository.
    folder: &'static str,
    /// The top folder of the archive.
    inside: &'static str,
    /// The header, and the folder of the files shared with the examples.
    header: &'static str,
    example: &'static str,
    shared: &'static [&'static str],
    /// Targets, and the folders of their libraries.
    libraries: &'static [(&'static str, &'static str)],
}

/// The example without its port.
const DEVICE: [&str; 5] = ["device.c", "port.h", "recipe.h", "sensor.c", "sensor.h"];

/// All packages.
pub const FRAMEWORKS: [Framework; 3] = [
    Framework {
        name: "smolfed-zephyr",
        folder: "c/packages/zephyr",
        inside: ".",
        header: "include/smolfed.h",
        example: "samples/uart/src",
        shared: &DEVICE,
        libraries: &[
            ("thumbv6m-none-eabi", "lib/thumbv6m-none-eabi"),
            ("thumbv7m-none-eabi", "lib/thumbv7m-none-eabi"),
            ("thumbv7em-none-eabihf", "lib/thumbv7em-none-eabihf"),
            ("thumbv8m.main-none-eabihf", "lib/thumbv8m.main-none-eabihf"),
            (
                "riscv32imac-unknown-none-elf",
                "lib/riscv32imac-unknown-none-elf",
            ),
            (
                "riscv32imc-unknown-none-elf",
                "lib/riscv32imc-unknown-none-elf",
            ),
        ],
    },
    Framework {
        name: "smolfed-esp-idf",
        folder: "c/packages/esp-idf",
        // ESP-IDF names a component after its folder.
        inside: "smolfed",
        header: "include/smolfed.h",
        example: "examples/uart/main",
        shared: &DEVICE,
        libraries: &[
            ("riscv32imc-unknown-none-elf", "lib/riscv32imc"),
            ("riscv32imac-unknown-none-elf", "lib/riscv32imac"),
        ],
    },
    Framework {
        name: "smolfed-arduino",
        folder: "c/packages/arduino",
        inside: ".",
        header: "src/smolfed.h",
        example: "examples/uart",
        shared: &["recipe.h", "sensor.c", "sensor.h"],
        libraries: &[
            ("thumbv6m-none-eabi", "src/cortex-m0"),
            ("thumbv6m-none-eabi", "src/cortex-m0plus"),
            ("thumbv7m-none-eabi", "src/cortex-m3"),
            // For cores that pass `float` in integer registers, with or without an FPU.
            ("thumbv7m-none-eabi", "src/cortex-m4"),
            ("thumbv7m-none-eabi", "src/cortex-m7"),
            ("thumbv7m-none-eabi", "src/cortex-m33"),
            ("thumbv7em-none-eabihf", "src/cortex-m4/fpv4-sp-d16-hard"),
            ("thumbv7em-none-eabihf", "src/cortex-m7/fpv4-sp-d16-hard"),
            ("thumbv7em-none-eabihf", "src/cortex-m7/fpv5-d16-hard"),
            (
                "thumbv8m.main-none-eabihf",
                "src/cortex-m33/fpv5-sp-d16-hard",
            ),
            ("riscv32imc-unknown-none-elf", "src/esp32c3"),
            ("riscv32imac-unknown-none-elf", "src/esp32c6"),
            ("riscv32imac-unknown-none-elf", "src/esp32h2"),
        ],
    },
];

impl Framework {
    /// Packs the libraries and reports missing targets. Without any library, creates no archive.
    ///
    /// # Errors
    /// A file cannot be copied, or `tar` fails.
    pub fn archive(
        &self,
        built: &[Library],
        notices: &str,
    ) -> Result<Option<PathBuf>, Box<dyn Error>> {
        let of = |target: &str| built.iter().find(|library| library.target == target);
        let mut targets: Vec<&str> = self.libraries.iter().map(|&(target, _)| target).collect();
        targets.sort_unstable();
        targets.dedup();
        let is_missing = |target: &&&str| of(target).is_none();
        let missing: Vec<&str> = targets.iter().filter(is_missing).copied().collect();
        if missing.len() == targets.len() {
            eprintln!("no {}: none of {} was built", self.name, missing.join(", "));
            return Ok(None);
        }
        if !missing.is_empty() {
            eprintln!("{} is without {}", self.name, missing.join(", "));
        }
        let content = Content::new(&format!("{}-{}", self.name, version()))?;
        content.copy(&root().join(self.folder), self.inside)?;
        let copy = |from: PathBuf, to: &str| content.copy(&from, &format!("{}/{to}", self.inside));
        copy(root().join("c/include/smolfed.h"), self.header)?;
        for (from, to) in LICENCES {
            copy(root().join(from), to)?;
        }
        for file in self.shared {
            let from = root().join("c/examples").join(file);
            copy(from, &format!("{}/{file}", self.example))?;
        }
        for (target, folder) in self.libraries {
            if let Some(library) = of(target) {
                copy(library.path.clone(), &format!("{folder}/libsmolfed.a"))?;
            }
        }
        let sizes = targets.iter().map(|target| match of(target) {
            Some(library) => format!("{}\n", library.sizes),
            None => format!("{target}: not in this package\n\n"),
        });
        let sizes = format!("{SIZES}{}", sizes.collect::<String>());
        content.write(&format!("{}/SIZES", self.inside), &sizes)?;
        content.write(&format!("{}/{NOTICES}", self.inside), notices)?;
        content.pack().map(Some)
    }
}
