//! The client on an nRF52840 DK, with the debugger's UART, NVMC, and the hardware generator.
#![no_std]
#![no_main]

use core::cell::RefCell;

use embassy_embedded_hal::{adapter::BlockingAsync, flash::partition::BlockingPartition};
use embassy_executor::Spawner;
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte},
    nvmc::{Nvmc, PAGE_SIZE},
    peripherals, rng, uarte,
};
use embassy_sync::blocking_mutex::{Mutex, raw::NoopRawMutex};
use panic_halt as _;
use smolfed_firmware_embassy::{sensor::sample, take_part};

/// Last three pages of the flash, left free by `memory/nrf52840.x`.
const RECORD: u32 = 0x000f_d000;
const LEDGER: u32 = 0x000f_e000;
const PAGE: u32 = PAGE_SIZE as u32;

bind_interrupts!(struct Interrupts {
    UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
});

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let p = embassy_nrf::init(Default::default());
    let mut nonces = rng::Rng::new_blocking(p.RNG);
    let mut fresh = [0; 8];
    nonces.blocking_fill_bytes(&mut fresh);
    if let Ok(task) = sample(nonces.blocking_next_u32()) {
        spawner.spawn(task);
    }

    let flash = Mutex::<NoopRawMutex, _>::new(RefCell::new(Nvmc::new(p.NVMC)));
    // This driver blocks. An asynchronous driver can replace it.
    let piece = |offset, size| BlockingAsync::new(BlockingPartition::new(&flash, offset, size));
    let (page, ledger) = (piece(RECORD, PAGE), piece(LEDGER, 2 * PAGE));
    let (mut received, mut sent) = ([0; 512], [0; 256]);
    let line = BufferedUarte::new(
        p.UARTE0,
        p.TIMER1,
        p.PPI_CH0,
        p.PPI_CH1,
        p.PPI_GROUP0,
        p.P0_08,
        p.P0_06,
        Interrupts,
        uarte::Config::default(),
        &mut received,
        &mut sent,
    );
    // If the device may not take part, only the sensor continues.
    let Err(_refused) = take_part(page, ledger, Some(fresh), nonces, line).await;
}
