//! Updates of devices whose shapes follow from the build's `SMOLFED_SEED`, in both arithmetics.
//! Prints the seed and a line of two checksums for each device, for comparison with the simulator
//! (`tests/boards/shapes.rs`).
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use semihosting::{eprintln, println, process::ExitCode};
use smolfed_firmware::{number::number, shapes};

const SEED: u32 = number(env!("SMOLFED_SEED")) as u32;

#[entry]
fn main() -> ! {
    println!("{SEED}");
    for case in 0..shapes::CASES {
        match shapes::checksums(SEED, case) {
            Ok([numbers, integers]) => println!("{numbers:08x} {integers:08x}"),
            Err(what) => {
                eprintln!("refused: {what}");
                ExitCode::FAILURE.exit_process()
            }
        }
    }
    ExitCode::SUCCESS.exit_process()
}
