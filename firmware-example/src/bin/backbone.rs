//! `integer` on the features of a frozen backbone: the program runs an 8-bit integer network on
//! each image, and the client trains softmax regression on its outputs. It uses no floating point.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    model::{Const, FixedModel, Softmax},
    personal::store::NoStore,
};
use smolfed_firmware::{
    backbone::FEATURES,
    camera::{Backbone, Camera},
    client::{self, CLASSES},
    host,
};

type Head = Softmax<Const<FEATURES>, Const<CLASSES>>;

type Sensor = Camera<Backbone, i8>;

/// Scores and features of a sample.
const SCRATCH: usize = CLASSES + FEATURES;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let head: Head = Softmax::new(Const, Const);
    let Err(why) = client::run_fixed_point::<_, Sensor, { Head::PARAMETERS }, SCRATCH, FEATURES, _>(
        head, storage,
    );
    host::give_up(why.text())
}
