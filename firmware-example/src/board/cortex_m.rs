//! Interrupt controller (NVIC), system ticks and sleep, common to all Cortex-M.
#![expect(unsafe_code, reason = "instructions and registers of the processor")]

use core::arch::asm;

use super::{LAST_INTERRUPT, on_interrupt, register::Device};

/// Device interrupts, up to the last used one. All have the same handler.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [extern "C" fn(); LAST_INTERRUPT as usize + 1] =
    [on_interrupt; LAST_INTERRUPT as usize + 1];

// SAFETY: the System Control Space of Armv6-M, Armv7-M and Armv8-M.
const SYSTEM: Device = unsafe { Device::new(0xe000_e000) };

/// Enables an interrupt.
pub fn enable_interrupt(number: u8) {
    let word = usize::from(number / 32) * 4;
    SYSTEM.at(0x100 + word).write(1 << (number % 32));
}

/// Makes an interrupt pending, as if the device had raised it.
pub fn pend_interrupt(number: u8) {
    let word = usize::from(number / 32) * 4;
    SYSTEM.at(0x200 + word).write(1 << (number % 32));
}

/// Interrupts the processor every `cycles` clock cycles, at most 2²⁴ (`SysTick`).
pub fn start_system_ticks(cycles: u32) {
    SYSTEM.at(0x14).write(cycles - 1);
    SYSTEM.at(0x18).write(0);
    // Enabled, with interrupt, on the processor clock.
    SYSTEM.at(0x10).write(0b111);
}

/// Waits for an interrupt, unless `ready`. An interrupt between the check and the sleep is not
/// missed: it stays pending and ends the sleep.
pub fn sleep_unless(ready: impl FnOnce() -> bool) {
    // SAFETY: interrupts are off for a moment. Nothing else requires them to be on.
    unsafe { asm!("cpsid i") };
    if !ready() {
        // SAFETY: waits and changes no register and no memory.
        unsafe { asm!("dsb", "wfi") };
    }
    // SAFETY: interrupts were on before. The handlers touch only atomics.
    unsafe { asm!("cpsie i", "isb") };
}
