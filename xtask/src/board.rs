//! Boards emulated by QEMU: their names, targets and programs, and the command lines of the
//! emulator.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../firmware-example/boards.rs"]
mod table;

pub use table::{BOARDS, Board, Region};

/// Returns the distinct targets of all boards. Boards may share a target.
pub fn targets() -> Vec<&'static str> {
    let mut targets = vec![];
    for board in BOARDS {
        if !targets.contains(&board.target) {
            targets.push(board.target);
        }
    }
    targets
}

/// Returns whether a board of this target has a second serial line.
pub fn has_second_line(target: &str) -> bool {
    let mut boards = BOARDS.iter().filter(|board| board.target == target);
    boards.any(|board| board.has_second_line)
}

/// Returns the board names, for messages.
pub fn names() -> String {
    let names: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
    names.join(", ")
}

impl Board {
    pub fn named(name: &str) -> Result<Self, Box<dyn Error>> {
        let board = BOARDS.iter().find(|board| board.name == name);
        board
            .copied()
            .ok_or_else(|| format!("no board `{name}`: one of {}", names()).into())
    }

    /// Returns QEMU with this program. The caller adds monitor, console and serial line.
    fn emulator(&self, program: &Path) -> Result<Command, Box<dyn Error>> {
        let Some(qemu) = &self.qemu else {
            return Err(format!("QEMU does not emulate {}", self.name).into());
        };
        let mut command = Command::new(qemu.program);
        command.arg("-machine").args(qemu.machine);
        command.args(["-display", "none"]);
        command.arg("-kernel").arg(program).stdin(Stdio::null());
        Ok(command)
    }

    /// Returns QEMU with a program that prints and exits.
    pub fn printing(&self, program: &Path) -> Result<Command, Box<dyn Error>> {
        let mut command = self.emulator(program)?;
        command.args(["-serial", "none"]);
        command.args(["-semihosting-config", "enable=on,target=native"]);
        Ok(command)
    }

    /// Returns the output of a program. `arguments` are additional arguments for QEMU.
    pub fn print(&self, program: &Path, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
        let output = self.printing(program)?.args(arguments).output();
        let output = output.map_err(|error| self.no_emulator(&error))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {complaint}", self.name, output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns QEMU with the client: its line on a socket in `dir`, its record and its ledger in
    /// the files of `device` with their extensions.
    pub fn client(
        &self,
        program: &Path,
        dir: &Path,
        device: &Path,
    ) -> Result<Command, Box<dyn Error>> {
        let mut command = self.emulator(program)?;
        let line = dir.join("line");
        command.args([
            "-serial",
            &format!("unix:{},server=on,wait=off", line.display()),
        ]);
        let ledger = device.with_extension("ledger");
        let ledger = ledger.display();
        let host = format!("enable=on,target=native,arg=client,arg={ledger}");
        command.args(["-semihosting-config", &host]);
        let record = device.with_extension("bin");
        let record = record.display();
        let page = format!("loader,file={record},addr={:#x}", self.provision.start);
        command.args(["-device", &page]);
        Ok(command)
    }

    pub fn no_emulator(&self, error: &std::io::Error) -> String {
        let program = self.qemu.map_or("QEMU", |qemu| qemu.program);
        let package = match program {
            "qemu-system-arm" => program,
            _ => "qemu-system-misc",
        };
        format!("{program}: {error}; apt-get install {package}")
    }
}
