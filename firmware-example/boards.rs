//! The boards: one table for the firmware's build script, `cargo xtask`, the tests and `./test`.
//!
//! A new board is an entry here and a file in `src/board/`, unless it is of a family that is there.

/// A board, its memory, and how QEMU emulates it.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each program reads what it needs")]
pub struct Board {
    /// As in `SMOLFED_BOARD` and `cargo xtask qemu`.
    pub name: &'static str,
    pub target: &'static str,
    pub processor: &'static str,
    /// The file in `src/board/`, without its ending.
    pub module: &'static str,
    /// The program.
    pub flash: Region,
    /// The page of the provisioning record: `docs/provisioning.md`.
    pub provision: Region,
    pub ram: Region,
    /// Whether `src/board/` has a `random_byte` from the hardware.
    pub has_random_numbers: bool,
    /// Whether `src/board/` has a second serial line, for what is attached to the board.
    pub has_second_line: bool,
    /// Windows of the sensor that the client keeps.
    pub windows: u16,
    /// A clock that such processors usually have.
    pub clock_mhz: u32,
    /// None if QEMU does not know the board, or emulates another one of its target: it is then
    /// built on request and not run.
    pub qemu: Option<Qemu>,
}

/// A part of the memory, in bytes.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each program reads what it needs")]
pub struct Region {
    pub start: u32,
    pub length: u32,
}

/// How QEMU emulates a board.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each program reads what it needs")]
pub struct Qemu {
    pub program: &'static str,
    pub machine: &'static [&'static str],
    /// `-icount` under which the firmware's counter counts instructions.
    pub instruction_shift: u32,
}

const MPS2_AN386: Board = Board {
    name: "mps2-an386",
    target: "thumbv7em-none-eabihf",
    processor: "Cortex-M4F",
    module: "mps2",
    flash: region(0x0000_0000, 3 << 20),
    provision: region(0x0030_0000, 1 << 20),
    ram: region(0x2000_0000, 4 << 20),
    has_random_numbers: false,
    has_second_line: true,
    windows: 32,
    clock_mhz: 64,
    qemu: arm(&["mps2-an386"]),
};

const RISCV_VIRT: Board = Board {
    name: "riscv-virt",
    target: "riscv32imac-unknown-none-elf",
    processor: "RV32IMAC",
    module: "riscv_virt",
    flash: region(0x8000_0000, 512 << 10),
    provision: region(0x800C_0000, 256 << 10),
    ram: region(0x8008_0000, 256 << 10),
    has_second_line: false,
    clock_mhz: 160,
    qemu: Some(Qemu {
        program: "qemu-system-riscv32",
        machine: &["virt", "-bios", "none"],
        instruction_shift: 0,
    }),
    ..MPS2_AN386
};

/// All boards. Without `SMOLFED_BOARD` a target is built for the first board that has it.
pub const BOARDS: &[Board] = &[
    Board {
        name: "microbit",
        target: "thumbv6m-none-eabi",
        processor: "Cortex-M0",
        module: "microbit",
        flash: region(0x0000_0000, 224 << 10),
        provision: region(0x0003_8000, 32 << 10),
        ram: region(0x2000_0000, 16 << 10),
        has_random_numbers: true,
        has_second_line: false,
        windows: 6,
        clock_mhz: 16,
        qemu: arm(&["microbit"]),
    },
    Board {
        name: "mps2-an385",
        target: "thumbv7m-none-eabi",
        processor: "Cortex-M3",
        qemu: arm(&["mps2-an385"]),
        ..MPS2_AN386
    },
    MPS2_AN386,
    Board {
        name: "mps2-an505",
        target: "thumbv8m.main-none-eabihf",
        processor: "Cortex-M33",
        // The secure aliases of both memories: the processor starts in its secure state.
        flash: region(0x1000_0000, 3 << 20),
        provision: region(0x1030_0000, 1 << 20),
        ram: region(0x3800_0000, 2 << 20),
        qemu: arm(&["mps2-an505"]),
        ..MPS2_AN386
    },
    RISCV_VIRT,
    Board {
        name: "riscv-virt-imc",
        target: "riscv32imc-unknown-none-elf",
        processor: "RV32IMC",
        ..RISCV_VIRT
    },
];

const fn region(start: u32, length: u32) -> Region {
    Region { start, length }
}

const fn arm(machine: &'static [&'static str]) -> Option<Qemu> {
    Some(Qemu {
        program: "qemu-system-arm",
        machine,
        instruction_shift: 10,
    })
}
