//! A device that only infers. Its provisioning record is from `smolfed provision --infer`, and its
//! models come from `smolfed deliver`.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
use embedded_storage::nor_flash::NorFlash;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    delivery::slots::flash_bytes,
    model::{Const, FixedModel, Softmax},
};
use smolfed_firmware::{
    client::{CLASSES, FEATURES, Regression},
    host::{self, HostFlash, Part},
    infer,
    sensor::Sensor,
};

/// Models: two slots, each in whole erase blocks.
const MODELS: Part =
    Part::STARTS.followed_by(flash_bytes(Regression::PARAMETERS, HostFlash::ERASE_SIZE));

#[entry]
fn main() -> ! {
    let (Ok(starts), Ok(models)) = (HostFlash::open(Part::STARTS), HostFlash::open(MODELS)) else {
        host::give_up(host::NO_FILE);
    };
    let model: Regression = Softmax::new(Const, Const);
    const P: usize = Regression::PARAMETERS;
    let Err(why) = infer::run::<_, Sensor, _, P, FEATURES, CLASSES>(&model, starts, models);
    host::give_up(why.text())
}
