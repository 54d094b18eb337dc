//! A Raspberry Pi Pico, with the flash after the program, and UART 0 on pins 0 and 1.
//!
//! The RP2040 has no random numbers for keys (data sheet, "Random Number Generator"). Therefore,
//! provisioning creates the ledger, and the ring oscillator only makes session nonces, which must
//! not repeat but may be known.

use core::{cell::RefCell, convert::Infallible};

use embassy_embedded_hal::flash::partition::BlockingPartition;
use embassy_executor::Spawner;
use embassy_rp::{
    bind_interrupts,
    clocks::RoscRng,
    flash::{Blocking, ERASE_SIZE, Flash},
    peripherals,
    uart::{self, BufferedInterruptHandler, BufferedUart},
};
use embassy_sync::blocking_mutex::{Mutex, raw::NoopRawMutex};
use panic_halt as _;
use rand_core::{TryRng, utils::next_word_via_fill};

use crate::{client::take_part, sensor::sample};

/// Size of the flash in bytes, and its last three pages, left free by `memory/rp2040.x`.
const FLASH_BYTES: usize = 2 << 20;
const RECORD: u32 = 0x001f_d000;
const LEDGER: u32 = 0x001f_e000;
const PAGE: u32 = ERASE_SIZE as u32;

bind_interrupts!(struct Interrupts {
    UART0_IRQ => BufferedInterruptHandler<peripherals::UART0>;
});

/// Starts the sensor, and takes part.
pub async fn start(spawner: Spawner) -> Result<Infallible, &'static str> {
    let p = embassy_rp::init(Default::default());
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
    take_part(record, ledger, None, Oscillator, line).await
}

/// Bits of the ring oscillator. Neighbouring bits are correlated, so 256 of them make one byte.
struct Oscillator;

impl TryRng for Oscillator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let byte = || (0..32).fold(0_u8, |sum, _| sum.rotate_left(1) ^ RoscRng::next_u8());
        bytes.fill_with(byte);
        Ok(())
    }
}
