//! Table of boards, shared by the firmware's build script, `cargo xtask`, the tests and `./test`.
//!
//! A new board needs an entry here, and a file in `src/board/` unless its family is already there.

/// A board, its memory, and how QEMU emulates it.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each program reads what it needs")]
pub struct Board {
    /// Name, as in `SMOLFED_BOARD` and `cargo xtask qemu`.
    pub name: &'static str,
    pub target: &'static str,
    pub processor: &'static str,
    /// File in `src/board/`, without its extension.
    pub module: &'static str,
    /// The program.
    pub flash: Region,
    /// Page of the provisioning record: `docs/provisioning.md`.
    pub provision: Region,
    pub ram: Region,
    /// Whether `src/board/` has a hardware `random_byte`.
    pub has_random_numbers: bool,
    /// Whether `src/board/` has a second serial line, for a peripheral.
    pub has_second_line: bool,
    /// Number of sensor windows kept by the client.
    pub windows: u16,
    /// Typical clock of such a processor.
    pub clock_mhz: u32,
    /// `None` if QEMU does not support the board, or emulates another board of the same target.
    /// Such a board is built on request and not run.
    pub qemu: Option<Qemu>,
}

/// A region of memory, in bytes.
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
    /// `-icount` shift for which the firmware's counter counts instructions.
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

/// All boards. Without `SMOLFED_BOARD`, a target is built for its first board.
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
        // Both memories use their secure aliases: the processor starts in its secure state.
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
