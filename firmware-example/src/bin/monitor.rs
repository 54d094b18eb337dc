//! `client` in a product that uses the model. It prints the class of each new window, and keeps the
//! newest model in separate flash.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_storage::nor_flash::NorFlash;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    model::{Const, FixedModel, Softmax},
    personal::store::{NoStore, flash::flash_bytes},
};
use smolfed_firmware::{
    client::{self, CLASSES, FEATURES, Regression},
    host::{self, HostFlash, Part},
    monitor::Monitor,
    sensor::Sensor,
};

/// Newest model: two slots, each in whole erase blocks.
const MODEL: Part =
    Part::STARTS.followed_by(flash_bytes(Regression::PARAMETERS, HostFlash::ERASE_SIZE));

#[entry]
fn main() -> ! {
    let Ok(flash) = HostFlash::open(MODEL) else {
        host::give_up(host::NO_FILE);
    };
    let Ok(mut monitor) = Monitor::<Sensor, _, FEATURES, CLASSES>::new(flash, 0) else {
        host::give_up(c"refused: the words of the flash do not fit a model");
    };
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let model: Regression = Softmax::new(Const, Const);
    const P: usize = Regression::PARAMETERS;
    const B: usize = Regression::SCRATCH;
    let Err(why) = client::run_in::<_, Sensor, P, B, FEATURES, _, _>(model, storage, &mut monitor);
    host::give_up(why.text())
}
