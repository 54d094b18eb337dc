//! BBC micro:bit v1 (nRF51822, Cortex-M0, 16 KiB RAM): serial line (UART), ticks, random number
//! generator and flash. The registers are in its reference manual.
#![expect(unsafe_code, reason = "addresses of devices and interrupt handlers")]

use core::sync::atomic::{AtomicU32, Ordering};

use super::{
    TICKS_PER_SECOND,
    cortex_m::enable_interrupt,
    register::{Device, Register},
};
use crate::link;

// SAFETY: the clock control.
const CLOCK: Device = unsafe { Device::new(0x4000_0000) };
// SAFETY: the UART.
const UART: Device = unsafe { Device::new(0x4000_2000) };
// SAFETY: TIMER0, for the ticks, since an nRF51 has no SysTick.
const TIMER: Device = unsafe { Device::new(0x4000_8000) };
// SAFETY: TIMER1, for measurements.
const COUNTER: Device = unsafe { Device::new(0x4000_9000) };
// SAFETY: the random number generator.
const RNG: Device = unsafe { Device::new(0x4000_d000) };
// SAFETY: the flash controller (NVMC).
const FLASH: Device = unsafe { Device::new(0x4001_e000) };

const UART_INTERRUPT: u8 = 2;
const TIMER_INTERRUPT: u8 = 8;

const START_RECEIVING: usize = 0x000;
const START_SENDING: usize = 0x008;
const RECEIVED_BYTE: usize = 0x108;
const SENT_BYTE: usize = 0x11c;
const ENABLE_INTERRUPTS: usize = 0x304;
const DISABLE_INTERRUPTS: usize = 0x308;

static TICKS: AtomicU32 = AtomicU32::new(0);
/// Whether the main loop considers a byte to be in transmission.
static SENDING: AtomicU32 = AtomicU32::new(0);

/// Enables the serial line, its interrupts and the ticks.
pub fn start() {
    // The crystal gives an exact baud rate.
    CLOCK.at(0x000).write(1);
    // Pins connected to the USB interface.
    UART.at(0x50c).write(24);
    UART.at(0x514).write(25);
    // 115,200 baud.
    UART.at(0x524).write(0x01d7_e000);
    UART.at(0x500).write(4);
    // Interrupts for received and sent bytes. The interrupt for sending only ends a sleep.
    UART.at(ENABLE_INTERRUPTS).write(1 << 2 | 1 << 7);
    UART.at(START_RECEIVING).write(1);
    UART.at(START_SENDING).write(1);
    enable_interrupt(UART_INTERRUPT);
    // 16 MHz / 2^9 = 31,250 Hz, 16 bits, cleared at each tick.
    TIMER.at(0x510).write(9);
    TIMER.at(0x508).write(0);
    TIMER.at(0x540).write(31_250 / TICKS_PER_SECOND);
    TIMER.at(0x200).write(1);
    TIMER.at(0x304).write(1 << 16);
    TIMER.at(0x000).write(1);
    enable_interrupt(TIMER_INTERRUPT);
}

/// Puts a byte on the line. Returns `false` if there is no room yet.
pub fn transmit(byte: u8) -> bool {
    let room = SENDING.load(Ordering::Relaxed) == 0;
    if room {
        SENDING.store(1, Ordering::Relaxed);
        UART.at(0x51c).write(byte.into());
    }
    room
}

/// Accepts bytes for which the interrupt had no room.
pub fn resume() {
    UART.at(ENABLE_INTERRUPTS).write(1 << 2);
}

/// Returns tenths of a second since the start. Wraps to 0 after 13 years.
pub fn ticks() -> u32 {
    TICKS.load(Ordering::Relaxed)
}

/// Returns a random byte from the hardware, with its bias correction.
pub fn random_byte() -> u8 {
    RNG.at(0x504).write(1);
    RNG.at(0x100).write(0);
    RNG.at(0x000).write(1);
    // Takes at most about a millisecond.
    while RNG.at(0x100).read() == 0 {}
    RNG.at(0x004).write(1);
    RNG.at(0x508).read() as u8
}

/// Writes zero to a flash word, which needs no erasing.
pub fn clear(word: Register) {
    const READY: usize = 0x400;
    const CONFIGURATION: usize = 0x504;
    FLASH.at(CONFIGURATION).write(1);
    word.write(0);
    while FLASH.at(READY).read() == 0 {}
    FLASH.at(CONFIGURATION).write(0);
}

/// Starts the counter of [`counter`] at 0.
pub fn start_counter() {
    // 16 MHz, 32 bits.
    COUNTER.at(0x510).write(0);
    COUNTER.at(0x508).write(3);
    COUNTER.at(0x00c).write(1);
    COUNTER.at(0x000).write(1);
}

/// Returns timer ticks since [`start_counter`].
pub fn counter() -> u32 {
    COUNTER.at(0x040).write(1);
    COUNTER.at(0x540).read()
}

/// Counts of [`counter`] per 1,000 instructions, in QEMU with `-icount shift=10` (1,024 ns each).
pub const COUNTS_PER_1000: u32 = 16 * 1_024;

/// The last used interrupt.
pub(super) const LAST_INTERRUPT: u8 = TIMER_INTERRUPT;

/// Handles all device interrupts.
pub(super) extern "C" fn on_interrupt() {
    // SAFETY: only this handler calls it, and the handler does not interrupt itself.
    let received = unsafe { link::producer() };
    while UART.at(RECEIVED_BYTE).read() != 0 {
        if !received.ready() {
            UART.at(DISABLE_INTERRUPTS).write(1 << 2);
            break;
        }
        UART.at(RECEIVED_BYTE).write(0);
        // The queue is ready.
        let _ = received.enqueue(UART.at(0x518).read() as u8);
    }
    if UART.at(SENT_BYTE).read() != 0 {
        UART.at(SENT_BYTE).write(0);
        SENDING.store(0, Ordering::Relaxed);
    }
    if TIMER.at(0x140).read() != 0 {
        TIMER.at(0x140).write(0);
        // There is no other writer: one processor, one handler.
        let now = TICKS.load(Ordering::Relaxed);
        TICKS.store(now.wrapping_add(1), Ordering::Relaxed);
    }
}
