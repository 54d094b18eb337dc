//! `client` in integer arithmetic. Without the feature `questions`, the program has no floating
//! point (`tests/boards/integers.rs`).
//! It is for boards without a floating-point unit, where training is 35 times as fast.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::personal::store::NoStore;
use smolfed_firmware::{client, host};

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let Err(why) = client::run_integers(storage);
    host::give_up(why.text())
}
