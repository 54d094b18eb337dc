//! The board of this firmware, and the page of its provisioning record. All board modules have the
//! same functions.
//!
//! | function | action |
//! | --- | --- |
//! | `start` | enables the serial line, its interrupt and the ticks |
//! | `transmit` | puts a byte on the line, if there is room |
//! | `resume` | accepts bytes for which the interrupt had no room |
//! | `ticks` | tenths of a second since the start |
//! | `sleep_unless` | waits for an interrupt, unless work is pending |
//! | `provisioning` | the page of the provisioning record |
//! | `clear` | writes zero to a word of the provisioning page |
//! | `random_byte` | hardware random byte, if `boards.rs` has `has_random_numbers` |
//! | `start_second`, `transmit_second`, `receive_second` | second line, if the board has it |
//! | `counter` | counter for measurements, with [`COUNTS_PER_1000`] per thousand instructions |

#[cfg(target_arch = "arm")]
pub mod cortex_m;
mod register;

// File in `board/`, named by `boards.rs` for this board.
include!(concat!(env!("OUT_DIR"), "/board.rs"));

use smolfed_core::provision::KEY;

#[cfg(target_arch = "arm")]
pub use cortex_m::sleep_unless;
use register::Device;

/// Bytes of RAM, from `boards.rs`.
pub const RAM_BYTES: usize = crate::number::number(env!("SMOLFED_RAM"));

/// Ticks per second.
pub const TICKS_PER_SECOND: u32 = 10;

#[expect(unsafe_code, reason = "memory that only the linker knows")]
unsafe extern "C" {
    static mut _provision: u8;
    static mut _provision_end: u8;
}

/// Returns the page of the provisioning record: the region `PROVISION` of the memory map.
#[expect(unsafe_code, reason = "memory that only the linker knows")]
pub fn provisioning() -> &'static [u8] {
    let (start, end) = (&raw const _provision, &raw const _provision_end);
    let length = end.addr().saturating_sub(start.addr());
    // SAFETY: the memory map reserves this region for the record, and it is readable from the
    // start. Only `forget_first_key` writes to it, while nobody reads the key.
    unsafe { core::slice::from_raw_parts(start, length) }
}

/// Overwrites the first chain key in the provisioning record, which is not needed once the ledger
/// exists: `docs/provisioning.md`. No [`Record`](smolfed_core::provision::Record) may be in use.
///
/// Goes word by word and skips zero words. Therefore, later starts write nothing, and a start after
/// a power failure continues.
#[expect(unsafe_code, reason = "memory that only the linker knows")]
pub fn forget_first_key() {
    let start = (&raw mut _provision).expose_provenance();
    // SAFETY: each word of the page can be read and, by `clear`, written. No reference to the bytes
    // of the key exists, since the references in a record start after them.
    let page = unsafe { Device::new(start) };
    for offset in KEY.step_by(size_of::<u32>()) {
        let word = page.at(offset);
        if word.read() != 0 {
            clear(word);
        }
    }
}
