//! Compiler and linker settings of C programs for a target.

/// A compiler with the flags of a target.
pub struct Machine {
    pub compiler: &'static str,
    pub strip: &'static str,
    pub flags: &'static [&'static str],
    /// System libraries that the library needs.
    pub libraries: &'static [&'static str],
}

const ARM: Machine = Machine {
    compiler: "arm-none-eabi-gcc",
    strip: "arm-none-eabi-strip",
    flags: &[],
    libraries: &[],
};

const RISCV: Machine = Machine {
    compiler: "riscv64-unknown-elf-gcc",
    strip: "riscv64-unknown-elf-strip",
    ..ARM
};

impl Machine {
    /// Returns the compiler of a target, or `None` for an unknown target.
    pub fn of(target: &str) -> Option<Self> {
        let machine = match target {
            "thumbv6m-none-eabi" => Self {
                flags: &["-mcpu=cortex-m0", "-mthumb"],
                ..ARM
            },
            "thumbv7m-none-eabi" => Self {
                flags: &["-mcpu=cortex-m3", "-mthumb"],
                ..ARM
            },
            "thumbv7em-none-eabihf" => Self {
                flags: &[
                    "-mcpu=cortex-m4",
                    "-mthumb",
                    "-mfloat-abi=hard",
                    "-mfpu=fpv4-sp-d16",
                ],
                ..ARM
            },
            "thumbv8m.main-none-eabihf" => Self {
                flags: &[
                    "-mcpu=cortex-m33",
                    "-mthumb",
                    "-mfloat-abi=hard",
                    "-mfpu=fpv5-sp-d16",
                ],
                ..ARM
            },
            "riscv32imc-unknown-none-elf" => Self {
                flags: &["-march=rv32imc", "-mabi=ilp32"],
                ..RISCV
            },
            "riscv32imac-unknown-none-elf" => Self {
                flags: &["-march=rv32imac", "-mabi=ilp32"],
                ..RISCV
            },
            _ if target.contains("-linux-") => Self {
                compiler: "cc",
                strip: "strip",
                flags: &[],
                // Needed by Rust's standard library. Newer versions of the C library contain them.
                libraries: &["pthread", "dl", "m"],
            },
            _ => return None,
        };
        Some(machine)
    }

    /// Returns whether programs have an operating system.
    pub fn is_hosted(&self) -> bool {
        self.compiler == "cc"
    }
}
