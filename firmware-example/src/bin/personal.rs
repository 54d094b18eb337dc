//! `client` with a personal model on separate flash. It also takes part in PMTL, PP-SGD and
//! DPFedMTL.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_storage::nor_flash::NorFlash;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    model::FixedModel,
    personal::store::flash::{FlashStore, flash_bytes},
};
use smolfed_firmware::{
    client::{self, Regression},
    host::{self, HostFlash, Part},
};

/// Personal model, with enough flash for a whole model. On your own board, compare it with the
/// length of your region in a `const` assertion.
const PERSONAL: Part =
    Part::STARTS.followed_by(flash_bytes(Regression::PARAMETERS, HostFlash::ERASE_SIZE));

#[entry]
fn main() -> ! {
    let Ok(flash) = HostFlash::open(PERSONAL) else {
        host::give_up(host::NO_FILE);
    };
    let Ok(store) = FlashStore::new(flash) else {
        host::give_up(c"refused: the words of the flash do not fit a personal model");
    };
    let Ok(storage) = host::storage(store) else {
        host::give_up(host::NO_FILE);
    };
    let Err(why) = client::run_regression(storage);
    host::give_up(why.text())
}
