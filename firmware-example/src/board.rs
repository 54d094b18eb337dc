//! The board that this firmware is for: each module has the same functions.
//!
//! | function | what it does |
//! | --- | --- |
//! | `start` | switches on the serial line, its interrupt and the ticks |
//! | `transmit` | puts a byte on the line, if there is room |
//! | `resume` | lets bytes through that the interrupt had no room for |
//! | `ticks` | tenths of a second since the start |
//! | `sleep_unless` | waits for an interrupt, unless there is something to do |
//! | `provisioning` | the page of the provisioning record |
//! | `clear` | writes zero to a word of that page |
//! | `random_byte` | a random byte of the hardware, where `boards.rs` has `has_random_numbers` |
//! | `start_second`, `transmit_second`, `receive_second` | a second line, where there is one |
//! | `counter` | for measurements: a counter, [`COUNTS_PER_1000`] a thousand instructions |

#[cfg(target_arch = "arm")]
pub mod cortex_m;
mod register;

// The file in `board/` that `boards.rs` names for this board.
include!(concat!(env!("OUT_DIR"), "/board.rs"));

use smolfed_core::provision::KEY;

#[cfg(target_arch = "arm")]
pub use cortex_m::sleep_unless;
use register::Device;

/// Bytes of RAM: `boards.rs`.
pub const RAM_BYTES: usize = crate::number::number(env!("SMOLFED_RAM"));

/// Ticks in a second.
pub const TICKS_PER_SECOND: u32 = 10;

#[expect(unsafe_code, reason = "memory that only the linker knows")]
unsafe extern "C" {
    static mut _provision: u8;
    static mut _provision_end: u8;
}

/// The page of the provisioning record: the region `PROVISION` of the memory map.
#[expect(unsafe_code, reason = "memory that only the linker knows")]
pub fn provisioning() -> &'static [u8] {
    let (start, end) = (&raw const _provision, &raw const _provision_end);
    let length = end.addr().saturating_sub(start.addr());
    // SAFETY: the memory map gives this region to the record alone, and it can be read from the
    // start. Nothing writes to it but `forget_first_key`, while nobody reads the key.
    unsafe { core::slice::from_raw_parts(start, length) }
}

/// Overwrites the first chain key in the provisioning record, which is of no use once the ledger is
/// there: `docs/provisioning.md`. Not while a [`Record`](smolfed_core::provision::Record) is read.
///
/// Word after word; those that are zero stay, so that a start after the first one writes nothing,
/// and goes on where a power failure has interrupted it.
#[expect(unsafe_code, reason = "memory that only the linker knows")]
pub fn forget_first_key() {
    let start = (&raw mut _provision).expose_provenance();
    // SAFETY: each word of the page can be read and, by `clear`, written; no reference to the bytes
    // of the key is alive, since those that a record keeps are behind them.
    let page = unsafe { Device::new(start) };
    for offset in KEY.step_by(size_of::<u32>()) {
        let word = page.at(offset);
        if word.read() != 0 {
            clear(word);
        }
    }
}
