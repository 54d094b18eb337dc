//! A Raspberry Pi Pico 2, with the flash after the program, the hardware random number generator,
//! and UART 0 on pins 0 and 1.

use core::{cell::RefCell, convert::Infallible};

use embassy_embedded_hal::flash::partition::BlockingPartition;
use embassy_executor::Spawner;
use embassy_rp::{
    bind_interrupts,
    flash::{Blocking, ERASE_SIZE, Flash},
    peripherals, trng,
    uart::{self, BufferedInterruptHandler, BufferedUart},
};
use embassy_sync::blocking_mutex::{Mutex, raw::NoopRawMutex};
use panic_halt as _;
use smolfed_core::generator::Rng09;

use crate::{client::take_part, sensor::sample};

/// Size of the flash in bytes, and its last three pages, left free by `memory/rp2350.x`.
const FLASH_BYTES: usize = 4 << 20;
const RECORD: u32 = 0x003f_d000;
const LEDGER: u32 = 0x003f_e000;
const PAGE: u32 = ERASE_SIZE as u32;

bind_interrupts!(struct Interrupts {
    UART0_IRQ => BufferedInterruptHandler<peripherals::UART0>;
    TRNG_IRQ => trng::InterruptHandler<peripherals::TRNG>;
});

/// Starts the sensor, and takes part.
pub async fn start(spawner: Spawner) -> Result<Infallible, &'static str> {
    let p = embassy_rp::init(Default::default());
    let mut random = trng::Trng::new(p.TRNG, Interrupts, trng::Config::default());
    let mut ledger_nonce = [0; 8];
    random.blocking_fill_bytes(&mut ledger_nonce);
    // Pass your sensor's pins from `p` to `sample`.
    spawner.spawn(sample().map_err(|_| "the sensor runs already")?);

    let flash = Flash::<_, Blocking, FLASH_BYTES>::new_blocking(p.FLASH);
    let flash = Mutex::<NoopRawMutex, _>::new(RefCell::new(flash));
    let record = BlockingPartition::new(&flash, RECORD, PAGE);
    let ledger = BlockingPartition::new(&flash, LEDGER, 2 * PAGE);
    let (mut received, mut sent) = ([0; 512], [0; 256]);
    let line = BufferedUart::new(
        p.UART0,
        p.PIN_0,
        p.PIN_1,
        Interrupts,
        &mut sent,
        &mut received,
        uart::Config::default(),
    );
    take_part(record, ledger, Some(ledger_nonce), Rng09(random), line).await
}
