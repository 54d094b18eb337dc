//! Nonces for sessions and the ledger that never repeat, even after a restart.
//!
//! Hardware with a random number generator supplies the nonces: two nonces of 128 bits are equal
//! with probability 2⁻¹²⁸. On other boards, every start has a number, stored in flash before use,
//! and a nonce is that number followed by the session number. Anybody can guess it, but this is
//! harmless: the session key is a pseudo-random function of the nonce and of the coordinator's
//! random nonce.
//!
//! The ledger's nonce prevents an erased ledger's streams from being used again, so it must come
//! from the hardware. A board without a generator receives its ledger when it is provisioned
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

/// Source of nonces.
#[cfg(not(has_random_numbers))]
pub type Nonces = Counted;

/// Source of nonces.
#[cfg(has_random_numbers)]
pub type Nonces = Hardware;

/// Opens the device's ledger from provisioning.
///
/// # Errors
/// [`LedgerError`]. The device must not take part.
#[cfg(not(has_random_numbers))]
pub fn ledger<F: NorFlash>(flash: F) -> Result<Ledger<F>, LedgerError> {
    Ledger::open(flash)
}

/// Opens the device's ledger, which it creates at its first start with the key of its record.
///
/// # Errors
/// [`LedgerError`]. The device must not take part.
#[cfg(has_random_numbers)]
pub fn ledger<F: NorFlash>(flash: F) -> Result<Ledger<F>, LedgerError> {
    let fresh = core::array::from_fn(|_| board::random_byte());
    Ledger::open_or_create(flash, fresh, first_key())
}

/// Returns the key of the record, if it still has one. An unreadable record has none, and reading
/// its samples reports why. A function, so that the record leaves the stack.
#[cfg(has_random_numbers)]
#[inline(never)]
fn first_key() -> Option<Key> {
    let mut record = record();
    record.as_mut().ok()?.key.clone()
}

/// Returns the nonces of this start, counted in separate flash.
///
/// # Errors
/// [`LedgerError`] if the start could not be counted. The device must then send nothing.
// Its ledger leaves the stack before the rounds' ledger is opened.
#[cfg(not(has_random_numbers))]
#[inline(never)]
pub fn of_this_start<F: NorFlash>(flash: F) -> Result<Nonces, LedgerError> {
    // No stream and no session derives from this ledger, so any nonce and any key will do.
    let no_key = Some(Key::from_secret([0; 32]));
    let mut starts = Ledger::open_or_create(flash, [0; 8], no_key)?;
    // The numbers of a ledger increase by at least one, and are in flash when it returns.
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

/// Session numbers.
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
        // Eight bytes never repeat, and the others are padding.
        let number = number.chain(core::iter::repeat(0));
        for (place, byte) in nonce.iter_mut().zip(number) {
            *place = byte;
        }
        // At one session every half second it takes 68 years to repeat.
        self.session = self.session.wrapping_add(1);
        Ok(())
    }
}

/// Returns the nonces of this board. Its hardware generates them, so nothing is counted.
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
