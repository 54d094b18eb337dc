//! The boards that QEMU emulates, and how.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

/// A board, its target, and what a measurement must know of it.
#[derive(Clone, Copy)]
pub struct Board {
    /// As in `firmware-example/boards/`; RISC-V's two targets share a board.
    pub name: &'static str,
    pub target: &'static str,
    pub processor: &'static str,
    qemu: &'static str,
    machine: &'static [&'static str],
    /// Where the provisioning record lies: `PROVISION` in the memory map.
    provision: u32,
    /// Start and bytes of the RAM.
    pub ram: (u32, u32),
    /// Windows of the sensor that its client keeps.
    pub windows: u16,
    /// `-icount` under which the firmware's counter counts instructions.
    pub instruction_shift: u32,
    /// A clock that such processors usually have, and a guess of cycles an instruction.
    pub clock_mhz: u32,
    pub cycles_per_instruction: f64,
}

const MPS2: Board = Board {
    name: "mps2-an386",
    target: "thumbv7em-none-eabihf",
    processor: "Cortex-M4F",
    qemu: "qemu-system-arm",
    machine: &["mps2-an386"],
    provision: 0x0030_0000,
    ram: (0x2000_0000, 4 << 20),
    windows: 32,
    instruction_shift: 10,
    clock_mhz: 64,
    cycles_per_instruction: 1.5,
};

const RISCV: Board = Board {
    name: "riscv-virt",
    target: "riscv32imac-unknown-none-elf",
    processor: "RV32IMAC",
    qemu: "qemu-system-riscv32",
    machine: &["virt", "-bios", "none"],
    provision: 0x8008_0000,
    ram: (0x8004_0000, 256 << 10),
    windows: 32,
    instruction_shift: 0,
    clock_mhz: 160,
    cycles_per_instruction: 1.5,
};

pub const BOARDS: [Board; 6] = [
    Board {
        name: "microbit",
        target: "thumbv6m-none-eabi",
        processor: "Cortex-M0",
        machine: &["microbit"],
        provision: 0x0003_8000,
        ram: (0x2000_0000, 16 << 10),
        windows: 6,
        clock_mhz: 16,
        ..MPS2
    },
    Board {
        name: "mps2-an385",
        target: "thumbv7m-none-eabi",
        processor: "Cortex-M3",
        machine: &["mps2-an385"],
        ..MPS2
    },
    MPS2,
    Board {
        name: "mps2-an505",
        target: "thumbv8m.main-none-eabihf",
        processor: "Cortex-M33",
        machine: &["mps2-an505"],
        provision: 0x1030_0000,
        ram: (0x3800_0000, 2 << 20),
        ..MPS2
    },
    RISCV,
    Board {
        name: "riscv-virt-imc",
        target: "riscv32imc-unknown-none-elf",
        processor: "RV32IMC",
        ..RISCV
    },
];

/// The names, for messages.
pub fn names() -> String {
    BOARDS.map(|board| board.name).join(", ")
}

impl Board {
    pub fn named(name: &str) -> Result<Self, Box<dyn Error>> {
        let board = BOARDS.into_iter().find(|board| board.name == name);
        board.ok_or_else(|| format!("no board `{name}`: one of {}", names()).into())
    }

    /// QEMU with this program: monitor, console and serial line are the caller's.
    fn emulator(&self, program: &Path) -> Command {
        let mut command = Command::new(self.qemu);
        command.arg("-machine").args(self.machine);
        command.args(["-display", "none"]);
        command.arg("-kernel").arg(program).stdin(Stdio::null());
        command
    }

    /// QEMU with a program that prints and ends; `arguments` are more of QEMU's.
    pub fn print(&self, program: &Path, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
        let mut command = self.emulator(program);
        command.args(["-serial", "none"]);
        command.args(["-semihosting-config", "enable=on,target=native"]);
        let output = command.args(arguments).output();
        let output = output.map_err(|error| self.no_emulator(&error))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {complaint}", self.name, output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// QEMU with the client: its line on a socket, its record and its ledger in files.
    pub fn client(&self, program: &Path, dir: &Path, record: &Path) -> Command {
        let file = |name: &str| dir.join(name).display().to_string();
        let mut command = self.emulator(program);
        let ledger = file("ledger.bin");
        command.args([
            "-serial",
            &format!("unix:{},server=on,wait=off", file("line")),
        ]);
        let host = format!("enable=on,target=native,arg=client,arg={ledger}");
        command.args(["-semihosting-config", &host]);
        let record = record.display();
        let page = format!("loader,file={record},addr={:#x}", self.provision);
        command.args(["-device", &page]);
        command
    }

    pub fn no_emulator(&self, error: &std::io::Error) -> String {
        let package = match self.qemu {
            "qemu-system-arm" => "qemu-system-arm",
            _ => "qemu-system-misc",
        };
        format!("{}: {error}; apt-get install {package}", self.qemu)
    }
}
