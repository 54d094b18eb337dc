//! Arm MPS2 boards AN385 (Cortex-M3), AN386 (Cortex-M4F) and AN505 (Cortex-M33): serial lines with
//! their baud rate, and ticks.
//!
//! UART and timers come from the Cortex-M System Design Kit (CMSDK), which some microcontrollers
//! also use. The memory maps are in Arm's application notes 385, 386 and 505.
#![expect(unsafe_code, reason = "addresses of devices and interrupt handlers")]

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m_rt::exception;

use super::{
    TICKS_PER_SECOND,
    cortex_m::{enable_interrupt, pend_interrupt, start_system_ticks},
    register::{Device, Register},
};
use crate::link;

#[cfg(not(board = "mps2-an505"))]
mod map {
    pub const CLOCK_HZ: u32 = 25_000_000;
    pub const UART: usize = 0x4000_4000;
    #[cfg(feature = "element")]
    pub const SECOND_UART: usize = 0x4000_5000;
    pub const UART_RX: u8 = 0;
    pub const UART_TX: u8 = 1;
    pub const TIMER: usize = 0x4000_0000;
}
/// Secure aliases, since the processor starts in its secure state.
#[cfg(board = "mps2-an505")]
mod map {
    pub const CLOCK_HZ: u32 = 20_000_000;
    pub const UART: usize = 0x5020_0000;
    #[cfg(feature = "element")]
    pub const SECOND_UART: usize = 0x5020_1000;
    pub const UART_RX: u8 = 32;
    pub const UART_TX: u8 = 33;
    pub const TIMER: usize = 0x5000_0000;
}

// SAFETY: CMSDK UART 0.
const UART: Device = unsafe { Device::new(map::UART) };
const DATA: usize = 0x00;
const STATE: usize = 0x04;
const CONTROL: usize = 0x08;
const INTERRUPT_CLEAR: usize = 0x0c;
const BAUD_DIVIDER: usize = 0x10;

const TRANSMIT_FULL: u32 = 1;
const RECEIVE_FULL: u32 = 2;

const BAUD: u32 = 115_200;

// SAFETY: CMSDK UART 1.
#[cfg(feature = "element")]
const SECOND_UART: Device = unsafe { Device::new(map::SECOND_UART) };

// SAFETY: CMSDK timer 0.
const TIMER: Device = unsafe { Device::new(map::TIMER) };

static TICKS: AtomicU32 = AtomicU32::new(0);

/// Enables the serial line, its interrupts and the ticks.
pub fn start() {
    UART.at(BAUD_DIVIDER).write(map::CLOCK_HZ / BAUD);
    // Both directions and both interrupts. The interrupt for sending only ends a sleep.
    UART.at(CONTROL).write(0b1111);
    enable_interrupt(map::UART_RX);
    enable_interrupt(map::UART_TX);
    start_system_ticks(map::CLOCK_HZ / TICKS_PER_SECOND);
}

/// Puts a byte on the line. Returns `false` if there is no room yet.
pub fn transmit(byte: u8) -> bool {
    let room = UART.at(STATE).read() & TRANSMIT_FULL == 0;
    if room {
        UART.at(DATA).write(byte.into());
    }
    room
}

/// Accepts a byte for which the interrupt had no room: the UART interrupts once for each byte.
pub fn resume() {
    pend_interrupt(map::UART_RX);
}

/// Enables the second line, without interrupts.
#[cfg(feature = "element")]
pub fn start_second() {
    SECOND_UART.at(BAUD_DIVIDER).write(map::CLOCK_HZ / BAUD);
    SECOND_UART.at(CONTROL).write(0b11);
}

/// Puts a byte on the second line. Returns `false` if there is no room yet.
#[cfg(feature = "element")]
pub fn transmit_second(byte: u8) -> bool {
    let room = SECOND_UART.at(STATE).read() & TRANSMIT_FULL == 0;
    if room {
        SECOND_UART.at(DATA).write(byte.into());
    }
    room
}

/// Takes a received byte from the second line, if there is one.
#[cfg(feature = "element")]
pub fn receive_second() -> Option<u8> {
    let has_come = SECOND_UART.at(STATE).read() & RECEIVE_FULL != 0;
    has_come.then(|| SECOND_UART.at(DATA).read() as u8)
}

/// Returns tenths of a second since the start. Wraps to 0 after 13 years.
pub fn ticks() -> u32 {
    TICKS.load(Ordering::Relaxed)
}

/// Writes zero to a word of the provisioning page. The page is RAM in QEMU. A real board needs a
/// command of its flash controller.
pub fn clear(word: Register) {
    word.write(0);
}

/// Starts the counter of [`counter`] at 0.
pub fn start_counter() {
    TIMER.at(0x08).write(u32::MAX);
    TIMER.at(0x04).write(u32::MAX);
    TIMER.at(0x00).write(1);
}

/// Returns timer ticks since [`start_counter`].
pub fn counter() -> u32 {
    u32::MAX - TIMER.at(0x04).read()
}

/// Counts of [`counter`] per 1,000 instructions, in QEMU with `-icount shift=10` (1,024 ns each).
pub const COUNTS_PER_1000: u32 = map::CLOCK_HZ / 1_000_000 * 1_024;

#[exception]
fn SysTick() {
    // There is no other writer: one processor, one handler.
    let now = TICKS.load(Ordering::Relaxed);
    TICKS.store(now.wrapping_add(1), Ordering::Relaxed);
}

/// The last used interrupt.
pub(super) const LAST_INTERRUPT: u8 = map::UART_TX;

/// Handles all device interrupts.
pub(super) extern "C" fn on_interrupt() {
    // Cleared first: a byte that arrives while the loop ends interrupts again.
    UART.at(INTERRUPT_CLEAR).write(0b11);
    // SAFETY: only this handler calls it, and the handler does not interrupt itself.
    let received = unsafe { link::producer() };
    while received.ready() && UART.at(STATE).read() & RECEIVE_FULL != 0 {
        // The queue is ready.
        let _ = received.enqueue(UART.at(DATA).read() as u8);
    }
}
