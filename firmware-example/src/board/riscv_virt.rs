//! QEMU's virtual RISC-V board: serial line (a 16550 UART), ticks, and standard interrupt
//! controllers (CLINT, PLIC).
#![expect(
    unsafe_code,
    reason = "addresses of devices, control registers, interrupt handlers"
)]

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use riscv::interrupt::Interrupt;
use riscv_rt::core_interrupt;

use super::{TICKS_PER_SECOND, register::{Device, Register}};
use crate::link;

const UART: usize = 0x1000_0000;
const UART_INTERRUPT: usize = 10;
const DATA: usize = 0;
const INTERRUPT_ENABLE: usize = 1;
const FIFO_CONTROL: usize = 2;
const LINE_CONTROL: usize = 3;
const LINE_STATUS: usize = 5;
const RECEIVE_READY: u8 = 1;
const TRANSMIT_EMPTY: u8 = 1 << 5;

// SAFETY: the platform's interrupt controller.
const PLIC: Device = unsafe { Device::new(0x0c00_0000) };
/// Context of hart 0 in machine mode.
const ENABLE: usize = 0x2000;
const THRESHOLD: usize = 0x20_0000;
const CLAIM: usize = 0x20_0004;

// SAFETY: the core's interrupt controller, with the clock.
const CLINT: Device = unsafe { Device::new(0x0200_0000) };
const COMPARE: usize = 0x4000;
const TIME: usize = 0xbff8;
const CLOCK_HZ: u32 = 10_000_000;

static TICKS: AtomicU32 = AtomicU32::new(0);

fn read_uart(offset: usize) -> u8 {
    // SAFETY: a register of the UART, one byte wide.
    unsafe { core::ptr::with_exposed_provenance::<u8>(UART + offset).read_volatile() }
}

fn write_uart(offset: usize, value: u8) {
    // SAFETY: a register of the UART, one byte wide.
    unsafe { core::ptr::with_exposed_provenance_mut::<u8>(UART + offset).write_volatile(value) }
}

/// Enables the serial line, its interrupts and the ticks.
pub fn start() {
    // Eight bits, no parity, FIFOs enabled.
    write_uart(LINE_CONTROL, 3);
    write_uart(FIFO_CONTROL, 1);
    // Interrupts for received bytes and for room to send. The latter only ends a sleep.
    write_uart(INTERRUPT_ENABLE, 0b11);
    PLIC.at(UART_INTERRUPT * 4).write(1);
    PLIC.at(ENABLE).write(1 << UART_INTERRUPT);
    PLIC.at(THRESHOLD).write(0);
    next_tick();
    // SAFETY: the handlers below exist, and touch only atomics. Bits 7 and 11 of `mie` are the
    // clock and the devices, and bit 3 of `mstatus` is all interrupts.
    unsafe {
        asm!("csrs mie, {0}", in(reg) 1 << 7 | 1 << 11);
        asm!("csrsi mstatus, 8");
    }
}

/// Puts a byte on the line. Returns `false` if there is no room yet.
pub fn transmit(byte: u8) -> bool {
    let room = read_uart(LINE_STATUS) & TRANSMIT_EMPTY != 0;
    if room {
        write_uart(DATA, byte);
    }
    room
}

/// Accepts bytes for which the interrupt had no room.
pub fn resume() {
    write_uart(INTERRUPT_ENABLE, 0b11);
}

/// Returns tenths of a second since the start. Wraps to 0 after 13 years.
pub fn ticks() -> u32 {
    TICKS.load(Ordering::Relaxed)
}

/// Waits for an interrupt, unless `ready`. An interrupt between the check and the sleep is not
/// missed: it stays pending and ends the sleep.
pub fn sleep_unless(ready: impl FnOnce() -> bool) {
    // SAFETY: interrupts are off for a moment. Nothing else requires them to be on.
    unsafe { asm!("csrci mstatus, 8") };
    if !ready() {
        // SAFETY: waits and changes no register and no memory.
        unsafe { asm!("wfi") };
    }
    // SAFETY: interrupts were on before. The handlers touch only atomics.
    unsafe { asm!("csrsi mstatus, 8") };
}

/// Returns the clock's time, whose halves are read separately.
fn time() -> u64 {
    loop {
        let high = CLINT.at(TIME + 4).read();
        let low = CLINT.at(TIME).read();
        if high == CLINT.at(TIME + 4).read() {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

fn next_tick() {
    let at = time() + u64::from(CLOCK_HZ / TICKS_PER_SECOND);
    // No intermediate value is too early.
    CLINT.at(COMPARE + 4).write(u32::MAX);
    CLINT.at(COMPARE).write(at as u32);
    CLINT.at(COMPARE + 4).write((at >> 32) as u32);
}

/// Writes zero to a word of the provisioning page. The page is RAM in QEMU. A real board needs a
/// command of its flash controller.
pub fn clear(word: Register) {
    word.write(0);
}

/// Starts the counter of [`counter`], which always runs.
pub fn start_counter() {}

/// Returns the number of instructions so far, in QEMU with `-icount shift=0`.
pub fn counter() -> u32 {
    let count;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {0}, minstret", out(reg) count) };
    count
}

/// Counts of [`counter`] per 1,000 instructions.
pub const COUNTS_PER_1000: u32 = 1_000;

#[core_interrupt(Interrupt::MachineTimer)]
fn on_tick() {
    next_tick();
    // There is no other writer: one processor, one handler.
    let now = TICKS.load(Ordering::Relaxed);
    TICKS.store(now.wrapping_add(1), Ordering::Relaxed);
}

#[core_interrupt(Interrupt::MachineExternal)]
fn on_device() {
    let number = PLIC.at(CLAIM).read();
    // SAFETY: only this handler calls it, and the handler does not interrupt itself.
    let received = unsafe { link::producer() };
    while read_uart(LINE_STATUS) & RECEIVE_READY != 0 {
        if !received.ready() {
            write_uart(INTERRUPT_ENABLE, 0b10);
            break;
        }
        // The queue is ready.
        let _ = received.enqueue(read_uart(DATA));
    }
    // Reading the interrupt identification ends the interrupt for sending.
    read_uart(FIFO_CONTROL);
    PLIC.at(CLAIM).write(number);
}
