//! A client on a board: takes part in a federation over its serial line, and sleeps between rounds.
//!
//! Its provisioning record has its identity and its policy. The flash of its ledger is a file on
//! the host, since this board is emulated.
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
    let Err(why) = client::run_regression(storage);
    host::give_up(why.text())
}
