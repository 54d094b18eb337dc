//! `client` on window features: softmax regression on the features that `src/features.rs` computes
//! from the raw samples of six channels.
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
use smolfed_firmware::{client, features, host, sensor::Motion};

/// Number of classes, the same as the networks for windows.
const CLASSES: usize = smolfed_firmware::network::CLASSES as usize;

type Model = Softmax<Const<{ features::COUNT }>, Const<CLASSES>>;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let model: Model = Softmax::new(Const, Const);
    let Err(why) = client::run::<
        _,
        Motion,
        { Model::PARAMETERS },
        { Model::SCRATCH },
        { features::COUNT },
        _,
        _,
    >(model, storage);
    host::give_up(why.text())
}
