//! The board that this firmware is for: each module has the same functions.
//!
//! | function | what it does |
//! | --- | --- |
//! | `start` | switches on the serial line, its interrupt and the ticks |
//! | `transmit` | puts a byte on the line, if there is room |
//! | `ticks` | tenths of a second since the start |
//! | `sleep_unless` | waits for an interrupt, unless there is something to do |
//! | `provisioning` | the page of the provisioning record |
//! | `random_byte` | a random byte of the hardware, where `boards.rs` has `has_random_numbers` |
//! | `counter` | for measurements: a counter, [`COUNTS_PER_1000`] a thousand instructions |

#[cfg(target_arch = "arm")]
pub mod cortex_m;
mod register;

// The file in `board/` that `boards.rs` names for this board.
include!(concat!(env!("OUT_DIR"), "/board.rs"));

#[cfg(target_arch = "arm")]
pub use cortex_m::sleep_unless;

/// Bytes of RAM: `boards.rs`.
pub const RAM_BYTES: usize = crate::number::number(env!("SMOLFED_RAM"));

/// Ticks in a second.
pub const TICKS_PER_SECOND: u32 = 10;

/// The page of the provisioning record: the region `PROVISION` of the memory map.
#[expect(unsafe_code, reason = "memory that only the linker knows")]
pub fn provisioning() -> &'static [u8] {
    unsafe extern "C" {
        static _provision: u8;
        static _provision_end: u8;
    }
    let (start, end) = (&raw const _provision, &raw const _provision_end);
    let length = end.addr().saturating_sub(start.addr());
    // SAFETY: the memory map gives this region to the record alone; it can be read from the start,
    // and nothing writes to it while the firmware runs.
    unsafe { core::slice::from_raw_parts(start, length) }
}
