//! Modelled cycles: a weight for each class of instruction, from the processor's manual, for memory
//! without wait states.
//!
//! | class | Cortex-M0 | Cortex-M3 | Cortex-M4F, M33 | RV32 |
//! | --- | ---: | ---: | ---: | ---: |
//! | arithmetic, moves, comparisons, branches not taken | 1 | 1 | 1 | 1 |
//! | load or store | 2 | 2 | 2 | 2 |
//! | of two words, or of N | 1 + N | 1 + N | 1 + N | |
//! | multiplication | 1 | 1 | 1 | 1 |
//! | the same, 64 bits | | 5 | 1 | 2 |
//! | multiplication and addition | | 2 | 1 | |
//! | the same, 64 bits | | 7 | 1 | |
//! | division | | 12 | 12 | 38 |
//! | branch taken | 3 | 3 | 3 | 3 |
//! | jump, return | 3 | 3 | 3 | 2 |
//! | call | 4 | 3 | 3 | 2 |
//! | floating point: addition, multiplication, others | | | 1 | |
//! | the same: multiplication and addition | | | 3 | |
//! | the same: division, square root | | | 14 | |
//!
//! Sources: Cortex-M0 Technical Reference Manual (Arm DDI 0432C), table 3-1, with the multiplier of
//! one cycle; Cortex-M3 (DDI 0337H), table 3-1; Cortex-M4 (DDI 0439B), tables 3-1 and 7-1; Ibex
//! Reference Guide, "Pipeline Details", table 2, with the multiplier of one cycle and without an
//! adder for branch targets. Where a manual gives a range, a pipeline is refilled in 2 of 1 to 3
//! cycles, and multiplications and divisions take longest. Arm has published no table for the
//! Cortex-M33, which is weighed as a Cortex-M4F.

/// A processor core with its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    M0,
    M3,
    M4,
    Rv32,
}

/// Cycles of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    pub cycles: u64,
    /// Additional cycles if the next executed instruction is not the following one.
    pub refill: u64,
}

impl Core {
    /// Returns the core of a target.
    pub fn of(target: &str) -> Self {
        match target.split_once('-').map_or(target, |(first, _)| first) {
            "thumbv6m" => Self::M0,
            "thumbv7m" => Self::M3,
            name if name.starts_with("thumb") => Self::M4,
            _ => Self::Rv32,
        }
    }

    /// Returns the weight of an instruction, as printed by QEMU's disassembler.
    pub fn weigh(self, name: &str, operands: &str) -> Weight {
        match self {
            Self::Rv32 => risc_v(name),
            _ => self.arm(name, operands),
        }
    }

    fn arm(self, name: &str, operands: &str) -> Weight {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let is_m3 = self == Self::M3;
        let cycles = if starts(&["ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop"]) {
            // A Cortex-M0 takes one more cycle to return.
            1 + words(operands) + u64::from(self == Self::M0 && operands.contains("pc"))
        } else if starts(&["ldrd", "strd"])
            || starts(&["vldr", "vstr"]) && operands.starts_with('d')
        {
            3
        } else if starts(&["ldr", "str", "vldr", "vstr", "tbb", "tbh"])
            || is_m3 && starts(&["mla", "mls"])
            || self == Self::M0 && matches!(name, "bl" | "bl.w")
        {
            2
        } else if starts(&["sdiv", "udiv"]) {
            12
        } else if starts(&["vdiv", "vsqrt"]) {
            14
        } else if starts(&[
            "vmla", "vmls", "vnmla", "vnmls", "vfma", "vfms", "vfnma", "vfnms",
        ]) {
            3
        } else if is_m3 && starts(&["umull", "smull"]) {
            5
        } else if is_m3 && starts(&["umlal", "smlal"]) {
            7
        } else {
            1
        };
        Weight { cycles, refill: 2 }
    }
}

/// Counts the words in a register list. Names of two-word registers start with `d`.
fn words(operands: &str) -> u64 {
    let (_, list) = operands.split_once('{').unwrap_or_default();
    let registers = list.split(',').map(str::trim);
    registers
        .map(|name| if name.starts_with('d') { 2 } else { 1 })
        .sum()
}

fn risc_v(name: &str) -> Weight {
    let (cycles, refill) = match name {
        "lb" | "lbu" | "lh" | "lhu" | "lw" | "sb" | "sh" | "sw" => (2, 0),
        "mulh" | "mulhu" | "mulhsu" => (2, 0),
        "div" | "divu" | "rem" | "remu" => (38, 0),
        "j" | "jal" | "jr" | "jalr" | "ret" => (1, 1),
        _ if name.starts_with('b') => (1, 2),
        _ => (1, 0),
    };
    Weight { cycles, refill }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_weights_of_the_manuals() {
        let total = |core: Core, name, operands| {
            let Weight { cycles, refill } = core.weigh(name, operands);
            (cycles, cycles + refill)
        };
        for (core, name, operands, cycles, taken) in [
            (Core::M0, "pop", "{r4, r5, r6, r7, pc}", 7, 9),
            (Core::M0, "push", "{r4, lr}", 3, 5),
            (Core::M0, "bl", "#0x100", 2, 4),
            (Core::M0, "bls", "#0x100", 1, 3),
            (Core::M3, "umull", "r0, r1, r2, r3", 5, 7),
            (Core::M4, "umull", "r0, r1, r2, r3", 1, 3),
            (Core::M4, "vldmia", "r0!, {s0, s1, s2, s3}", 5, 7),
            (Core::M4, "vpush", "{d8, d9}", 5, 7),
            (Core::M4, "vldr", "s0, [r0, #4]", 2, 4),
            (Core::M4, "vmla.f32", "s0, s1, s2", 3, 5),
            (Core::M4, "vmul.f32", "s0, s1, s2", 1, 3),
            (Core::M4, "vdiv.f32", "s0, s1, s2", 14, 16),
            (Core::M4, "ldr.w", "r0, [r1]", 2, 4),
            (Core::M4, "tbb", "[pc, r0]", 2, 4),
            (Core::Rv32, "lw", "a1,32(t0)", 2, 2),
            (Core::Rv32, "lui", "ra,-2147483648", 1, 1),
            (Core::Rv32, "bltu", "a0,a1,8", 1, 3),
            (Core::Rv32, "ret", "", 1, 2),
        ] {
            assert_eq!(
                total(core, name, operands),
                (cycles, taken),
                "{core:?} {name}"
            );
        }
    }

    #[test]
    fn targets_have_their_cores() {
        let of = |target| Core::of(target);
        assert_eq!(of("thumbv6m-none-eabi"), Core::M0);
        assert_eq!(of("thumbv7m-none-eabi"), Core::M3);
        assert_eq!(of("thumbv7em-none-eabihf"), Core::M4);
        assert_eq!(of("thumbv8m.main-none-eabihf"), Core::M4);
        assert_eq!(of("riscv32imac-unknown-none-elf"), Core::Rv32);
    }
}
