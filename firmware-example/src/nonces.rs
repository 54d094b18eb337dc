//! Nonces that never come again, also after a restart: of sessions, and of the ledger.
//!
//! Where the hardware has a generator of random numbers, they come from there: two of 128 bits are
//! equal with probability 2⁻¹²⁸. Elsewhere every start of the board has a number, which is on flash
//! before it is used, and a nonce is that number with the number of the session behind it. Anybody
//! can guess it, which does no harm: the key of a session is a pseudo-random function of it, and of
//! the coordinator's nonce, which is random.
//!
//! The ledger's nonce keeps the streams of a ledger that was erased from being used again, so it
//! must come from the hardware. A board without a generator gets its ledger when it is provisioned
//! (`device-K.ledger`), and refuses a blank one.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
#[cfg(not(has_random_numbers))]
use smolfed_core::ledger::{Budget, Limits, MaxJump, Separation};
use smolfed_core::{
    crypto::Key,
    ledger::{Ledger, LedgerError},
};

#[cfg(has_random_numbers)]
use crate::board;
#[cfg(all(has_random_numbers, feature = "element"))]
use crate::element::record;
#[cfg(all(has_random_numbers, not(feature = "element")))]
use crate::root::record;

/// Where nonces come from.
#[cfg(not(has_random_numbers))]
pub type Nonces = Counted;

/// Where nonces come from.
#[cfg(has_random_numbers)]
pub type Nonces = Hardware;

/// The device's ledger, which provisioning has written.
///
/// # Errors
/// [`LedgerError`]: the device must then not take part.
#[cfg(not(has_random_numbers))]
pub fn ledger<F: NorFlash>(flash: F) -> Result<Ledger<F>, LedgerError> {
    Ledger::open(flash)
}

/// The device's ledger, which it creates at its first start with the key of its record.
///
/// # Errors
/// [`LedgerError`]: the device must then not take part.
#[cfg(has_random_numbers)]
pub fn ledger<F: NorFlash>(flash: F) -> Result<Ledger<F>, LedgerError> {
    let fresh = core::array::from_fn(|_| board::random_byte());
    Ledger::open_or_create(flash, fresh, first_key())
}

/// The key of the record, if it has one still. One that cannot be read has none: whoever reads the
/// samples of the same record says why. A function, so that the record leaves the stack.
#[cfg(has_random_numbers)]
#[inline(never)]
fn first_key() -> Option<Key> {
    let mut record = record();
    record.as_mut().ok()?.key.clone()
}

/// The nonces of this start, counted on a separate piece of flash.
///
/// # Errors
/// [`LedgerError`] if the start could not be counted: the device must then send nothing.
// Its ledger leaves the stack before that of the rounds is opened.
#[cfg(not(has_random_numbers))]
#[inline(never)]
pub fn of_this_start<F: NorFlash>(flash: F) -> Result<Nonces, LedgerError> {
    // No stream derives from this ledger, and no session: any nonce and any key will do.
    let no_key = Some(Key::from_secret([0; 32]));
    let mut starts = Ledger::open_or_create(flash, [0; 8], no_key)?;
    // The numbers of a ledger go up by one at least, and are on flash when it returns.
    let start = starts.past().next_round;
    starts.record(
        start,
        &Limits {
            budget: Budget(u32::MAX),
            separation: Separation::NONE,
            max_jump: MaxJump(0),
        },
    )?;
    Ok(Counted { start, session: 0 })
}

/// Numbers of sessions.
#[cfg(not(has_random_numbers))]
pub struct Counted {
    start: u32,
    session: u32,
}

#[cfg(not(has_random_numbers))]
impl rand_core::TryRng for Counted {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, nonce: &mut [u8]) -> Result<(), Infallible> {
        let number = self.start.to_le_bytes().into_iter();
        let number = number.chain(self.session.to_le_bytes());
        // Eight bytes never come again; the others are padding.
        let number = number.chain(core::iter::repeat(0));
        for (place, byte) in nonce.iter_mut().zip(number) {
            *place = byte;
        }
        // At one every half second it takes 68 years to repeat.
        self.session = self.session.wrapping_add(1);
        Ok(())
    }
}

/// The nonces of this board: its hardware makes them, and nothing needs to be counted.
///
/// # Errors
/// None.
#[cfg(has_random_numbers)]
pub fn of_this_start<F: NorFlash>(_: F) -> Result<Nonces, Infallible> {
    Ok(Hardware)
}

/// The hardware's generator.
#[cfg(has_random_numbers)]
pub struct Hardware;

#[cfg(has_random_numbers)]
impl rand_core::TryRng for Hardware {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill_with(board::random_byte);
        Ok(())
    }
}
