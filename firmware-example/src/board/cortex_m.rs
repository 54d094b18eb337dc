//! What all Cortex-M have: the interrupt controller, and sleep.
#![expect(unsafe_code, reason = "instructions and registers of the processor")]

use core::arch::asm;

use super::{LAST_INTERRUPT, on_interrupt, register::Device};

/// The interrupts of devices, up to the last one that is used: all have one handler.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [extern "C" fn(); LAST_INTERRUPT as usize + 1] =
    [on_interrupt; LAST_INTERRUPT as usize + 1];

// SAFETY: the System Control Space of Armv6-M, Armv7-M and Armv8-M.
const SYSTEM: Device = unsafe { Device::new(0xe000_e000) };

/// Lets an interrupt through to the processor.
pub fn enable_interrupt(number: u8) {
    let word = usize::from(number / 32) * 4;
    SYSTEM.at(0x100 + word).write(1 << (number % 32));
}

/// Interrupts the processor as if the device had.
pub fn pend_interrupt(number: u8) {
    let word = usize::from(number / 32) * 4;
    SYSTEM.at(0x200 + word).write(1 << (number % 32));
}

/// Interrupts the processor every `cycles` cycles of its clock, at most 2²⁴ (`SysTick`).
pub fn start_system_ticks(cycles: u32) {
    SYSTEM.at(0x14).write(cycles - 1);
    SYSTEM.at(0x18).write(0);
    // On, with interrupt, from the processor's clock.
    SYSTEM.at(0x10).write(0b111);
}

/// Waits for an interrupt, unless `ready`. An interrupt between the question and the sleep is not
/// missed: it stays pending, which ends the sleep.
pub fn sleep_unless(ready: impl FnOnce() -> bool) {
    // SAFETY: interrupts are off for a moment; nothing else depends on their being on.
    unsafe { asm!("cpsid i") };
    if !ready() {
        // SAFETY: waits; changes no register and no memory.
        unsafe { asm!("dsb", "wfi") };
    }
    // SAFETY: they were on before; the handlers touch atomics only.
    unsafe { asm!("cpsie i", "isb") };
}
