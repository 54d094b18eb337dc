//! `client` on the gradients of camera images: softmax regression on the features that
//! `src/gradients.rs` computes from each image.
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

type Sensor = Camera<OfImage, f32>;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let model: Model = Softmax::new(Const, Const);
    const P: usize = Model::PARAMETERS;
    let Err(why) = client::run::<_, Sensor, P, { Model::SCRATCH }, FEATURES, _, _>(model, storage);
    host::give_up(why.text())
}
