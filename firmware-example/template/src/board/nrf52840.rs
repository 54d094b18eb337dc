//! An nRF52840 DK: addresses of the provisioning record and the ledger in flash, random number
//! generator, and serial line.

use core::{cell::RefCell, convert::Infallible};

use embassy_embedded_hal::flash::partition::BlockingPartition;
use embassy_executor::Spawner;
use embassy_nrf::{
    bind_interrupts,
    buffered_uarte::{self, BufferedUarte},
    nvmc::{Nvmc, PAGE_SIZE},
    peripherals, rng, uarte,
};
use embassy_sync::blocking_mutex::{Mutex, raw::NoopRawMutex};
use panic_halt as _;

use crate::{client::take_part, sensor::sample};

/// Last three pages of the flash, left free by `memory/nrf52840.x`.
const RECORD: u32 = 0x000f_d000;
const LEDGER: u32 = 0x000f_e000;
const PAGE: u32 = PAGE_SIZE as u32;

bind_interrupts!(struct Interrupts {
    UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
});

/// Starts the sensor, and takes part.
pub async fn start(spawner: Spawner) -> Result<Infallible, &'static str> {
    let p = embassy_nrf::init(Default::default());
    let mut random = rng::Rng::new_blocking(p.RNG);
    let mut ledger_nonce = [0; 8];
    random.blocking_fill_bytes(&mut ledger_nonce);
    // Pass your sensor's pins from `p` to `sample`.
    spawner.spawn(sample().map_err(|_| "the sensor runs already")?);

    let flash = Mutex::<NoopRawMutex, _>::new(RefCell::new(Nvmc::new(p.NVMC)));
    let record = BlockingPartition::new(&flash, RECORD, PAGE);
    let ledger = BlockingPartition::new(&flash, LEDGER, 2 * PAGE);
    // The debugger's serial port.
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
    take_part(record, ledger, Some(ledger_nonce), random, line).await
}
