//! The client without a host, with only the parts needed on a real board. `tests/boards/panics.rs`
//! checks that it cannot panic, and `docs/targets.md` has its size.
//!
//! Its flash is two volatile pieces of RAM. On your own board, use the flash of your HAL.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::personal::store::NoStore;
use smolfed_firmware::{
    board,
    client::{self, Storage},
    forgetful::Forgetful,
};

#[entry]
fn main() -> ! {
    let Err(_why) = client::run_regression(Storage {
        ledger: Forgetful::new(),
        starts: Forgetful::new(),
        store: NoStore,
    });
    loop {
        board::sleep_unless(|| false);
    }
}
