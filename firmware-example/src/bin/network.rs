//! `client` with a network that trains convolutions on windows of six channels.
//!
//! `src/network.rs` has the network, on windows of `SMOLFED_WIDTH` samples. A board with less than
//! 32 KiB of RAM uses the smaller one.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    model::{Fixed, FixedModel},
    personal::store::NoStore,
};
use smolfed_firmware::{
    client, host,
    network::{CHANNELS, SixChannels},
    number::number,
    sensor::Sensor,
};

/// Samples per channel in a window.
const WIDTH: u16 = number(env!("SMOLFED_WIDTH")) as u16;

#[cfg(not(small_ram))]
type Model = Fixed<SixChannels<WIDTH, 8, 16>>;
#[cfg(small_ram)]
type Model = Fixed<SixChannels<WIDTH, 4, 8>>;

const FEATURES: usize = CHANNELS as usize * WIDTH as usize;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let Err(why) =
        client::run::<Model, Sensor, { Model::PARAMETERS }, { Model::SCRATCH }, FEATURES, _, _>(
            Fixed::new(),
            storage,
        );
    host::give_up(why.text())
}
