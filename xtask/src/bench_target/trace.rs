//! Modelled cycles of the bench, from an execution trace of QEMU.
//!
//! `-d in_asm` prints each block of instructions when it is translated, and `-d exec,nochain` its
//! address whenever it is executed. The next block shows whether a branch was taken.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use super::cycles::{Core, Weight};
use crate::board::Board;
use crate::elf::function;

/// Executed instructions between two places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub instructions: u64,
    pub cycles: u64,
}

/// Runs the bench. Returns the names in its output, each with the cost of the counted work.
pub fn traced(board: &Board, program: &Path) -> Result<HashMap<String, Cost>, Box<dyn Error>> {
    let mut command = board.printing(program)?;
    command.args(["-monitor", "none", "-append", "traced"]);
    command.args(["-d", "in_asm,exec,nochain"]);
    let mut emulator = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| board.no_emulator(&error))?;
    let [begin, end] = ["begin", "end"].map(|name| function(program, "counting", name));
    let mut trace = Trace::new(Core::of(board.target), begin?, end?);
    let log = emulator.stderr.take().ok_or("no trace")?;
    trace.read(BufReader::with_capacity(1 << 20, log))?;
    let mut printed = String::new();
    let mut output = emulator.stdout.take().ok_or("no output")?;
    output.read_to_string(&mut printed)?;
    if !emulator.wait()?.success() {
        return Err(format!("{}: {printed}", program.display()).into());
    }
    trace.named(&printed)
}

/// A run of instructions without a branch before its end.
#[derive(Clone, Copy, Default)]
struct Block {
    cost: Cost,
    /// Refill cycles of the last instruction.
    refill: u64,
    /// The address after the block.
    end: u32,
}

impl Block {
    fn add(
        &mut self,
        Instruction {
            address,
            bytes,
            weight,
        }: Instruction,
    ) {
        self.cost.instructions += 1;
        self.cost.cycles += weight.cycles;
        self.refill = weight.refill;
        self.end = address + bytes;
    }
}

struct Instruction {
    address: u32,
    bytes: u32,
    weight: Weight,
}

struct Trace {
    core: Core,
    /// Functions around the counted work in the bench.
    begin: u32,
    end: u32,
    blocks: HashMap<u32, Block>,
    /// The block under translation.
    translated: Option<u32>,
    /// The block under execution.
    current: Option<u32>,
    /// The sum since `begin`, if there is no `end` yet.
    open: Option<Cost>,
    intervals: Vec<Cost>,
}

impl Trace {
    fn new(core: Core, begin: u32, end: u32) -> Self {
        Self {
            core,
            begin,
            end,
            blocks: HashMap::new(),
            translated: None,
            current: None,
            open: None,
            intervals: vec![],
        }
    }

    fn read(&mut self, mut log: impl BufRead) -> Result<(), Box<dyn Error>> {
        let mut line = String::new();
        while log.read_line(&mut line)? > 0 {
            if line.starts_with("Trace") {
                self.execute(executed(&line).ok_or_else(|| format!("a trace: {line}"))?);
            } else if line.starts_with("0x") {
                let instruction = self.instruction(&line);
                let instruction = instruction.ok_or_else(|| format!("an instruction: {line}"))?;
                self.translate(instruction);
            } else if line.starts_with("IN:") {
                self.translated = None;
            } else if line.starts_with("Stopped") {
                // The block was not executed, but will be.
                self.current = None;
            }
            line.clear();
        }
        Ok(())
    }

    /// Adds to the block under translation, which replaces an earlier translation.
    fn translate(&mut self, instruction: Instruction) {
        let start = self.translated.unwrap_or_else(|| {
            self.blocks.remove(&instruction.address);
            instruction.address
        });
        self.translated = Some(start);
        self.blocks.entry(start).or_default().add(instruction);
    }

