//! Nonces of sessions that never come again, also after a restart.
//!
//! Where the hardware has a generator of random numbers, they come from there: two of 128 bits are
//! equal with probability 2⁻¹²⁸. Elsewhere every start of the board has a number, which is on flash
//! before it is used, and the nonces of a start are the stream of that number under the device's
//! root. Two starts have different streams, and who does not know the root cannot tell them from
//! random bytes, so that nonces come again by the same chance only.

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::session::Identity;
#[cfg(not(board = "microbit"))]
use smolfed_core::{
    ledger::{Budget, Ledger, LedgerError},
    stream::{Purpose, Stream, StreamId},
};

/// The nonces of this start, counted on a piece of flash of its own.
///
/// # Errors
/// [`LedgerError`] if the start could not be counted: the device must then say nothing.
#[cfg(not(board = "microbit"))]
pub fn of_this_start<F: NorFlash>(flash: F, identity: &Identity) -> Result<Stream, LedgerError> {
    let mut starts = Ledger::open_or_create(flash)?;
    // The numbers of a ledger go up by one at least, and are on flash when it says so.
    let number = starts.past().next_round;
    starts.begin(number, Budget(u32::MAX))?;
    Ok(identity.root.stream(StreamId {
        purpose: Purpose::SessionNonces,
        round: number,
        device: identity.device,
    }))
}

/// The nonces of this board: its hardware makes them, and nothing needs to be counted.
///
/// # Errors
/// None.
#[cfg(board = "microbit")]
pub fn of_this_start<F: NorFlash>(
    _: F,
    _: &Identity,
) -> Result<Hardware, core::convert::Infallible> {
    Ok(Hardware)
}

/// The hardware's generator.
#[cfg(board = "microbit")]
pub struct Hardware;

#[cfg(board = "microbit")]
impl rand_core::TryRng for Hardware {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill_with(crate::board::random_byte);
        Ok(())
    }
}
