//! The client on a Raspberry Pi Pico, with UART0 on pins 0 and 1, and the flash after the program.
//!
//! The RP2040 has no random numbers for keys: the bits of its ring oscillator do not meet the
//! requirements of security systems (data sheet, "Random Number Generator"). Therefore,
//! provisioning creates the ledger (`device-K.ledger`), and the oscillator only makes session
//! nonces, which must not repeat but may be known.
#![no_std]
#![no_main]

use core::{cell::RefCell, convert::Infallible};

use embassy_embedded_hal::{adapter::BlockingAsync, flash::partition::BlockingPartition};
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
use smolfed_firmware_embassy::{sensor::sample, take_part};

/// Size of the flash in bytes, and its last three pages, left free by `memory/rp2040.x`.
const FLASH_BYTES: usize = 2 << 20;
const RECORD: u32 = 0x001f_d000;
const LEDGER: u32 = 0x001f_e000;
const PAGE: u32 = ERASE_SIZE as u32;

bind_interrupts!(struct Interrupts {
    UART0_IRQ => BufferedInterruptHandler<peripherals::UART0>;
});

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let p = embassy_rp::init(Default::default());
    if let Ok(task) = sample(RoscRng.next_u32()) {
        spawner.spawn(task);
    }

    let flash = Flash::<_, Blocking, FLASH_BYTES>::new_blocking(p.FLASH);
    let flash = Mutex::<NoopRawMutex, _>::new(RefCell::new(flash));
    // This driver blocks. An asynchronous driver can replace it.
    let piece = |offset, size| BlockingAsync::new(BlockingPartition::new(&flash, offset, size));
    let (page, ledger) = (piece(RECORD, PAGE), piece(LEDGER, 2 * PAGE));
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
    // If the device may not take part, only the sensor continues.
    let Err(_refused) = take_part(page, ledger, None, Oscillator, line).await;
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
