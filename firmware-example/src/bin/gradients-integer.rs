//! `gradients` in integers, for both the features of an image and the training.
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
    camera::Camera,
    client::{self, CLASSES},
    gradients::{FEATURES, OfImage},
    host,
};

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;

type Sensor = Camera<OfImage, i8>;

/// Scores and features of a sample.
const SCRATCH: usize = CLASSES + FEATURES;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let model: Model = Softmax::new(Const, Const);
    const P: usize = Model::PARAMETERS;
    let Err(why) = client::run_fixed_point::<_, Sensor, P, SCRATCH, FEATURES, _>(model, storage);
    host::give_up(why.text())
}