    /// Parses `0x00000048:  f02c fe08  bl       #0x2cc5c`, or the eight-digit form of RISC-V.
    fn instruction(&self, line: &str) -> Option<Instruction> {
        let (address, rest) = line.strip_prefix("0x")?.split_once(':')?;
        let mut words = rest.split_whitespace();
        let code = words.next()?;
        let is_wide = self.core != Core::Rv32 && code >= "e800";
        let more = if is_wide { words.next()? } else { "" };
        let name = words.next()?;
        let operands = words.collect::<Vec<_>>().join(" ");
        Some(Instruction {
            address: u32::from_str_radix(address, 16).ok()?,
            bytes: (code.len() + more.len()) as u32 / 2,
            weight: self.core.weigh(name, &operands),
        })
    }

    fn execute(&mut self, address: u32) {
        if let (Some(cost), Some(block)) = (
            &mut self.open,
            self.current.and_then(|current| self.blocks.get(&current)),
        ) {
            let refill = if address == block.end {
                0
            } else {
                block.refill
            };
            cost.instructions += block.cost.instructions;
            cost.cycles += block.cost.cycles + refill;
        }
        if address == self.begin {
            self.open = Some(Cost::default());
        } else if address == self.end {
            self.intervals.extend(self.open.take());
        }
        self.current = Some(address);
    }

    /// Assigns the costs to the printed lines. Each count has its own line and two intervals, the
    /// first of which is empty.
    fn named(&self, printed: &str) -> Result<HashMap<String, Cost>, Box<dyn Error>> {
        let (counts, _) = self.intervals.as_chunks();
        let lines = printed.lines().filter_map(|line| line.split_once(' '));
        let names: Vec<&str> = lines.map(|(name, _)| name).collect();
        if names.len() != counts.len() {
            let (names, counts) = (names.len(), counts.len());
            return Err(format!("{names} lines of the bench, {counts} intervals").into());
        }
        let named = names.into_iter().zip(counts).map(|(name, [empty, full])| {
            let cost = Cost {
                instructions: full.instructions - empty.instructions,
                cycles: full.cycles - empty.cycles,
            };
            (name.to_owned(), cost)
        });
        Ok(named.collect())
    }
}

/// Parses the address of the block in `Trace 0: 0x7f… [00800408/0002cc5c/00000110/ff000200] name`.
fn executed(line: &str) -> Option<u32> {
    let (_, place) = line.split_once('[')?;
    let address = place.split('/').nth(1)?;
    u32::from_str_radix(address, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two counts. The loop of the second one is executed twice.
    const LOG: &str = "\
IN: begin
0x00000010:  f000 f800  bl       #0x100
Trace 0: 0x7f [0/00000010/0/0] begin
IN: loop
0x00000020:  6801       ldr      r1, [r0]
0x00000022:  d1fd       bne      #0x20
Trace 0: 0x7f [0/00000020/0/0] loop
Trace 0: 0x7f [0/00000020/0/0] loop
Stopped execution of TB chain before 0x7f [00000020] loop
Trace 0: 0x7f [0/00000020/0/0] loop
IN: end
0x00000024:  4770       bx       lr
Trace 0: 0x7f [0/00000024/0/0] end
";

    fn read(log: &str) -> Vec<Cost> {
        let mut trace = Trace::new(Core::M4, 0x10, 0x24);
        trace.read(log.as_bytes()).unwrap();
        trace.intervals
    }

    #[test]
    fn a_taken_branch_refills_the_pipeline() {
        // A call, then a load and a taken branch, then a load and a branch that is not taken.
        let cycles = (1 + 2) + (2 + 1 + 2) + (2 + 1);
        let instructions = 5;
        assert_eq!(
            read(LOG),
            [Cost {
                instructions,
                cycles
            }]
        );
    }

    #[test]
    fn a_log_of_another_form_is_refused() {
        let mut trace = Trace::new(Core::M4, 0, 0);
        assert!(trace.read("Trace 0: 0x7f\n".as_bytes()).is_err());
        assert!(trace.read("0x00000010: \n".as_bytes()).is_err());
    }

    #[test]
    fn a_line_without_an_interval_is_refused() {
        let mut trace = Trace::new(Core::M4, 0, 0);
        trace.intervals = vec![Cost::default(); 2];
        assert!(trace.named("gradient 1\n").is_ok());
        assert!(trace.named("gradient 1\nstep 2\n").is_err());
    }
}
